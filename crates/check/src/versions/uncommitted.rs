//! Read uncommitted: overwrites have no cycle (Adya's PL-1).
//!
//! Reads may be dirty here, so they count only for what they show of the order of versions:
//!
//! - The elements of a list whose appends committed are in the order of their versions, and what the
//!   longest list of a key does not show came later. Other elements mean nothing. The reader's own
//!   appends so far, at the end of what it read, are not in their final place yet.
//! - Who read a register and then wrote it wrote a later version.
//! - What is stated is stated.
//!
//! A transaction of unknown outcome may have aborted, even if somebody read from it. To leave it out
//! takes nothing from the order of the others and adds no cycle: so it is left out.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, Findings, History, Inapplicable, KeyId, Level, Op, OpId,
    OpKind, Outcome, Reason, TxnId, ValueId, Verdict, VersionOrder, Witness,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Options;
use crate::cycles;
use crate::graph::{InEdges, InTime, Moments, precedes, topological_order};
use crate::resolved::{Dependencies, Inferred, Resolved, VersionEdge, stated, writes};

/// What is known of the order of committed versions.
pub(crate) struct Uncommitted<'a, 'h> {
    resolved: &'a Resolved<'h>,
    options: &'a Options,
    appends: FxHashMap<(KeyId, ValueId), Appended>,
    overwrites: Vec<Overwrite>,
    anomalies: Vec<Anomaly>,
    /// Why it cannot be decided, if two may have appended an element that a list shows.
    ambiguous: Option<Inapplicable>,
}

/// Who appended an element, of those that committed.
#[derive(Clone, Copy)]
struct Appended {
    txn: TxnId,
    op: OpId,
    /// How often.
    times: u32,
    /// The append of the same element by another transaction, whatever became of that one.
    other: Option<OpId>,
}

/// An order of two versions.
struct Overwrite {
    before: TxnId,
    after: TxnId,
    key: KeyId,
    known: VersionOrder,
}

/// What a read shows of a list.
#[derive(Clone)]
struct Shown {
    read: OpId,
    elements: Vec<ValueId>,
}

impl<'a, 'h> Uncommitted<'a, 'h> {
    /// Gathers what is known.
    pub(crate) fn new(resolved: &'a Resolved<'h>, options: &'a Options) -> Self {
        let mut new = Uncommitted {
            resolved,
            options,
            appends: appends(resolved.dependencies.history),
            overwrites: Vec::new(),
            anomalies: Vec::new(),
            ambiguous: resolved.dependencies.reads.choices.refusal.clone(),
        };
        new.lists();
        new.registers();
        new.stated();
        new.overwrites.sort_by_key(|overwrite| (overwrite.before, overwrite.after));
        new
    }

    fn history(&self) -> &'h History {
        self.resolved.dependencies.history
    }

    fn is_committed(&self, txn: TxnId) -> bool {
        !txn.is_init() && self.history().outcome(txn) == Outcome::Committed
    }

    /// Decides the level, with real time or without.
    pub(crate) fn check(self, level: Level) -> Verdict {
        let in_time = level.shape().real_time;
        let history = self.history();
        if let Some(reason) = self.ambiguous {
            return Verdict::NotApplicable(reason);
        }
        let pairs = self.overwrites.iter().map(|o| (o.before, o.after)).collect();
        let inferred = Inferred::new(history.txn_count(), &[pairs]);
        let graph = Overwriting { dependencies: &self.resolved.dependencies, inferred: &inferred };
        let guess = self.resolved.guess.commits.clone();
        let order = match in_time {
            false => topological_order(&graph, &guess),
            true => {
                let timed = InTime { graph: &graph, time: self.resolved.real_time() };
                topological_order(&timed, &timed.and_helpers(guess))
            }
        };
        let mut anomalies = self.anomalies.clone();
        if order.is_none() {
            anomalies.extend(self.cycles(level, &graph));
        }
        if !anomalies.is_empty() {
            return Verdict::Violated(Findings::new(anomalies, true));
        }
        if self.has_blind_write() {
            return Verdict::NotApplicable(Inapplicable::NoVersionOrder);
        }
        let txns = order.unwrap_or_default().into_iter();
        let txns = txns.filter(|node| (*node as usize) < history.txn_count()).map(TxnId);
        let committed = txns.filter(|txn| self.is_committed(*txn)).collect();
        Verdict::Satisfied(Witness::CommitOrder(committed))
    }

    fn cycles(&self, level: Level, graph: &Overwriting<'_>) -> Vec<Anomaly> {
        let (history, skew) = (self.history(), self.options.clock_skew);
        let had_finished = |before, after| precedes(history, skew, before, after);
        let time = level.shape().real_time.then(|| self.resolved.real_time());
        let timing = time.map(|time| cycles::Timing { time, had_finished: &had_finished });
        let edge = |(from, to): (&u32, &u32)| self.edge(TxnId(*from), TxnId(*to));
        let edges = |nodes: &[u32]| {
            let next = nodes.iter().cycle().skip(1);
            nodes.iter().zip(next).filter_map(edge).collect()
        };
        cycles::shortest_of_each(level, graph, timing.as_ref(), edges)
    }

    fn edge(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        let at = self.overwrites.binary_search_by_key(&(from, to), |o| (o.before, o.after));
        let reason = match at.ok().map(|at| &self.overwrites[at]) {
            Some(Overwrite { key, known, .. }) => {
                Reason::Overwrite { key: *key, known: known.clone() }
            }
            None if self.resolved.dependencies.session_predecessor(to) == Some(from) => {
                Reason::Session
            }
            None => {
                let (finish, start) = self.history().finish(from).zip(self.history().start(to))?;
                Reason::RealTime { finish, start }
            }
        };
        Some(Edge { from, to, reason })
    }

    /// The order that lists show.
    fn lists(&mut self) {
        let mut longest: FxHashMap<KeyId, Shown> = FxHashMap::default();
        let mut reads: Vec<(KeyId, Shown)> = Vec::new();
        let history = self.history();
        for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
            for read in history.txn_ops(txn) {
                if let Op::ReadList { key, elements: Some(elements) } = history.op(read) {
                    let elements = self.shown(txn, read, key, elements);
                    let ambiguous = elements.iter().find_map(|e| self.ambiguity(read, key, *e));
                    self.ambiguous = self.ambiguous.take().or(ambiguous);
                    reads.push((key, Shown { read, elements }));
                }
            }
        }
        for (key, shown) in &reads {
            let slot = longest.entry(*key).or_insert_with(|| shown.clone());
            if shown.elements.len() > slot.elements.len() {
                *slot = shown.clone();
            }
        }
        for (key, shown) in &reads {
            let longest = &longest[key];
            if !longest.elements.starts_with(&shown.elements) {
                let (first, second) = (shown.read.min(longest.read), shown.read.max(longest.read));
                let evidence = Evidence::Reads { key: *key, first, second, edges: Vec::new() };
                self.anomalies.push(Anomaly::new(AnomalyKind::IncompatibleOrder, evidence));
            }
        }
        let mut keys: Vec<KeyId> = longest.keys().copied().collect();
        keys.sort_unstable();
        let mut is_shown: FxHashSet<OpId> = FxHashSet::default();
        let mut last: FxHashMap<KeyId, (TxnId, OpId)> = FxHashMap::default();
        for key in keys {
            let Shown { read, elements } = &longest[&key];
            self.order(key, *read, elements, &mut is_shown);
            if let Some(element) = elements.last() {
                last.insert(key, (self.appends[&(key, *element)].txn, *read));
            }
        }
        self.not_shown(&is_shown, &last);
    }

    /// What a read shows of committed appends, the reader's own left out if they are at its end and
    /// nowhere else.
    fn shown(&self, txn: TxnId, read: OpId, key: KeyId, elements: &[ValueId]) -> Vec<ValueId> {
        let ops = self.history().txn_ops(txn).take_while(|op| *op < read);
        let own: Vec<ValueId> = ops
            .filter_map(|op| match self.history().op(op) {
                Op::Append { key: other, element } if other == key => Some(element),
                _ => None,
            })
            .collect();
        let others = elements.strip_suffix(own.as_slice());
        let others = others.filter(|others| !others.iter().any(|element| own.contains(element)));
        let others = others.unwrap_or(elements);
        let is_committed = |element: &ValueId| self.appends.contains_key(&(key, *element));
        others.iter().copied().filter(is_committed).collect()
    }

    /// Which two may have appended an element.
    fn ambiguity(&self, read: OpId, key: KeyId, element: ValueId) -> Option<Inapplicable> {
        let Appended { op, other, .. } = self.appends[&(key, element)];
        let first = Some(op);
        other.map(|second| Inapplicable::AmbiguousRead { read, first, second, total: 1 })
    }

    /// The order of the elements of a key's longest list.
    fn order(
        &mut self,
        key: KeyId,
        read: OpId,
        elements: &[ValueId],
        is_shown: &mut FxHashSet<OpId>,
    ) {
        let mut times: FxHashMap<ValueId, u32> = FxHashMap::default();
        let mut before: Option<TxnId> = None;
        for element in elements {
            let appended = self.appends[&(key, *element)];
            let times = times.entry(*element).or_insert(0);
            *times += 1;
            if *times == appended.times + 1 {
                let saw = Some(appended.op);
                let evidence = Evidence::Read { read, saw, instead: None };
                self.anomalies.push(Anomaly::new(AnomalyKind::DuplicateElements, evidence));
            }
            is_shown.insert(appended.op);
            if let Some(before) = before.filter(|before| *before != appended.txn) {
                let known = VersionOrder::List { read };
                self.overwrites.push(Overwrite { before, after: appended.txn, key, known });
            }
            before = Some(appended.txn);
        }
    }

    /// What the longest list of a key does not show was appended after what it shows.
    fn not_shown(&mut self, is_shown: &FxHashSet<OpId>, last: &FxHashMap<KeyId, (TxnId, OpId)>) {
        let history = self.history();
        let mut found = Vec::new();
        for after in history.txns().filter(|txn| self.is_committed(*txn)) {
            for op in history.txn_ops(after) {
                if let Op::Append { key, element } = history.op(op)
                    && let Some((before, read)) = last.get(&key)
                    && *before != after
                    && !is_shown.contains(&self.appends[&(key, element)].op)
                {
                    let known = VersionOrder::NotShown { read: *read };
                    found.push(Overwrite { before: *before, after, key, known });
                }
            }
        }
        self.overwrites.extend(found);
    }

    /// Who read a register and then wrote it.
    fn registers(&mut self) {
        let Dependencies { history, reads, .. } = &self.resolved.dependencies;
        let (mut found, mut unsettled) = (Vec::new(), Vec::new());
        for after in history.txns().filter(|txn| self.is_committed(*txn)) {
            for read in history.txn_ops(after) {
                if history.op_kinds()[read.index()] != OpKind::Read {
                    continue;
                }
                let key = history.op_keys()[read.index()];
                let first_write = history.txn_ops(after).find(|op| {
                    history.op_keys()[op.index()] == key && writes(history.op_kinds()[op.index()])
                });
                if first_write.is_none_or(|write| write < read) {
                    continue;
                }
                match reads.foreign_writer(read) {
                    Some(before) if before != after && self.is_committed(before) => {
                        let known = VersionOrder::ReadModifyWrite { read };
                        found.push(Overwrite { before, after, key, known });
                    }
                    Some(_) => {}
                    None => unsettled.push(read),
                }
            }
        }
        self.overwrites.extend(found);
        self.ambiguous =
            self.ambiguous.take().or_else(|| self.overwrote_one_of_several(&unsettled));
    }

    /// A read whose transaction overwrote one of several versions, and two of them, if there is such
    /// a read among these: all who wrote what it returned committed, so one of them comes before the
    /// reader, and nothing says which. At the other levels it is wrong, whoever it was. A read of what
    /// somebody else may have written, too, says nothing.
    fn overwrote_one_of_several(&self, reads: &[OpId]) -> Option<Inapplicable> {
        let history = self.history();
        let version = |op: OpId| (history.op_keys()[op.index()], history.version_word(op));
        let mut writes: FxHashMap<(KeyId, u64), Vec<OpId>> =
            reads.iter().map(|read| (version(*read), Vec::new())).collect();
        if writes.is_empty() {
            return None;
        }
        for op in history.txns().flat_map(|txn| history.txn_ops(txn)) {
            if matches!(history.op_kinds()[op.index()], OpKind::Write | OpKind::Delete)
                && let Some(writes) = writes.get_mut(&version(op))
            {
                writes.push(op);
            }
        }
        reads.iter().find_map(|read| {
            let (key, word) = version(*read);
            let [first, .., second] = writes[&(key, word)].as_slice() else { return None };
            let is_settled = |op: &OpId| {
                let writer = history.op_txn(*op);
                writer != history.op_txn(*read) && self.is_committed(writer)
            };
            let all = writes[&(key, word)].iter().all(is_settled);
            (all && history.initial_word() != Some(word)).then_some(Inapplicable::AmbiguousRead {
                read: *read,
                first: Some(*first),
                second: *second,
                total: 1,
            })
        })
    }

    fn stated(&mut self) {
        if !self.options.trusts_orders() {
            return;
        }
        let is_committed = |txn| self.is_committed(txn);
        let edges = stated(self.history(), is_committed, &self.options.version_order);
        self.anomalies.extend(edges.iter().filter_map(VersionEdge::before_init));
        let between = edges.iter().filter(|edge| !edge.after.is_init());
        self.overwrites.extend(between.map(|edge| Overwrite {
            before: edge.before,
            after: edge.after,
            key: edge.key,
            known: edge.known.told(),
        }));
    }

    /// Whether two transactions wrote a register without having read it: nothing says which of them
    /// was the first.
    fn has_blind_write(&self) -> bool {
        let history = self.history();
        let stated: FxHashSet<(KeyId, TxnId)> =
            self.overwrites.iter().map(|o| (o.key, o.after)).collect();
        let mut first: FxHashMap<KeyId, TxnId> = FxHashMap::default();
        let mut read: Vec<KeyId> = Vec::new();
        for txn in history.txns().filter(|txn| self.is_committed(*txn)) {
            read.clear();
            for op in history.op_range(txn) {
                let (kind, key) = (history.op_kinds()[op], history.op_keys()[op]);
                match kind {
                    OpKind::Read => read.push(key),
                    OpKind::Write | OpKind::Delete
                        if !read.contains(&key)
                            && !stated.contains(&(key, txn))
                            && *first.entry(key).or_insert(txn) != txn =>
                    {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }
}

/// Who appended what, of those that committed.
fn appends(history: &History) -> FxHashMap<(KeyId, ValueId), Appended> {
    let mut appends: FxHashMap<(KeyId, ValueId), Appended> = FxHashMap::default();
    let with_outcome = |outcome| history.txns().filter(move |txn| history.outcome(*txn) == outcome);
    let others = with_outcome(Outcome::Unknown).chain(with_outcome(Outcome::Aborted));
    for txn in with_outcome(Outcome::Committed).chain(others) {
        let is_committed = history.outcome(txn) == Outcome::Committed;
        for op in history.txn_ops(txn) {
            let Op::Append { key, element } = history.op(op) else { continue };
            match appends.get_mut(&(key, element)) {
                Some(appended) if appended.txn == txn => appended.times += 1,
                Some(appended) => appended.other = Some(op),
                None if is_committed => {
                    appends.insert((key, element), Appended { txn, op, times: 1, other: None });
                }
                None => {}
            }
        }
    }
    appends
}

/// Session order and overwrites.
struct Overwriting<'a> {
    dependencies: &'a Dependencies<'a>,
    inferred: &'a Inferred,
}

impl InEdges for Overwriting<'_> {
    fn node_count(&self) -> usize {
        self.dependencies.node_count()
    }

    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        if *cursor == 0 {
            *cursor = 1;
            let before = self.dependencies.session_predecessor(TxnId(node));
            if let Some(before) = before {
                return Some(before.0);
            }
        }
        let mut inner = *cursor - 1;
        let before = self.inferred.next_in(node, &mut inner);
        *cursor = inner + 1;
        before
    }
}

impl Moments for Overwriting<'_> {
    fn begins(&self, node: u32) -> Option<TxnId> {
        Some(TxnId(node))
    }

    fn ends(&self, node: u32) -> Option<TxnId> {
        Some(TxnId(node))
    }

    fn end_of(&self, txn: TxnId) -> u32 {
        txn.0
    }
}
