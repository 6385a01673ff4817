//! A small history, laid out for brute force: transactions are bits, reads and writes are lists.

use isolario_model::{History, Initial, Op, OpId, Outcome, ValueId, ValueRef};

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
    /// Some version of a register that is not this one: a conditional that failed, and does not say on
    /// what.
    Other(u64),
    /// What cannot have been there: a conditional that failed on the very value it asked for.
    Contradiction,
    /// The elements of a list.
    List(&'h [ValueId]),
}

/// A read whose answer the client got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read<'h> {
    pub(crate) txn: usize,
    /// Where it stands in the history: program order within its transaction. A conditional reads, and
    /// then it writes.
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

/// *Absent*, where no operation carries that value: the word of no value.
const ABSENT: u64 = u64::MAX;

/// A small history.
#[derive(Debug)]
pub(crate) struct Small<'h> {
    pub(crate) history: &'h History,
    pub(crate) reads: Vec<Read<'h>>,
    pub(crate) writes: Vec<Write>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl<'h> Small<'h> {
    /// Lays a history out, once for every way in which conditionals may have ended whose clients cannot
    /// tell: not if somebody read what only one of them can have written that did not take effect. None
    /// if it is too large or has operations beyond registers, lists and conditionals.
    pub(crate) fn all(history: &'h History) -> Option<Vec<Self>> {
        let is_unsure = |op: &OpId| match history.op(*op) {
            Op::InsertIfAbsent { applied, seen, .. } | Op::CompareAndSet { applied, seen, .. } => {
                applied.is_none() && seen.is_none()
            }
            _ => false,
        };
        let unsure: Vec<OpId> = (0..history.op_count()).map(OpId::at).filter(is_unsure).collect();
        let took_effect = |ways: usize| -> Vec<OpId> {
            let numbered = unsure.iter().enumerate();
            numbered.filter(|(at, _)| ways >> at & 1 == 1).map(|(_, op)| *op).collect()
        };
        let all: Option<Vec<Small>> =
            (0..1 << unsure.len()).map(|ways| Small::new(history, &took_effect(ways))).collect();
        let mut all = all?;
        let in_full = all.pop()?;
        all.retain(|small| !small.has_read_of_nobody(&in_full));
        all.push(in_full);
        Some(all)
    }

    /// Whether somebody who committed read what nobody wrote, and somebody did if more had taken effect.
    fn has_read_of_nobody(&self, in_full: &Small) -> bool {
        let is_of_nobody = |read: &Read| match read.seen {
            Seen::Version(word) => {
                self.writes_of(read.key, word).next().is_none()
                    && in_full.writes_of(read.key, word).next().is_some()
                    && !self.may_be_initial(read.key, word)
            }
            _ => false,
        };
        let mut reads = self.reads.iter();
        reads.any(|read| self.outcomes[read.txn] == Outcome::Committed && is_of_nobody(read))
    }

    /// Lays a history out in which these conditionals took effect, and others did not whose clients
    /// cannot tell.
    fn new(history: &'h History, took_effect: &[OpId]) -> Option<Self> {
        if history.txn_count() > MAX_TXNS {
            return None;
        }
        let outcomes = history.txns().map(|txn| history.outcome(txn)).collect();
        let mut small = Small { history, reads: Vec::new(), writes: Vec::new(), outcomes };
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                small.add(txn.index(), op, took_effect)?;
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

    fn add(&mut self, txn: usize, op: OpId, took_effect: &[OpId]) -> Option<()> {
        let at = 2 * op.index();
        let view = self.history.op(op);
        let key = view.key()?.index();
        let word = || self.history.encoded_version(op);
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
            Op::InsertIfAbsent { value: new, applied, seen, .. } => {
                let applied = applied.or_else(|| seen.is_none().then(|| took_effect.contains(&op)));
                self.add_conditional((txn, at, key), self.absent(), new, applied, seen)?;
            }
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                let applied = applied.or_else(|| seen.is_none().then(|| took_effect.contains(&op)));
                self.add_conditional((txn, at, key), expected.to_bits(), new, applied, seen)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// A conditional is a read; if it took effect, it saw what it asked for, and a write follows.
    fn add_conditional(
        &mut self,
        (txn, at, key): (usize, usize, usize),
        expected: u64,
        new: ValueId,
        applied: Option<bool>,
        seen: Option<ValueId>,
    ) -> Option<()> {
        // What else is there at first, only formats with one initial value say.
        if self.history.names_versions() || !matches!(self.history.initial(), Initial::Value(_)) {
            return None;
        }
        let found_it = seen.is_some_and(|seen| seen.to_bits() == expected);
        let applies = applied.unwrap_or(found_it);
        let seen = match seen {
            _ if applies => Seen::Version(expected),
            Some(_) if found_it => Seen::Contradiction,
            Some(seen) => Seen::Version(seen.to_bits()),
            None => Seen::Other(expected),
        };
        self.reads.push(Read { txn, at, key, seen });
        if applies {
            let (at, word) = (at + 1, new.to_bits());
            self.writes.push(Write { txn, at, key, word, replaced: false, appends: false });
        }
        Some(())
    }

    fn absent(&self) -> u64 {
        self.history.find_value(ValueRef::Nil).map_or(ABSENT, ValueId::to_bits)
    }

    /// The word of the initial version, where there is one.
    pub(crate) fn encoded_initial_version(&self) -> Option<u64> {
        match self.history.initial() {
            Initial::Value(value) if value.as_ref() == ValueRef::Nil => Some(self.absent()),
            _ => self.history.encoded_initial_version(),
        }
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
            Initial::Value(_) | Initial::Marked => self.encoded_initial_version() == Some(word),
            Initial::UnlessWritten(_) => {
                self.encoded_initial_version() == Some(word) && nobody_wrote_it()
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
            Seen::List(elements) => elements.iter().any(|element| writers(element.to_bits()) > 1),
            Seen::Other(_) | Seen::Contradiction => false,
        }
    }
}
