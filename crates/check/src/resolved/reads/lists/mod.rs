//! Resolves list reads.
//!
//! A list shows every append to it. It reads from the writer of its last element that is not the
//! reader's own, from `init` if there is none; it must end with exactly the reader's own appends so
//! far; of every other transaction it shows all appends or none, in program order; and of any two
//! reads of a list one is a prefix of the other, own appends left out. The order of elements is an
//! order of their writers. Lists never forget: an append that a read does not show came after all
//! that it shows.
//!
//! Appends and reads are dealt out by key, and keys are resolved in parallel: what one list shows
//! has nothing to do with another one. Almost all reads of a list are prefixes of its longest read
//! and stored as such. That one is gone through once ([`scan`]); then each of the others takes a
//! few look-ups, however long it is ([`read`]).

mod appends;
mod read;
mod scan;
mod settle;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{Anomaly, History, KeyId, Op, OpId, OpKind, Outcome, TxnId, ValueId};
use rayon::prelude::*;

use super::ASIDE;
use crate::graph::Rows;
use crate::resolved::AmbiguousRead;

pub(crate) use appends::{Access, Appends, element};
pub(crate) use scan::Scan;

/// The list reads of transactions that did not abort, resolved.
pub(super) struct ListReads {
    accesses: ListAccesses,
    /// What was found, by stretches of keys.
    parts: Vec<Part>,
}

/// What was found about some keys.
struct Part {
    keys: Range<usize>,
    /// Per read.
    seen: Vec<Seen>,
    /// What is wrong with those that are not right, in the same order; none where that is open.
    wrong: Vec<Option<Anomaly>>,
    /// What is wrong besides with some of these.
    dirty_updates: Vec<(Access, Anomaly)>,
    /// Per element of the pools, the one transaction that appended it, if it is one.
    writers: Vec<Option<TxnId>>,
    ambiguous: Vec<AmbiguousRead>,
    unknown_reads: Vec<(OpId, TxnId)>,
}

/// What a read saw.
#[derive(Clone, Copy)]
struct Seen {
    /// How many elements it shows before the reader's own at its end.
    foreign: u32,
    is_right: bool,
    /// Who appended the last of these; `init` if there are none; none if nobody did or several.
    last_writer: Option<TxnId>,
}

/// Accesses that make a task.
const ACCESSES_PER_TASK: usize = 1 << 14;

/// Resolves the list reads of a history, and sets the sources of those that are right.
pub(super) fn resolve(history: &History, sources: Vec<u32>) -> (ListReads, Vec<u32>) {
    if !history.op_kinds().contains(&OpKind::ReadList) {
        return (ListReads::none(), sources);
    }
    let accesses = ListAccesses::of(history);
    // Each read is settled by one task; which one, the borrow checker cannot know. Relaxed stores
    // cost no more than plain ones.
    let sources: Vec<AtomicU32> = sources.into_iter().map(AtomicU32::new).collect();
    let resolve = |keys: Range<usize>| {
        let mut resolver = Resolver::new(history, keys.clone());
        for key in keys {
            resolver.resolve(KeyId::at(key), accesses.appends.get(key), accesses.reads.get(key));
        }
        let part = resolver.part;
        let of_part = accesses.reads.span(part.keys.start).start..;
        for (read, seen) in accesses.reads.entries()[of_part].iter().zip(&part.seen) {
            let source = seen.last_writer.filter(|_| seen.is_right).map_or(ASIDE, |txn| txn.0);
            sources[read.op.index()].store(source, Ordering::Relaxed);
        }
        part
    };
    let parts = accesses.stretches().into_par_iter().map(resolve).collect();
    let sources = sources.into_iter().map(AtomicU32::into_inner).collect();
    (ListReads { accesses, parts }, sources)
}

impl ListReads {
    fn none() -> Self {
        ListReads { accesses: ListAccesses::default(), parts: Vec::new() }
    }

    pub(super) fn ambiguous(&self) -> impl Iterator<Item = AmbiguousRead> + '_ {
        self.parts.iter().flat_map(|part| &part.ambiguous).copied()
    }

    /// Reads that show an element of a transaction of unknown outcome: enough of them to tell which
    /// transactions of unknown outcome somebody saw.
    pub(super) fn unknown_reads(&self) -> impl Iterator<Item = (OpId, TxnId)> + '_ {
        self.parts.iter().flat_map(|part| &part.unknown_reads).copied()
    }
}

/// The appends to each list, and the reads of it by transactions that did not abort; all in the order
/// of operations.
#[derive(Default)]
pub(crate) struct ListAccesses {
    pub(crate) appends: Rows<Access>,
    pub(crate) reads: Rows<Access>,
}

impl ListAccesses {
    pub(crate) fn of(history: &History) -> Self {
        let of_kind = |kind: OpKind, aborted: bool| {
            let txns = (0..history.txn_count()).map(TxnId::at);
            let counts = move |txn: &TxnId| aborted || history.outcome(*txn) != Outcome::Aborted;
            let accesses = txns.filter(counts).flat_map(move |txn| {
                let ops = history.op_range(txn).filter(move |op| history.op_kinds()[*op] == kind);
                ops.map(move |op| (history.op_keys()[op].0, Access { txn, op: OpId::at(op) }))
            });
            Rows::group(history.key_count(), accesses)
        };
        let (appends, reads) =
            rayon::join(|| of_kind(OpKind::Append, true), || of_kind(OpKind::ReadList, false));
        ListAccesses { appends, reads }
    }

    /// All keys, in stretches of about the same number of accesses.
    pub(crate) fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches = Vec::new();
        let (mut start, mut accesses) = (0, 0);
        for key in 0..self.reads.len() {
            accesses += self.appends.span(key).len() + self.reads.span(key).len();
            if accesses >= ACCESSES_PER_TASK || key + 1 == self.reads.len() {
                stretches.push(start..key + 1);
                (start, accesses) = (key + 1, 0);
            }
        }
        stretches
    }
}

/// Takes the appends to a list to those of one transaction after the other: `appends` and the
/// transactions asked for are both in the order of transactions.
pub(crate) struct OwnAppends<'a>(pub(crate) &'a [Access]);

impl<'a> OwnAppends<'a> {
    #[inline]
    pub(crate) fn of(&mut self, txn: TxnId) -> &'a [Access] {
        while let [append, rest @ ..] = self.0
            && append.txn < txn
        {
            self.0 = rest;
        }
        let own = self.0.iter().take_while(|append| append.txn == txn).count();
        &self.0[..own]
    }
}

/// Resolves the reads of one list after the other.
struct Resolver<'a> {
    history: &'a History,
    appends: Appends<'a>,
    /// The scans of the pool, and of a list that diverges from it.
    pool: Scan,
    copy: Scan,
    part: Part,
}

impl<'a> Resolver<'a> {
    fn new(history: &'a History, keys: Range<usize>) -> Self {
        let part = Part {
            keys,
            seen: Vec::new(),
            wrong: Vec::new(),
            dirty_updates: Vec::new(),
            writers: Vec::new(),
            ambiguous: Vec::new(),
            unknown_reads: Vec::new(),
        };
        let appends = Appends::new(history);
        Resolver { history, appends, pool: Scan::default(), copy: Scan::default(), part }
    }

    fn resolve(&mut self, key: KeyId, appends: &'a [Access], reads: &[Access]) {
        let pool = self.history.list_pool(key);
        if reads.is_empty() {
            self.part.writers.resize(self.part.writers.len() + pool.len(), None);
            return;
        }
        self.appends.turn_to(appends);
        self.pool.refill(&self.appends, pool);
        let writer = |position| self.pool.append_at(position).map(|a| self.appends.appender(a));
        let only = |position| writer(position).filter(|a| a.other.is_none()).map(|a| a.txn);
        self.part.writers.extend((0..pool.len()).map(only));
        let mut longest: Option<(usize, OpId)> = None;
        let mut own = OwnAppends(appends);
        for read in reads {
            let (elements, is_prefix) = elements(self.history, *read);
            if !is_prefix {
                self.copy.refill(&self.appends, elements);
            }
            let scan = if is_prefix { &self.pool } else { &self.copy };
            let list = read::List { appends: &self.appends, scan, elements };
            let seen = list.read(*read, own.of(read.txn), &mut self.part);
            // What a committed transaction shows of the pool, the one that shows most of it shows.
            let shown = seen.foreign as usize;
            if is_prefix && self.history.outcome(read.txn) == Outcome::Committed {
                longest = longest.max(Some((shown, read.op)));
            } else {
                let unknown = scan.unknown(shown).map(|writer| (read.op, writer));
                self.part.unknown_reads.extend(unknown);
            }
            self.part.seen.push(seen);
        }
        if let Some((shown, read)) = longest {
            let unknown = self.pool.unknown(shown).map(|writer| (read, writer));
            self.part.unknown_reads.extend(unknown);
        }
    }
}

/// What a read showed, and whether that is a prefix of the pool of its key.
pub(crate) fn elements(history: &History, read: Access) -> (&[ValueId], bool) {
    match history.op(read.op) {
        Op::ReadList { key, elements: Some(elements) } => {
            let pool = history.list_pool(key);
            (elements, std::ptr::eq(pool.as_ptr(), elements.as_ptr()))
        }
        _ => (&[], false),
    }
}

/// The appends of a transaction to a list, in program order.
fn appends_of(history: &History, txn: TxnId, key: KeyId) -> impl Iterator<Item = (OpId, ValueId)> {
    history.txn_ops(txn).filter_map(move |op| match history.op(op) {
        Op::Append { key: other, element } if other == key => Some((op, element)),
        _ => None,
    })
}

/// Two transactions' appends of one element that a list shows.
pub(crate) fn same_append(
    history: &History,
    key: KeyId,
    elements: &[ValueId],
    first: TxnId,
    second: TxnId,
) -> Option<(OpId, OpId)> {
    appends_of(history, first, key).filter(|(_, element)| elements.contains(element)).find_map(
        |(op, element)| {
            let same = |(_, other): &(OpId, ValueId)| *other == element;
            appends_of(history, second, key).find(same).map(|(other, _)| (op, other))
        },
    )
}
