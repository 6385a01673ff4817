//! What observations leave open.
//!
//! A read of a value that several transactions wrote may have seen any of them. Where nothing can be
//! made of that, a level refuses the history, and the refusal names such a read with two of those who
//! wrote what it saw. Otherwise [`OpenReads`] says for every such read whose write it may be.
//!
//! A row that a predicate met without returning it is such a read as well: it saw one of the versions
//! that do not satisfy the predicate ([`MetRows`]).
//!
//! A transaction of unknown outcome that such a read may be of may have committed or not. If it did,
//! what it read itself counts. So its reads are open, too, under the condition that it did.

use std::collections::hash_map::Entry;

use isolario_model::{History, Inapplicable, Initial, KeyId, Op, OpId, OpKind, Outcome, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::accesses::LastWrites;
use super::reads::{same_append, write_seen};
use super::writes;
use crate::graph::Rows;

/// A read of a version that several wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmbiguousRead {
    pub(crate) read: OpId,
    /// Two of those who wrote it; the first may be `init`.
    pub(crate) first: TxnId,
    pub(crate) second: TxnId,
}

/// The choices of a history.
pub(crate) struct Choices {
    /// Why levels cannot be decided without making them, if there are any.
    pub(crate) refusal: Option<Inapplicable>,
    /// Why cut isolation cannot be, where all that a read may have seen is wrong at the other levels.
    pub(crate) refusal_at_cut: Option<Inapplicable>,
    /// The choices themselves; none if there are some that cannot be put in this way.
    pub(crate) open: Option<OpenReads>,
}

/// Reads of registers that may have seen the write of one of several transactions.
#[derive(Default)]
pub(crate) struct OpenReads {
    /// By operation. Of the reads of one value of a key by one transaction, only the first is here.
    pub(crate) reads: Vec<OpId>,
    /// By read, whose write makes it a right one; may be `init`.
    pub(crate) writers: Rows<TxnId>,
    /// By read, the later reads of the same value by the same transaction. Only where a transaction may
    /// go on to newer versions can they have seen somebody else's write of it.
    pub(crate) repeats: Rows<OpId>,
    /// The transactions of unknown outcome of which nobody knows whether they committed, and which
    /// may have been read from.
    pub(crate) maybe: Vec<TxnId>,
}

/// Unobserved reads of rows that somebody met, by operation, each with those who may have written what
/// was met.
pub(crate) type MetRows = [(OpId, Vec<TxnId>)];

impl Choices {
    /// From the ambiguous reads of kept transactions, by operation, those that are wrong whatever they
    /// saw, and rows that any transactions met.
    pub(super) fn new(
        history: &History,
        kept: &[bool],
        ambiguous: &[AmbiguousRead],
        wrong: &[AmbiguousRead],
        met: &MetRows,
    ) -> Self {
        let open = match ambiguous.is_empty() && met.is_empty() {
            true => Some(OpenReads::default()),
            false => Collector::new(history, kept, ambiguous, met).collect(ambiguous),
        };
        let refusal_at_cut = refusal(history, wrong);
        Choices { refusal: refusal(history, ambiguous), refusal_at_cut, open }
    }

    /// Where nothing is left open.
    pub(super) fn none() -> Self {
        Choices { refusal: None, refusal_at_cut: None, open: Some(OpenReads::default()) }
    }
}

fn refusal(history: &History, ambiguous: &[AmbiguousRead]) -> Option<Inapplicable> {
    let AmbiguousRead { read, first, second } = *ambiguous.first()?;
    let (first, second) = match history.op(read) {
        Op::ReadList { key, elements } => {
            let (first, second) = same_append(history, key, elements?, first, second)?;
            (Some(first), second)
        }
        _ => (write_seen(history, read, first), write_seen(history, read, second)?),
    };
    Some(Inapplicable::AmbiguousRead { read, first, second, total: ambiguous.len() as u64 })
}

/// A version of a key, as a read shows it.
type Version = (KeyId, u64);

/// A read, whose write makes it a right one, and the same read again.
struct Open {
    read: OpId,
    writers: Vec<TxnId>,
    repeats: Vec<OpId>,
}

impl Open {
    fn new(read: OpId, writers: Vec<TxnId>) -> Self {
        Open { read, writers, repeats: Vec::new() }
    }

    fn of_met((read, writers): &(OpId, Vec<TxnId>)) -> Self {
        Open::new(*read, writers.clone())
    }
}

/// Finds out who may have written what some reads saw.
struct Collector<'a> {
    history: &'a History,
    kept: &'a [bool],
    met: &'a MetRows,
    /// Versions that reads in question saw, with those who wrote them last and did not abort.
    writers: Vec<(Version, TxnId)>,
    /// Those that anybody wrote.
    written: FxHashSet<Version>,
}

impl<'a> Collector<'a> {
    /// Goes through all writes once.
    fn new(
        history: &'a History,
        kept: &'a [bool],
        ambiguous: &[AmbiguousRead],
        met: &'a MetRows,
    ) -> Self {
        let mut wanted: FxHashSet<Version> =
            ambiguous.iter().map(|a| version(history, a.read)).collect();
        for txn in history.txns().filter(|txn| is_uncertain(history, kept, *txn)) {
            let reads = history.txn_ops(txn).filter(|op| is_read(history, *op));
            wanted.extend(reads.map(|read| version(history, read)));
        }
        let last = LastWrites::new(history);
        let (mut writers, mut written) = (Vec::new(), FxHashSet::default());
        for txn in history.txns() {
            let may_be_seen = history.outcome(txn) != Outcome::Aborted;
            for op in history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()])) {
                let version = version(history, op);
                if wanted.contains(&version) {
                    written.insert(version);
                    if may_be_seen && last.of(txn, version.0) == Some(op) {
                        writers.push((version, txn));
                    }
                }
            }
        }
        writers.sort_unstable();
        Collector { history, kept, met, writers, written }
    }

    /// None where the choices cannot be put as reads that may be of one of several transactions.
    fn collect(&self, ambiguous: &[AmbiguousRead]) -> Option<OpenReads> {
        let mut found: Vec<Open> = Vec::new();
        let mut seen: FxHashMap<(TxnId, Version), usize> = FxHashMap::default();
        for read in ambiguous.iter().map(|a| a.read) {
            if !is_read(self.history, read) {
                return None;
            }
            let reader = self.history.op_txn(read);
            match seen.entry((reader, version(self.history, read))) {
                Entry::Occupied(first) => found[*first.get()].repeats.push(read),
                Entry::Vacant(first) => {
                    first.insert(found.len());
                    found.push(Open::new(read, self.candidates(reader, read)));
                }
            }
        }
        let is_kept =
            |(read, _): &&(OpId, Vec<TxnId>)| self.kept[self.history.op_txn(*read).index()];
        found.extend(self.met.iter().filter(is_kept).map(Open::of_met));
        let maybe = self.maybe(&mut found);
        let shares_initial = *self.history.initial() == Initial::Unwritten;
        self.drop_impossible(&mut found);
        let is_certain = |read: OpId| self.kept[self.history.op_txn(read).index()];
        // A key has one initial value, whichever it is. Two reads that are of it only perhaps would
        // depend on each other.
        if found.iter().any(|open| {
            open.writers.is_empty() && is_certain(open.read)
                || shares_initial && open.writers.contains(&TxnId::INIT)
        }) {
            return None;
        }
        found.sort_unstable_by_key(|open| open.read);
        let mut open = OpenReads { maybe, ..OpenReads::default() };
        for Open { read, writers, repeats } in found {
            open.reads.push(read);
            open.writers.push(writers);
            open.repeats.push(repeats);
        }
        Some(open)
    }

    /// The transactions of unknown outcome that may have been read from, and their reads.
    fn maybe(&self, found: &mut Vec<Open>) -> Vec<TxnId> {
        let mut maybe: FxHashSet<TxnId> = FxHashSet::default();
        let mut at = 0;
        while at < found.len() {
            for writer in found[at].writers.clone() {
                if is_uncertain(self.history, self.kept, writer) && maybe.insert(writer) {
                    self.reads_of(writer, found);
                }
            }
            at += 1;
        }
        let mut maybe: Vec<TxnId> = maybe.into_iter().collect();
        maybe.sort_unstable();
        maybe
    }

    /// The reads of a transaction from others, each with who may have written what it saw; nobody may
    /// where it should have seen its own write.
    fn reads_of(&self, txn: TxnId, found: &mut Vec<Open>) {
        let history = self.history;
        let is_of = |(read, _): &&(OpId, Vec<TxnId>)| history.op_range(txn).contains(&read.index());
        found.extend(self.met.iter().filter(is_of).map(Open::of_met));
        let mut own: FxHashMap<KeyId, u64> = FxHashMap::default();
        let mut seen: FxHashMap<Version, usize> = FxHashMap::default();
        for op in history.txn_ops(txn) {
            let (key, word) = version(history, op);
            if writes(history.op_kinds()[op.index()]) {
                own.insert(key, word);
            } else if is_read(history, op) {
                match (own.get(&key), seen.entry((key, word))) {
                    (Some(last), _) if *last == word => {}
                    (Some(_), _) => found.push(Open::new(op, Vec::new())),
                    (None, Entry::Occupied(first)) => found[*first.get()].repeats.push(op),
                    (None, Entry::Vacant(first)) => {
                        first.insert(found.len());
                        found.push(Open::new(op, self.candidates(txn, op)));
                    }
                }
            }
        }
    }

    /// Takes transactions out that cannot have committed, since nobody can have written what one of
    /// their reads saw.
    fn drop_impossible(&self, found: &mut Vec<Open>) {
        loop {
            let reader = |open: &Open| self.history.op_txn(open.read);
            let is_uncertain = |txn: &TxnId| is_uncertain(self.history, self.kept, *txn);
            let impossible: FxHashSet<TxnId> = found
                .iter()
                .filter(|open| open.writers.is_empty())
                .map(reader)
                .filter(is_uncertain)
                .collect();
            if impossible.is_empty() {
                return;
            }
            found.retain(|open| !impossible.contains(&reader(open)));
            for open in found.iter_mut() {
                open.writers.retain(|writer| !impossible.contains(writer));
            }
        }
    }

    /// Whose write makes a read a right one.
    fn candidates(&self, reader: TxnId, read: OpId) -> Vec<TxnId> {
        let version = version(self.history, read);
        let begin = self.writers.partition_point(|(other, _)| *other < version);
        let of_version = self.writers[begin..].iter().take_while(|(other, _)| *other == version);
        let others = of_version.map(|(_, writer)| *writer).filter(|writer| *writer != reader);
        self.may_be_initial(version).then_some(TxnId::INIT).into_iter().chain(others).collect()
    }

    fn may_be_initial(&self, version: Version) -> bool {
        let is_initial = || self.history.encoded_initial_version() == Some(version.1);
        match self.history.initial() {
            Initial::Unwritten => !self.written.contains(&version),
            Initial::UnlessWritten(_) => is_initial() && !self.written.contains(&version),
            Initial::Value(_) | Initial::Marked => is_initial(),
            _ => false,
        }
    }
}

fn version(history: &History, op: OpId) -> Version {
    (history.op_keys()[op.index()], history.encoded_version(op))
}

fn is_read(history: &History, op: OpId) -> bool {
    history.op_kinds()[op.index()] == OpKind::Read
}

/// Whether nobody knows if a transaction committed.
fn is_uncertain(history: &History, kept: &[bool], txn: TxnId) -> bool {
    !txn.is_init() && history.outcome(txn) == Outcome::Unknown && !kept[txn.index()]
}
