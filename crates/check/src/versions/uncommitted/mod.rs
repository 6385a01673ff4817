//! Read uncommitted: overwrites have no cycle (Adya's PL-1).
//!
//! Reads may be dirty here, so they count only for what they show of the order of versions:
//!
//! - The elements of a list whose appends committed are in the order of their versions, and what the
//!   longest list of a key does not show came later. Other elements mean nothing. The reader's own
//!   appends so far, at the end of what it read, are not in their final place yet.
//! - Who read a register and then wrote it wrote a later version, unless it is stated otherwise. A version is
//!   the last write of its key by its transaction: a read of an earlier one says nothing.
//! - What is stated is stated, and what is assumed of registers holds of the versions that committed.
//!
//! A transaction of unknown outcome may have aborted, even if somebody read from it. To leave it out
//! takes nothing from the order of the others and adds no cycle: so it is left out.

mod contradicted;
mod lists;

use isolario_model::{
    Anomaly, Edge, Findings, History, Inapplicable, KeyId, Level, OpId, OpKind, Outcome, Reason,
    TxnId,
};
use rayon::slice::ParallelSliceMut;
use rustc_hash::{FxHashMap, FxHashSet};

use contradicted::drop_contradicted;

use crate::CheckOptions;
use crate::cycles::{Explain, cycles, real_time};
use crate::plan::Conclusion;
use crate::resolved::{
    Dependencies, Inferred, KnownBy, Resolved, Source, VersionEdge, guaranteed, stated, writes,
};

/// What is known of the order of committed versions.
pub(crate) struct Uncommitted<'a, 'h> {
    resolved: &'a Resolved<'h>,
    options: &'a CheckOptions,
    /// By writers, once there is something to explain.
    overwrites: Vec<VersionEdge>,
    anomalies: Vec<Anomaly>,
    /// Why it cannot be decided, if two may have appended an element that a list shows.
    ambiguous: Option<Inapplicable>,
}

impl<'a, 'h> Uncommitted<'a, 'h> {
    /// Gathers what is known.
    pub(crate) fn new(resolved: &'a Resolved<'h>, options: &'a CheckOptions) -> Self {
        let mut new = Uncommitted {
            resolved,
            options,
            overwrites: Vec::new(),
            anomalies: Vec::new(),
            ambiguous: resolved.dependencies.reads.choices.refusal.clone(),
        };
        new.lists();
        new.registers();
        new.stated();
        new.guaranteed();
        new
    }

    fn history(&self) -> &'h History {
        self.resolved.dependencies.history
    }

    fn is_committed(&self, txn: TxnId) -> bool {
        !txn.is_init() && self.history().outcome(txn) == Outcome::Committed
    }

    /// Decides the level, with real time or without.
    pub(crate) fn check(mut self, level: Level) -> Conclusion {
        let in_time = level.shape().real_time;
        if let Some(reason) = self.ambiguous.take() {
            return reason.into();
        }
        let mut graph = self.graph();
        let mut order = self.order(in_time, &graph);
        if order.is_none() && self.drop_contradicted() {
            graph = self.graph();
            order = self.order(in_time, &graph);
        }
        let mut anomalies = std::mem::take(&mut self.anomalies);
        if order.is_none() {
            self.overwrites.par_sort_by_key(|edge| (edge.before, edge.after, edge.key));
            anomalies.extend(cycles(self.resolved, level, &graph, &self));
        }
        if !anomalies.is_empty() {
            return Conclusion::Refuted(Findings::new(anomalies, true));
        }
        if self.has_blind_write() {
            return Inapplicable::NoVersionOrder.into();
        }
        let txns = order.unwrap_or_default().into_iter().map(TxnId);
        Conclusion::serial(level, txns.filter(|txn| self.is_committed(*txn)))
    }

    /// Session order and overwrites.
    fn graph(&self) -> Inferred {
        let (history, dependencies) = (self.history(), &self.resolved.dependencies);
        let in_session = |txn: TxnId| Some((dependencies.session_predecessor(txn)?.0, txn.0));
        let sessions = history.txns().filter_map(in_session).collect();
        let overwrites = self.overwrites.iter().map(|o| (o.before.0, o.after.0)).collect();
        Inferred::new(history.txn_count(), &[sessions, overwrites])
    }

    /// An order of transactions in which all of these lead forward, if there is one.
    fn order(&self, in_time: bool, graph: &Inferred) -> Option<Vec<u32>> {
        self.resolved.order_of(graph, &self.resolved.guess.commits, in_time)
    }

    /// Drops what statements contradict. To drop edges opens cycles and closes none, so this is worth
    /// its time only once there is one.
    fn drop_contradicted(&mut self) -> bool {
        let (history, options) = (self.history(), self.options);
        options.trusts_orders()
            && drop_contradicted(history, &mut self.overwrites, &options.version_order)
    }

    /// The order that lists show.
    fn lists(&mut self) {
        let shown = lists::shown(self.history());
        self.overwrites.extend(shown.edges);
        self.anomalies.extend(shown.anomalies);
        self.ambiguous = self.ambiguous.take().or(shown.ambiguous);
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
                    Some(before)
                        if before != after
                            && self.is_committed(before)
                            && self.is_of_version(read, before) =>
                    {
                        let known = KnownBy::ReadModifyWrite { read };
                        found.push(VersionEdge { before, after, key, known });
                    }
                    Some(_) => {}
                    None => unsettled.push(read),
                }
            }
        }
        self.overwrites.extend(found);
        self.ambiguous = self.ambiguous.take().or_else(|| self.saw_one_of_several(&unsettled));
    }

    /// Whether a read returned the last value that a writer wrote to its key, and not one that the writer
    /// replaced.
    fn is_of_version(&self, read: OpId, writer: TxnId) -> bool {
        let history = self.history();
        let is_of_key = |op: &OpId| {
            history.op_keys()[op.index()] == history.op_keys()[read.index()]
                && writes(history.op_kinds()[op.index()])
        };
        let is_seen = |op: OpId| history.encoded_version(op) == history.encoded_version(read);
        writer.is_init() || history.txn_ops(writer).rfind(is_of_key).is_some_and(is_seen)
    }

    /// A read that saw one of several versions, and two of them, if there is such a read among these: all
    /// who wrote what it returned committed, so it saw one of them, and nothing says which. At the other
    /// levels it is wrong, whoever it was. A read of what somebody else may have written, too, says
    /// nothing.
    fn saw_one_of_several(&self, reads: &[OpId]) -> Option<Inapplicable> {
        let history = self.history();
        let version = |op: OpId| (history.op_keys()[op.index()], history.encoded_version(op));
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
                writer != history.op_txn(*read)
                    && self.is_committed(writer)
                    && self.is_of_version(*read, writer)
            };
            let all = writes[&(key, word)].iter().all(is_settled);
            let all = all && history.op_txn(*first) != history.op_txn(*second);
            (all && history.encoded_initial_version() != Some(word)).then_some(
                Inapplicable::AmbiguousRead {
                    read: *read,
                    first: Some(*first),
                    second: *second,
                    total: 1,
                },
            )
        })
    }

    fn stated(&mut self) {
        if !self.options.trusts_orders() {
            return;
        }
        let is_committed = |txn| self.is_committed(txn);
        self.add(stated(self.history(), is_committed, &self.options.version_order));
    }

    /// Adds what is stated or assumed.
    fn add(&mut self, edges: Vec<VersionEdge>) {
        self.anomalies.extend(edges.iter().filter_map(VersionEdge::before_init));
        self.overwrites.extend(edges.into_iter().filter(|edge| !edge.after.is_init()));
    }

    /// What is assumed of registers.
    fn guaranteed(&mut self) {
        if !self.options.assume.order_versions() {
            return;
        }
        let Dependencies { history, reads, .. } = &self.resolved.dependencies;
        let counts = |txn: &TxnId| txn.is_init() || self.is_committed(*txn);
        let edges = guaranteed(
            history,
            self.options.assume,
            self.options.clock_skew,
            |txn| self.is_committed(txn),
            |read| {
                let writer = reads.foreign_writer(read).filter(counts)?;
                self.is_of_version(read, writer).then_some(writer)
            },
        );
        let committed = history.txns().filter(|txn| self.is_committed(*txn));
        let is_unsettled = |read: &OpId| {
            history.op_kinds()[read.index()] == OpKind::Read
                && reads.source(*read) != Source::Own
                && reads.foreign_writer(*read).is_none()
        };
        let unsettled: Vec<OpId> =
            committed.flat_map(|txn| history.txn_ops(txn)).filter(is_unsettled).collect();
        self.ambiguous = self.ambiguous.take().or_else(|| self.saw_one_of_several(&unsettled));
        self.add(edges);
    }

    /// Whether two transactions wrote a register without having read it: nothing says which of them
    /// was the first.
    fn has_blind_write(&self) -> bool {
        let history = self.history();
        if !history.op_kinds().iter().any(|k| matches!(k, OpKind::Write | OpKind::Delete)) {
            return false;
        }
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

impl Explain for Uncommitted<'_, '_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        let at = self.overwrites.binary_search_by_key(&(from, to), |o| (o.before, o.after));
        match at {
            Ok(at) => Some(self.overwrites[at].edge()),
            Err(_) => {
                let before = self.resolved.dependencies.session_predecessor(to);
                (before == Some(from)).then_some(Edge { from, to, reason: Reason::Session })
            }
        }
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        real_time(self.history(), from, to)
    }
}
