//! What befalls a run besides its transactions, on the clock of its history.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolario_model::{RunEvent, RunEventKind};

use isolario_db::DbError;

/// What happens again within this time is one event.
const TOGETHER: Duration = Duration::from_millis(100);
/// More events than this tell nothing; the first ones are kept.
const MOST_EVENTS: usize = 1000;
/// How many of the latest events may still go on.
const RECENT: usize = 64;
/// Nothing has to commit for this long to be called a pause.
const PAUSE: Duration = Duration::from_millis(500);

/// The events of a run.
pub(super) struct Events {
    epoch: Instant,
    events: Mutex<Vec<RunEvent>>,
}

impl Events {
    pub(super) fn new(epoch: Instant) -> Events {
        Events { epoch, events: Mutex::default() }
    }

    /// An error that is over at once.
    pub(super) fn error(&self, node: usize, error: &DbError) {
        let now = Instant::now();
        self.add(RunEventKind::Errors, now, Some(now), Some(node), Some(error));
    }

    /// A session was without a connection since then; it has one now, unless the run is over.
    pub(super) fn lost(&self, lost: &Lost, node: usize, is_over: bool) {
        let until = (!is_over).then(Instant::now);
        self.add(RunEventKind::ConnectionLost, lost.at, until, Some(node), Some(&lost.error));
        if let Some((at, error)) = &lost.refused {
            self.add(RunEventKind::NodeUnreachable, *at, until, Some(node), Some(error));
        }
    }

    /// Nothing committed between two moments, if that was long; `until` nothing where the run ended so.
    pub(super) fn without_commit(&self, since: Instant, until: Option<Instant>) {
        if until.unwrap_or_else(Instant::now).duration_since(since) >= PAUSE {
            self.add(RunEventKind::Pause, since, until, None, None);
        }
    }

    /// All of them, in the order in which they began.
    pub(super) fn take(&self) -> Vec<RunEvent> {
        let mut events = std::mem::take(&mut *self.lock());
        events.sort_by(|one, other| one.from_ms.total_cmp(&other.from_ms));
        events
    }

    /// Adds an event, or makes a recent one of its kind longer.
    fn add(
        &self,
        kind: RunEventKind,
        from: Instant,
        until: Option<Instant>,
        node: Option<usize>,
        error: Option<&DbError>,
    ) {
        let (from_ms, to_ms) = (self.since_epoch(from), until.map(|end| self.since_epoch(end)));
        let code = error.and_then(|error| error.code.clone());
        let mut events = self.lock();
        let is_full = events.len() >= MOST_EVENTS;
        let together = TOGETHER.as_secs_f64() * 1e3;
        let alike = events.iter_mut().rev().take(RECENT).find(|event| {
            (event.kind, event.node, &event.code) == (kind, node, &code)
                && event.to_ms.is_none_or(|end| from_ms <= end + together)
                && to_ms.is_none_or(|end| event.from_ms <= end + together)
        });
        match alike {
            Some(event) => {
                event.from_ms = event.from_ms.min(from_ms);
                event.to_ms = event.to_ms.zip(to_ms).map(|(one, other)| one.max(other));
                event.count += 1;
            }
            None if !is_full => {
                let message = error.map_or_else(String::new, |error| error.message.clone());
                events.push(RunEvent { kind, from_ms, to_ms, node, code, message, count: 1 });
            }
            None => {}
        }
    }

    fn since_epoch(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.epoch).as_secs_f64() * 1e3
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<RunEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is gone.
pub(super) struct Lost {
    at: Instant,
    error: DbError,
    /// When the node first refused another one, and why.
    refused: Option<(Instant, DbError)>,
}

impl Lost {
    pub(super) fn now(error: &DbError) -> Lost {
        Lost { at: Instant::now(), error: error.clone(), refused: None }
    }

    pub(super) fn refused(&mut self, error: &DbError) {
        self.refused.get_or_insert_with(|| (Instant::now(), error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_once_or_again_is_one_event() {
        let epoch = Instant::now();
        let at = |ms| epoch + Duration::from_millis(ms);
        let events = Events::new(epoch);
        let gone = DbError::unknown("gone").with_code("57P01");
        let lost = |from, until: Option<u64>, node| {
            let (kind, until) = (RunEventKind::ConnectionLost, until.map(at));
            events.add(kind, at(from), until, Some(node), Some(&gone));
        };
        lost(1000, Some(1200), 0);
        lost(1010, Some(1300), 0);
        lost(1350, Some(1400), 0);
        lost(1010, Some(1100), 1);
        lost(2000, None, 0);
        lost(2100, Some(2200), 0);
        events.without_commit(at(100), Some(at(599)));
        events.without_commit(at(100), Some(at(600)));
        let told: Vec<_> = events
            .take()
            .into_iter()
            .map(|event| (event.from_ms as u64, event.to_ms.map(|ms| ms as u64), event.count))
            .collect();
        assert_eq!(
            told,
            [(100, Some(600), 1), (1000, Some(1400), 3), (1010, Some(1100), 1), (2000, None, 2),]
        );
    }

    #[test]
    fn events_do_not_grow_without_end() {
        let events = Events::new(Instant::now());
        for number in 0..2 * MOST_EVENTS {
            events.error(0, &DbError::aborted("no").with_code(number));
        }
        assert_eq!(events.take().len(), MOST_EVENTS);
    }
}
