//! Who moves next.

use isolario_workload::Rng;

/// Chooses, step by step, which of the active sessions moves.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The sessions; those before `active` have a transaction in progress or are about to.
    sessions: Vec<u32>,
    active: usize,
    /// How many transactions may still begin.
    left: u64,
}

impl Schedule {
    /// A schedule of this many transactions, with a share of the sessions active at a time.
    pub(crate) fn new(sessions: u32, concurrency: f64, txns: u64) -> Schedule {
        // Rounds up, and never beyond 2^53, so this is exact.
        let active = (f64::from(sessions) * concurrency).ceil() as usize;
        let active = active.clamp(1, (sessions as usize).max(1));
        let active = active.min(usize::try_from(txns).unwrap_or(usize::MAX));
        Schedule { sessions: (0..sessions).collect(), active, left: txns - active as u64 }
    }

    /// The place of an active session; none when all is done.
    #[inline]
    pub(crate) fn next(&self, rng: &mut Rng) -> Option<usize> {
        (self.active > 0).then(|| rng.below(self.active as u64) as usize)
    }

    /// The session at a place.
    #[inline]
    pub(crate) fn session(&self, place: usize) -> u32 {
        self.sessions[place]
    }

    /// A transaction has ended: its session, or one of those that wait, begins the next one.
    /// Without a next one the session rests.
    pub(crate) fn ended(&mut self, place: usize, rng: &mut Rng) {
        if self.left == 0 {
            self.active -= 1;
            self.sessions.swap(place, self.active);
            return;
        }
        self.left -= 1;
        let waiting = self.sessions.len() - self.active;
        match rng.below(waiting as u64 + 1) as usize {
            0 => {}
            other => self.sessions.swap(place, self.active + other - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a schedule of transactions of one step each; tells how many each session ran.
    fn run(sessions: u32, concurrency: f64, txns: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(sessions, concurrency, txns);
        let mut rng = Rng::new(1);
        let mut counts = vec![0; sessions as usize];
        while let Some(place) = schedule.next(&mut rng) {
            counts[schedule.session(place) as usize] += 1;
            schedule.ended(place, &mut rng);
        }
        counts
    }

    #[test]
    fn all_transactions_are_run_and_every_session_has_its_share() {
        for concurrency in [0.0, 0.3, 1.0] {
            let counts = run(10, concurrency, 10_000);
            assert_eq!(counts.iter().sum::<u64>(), 10_000);
            assert!(counts.iter().all(|count| (700..1300).contains(count)), "{counts:?}");
        }
        assert_eq!(run(10, 1.0, 3).iter().sum::<u64>(), 3);
        assert_eq!(run(10, 1.0, 0).iter().sum::<u64>(), 0);
    }
}
