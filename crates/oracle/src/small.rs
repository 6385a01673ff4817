//! A small history, laid out for brute force: transactions are bits, reads and writes are lists.

use isolario_model::{History, Initial, Op, OpId, Outcome, ValueId};

use crate::views;

/// A set of transactions, as bits.
pub(crate) type Txns = u16;

/// The most transactions that brute force takes on: their orders are tried one by one.
pub(crate) const MAX_TXNS: usize = 10;

/// The set of one transaction.
pub(crate) fn bit(txn: usize) -> Txns {
    1 << txn
}

/// The transactions of a set.
pub(crate) fn members(set: Txns) -> impl Iterator<Item = usize> {
    (0..MAX_TXNS).filter(move |txn| set & bit(*txn) != 0)
}

/// What a read returned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'h> {
    /// A version of a register.
    Version(u64),
    /// The elements of a list.
    List(&'h [ValueId]),
}

/// A read whose answer the client got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read<'h> {
    pub(crate) txn: usize,
    /// Where it stands in the history: program order within its transaction.
    pub(crate) at: usize,
    pub(crate) key: usize,
    pub(crate) seen: Seen<'h>,
}

/// A write, a delete or an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) txn: usize,
    pub(crate) at: usize,
    pub(crate) key: usize,
    /// The version or the element.
    pub(crate) word: u64,
    /// Whether its transaction writes the key again.
    pub(crate) replaced: bool,
    /// Whether it appends to a list.
    pub(crate) appends: bool,
}

/// A small history.
#[derive(Debug)]
pub(crate) struct Small<'h> {
    pub(crate) history: &'h History,
    pub(crate) reads: Vec<Read<'h>>,
    pub(crate) writes: Vec<Write>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl<'h> Small<'h> {
    /// Lays a history out; none if it is too large or has operations beyond registers and lists.
    pub(crate) fn new(history: &'h History) -> Option<Self> {
        if history.txn_count() > MAX_TXNS {
            return None;
        }
        let outcomes = history.txns().map(|txn| history.outcome(txn)).collect();
        let mut small = Small { history, reads: Vec::new(), writes: Vec::new(), outcomes };
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                small.add(txn.index(), op)?;
            }
        }
        for index in 0..small.writes.len() {
            let write = small.writes[index];
            small.writes[index].replaced = small.writes[index + 1..]
                .iter()
                .any(|later| later.txn == write.txn && later.key == write.key);
        }
        Some(small)
    }

    fn add(&mut self, txn: usize, op: OpId) -> Option<()> {
        let at = op.index();
        let view = self.history.op(op);
        let key = view.key()?.index();
        let word = || self.history.version_word(op);
        match view {
            Op::Read { value: None, .. } | Op::ReadList { elements: None, .. } => {}
            Op::Read { value: Some(_), .. } => {
                self.reads.push(Read { txn, at, key, seen: Seen::Version(word()) });
            }
            Op::ReadList { elements: Some(elements), .. } => {
                self.reads.push(Read { txn, at, key, seen: Seen::List(elements) });
            }
            Op::Write { .. } | Op::Delete { .. } | Op::Append { .. } => {
                let appends = matches!(view, Op::Append { .. });
                self.writes.push(Write { txn, at, key, word: word(), replaced: false, appends });
            }
            _ => return None,
        }
        Some(())
    }

    /// All transactions of an outcome.
    pub(crate) fn with_outcome(&self, outcome: Outcome) -> Txns {
        let with = |set, (txn, other): (usize, &Outcome)| {
            if *other == outcome { set | bit(txn) } else { set }
        };
        self.outcomes.iter().enumerate().fold(0, with)
    }

    /// The writes of a version or element of a key, by anyone.
    pub(crate) fn writes_of(&self, key: usize, word: u64) -> impl Iterator<Item = Write> + '_ {
        self.writes.iter().copied().filter(move |write| write.key == key && write.word == word)
    }

    /// Whether a version of a register may be the initial one.
    pub(crate) fn may_be_initial(&self, key: usize, word: u64) -> bool {
        let nobody_wrote_it = || self.writes_of(key, word).next().is_none();
        match self.history.initial() {
            Initial::Value(_) | Initial::Marked => self.history.initial_word() == Some(word),
            Initial::UnlessWritten(_) => {
                self.history.initial_word() == Some(word) && nobody_wrote_it()
            }
            Initial::Unwritten => nobody_wrote_it(),
            _ => false,
        }
    }

    /// Whether some such read of a transaction that may have committed could have seen the writes of
    /// two transactions.
    pub(crate) fn has_ambiguous_read(&self, such: impl Fn(&Read) -> bool) -> bool {
        let may_have_committed = |read: &&Read| self.outcomes[read.txn] != Outcome::Aborted;
        let mut reads = self.reads.iter().filter(may_have_committed);
        reads.any(|read| self.has_several_candidates(read) && such(read))
    }

    /// See [`crate::has_bad_read`].
    pub(crate) fn has_bad_read(&self) -> bool {
        let has_committed = |read: &&Read| self.outcomes[read.txn] == Outcome::Committed;
        let mut reads = self.reads.iter().filter(has_committed);
        reads.any(|read| !views::may_be_right(self, read))
    }

    /// Whether two transactions, `init` counted, wrote what a read saw.
    fn has_several_candidates(&self, read: &Read) -> bool {
        let writers = |word| {
            let writers = self.writes_of(read.key, word).fold(0, |set, write| set | bit(write.txn));
            writers.count_ones()
        };
        match read.seen {
            Seen::Version(word) => {
                writers(word) + u32::from(self.may_be_initial(read.key, word)) > 1
            }
            Seen::List(elements) => elements.iter().any(|element| writers(element.word()) > 1),
        }
    }
}
