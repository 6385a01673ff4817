//! How transactions end, whatever they do.

use isolario_model::Outcome;
use isolario_workload::{Chance, Rng};

/// How often transactions do not commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mishaps {
    abort: Chance,
    /// Of those that do not abort.
    unknown: Chance,
}

/// How a transaction is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It aborts.
    Abort,
    /// It does not commit, and the client never learns that.
    Lost,
    /// It commits, if the store lets it.
    Commit {
        /// Whether the client learns how it ended.
        heard: bool,
    },
}

impl Mishaps {
    pub(crate) fn new(abort_ratio: f64, unknown_ratio: f64) -> Mishaps {
        let rest = 1.0 - abort_ratio;
        let unknown = if rest > 0.0 { unknown_ratio / rest } else { 0.0 };
        Mishaps { abort: Chance::new(abort_ratio), unknown: Chance::new(unknown) }
    }

    /// Of those that the client never hears of, half commit.
    fn fate(&self, rng: &mut Rng) -> Fate {
        if rng.happens(self.abort) {
            return Fate::Abort;
        }
        let unknown = rng.happens(self.unknown);
        if unknown && rng.happens(Chance::HALF) {
            return Fate::Lost;
        }
        Fate::Commit { heard: !unknown }
    }
}

/// A transaction that has run its operations.
pub(crate) trait Ending<Store> {
    /// Commits, unless the store finds a conflict.
    fn try_commit(&mut self, store: &mut Store, rng: &mut Rng) -> bool;

    /// Begins anew and runs all operations.
    fn run_again(&mut self, store: &mut Store, rng: &mut Rng);

    /// Gives up.
    fn roll_back(&mut self, store: &mut Store);

    /// Commits or not; the client may never learn which.
    fn finish(&mut self, store: &mut Store, mishaps: &Mishaps, rng: &mut Rng) -> Outcome {
        match mishaps.fate(rng) {
            Fate::Abort => {
                self.roll_back(store);
                Outcome::Aborted
            }
            Fate::Lost => {
                self.roll_back(store);
                Outcome::Unknown
            }
            Fate::Commit { heard } => match self.commit(store, rng) {
                Outcome::Committed if !heard => Outcome::Unknown,
                outcome => outcome,
            },
        }
    }

    /// Commits. On a conflict the store runs the transaction once more, undisturbed, before the
    /// client has heard anything: so conflicts cost no transactions, however hot the keys are.
    fn commit(&mut self, store: &mut Store, rng: &mut Rng) -> Outcome {
        if self.try_commit(store, rng) {
            return Outcome::Committed;
        }
        self.run_again(store, rng);
        if self.try_commit(store, rng) {
            return Outcome::Committed;
        }
        self.roll_back(store);
        Outcome::Aborted
    }
}
