//! The shape of a template.

use isolario_model::{AnomalyKind, Outcome};

/// A few transactions that together are an anomaly.
#[derive(Debug)]
pub struct Template {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// What happens.
    pub story: &'static str,
    /// Other anomalies that it cannot do without.
    pub beside: &'static [AnomalyKind],
    pub(super) txns: &'static [Txn],
    pub(super) timing: Timing,
}

/// A transaction of a template.
#[derive(Debug)]
pub(super) struct Txn {
    pub(super) session: u8,
    pub(super) steps: &'static [TemplateOp],
    pub(super) outcome: Outcome,
}

/// An operation of a template. Keys are numbers; 0 is the initial value of a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum TemplateOp {
    /// A read of a register.
    R(u8, i64),
    /// A write of a register.
    W(u8, i64),
    /// An append to a list.
    Append(u8, i64),
    /// A read of a list.
    List(u8, &'static [i64]),
    /// A compare-and-set that took effect: key, expected value, new value.
    Set(u8, i64, i64),
}

impl TemplateOp {
    #[cfg(test)]
    pub(super) fn key(&self) -> u8 {
        match *self {
            TemplateOp::R(key, _) | TemplateOp::W(key, _) | TemplateOp::Append(key, _) => key,
            TemplateOp::List(key, _) | TemplateOp::Set(key, ..) => key,
        }
    }
}

/// When the transactions of a template run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timing {
    /// All at the same time, as far as sessions allow, so that real time adds nothing.
    Overlapping,
    /// One after the other.
    OneByOne,
    /// From one tick to another, per transaction.
    Spans(&'static [(u32, u32)]),
}

/// When overlapping transactions end: after the last one begins.
const END: u32 = 99;

impl Template {
    /// From when to when a transaction runs, in ticks.
    pub(super) fn span(&self, txn: usize) -> (u32, u32) {
        match self.timing {
            Timing::OneByOne => (10 * txn as u32, 10 * txn as u32 + 5),
            Timing::Spans(spans) => spans[txn],
            Timing::Overlapping => {
                let same = |other: &&Txn| other.session == self.txns[txn].session;
                let before = self.txns[..txn].iter().filter(same).count() as u32;
                let is_last = !self.txns[txn + 1..].iter().any(|other| same(&other));
                (10 * before, if is_last { END } else { 10 * before + 5 })
            }
        }
    }
}

/// A committed transaction.
pub(super) const fn txn(session: u8, steps: &'static [TemplateOp]) -> Txn {
    Txn { session, steps, outcome: Outcome::Committed }
}

/// An aborted transaction.
pub(super) const fn aborted(session: u8, steps: &'static [TemplateOp]) -> Txn {
    Txn { session, steps, outcome: Outcome::Aborted }
}

/// A template of overlapping transactions.
pub(super) const fn template(
    kind: AnomalyKind,
    story: &'static str,
    txns: &'static [Txn],
) -> Template {
    Template { kind, story, beside: &[], txns, timing: Timing::Overlapping }
}
