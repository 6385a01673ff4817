//! Places in a file to go back to when there is doubt, so that it need not be read again from its beginning.

use isolario_check::Checkpoint;
use isolario_formats::Stream;

use super::order::Mark;
use super::reader::fork;
use super::sorted::Finishes;

/// A place, and all that was known there.
pub(super) struct Place {
    /// The file from there on.
    pub(super) stream: Stream,
    pub(super) known: Checkpoint,
    pub(super) finishes: Finishes,
    pub(super) order: Mark,
}

impl Place {
    fn arrived(&self) -> u64 {
        self.known.arrived()
    }

    /// The same place once more: it may be returned to again.
    fn again(&self) -> Option<Place> {
        let stream = fork(&self.stream)?;
        let (known, finishes) = (self.known.clone(), self.finishes.clone());
        Some(Place { stream, known, finishes, order: self.order })
    }
}

/// Places, from the earliest to the last, farther apart the longer ago they are: for every distance there is
/// one that is about as far back. The beginning of the file is none of them.
#[derive(Default)]
pub(super) struct Trail {
    places: Vec<Place>,
}

/// To remember a place takes as long as to look at one transaction per so many things that are known there.
const KNOWN_PER_TXN: u64 = 16;

impl Trail {
    /// Whether enough has come since the last place for another one to cost little.
    pub(super) fn are_due(&self, known: &Checkpoint) -> bool {
        let last = self.places.last().map_or(0, Place::arrived);
        known.arrived().saturating_sub(last) * KNOWN_PER_TXN > known.size() as u64
    }

    /// Adds a place. No more than so much is known at all of them together.
    pub(super) fn add(&mut self, place: Place, most: usize) {
        let now = place.arrived();
        self.places.push(place);
        let mut at = 1;
        while at + 1 < self.places.len() {
            let age = |at: usize| now - self.places[at].arrived();
            if age(at - 1) <= 2 * age(at + 1) {
                self.places.remove(at);
            } else {
                at += 1;
            }
        }
        let size = |places: &[Place]| places.iter().map(|place| place.known.size()).sum::<usize>();
        while size(&self.places) > most {
            self.places.remove(0);
        }
    }

    /// Whether there is a place where no more than so many transactions had come.
    pub(super) fn reach(&self, arrived: u64) -> bool {
        self.places.first().is_some_and(|place| place.arrived() <= arrived)
    }

    /// The last such place. Later ones are forgotten: what was kept there is not enough.
    pub(super) fn go_back(&mut self, arrived: u64) -> Option<Place> {
        let earlier = self.places.partition_point(|place| place.arrived() <= arrived);
        self.places.truncate(earlier);
        self.places.last()?.again()
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use isolario_check::{CheckOptions, Follower};
    use isolario_formats::find;
    use isolario_model::{Level, Outcome, TxnEnd, TxnSink, TxnStart};

    use super::*;

    #[test]
    fn for_every_distance_there_is_a_place_that_is_about_as_far_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stream = || Stream::open(file.path(), find("jsonl").unwrap()).unwrap().unwrap();
        let mut follower = Follower::new(Level::Causal, CheckOptions::default(), 1).unwrap();
        let mut places = Trail::default();
        for arrived in 1..=1000u64 {
            follower.begin(&TxnStart { session: "a".into(), id: None, line: None }).unwrap();
            follower.end(&TxnEnd::new(Outcome::Committed)).unwrap();
            assert!(places.are_due(follower.checkpoint()));
            let (known, finishes) = (follower.checkpoint().clone(), Finishes::new(1));
            places.add(Place { stream: stream(), known, finishes, order: Mark::default() }, 100);
            assert!(places.places.len() <= 2 * 10 + 2, "{}", places.places.len());
            for distance in 0..arrived {
                let wanted = arrived - distance;
                let earlier = places.places.partition_point(|place| place.arrived() <= wanted);
                let place = places.places[..earlier].last().unwrap();
                assert!(arrived - place.arrived() <= 2 * distance, "{arrived}, {distance}");
            }
        }
        assert!(places.reach(1) && !places.reach(0));
        assert_eq!(places.go_back(900).unwrap().arrived(), places.places.last().unwrap().arrived());
        assert!(places.places.iter().all(|place| place.arrived() <= 900));
        places.clear();
        assert!(places.go_back(1000).is_none());
    }
}
