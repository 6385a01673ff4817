//! Resolves list reads.
//!
//! A list shows every append to it. It reads from the writer of its last element that is not the
//! reader's own, from `init` if there is none; it must end with exactly the reader's own appends so
//! far; of every other transaction it shows all appends or none, in program order; and of any two
//! reads of a list one is a prefix of the other, own appends left out. The order of elements is an
//! order of their writers. Lists never forget: an append that a read does not show came after all
//! that it shows.

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, KeyId, Op, OpId, OpKind, Outcome, TxnId, ValueId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::resolved::{AmbiguousRead, KnownBy, VersionEdge, writes};

/// The list reads of transactions that did not abort, resolved.
#[derive(Default)]
pub(super) struct ListReads<'h> {
    appends: Appends,
    reads: Vec<ListRead<'h>>,
    pub(super) ambiguous: Vec<AmbiguousRead>,
    /// Reads that show an element of a transaction of unknown outcome.
    pub(super) unknown_reads: Vec<(OpId, TxnId)>,
}

struct ListRead<'h> {
    reader: TxnId,
    read: OpId,
    key: KeyId,
    /// What it shows, the reader's own appends at the end left out.
    foreign: &'h [ValueId],
    /// Who appended the last of these; `init` if there are none; none if nobody did or several.
    last_writer: Option<TxnId>,
    result: Result<(), Option<Anomaly>>,
}

/// Resolves the list reads of a history; there may be none.
pub(super) fn resolve(history: &History) -> ListReads<'_> {
    let kinds = history.op_kinds();
    if !kinds.contains(&OpKind::ReadList) {
        return ListReads::default();
    }
    let appends = Appends::new(history);
    let mut resolver = Resolver { history, appends: &appends, scans: FxHashMap::default() };
    let mut lists = ListReads::default();
    for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
        for read in history.txn_ops(txn) {
            if let Op::ReadList { key, elements: Some(elements) } = history.op(read) {
                resolver.resolve(txn, read, key, elements, &mut lists);
            }
        }
    }
    lists.unknown_reads.sort_unstable();
    lists.unknown_reads.dedup();
    lists.appends = appends;
    lists
}

/// What the list reads of kept transactions add up to.
pub(super) struct Settled {
    /// Where the right ones read from.
    pub(super) sources: Vec<(OpId, TxnId)>,
    /// What the wrong ones saw last, where a kept transaction or `init` wrote it.
    pub(super) wrong_but_seen: Vec<(OpId, TxnId)>,
    pub(super) anomalies: Vec<Anomaly>,
    pub(super) edges: Vec<VersionEdge>,
}

impl ListReads<'_> {
    /// Leaves out the reads of transactions that do not count, and puts the others together.
    pub(super) fn settle(&self, history: &History, kept: &[bool]) -> Settled {
        let mut settled = Settled {
            sources: Vec::new(),
            wrong_but_seen: Vec::new(),
            anomalies: Vec::new(),
            edges: Vec::new(),
        };
        let is_kept = |txn: TxnId| txn.is_init() || kept[txn.index()];
        let mut longest: FxHashMap<KeyId, &ListRead<'_>> = FxHashMap::default();
        for read in self.reads.iter().filter(|read| is_kept(read.reader)) {
            let seen = read.last_writer.filter(|writer| is_kept(*writer));
            match (&read.result, seen) {
                (Ok(()), Some(writer)) => {
                    settled.sources.push((read.read, writer));
                    let slot = longest.entry(read.key).or_insert(read);
                    if read.foreign.len() > slot.foreign.len() {
                        *slot = read;
                    }
                }
                (Err(anomaly), seen) => {
                    settled.anomalies.extend(anomaly.clone());
                    if anomaly.is_some() {
                        settled.wrong_but_seen.extend(seen.map(|writer| (read.read, writer)));
                    }
                }
                (Ok(()), None) => {}
            }
        }
        let right = self.reads.iter().filter(|r| is_kept(r.reader) && r.result.is_ok());
        for read in right {
            let longest = longest.get(&read.key).copied().unwrap_or(read);
            if !longest.foreign.starts_with(read.foreign) {
                settled.anomalies.push(incompatible(read, longest));
            }
        }
        let mut reads: Vec<_> = longest.values().copied().collect();
        reads.sort_unstable_by_key(|read| read.read);
        settled.edges = reads.iter().flat_map(|read| self.order(read)).collect();
        let mut shown: FxHashSet<(KeyId, TxnId)> = FxHashSet::default();
        for ListRead { key, foreign, reader, .. } in reads {
            let writers = foreign.iter().filter_map(|e| self.appends.writer(*key, *e));
            // The reader's own appends come after what it read.
            shown.extend(writers.chain([*reader]).map(|writer| (*key, writer)));
        }
        if !shown.is_empty() {
            let kept = history.txns().filter(|txn| kept[txn.index()]);
            settled.edges.extend(hidden(history, kept, &longest, shown));
        }
        settled
    }

    /// The order of writers that a read shows.
    fn order(&self, read: &ListRead<'_>) -> Vec<VersionEdge> {
        let (key, read, foreign) = (read.key, read.read, read.foreign);
        let writers: Vec<_> =
            foreign.iter().filter_map(|element| self.appends.writer(key, *element)).collect();
        let pairs = writers.windows(2).filter(|pair| pair[0] != pair[1]);
        pairs
            .map(|pair| VersionEdge {
                before: pair[0],
                after: pair[1],
                key,
                known: KnownBy::List { read },
            })
            .collect()
    }
}

/// Whoever appended to a list and is not shown by its longest read came after the last one that is.
/// What shorter reads do not show follows from that and from the order of elements.
fn hidden(
    history: &History,
    kept: impl Iterator<Item = TxnId>,
    longest: &FxHashMap<KeyId, &ListRead<'_>>,
    mut shown: FxHashSet<(KeyId, TxnId)>,
) -> Vec<VersionEdge> {
    let mut hidden = Vec::new();
    for after in kept {
        let written = history.op_range(after).filter(|op| writes(history.op_kinds()[*op]));
        for key in written.map(|op| history.op_keys()[op]) {
            let Some(ListRead { read, last_writer: Some(before), .. }) = longest.get(&key) else {
                continue;
            };
            if !before.is_init() && shown.insert((key, after)) {
                let known = KnownBy::NotShown { read: *read };
                hidden.push(VersionEdge { before: *before, after, key, known });
            }
        }
    }
    hidden
}

fn incompatible(one: &ListRead<'_>, other: &ListRead<'_>) -> Anomaly {
    let (first, second) = (one.read.min(other.read), one.read.max(other.read));
    let evidence = Evidence::Reads { key: one.key, first, second, edges: Vec::new() };
    Anomaly::new(AnomalyKind::IncompatibleOrder, evidence)
}

/// Who appended what.
#[derive(Default)]
struct Appends {
    by_element: FxHashMap<(KeyId, ValueId), Appender>,
}

#[derive(Clone, Copy)]
struct Appender {
    txn: TxnId,
    /// Another transaction that appended the same element.
    other: Option<TxnId>,
    /// Who of all that did may have committed. Where nobody did, it does not matter whose element
    /// it is.
    live: Live,
}

/// Transactions that may have committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Live {
    None,
    One(TxnId),
    Several,
}

impl Live {
    fn and(self, txn: TxnId) -> Live {
        match self {
            Live::None => Live::One(txn),
            Live::One(other) if other == txn => self,
            _ => Live::Several,
        }
    }
}

impl Appends {
    fn new(history: &History) -> Self {
        let mut by_element: FxHashMap<(KeyId, ValueId), Appender> = FxHashMap::default();
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                if let Op::Append { key, element } = history.op(op) {
                    let fresh = Appender { txn, other: None, live: Live::None };
                    let appender = by_element.entry((key, element)).or_insert(fresh);
                    if appender.txn != txn {
                        appender.other.get_or_insert(txn);
                    }
                    if history.outcome(txn) != Outcome::Aborted {
                        appender.live = appender.live.and(txn);
                    }
                }
            }
        }
        Appends { by_element }
    }

    fn get(&self, key: KeyId, element: ValueId) -> Option<Appender> {
        self.by_element.get(&(key, element)).copied()
    }

    /// The one transaction that appended an element.
    fn writer(&self, key: KeyId, element: ValueId) -> Option<TxnId> {
        self.get(key, element).filter(|a| a.other.is_none()).map(|a| a.txn)
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

/// What is wrong with the elements of a list up to some length, whoever reads it.
#[derive(Clone, Copy, Default)]
struct Prefix {
    /// The first thing that is wrong for certain.
    fault: Option<Fault>,
    /// The first element that several transactions appended.
    ambiguous: Option<(TxnId, TxnId)>,
    /// The first element that is not the next one of its transaction. Means nothing where an
    /// element is ambiguous.
    out_of_turn: Option<Fault>,
    /// A transaction that has appended more than is shown: its last append shown and its next one.
    missing: Option<(OpId, OpId)>,
}

#[derive(Clone, Copy)]
struct Fault {
    kind: AnomalyKind,
    saw: Option<OpId>,
    instead: Option<OpId>,
}

/// The prefixes of one list, by length.
struct Scan {
    prefixes: Vec<Prefix>,
    /// Transactions of unknown outcome, and the length from which on they are shown.
    unknown: Vec<(usize, TxnId)>,
}

struct Resolver<'h, 'a> {
    history: &'h History,
    appends: &'a Appends,
    /// The scans of the lists that most reads are prefixes of, by key and address.
    scans: FxHashMap<(KeyId, *const ValueId), Scan>,
}

impl<'h> Resolver<'h, '_> {
    fn resolve(
        &mut self,
        reader: TxnId,
        read: OpId,
        key: KeyId,
        elements: &'h [ValueId],
        lists: &mut ListReads<'h>,
    ) {
        let own: Vec<(OpId, ValueId)> = appends_of(self.history, reader, key).collect();
        let (own_result, foreign) = self.split_own(read, key, elements, &own);
        let last = foreign.iter().rfind(|e| own.iter().all(|(_, o)| o != *e));
        let last_writer = match last.map(|element| self.appends.get(key, *element)) {
            None => Some(TxnId::INIT),
            Some(None) => None,
            Some(Some(Appender { txn, other: None, .. })) => Some(txn),
            Some(Some(Appender { live: Live::None, .. })) => None,
            Some(Some(Appender { txn, other: Some(other), .. })) => {
                lists.ambiguous.push(AmbiguousRead { read, first: txn, second: other });
                None
            }
        };
        let scan = self.scan(key, elements);
        let prefix = scan.prefixes[foreign.len()];
        let shown = scan.unknown.iter().take_while(|(from, _)| *from <= foreign.len());
        lists.unknown_reads.extend(shown.map(|(_, writer)| (read, *writer)));
        let wrong = |kind, saw, instead| {
            Err(Some(Anomaly::new(kind, Evidence::Read { read, saw, instead })))
        };
        let result = match (own_result, prefix) {
            (Err(own), _) => Err(Some(own)),
            (_, Prefix { fault: Some(Fault { kind, saw, instead }), .. }) => {
                wrong(kind, saw, instead)
            }
            (_, Prefix { ambiguous: Some((first, second)), .. }) => {
                if last_writer.is_some() {
                    lists.ambiguous.push(AmbiguousRead { read, first, second });
                }
                Err(None)
            }
            (_, Prefix { out_of_turn: Some(Fault { kind, saw, instead }), .. }) => {
                wrong(kind, saw, instead)
            }
            (_, Prefix { missing: Some((saw, next)), .. }) => {
                wrong(AnomalyKind::IntermediateRead, Some(saw), Some(next))
            }
            (Ok(()), _) => Ok(()),
        };
        lists.reads.push(ListRead { reader, read, key, foreign, last_writer, result });
    }

    /// What is left of a list without the reader's own appends, and whether those are right.
    fn split_own(
        &self,
        read: OpId,
        key: KeyId,
        elements: &'h [ValueId],
        own: &[(OpId, ValueId)],
    ) -> (Result<(), Anomaly>, &'h [ValueId]) {
        let before: Vec<ValueId> =
            own.iter().take_while(|(op, _)| *op < read).map(|(_, element)| *element).collect();
        let wrong =
            |kind, saw, instead| Err(Anomaly::new(kind, Evidence::Read { read, saw, instead }));
        let is_shown = |(_, element): &&(OpId, ValueId)| elements.contains(element);
        let Some(foreign) = elements.strip_suffix(before.as_slice()) else {
            let earlier = &own[..before.len()];
            let last = earlier.last().map(|(op, _)| *op);
            let result = match earlier.iter().rfind(is_shown).map(|(op, _)| *op) {
                seen if seen.is_some() && seen < last => {
                    wrong(AnomalyKind::NotMyLastWrite, seen, last)
                }
                _ => wrong(AnomalyKind::NotMyOwnWrite, None, last),
            };
            return (result, elements);
        };
        // An own element among the others' is from the future, or there twice. Unless somebody
        // else appended it, too: then it may be theirs, if they did not abort.
        let misplaced = own.iter().rev().find_map(|(op, element)| {
            let appender = self.appends.get(key, *element).filter(|_| foreign.contains(element))?;
            (appender.live != Live::Several).then_some((*op, *element, appender))
        });
        let result = match misplaced {
            None => Ok(()),
            Some((op, ..)) if op > read => wrong(AnomalyKind::FutureRead, Some(op), None),
            Some((_, element, Appender { txn, other: Some(other), .. })) => {
                let aborted = if txn == self.history.op_txn(read) { other } else { txn };
                let of_aborted = appends_of(self.history, aborted, key);
                let seen = of_aborted.filter(|(_, e)| *e == element).map(|(op, _)| op).last();
                wrong(AnomalyKind::AbortedRead, seen, None)
            }
            Some((op, ..)) => wrong(AnomalyKind::DuplicateElements, Some(op), None),
        };
        (result, foreign)
    }

    /// The prefixes of a list. Reads that agree share one list in memory, which is scanned once.
    fn scan(&mut self, key: KeyId, elements: &'h [ValueId]) -> &Scan {
        let pool = self.history.list_pool(key);
        let whole = if std::ptr::eq(pool.as_ptr(), elements.as_ptr()) { pool } else { elements };
        let (history, appends) = (self.history, &self.appends);
        self.scans
            .entry((key, whole.as_ptr()))
            .or_insert_with(|| Scanner::new(history, appends, key).scan(whole))
    }
}

/// Goes through a list once.
struct Scanner<'s> {
    history: &'s History,
    appends: &'s Appends,
    key: KeyId,
    /// Per writer met, how many of its appends were shown.
    shown: FxHashMap<TxnId, usize>,
    /// The writers of which something is still missing: last append shown and next one.
    missing: Vec<(TxnId, OpId, OpId)>,
    prefix: Prefix,
}

impl<'s> Scanner<'s> {
    fn new(history: &'s History, appends: &'s Appends, key: KeyId) -> Self {
        let (shown, missing, prefix) = (FxHashMap::default(), Vec::new(), Prefix::default());
        Scanner { history, appends, key, shown, missing, prefix }
    }

    fn scan(mut self, elements: &[ValueId]) -> Scan {
        let mut scan = Scan { prefixes: vec![self.prefix], unknown: Vec::new() };
        for element in elements {
            match self.appends.get(self.key, *element) {
                None => self.fault(AnomalyKind::ThinAirRead, None, None),
                Some(Appender { txn, other: Some(other), live }) if live != Live::None => {
                    self.prefix.ambiguous.get_or_insert((txn, other));
                }
                Some(Appender { txn, .. }) => {
                    self.show(txn, *element);
                    if self.history.outcome(txn) == Outcome::Unknown {
                        scan.unknown.push((scan.prefixes.len(), txn));
                    }
                }
            }
            self.prefix.missing = self.missing.last().map(|(_, saw, next)| (*saw, *next));
            scan.prefixes.push(self.prefix);
        }
        scan
    }

    /// An element of a transaction: it must be the transaction's next append.
    fn show(&mut self, txn: TxnId, element: ValueId) {
        let of_txn: Vec<_> = appends_of(self.history, txn, self.key).collect();
        let shown = self.shown.entry(txn).or_insert(0);
        let (expected, next) = (of_txn.get(*shown), of_txn.get(*shown + 1));
        let before = &of_txn[..(*shown).min(of_txn.len())];
        *shown += 1;
        self.missing.retain(|(writer, ..)| *writer != txn);
        let seen = of_txn.iter().rfind(|(_, e)| *e == element).map(|(op, _)| *op);
        let is_expected = expected.is_some_and(|(_, e)| *e == element);
        if self.history.outcome(txn) == Outcome::Aborted {
            self.fault(AnomalyKind::AbortedRead, seen, None);
        } else if is_expected {
            let more = expected.zip(next).map(|((op, _), (next, _))| (txn, *op, *next));
            self.missing.extend(more);
        } else {
            // An element may have been appended twice, and is too many only beyond that.
            let times = |all: &[(OpId, ValueId)]| all.iter().filter(|(_, e)| *e == element).count();
            let again = times(before) == times(&of_txn);
            let (kind, instead) = match expected {
                Some((op, _)) if !again => (AnomalyKind::IntermediateRead, Some(*op)),
                _ => (AnomalyKind::DuplicateElements, None),
            };
            self.prefix.out_of_turn.get_or_insert(Fault { kind, saw: seen, instead });
        }
    }

    fn fault(&mut self, kind: AnomalyKind, saw: Option<OpId>, instead: Option<OpId>) {
        self.prefix.fault.get_or_insert(Fault { kind, saw, instead });
    }
}
