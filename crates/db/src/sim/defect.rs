//! How the simulated store breaks its promise.

use std::collections::VecDeque;

use isolario_model::{AnomalyKind, Level};
use isolario_sim::Store;

use crate::error::DbError;

/// What reads return now and then, where weaker rules alone do not lead to the anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// What nobody wrote.
    ThinAir,
    /// What an aborted transaction wrote.
    Aborted,
    /// What its own transaction overwrote.
    Intermediate,
    /// Not the transaction's own write.
    NotOwn,
}

impl Defect {
    /// What to give, and what to do besides, so that a store that claims a level shows an anomaly:
    /// the strongest rules that allow it, or a defect of reads.
    pub(super) fn of(
        anomaly: AnomalyKind,
        claimed: Level,
    ) -> Result<(Level, Option<Defect>), DbError> {
        let name = anomaly.name();
        if !anomaly.forbidden_at(claimed) {
            let message = format!("{claimed} does not forbid {name}: choose a stronger level");
            return Err(DbError::fatal(message));
        }
        let defect = match anomaly {
            AnomalyKind::ThinAirRead => Some(Defect::ThinAir),
            AnomalyKind::AbortedRead => Some(Defect::Aborted),
            AnomalyKind::IntermediateRead => Some(Defect::Intermediate),
            AnomalyKind::NotMyOwnWrite => Some(Defect::NotOwn),
            _ => None,
        };
        if defect.is_some() {
            return Ok((claimed, defect));
        }
        let shows = |level: &Level| {
            claimed.implies(*level) && Store::has_rules_for(*level) && !anomaly.forbidden_at(*level)
        };
        // The last one is the strongest.
        match Level::all().filter(shows).last() {
            // It takes predicates to see a phantom.
            Some(given) if anomaly != AnomalyKind::Phantom => Ok((given, None)),
            _ => Err(DbError::fatal(format!(
                "the simulated store cannot show {name}: try LostUpdate, WriteSkew, LongFork, \
                 StaleRead, FracturedReadCO, AbortedRead, IntermediateRead or ThinAirRead"
            ))),
        }
    }
}

/// Values that nobody should see any more.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    values: VecDeque<(u64, i64)>,
}

/// Enough for a read to come by while it is there.
const KEPT: usize = 256;

impl Leftovers {
    pub(super) fn leave(&mut self, key: u64, value: i64) {
        if self.values.len() == KEPT {
            self.values.pop_front();
        }
        self.values.push_back((key, value));
    }

    /// The last one of a key.
    pub(super) fn take(&mut self, key: u64) -> Option<i64> {
        let at = self.values.iter().rposition(|(left, _)| *left == key)?;
        self.values.remove(at).map(|(_, value)| value)
    }
}
