//! Lost commits: what was acknowledged before the server ended, and is missing after it has come back.
//!
//! No level speaks of them: a level is about histories, and that the server ended is not part of one. So
//! when that was is given, and a claim is about two transactions and the time between them.
//!
//! - *Registers.* A transaction read a version of a key, wrote over it, and was acknowledged before the server ended.
//!   Somebody who begins after it has come back reads the old version. The write came after that version,
//!   whatever the isolation level, and nobody else writes the same value: so it is gone. Between the two there may be
//!   transactions of unknown outcome, each of which wrote over what the one before it had written: who read from them
//!   tells that they had committed.
//! - *Lists.* An append was acknowledged before the server ended, and a read after it does not show the element.

use isolario_model::{History, Initial, KeyId, Op, OpId, Outcome, TxnId, ValueId, ValueRef};
use rustc_hash::FxHashMap;

/// A time during which the server ended and was started again, by the clock of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Before it ended.
    pub begun: i64,
    /// After it was started again.
    pub over: i64,
}

/// The claim that a transaction was acknowledged before an outage and is missing after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCommit {
    /// The last write of the transaction to a register, or an append.
    pub lost: OpId,
    /// Writes of transactions of unknown outcome, each over what the one before it wrote; the first one over
    /// what was found again, and the lost one over what the last of them wrote.
    pub via: Vec<OpId>,
    /// The read that finds the old version again, or does not find the element.
    pub found: OpId,
}

/// Why a transaction is not lost, or not by this evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLost {
    /// The evidence names an operation that does not exist.
    #[error("the history has no such operation")]
    NoSuchOp,
    /// The operations are not a write and a read of one key.
    #[error("the operations are not a write and a read of one key")]
    OtherOps,
    /// The server was not down between the two.
    #[error("there was no outage between the acknowledgement and the read")]
    NoOutage,
    /// One of the two transactions did not commit.
    #[error("one of the transactions was not acknowledged")]
    NotAcknowledged,
    /// A transaction did not read what it is said to have written over.
    #[error("a transaction did not read the version that it is claimed to have overwritten")]
    NotOverwritten,
    /// A value was written twice, so that finding it says nothing.
    #[error("the value that is found again was written more than once")]
    WrittenTwice,
    /// The list does show the element.
    #[error("the read contains the element")]
    ElementPresent,
}

/// Re-checks claims about lost commits.
pub(crate) struct Losses<'h> {
    history: &'h History,
    outages: &'h [Outage],
    nil: Option<ValueId>,
    /// What every register holds at first.
    initial: Option<ValueId>,
    /// Whether a write by predicate may have committed, and nobody knows which rows it wrote: then any version may
    /// be its own.
    has_unanswered: bool,
    /// How many operations wrote each version, whatever became of them.
    writes: FxHashMap<(KeyId, ValueId), u32>,
}

impl<'h> Losses<'h> {
    pub(crate) fn new(history: &'h History, outages: &'h [Outage]) -> Losses<'h> {
        let nil = history.find_value(ValueRef::Nil);
        let initial = match history.initial() {
            Initial::Value(value) | Initial::UnlessWritten(value) => {
                history.find_value(value.as_ref())
            }
            _ => None,
        };
        let mut has_unanswered = false;
        let mut writes = FxHashMap::default();
        let mut count = |version| *writes.entry(version).or_insert(0) += 1;
        for op in history.txns().flat_map(|txn| history.txn_ops(txn)) {
            let written = match history.op(op) {
                Op::InsertIfAbsent { applied: Some(false), .. }
                | Op::CompareAndSet { applied: Some(false), .. } => None,
                Op::Write { key, value } | Op::InsertIfAbsent { key, value, .. } => {
                    Some((key, value))
                }
                Op::CompareAndSet { key, new, .. } => Some((key, new)),
                Op::Delete { key } => nil.map(|nil| (key, nil)),
                Op::PredicateWrite { rows: None, .. } => {
                    // What did not commit has left nothing.
                    has_unanswered |= history.outcome(history.op_txn(op)) != Outcome::Aborted;
                    None
                }
                Op::PredicateWrite { rows: Some(rows), .. } => {
                    rows.iter().for_each(|row| count((row.key, row.value)));
                    None
                }
                _ => None,
            };
            written.into_iter().for_each(&mut count);
        }
        Losses { history, outages, nil, initial, has_unanswered, writes }
    }

    pub(crate) fn verify(&self, claim: &LostCommit) -> Result<(), NotLost> {
        let LostCommit { lost, via, found } = claim;
        let is_there = |op: &OpId| op.index() < self.history.op_count();
        if ![lost, found].into_iter().chain(via).all(is_there) {
            return Err(NotLost::NoSuchOp);
        }
        self.around_an_outage(self.history.op_txn(*lost), self.history.op_txn(*found))?;
        match (self.history.op(*found), self.history.op(*lost)) {
            (
                Op::ReadList { key, elements: Some(elements) },
                Op::Append { key: appended_to, element },
            ) if key == appended_to && via.is_empty() => match elements.contains(&element) {
                true => Err(NotLost::ElementPresent),
                false => Ok(()),
            },
            _ => self.written_over(claim),
        }
    }

    /// Whether the one was acknowledged before an outage, and the other began after it.
    fn around_an_outage(&self, lost: TxnId, finder: TxnId) -> Result<(), NotLost> {
        let history = self.history;
        let committed = |txn: TxnId| history.outcome(txn) == Outcome::Committed;
        if !committed(lost) || !committed(finder) {
            return Err(NotLost::NotAcknowledged);
        }
        let (Some(finish), Some(start)) = (history.finish(lost), history.start(finder)) else {
            return Err(NotLost::NoOutage);
        };
        let lies_between = |outage: &Outage| finish < outage.begun && outage.over < start;
        let lies_between = self.outages.iter().any(lies_between);
        if lies_between { Ok(()) } else { Err(NotLost::NoOutage) }
    }

    /// Whether the version that was found is an older one than what was written.
    fn written_over(&self, claim: &LostCommit) -> Result<(), NotLost> {
        let shown = self.shown(claim.found).filter(|_| !self.has_unanswered);
        let (key, mut version) = shown.ok_or(NotLost::OtherOps)?;
        if self.writes.get(&(key, version)).copied().unwrap_or(0) > self.most_writes(version) {
            return Err(NotLost::WrittenTwice);
        }
        for write in &claim.via {
            let txn = self.history.op_txn(*write);
            if self.history.outcome(txn) == Outcome::Aborted {
                return Err(NotLost::NotAcknowledged);
            }
            version = self.overwrote(*write, key, version).ok_or(NotLost::NotOverwritten)?;
            if self.writes.get(&(key, version)) != Some(&1) {
                return Err(NotLost::WrittenTwice);
            }
        }
        self.overwrote(claim.lost, key, version).ok_or(NotLost::NotOverwritten).map(|_| ())
    }

    /// How many writes of a value leave no doubt: the initial one is there without any.
    fn most_writes(&self, value: ValueId) -> u32 {
        u32::from(self.initial != Some(value))
    }

    /// The version that an operation shows. Its own transaction has not written the key before.
    fn shown(&self, found: OpId) -> Option<(KeyId, ValueId)> {
        let (key, value) = match self.history.op(found) {
            Op::Read { key, value } => (key, value?),
            Op::CompareAndSet { key, expected, applied: Some(true), .. } => (key, expected),
            Op::InsertIfAbsent { key, applied: Some(true), .. } => (key, self.nil?),
            Op::CompareAndSet { key, seen, applied: Some(false), .. }
            | Op::InsertIfAbsent { key, seen, applied: Some(false), .. } => (key, seen?),
            _ => return None,
        };
        let ops = self.history.txn_ops(self.history.op_txn(found));
        let mut before = ops.take_while(|op| *op != found);
        let is_own = before.any(|op| self.written(op, key).is_some());
        (!is_own).then_some((key, value))
    }

    /// What a transaction wrote last over a version that it had read, if this is the write.
    fn overwrote(&self, write: OpId, key: KeyId, old: ValueId) -> Option<ValueId> {
        let txn = self.history.op_txn(write);
        let mut ops = self.history.txn_ops(txn);
        let last = self.history.txn_ops(txn).rfind(|op| self.written(*op, key).is_some())?;
        let has_read = ops.any(|op| self.shown(op) == Some((key, old)));
        self.written(write, key).filter(|_| has_read && last == write).flatten()
    }

    /// Whether an operation writes a key, and what; a delete writes nothing that could be told apart.
    fn written(&self, op: OpId, key: KeyId) -> Option<Option<ValueId>> {
        match self.history.op(op) {
            Op::Write { key: written, value }
            | Op::InsertIfAbsent { key: written, value, applied: Some(true), .. }
                if written == key =>
            {
                Some(Some(value))
            }
            Op::CompareAndSet { key: written, new, applied: Some(true), .. } if written == key => {
                Some(Some(new))
            }
            Op::Delete { key: written } if written == key => Some(None),
            _ => None,
        }
    }
}
