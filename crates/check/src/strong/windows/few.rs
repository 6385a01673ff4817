//! Some transactions with numbers of their own, and what is known of them.

use isolario_model::{KeyId, OpId, TxnId};

use super::Question;
use crate::graph::{Rows, interval};
use crate::resolved::{Reader, Version, VersionEdge, Versions, writes};
use crate::strong::layout::Layout;
use crate::strong::problem::{Arc, Precedes, Problem};
use crate::strong::sources::{OpenRead, Sources};

/// Transactions by their own numbers.
pub(super) struct Txns {
    /// The layout of the whole, and that of these.
    whole: Layout,
    own: Layout,
    txns: Vec<TxnId>,
}

impl Txns {
    fn number(&self, txn: TxnId) -> Option<TxnId> {
        self.txns.binary_search(&txn).ok().map(TxnId::at)
    }

    /// All of them, as the whole knows them and as they are known here.
    fn all(&self) -> impl Iterator<Item = (TxnId, TxnId)> + use<'_> {
        self.txns.iter().enumerate().map(|(number, txn)| (*txn, TxnId::at(number)))
    }

    /// The node of the whole that a node is; none where it is no transaction's.
    pub(super) fn whole(&self, node: u32) -> Option<u32> {
        let own = self.own.txn(node)?;
        let txn = self.txns[own.index()];
        Some(match self.own.start(own) == node {
            true => self.whole.start(txn),
            false => self.whole.commit(txn),
        })
    }

    /// All nodes of a problem, where those of transactions come by their places in the whole.
    pub(super) fn in_order(&self, problem: &Problem, place: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut nodes: Vec<u32> = (0..problem.nodes as u32).collect();
        nodes.sort_by_key(|node| self.whole(*node).map_or(u32::MAX, &place));
        nodes
    }
}

/// Transactions, some of whose nodes are *inside*: what is asked there is asked.
pub(super) struct Few<'q, I> {
    question: &'q Question<'q>,
    txns: Txns,
    is_inside: I,
    /// Who wrote which key, by key and then by transaction: a version is a place in this list.
    writes: Vec<(KeyId, TxnId)>,
    readers: Vec<(u32, Reader)>,
    /// Reads that may have seen one of several versions, or the one that was there before all of them.
    open: Vec<(OpenRead, Vec<Option<Version>>)>,
    known: Vec<Arc>,
    nodes: usize,
}

impl<'q, I: Fn(u32) -> bool> Few<'q, I> {
    /// With transactions of the whole, in any order.
    pub(super) fn new(question: &'q Question<'q>, mut txns: Vec<TxnId>, is_inside: I) -> Self {
        txns.sort_unstable();
        txns.dedup();
        let own = question.layout.with_txns(txns.len());
        let txns = Txns { whole: question.layout, own, txns };
        let mut few = Few {
            question,
            is_inside,
            writes: Vec::new(),
            readers: Vec::new(),
            open: Vec::new(),
            known: Vec::new(),
            nodes: own.txn_nodes(),
            txns,
        };
        few.collect_writes();
        few
    }

    fn collect_writes(&mut self) {
        let history = self.question.history();
        for (txn, number) in self.txns.all() {
            let ops = history.op_range(txn).filter(|op| writes(history.op_kinds()[*op]));
            self.writes.extend(ops.map(|op| (history.op_keys()[op], number)));
        }
        self.writes.sort_unstable();
        self.writes.dedup();
    }

    fn starts_inside(&self, txn: TxnId) -> bool {
        (self.is_inside)(self.txns.whole.start(txn))
    }

    fn commits_inside(&self, txn: TxnId) -> bool {
        (self.is_inside)(self.txns.whole.commit(txn))
    }

    /// The versions of a key.
    fn versions(&self, key: KeyId) -> std::ops::Range<usize> {
        let start = self.writes.partition_point(|(other, _)| *other < key);
        let count = self.writes[start..].iter().take_while(|(other, _)| *other == key).count();
        start..start + count
    }

    /// The version that a transaction of the whole wrote inside.
    fn version(&self, key: KeyId, writer: TxnId) -> Option<Version> {
        let number = self.txns.number(writer).filter(|_| self.commits_inside(writer))?;
        let at = self.writes.binary_search(&(key, number)).ok()?;
        Some(Version(at as u32))
    }

    /// Puts nodes that are not inside before or after all that are. A start that is not comes before them,
    /// or else its commit would not be inside either; and a commit comes after them.
    pub(super) fn pin_outside(&mut self) {
        let own = self.txns.own;
        let (mut early, mut late, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for (txn, number) in self.txns.all() {
            let (start, commit) = (own.start(number), own.commit(number));
            if self.starts_inside(txn) { &mut inside } else { &mut early }.push(start);
            if self.commits_inside(txn) { &mut inside } else { &mut late }.push(commit);
        }
        if !early.is_empty() {
            let hub = self.add_node();
            self.known.extend(early.into_iter().map(|node| (node, hub)));
            self.known.extend(inside.iter().map(|node| (hub, *node)));
        }
        if !late.is_empty() {
            let hub = self.add_node();
            self.known.extend(inside.iter().map(|node| (*node, hub)));
            self.known.extend(late.into_iter().map(|node| (hub, node)));
        }
    }

    fn add_node(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes as u32 - 1
    }

    /// Takes note of what is known of these transactions, whatever the others do.
    pub(super) fn know(&mut self) {
        self.know_with(None);
    }

    /// Takes note of what is known, and of what is assumed of the rest of the order, which shows open
    /// reads these versions. False if a read has seen nothing that there is.
    pub(super) fn know_in(&mut self, saw: &[Option<TxnId>]) -> bool {
        self.know_with(Some(saw));
        self.open.iter().all(|(_, candidates)| !candidates.is_empty())
    }

    fn know_with(&mut self, saw: Option<&[Option<TxnId>]>) {
        let (question, own) = (self.question, self.txns.own);
        let txns: Vec<(TxnId, TxnId)> = self.txns.all().collect();
        for (txn, number) in txns {
            if own.is_split() {
                self.known.push((own.start(number), own.commit(number)));
            }
            if !self.starts_inside(txn) {
                continue;
            }
            let before = question.dependencies.session_predecessor(txn);
            let before = before.filter(|before| self.commits_inside(*before));
            let before = before.and_then(|before| self.txns.number(before));
            self.known.extend(before.map(|before| (own.commit(before), own.start(number))));
            question.reads().for_each_writer(question.history().op_range(txn), |read, writer| {
                self.read(number, OpId::at(read), writer, saw.is_some());
            });
            for read in question.open_reads(txn) {
                self.open_read(number, read, saw);
            }
        }
        if own.real_time {
            self.real_time();
        }
    }

    /// A read comes after the write that it saw; one of a version that was there before all of these comes
    /// before whoever writes the key. That what is not among these was there before is an assumption.
    fn read(&mut self, reader: TxnId, read: OpId, writer: TxnId, assumes: bool) {
        let own = self.txns.own;
        let key = self.question.history().op_keys()[read.index()];
        match self.version(key, writer) {
            Some(version) => {
                let writer = self.writes[version.0 as usize].1;
                self.known.push((own.commit(writer), own.start(reader)));
                self.readers.push((version.0, Reader { txn: reader, read }));
            }
            None if assumes || writer.is_init() => {
                let others = self.writes[self.versions(key)].iter().map(|(_, writer)| *writer);
                let others = others.filter(|writer| *writer != reader);
                self.known.extend(others.map(|writer| (own.start(reader), own.commit(writer))));
            }
            None => {}
        }
    }

    /// A read that may have seen one of several versions. Of those that are not among these, it can have seen
    /// only the one that the order of the whole shows it; and where nothing is assumed of the rest, all of them have to be
    /// here for it to be asked anything.
    fn open_read(&mut self, reader: TxnId, read: usize, saw: Option<&[Option<TxnId>]>) {
        let question = self.question;
        let op = question.open.reads[read];
        let key = question.history().op_keys()[op.index()];
        let here = |writer: TxnId| match self.version(key, writer) {
            Some(version) => Some(Some(version)),
            None => match saw {
                Some(saw) => (saw[read] == Some(writer)).then_some(None),
                None => writer.is_init().then_some(None),
            },
        };
        let candidates: Vec<Option<Version>> = question.candidates(read).filter_map(here).collect();
        let all = question.open.writers.get(read).len();
        if saw.is_some() || candidates.len() == all {
            let read = OpenRead { reader, read: op, key, if_there: None };
            self.open.push((read, candidates));
        }
    }

    /// Real time as a chain of moments, as in the whole.
    fn real_time(&mut self) {
        let (history, skew, own) =
            (self.question.history(), self.question.clock_skew, self.txns.own);
        let end = |(txn, number): (TxnId, TxnId)| {
            let end = interval(history, skew, txn).1.filter(|_| self.commits_inside(txn))?;
            Some((end, own.commit(number)))
        };
        let mut ends: Vec<(i64, u32)> = self.txns.all().filter_map(end).collect();
        ends.sort_unstable();
        let first = self.nodes as u32;
        self.nodes += ends.len();
        let moments = first..self.nodes as u32;
        self.known.extend(ends.iter().zip(moments.clone()).map(|((_, node), at)| (*node, at)));
        self.known.extend(moments.clone().zip(moments.skip(1)));
        let starting = self.txns.all().filter(|(txn, _)| self.starts_inside(*txn));
        let after_ended = starting.filter_map(|(txn, number)| {
            let start = history.start(txn)?;
            let ended = ends.partition_point(|(end, _)| *end < start) as u32;
            Some((first + ended.checked_sub(1)?, own.start(number)))
        });
        let after_ended: Vec<Arc> = after_ended.collect();
        self.known.extend(after_ended);
    }

    /// Of a version that is to be the last one of its key inside: all others come before it.
    pub(super) fn before_last(&self, key: KeyId, writer: TxnId) -> Vec<Precedes> {
        let Some(second) = self.version(key, writer) else { return Vec::new() };
        let is_inside = |at: &usize| {
            let (_, writer) = self.writes[*at];
            self.commits_inside(self.txns.txns[writer.index()])
        };
        let others = self.versions(key).filter(is_inside).map(|at| Version(at as u32));
        let others = others.filter(|first| *first != second);
        others.map(|first| Precedes { first, second }).collect()
    }

    /// An order of versions, if both are inside.
    pub(super) fn precedes(&self, edge: &VersionEdge) -> Option<Precedes> {
        let version = |writer| self.version(edge.key, writer);
        Some(Precedes { first: version(edge.before)?, second: version(edge.after)? })
    }

    /// The problem of these transactions, with some orders of versions settled.
    pub(super) fn problem(self, settled: &[Precedes]) -> (Problem, Txns) {
        let Few { txns, writes, readers, mut open, known, nodes, .. } = self;
        let keys: Vec<&[(KeyId, TxnId)]> = writes.chunk_by(|a, b| a.0 == b.0).collect();
        let number = |key: KeyId| KeyId::at(keys.partition_point(|writes| writes[0].0 < key));
        open.retain(|(read, _)| writes.binary_search_by_key(&read.key, |(key, _)| *key).is_ok());
        open.iter_mut().for_each(|(read, _)| read.key = number(read.key));
        let mut ends = 0;
        let ends = keys.iter().map(|writes| {
            ends += writes.len();
            ends
        });
        let writers = Rows::cut(writes.iter().map(|(_, writer)| *writer).collect(), ends);
        let readers = Rows::group(writes.len(), readers.iter().copied());
        let others = open.iter().map(|(read, _)| (read.reader, read.key));
        let versions = Versions::of_few(txns.txns.len(), writers, readers, others);
        let sources = match open.is_empty() {
            true => Sources::default(),
            false => Sources::of_few(open.into_iter(), &versions),
        };
        let mut problem = Problem {
            layout: txns.own,
            nodes,
            known,
            versions: versions.into(),
            moments: Vec::new(),
            sources,
            incarnations: None,
        };
        let arcs: Vec<Arc> = settled.iter().flat_map(|fact| problem.arcs(*fact)).collect();
        problem.known.extend(arcs);
        (problem, txns)
    }
}
