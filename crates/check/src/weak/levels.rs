//! Decides the weak levels, sharing what they have in common.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Findings, Level, SessionId, TxnId, Verdict, Witness,
};
use rayon::prelude::*;

use super::causal::Causality;
use super::chains::Chains;
use super::cut::Repeated;
use super::inference::Inference;
use super::naming::{self, Cyclic};
use super::{read_atomic, read_committed, witness};
use crate::cycles;
use crate::graph::{components, topological_order};
use crate::resolved::{
    Dependencies, Inferred, Reads, Resolved, Saturated, VersionEdge, WriteSets, cyclic_versions,
};

/// Transactions per task of read committed.
const TXNS_PER_TASK: usize = 1 << 14;

/// A history on which weak levels are decided.
pub(crate) struct Weak<'h> {
    pub(crate) resolved: Arc<Resolved<'h>>,
    /// The order of writers that lists show.
    listed: OnceLock<Inferred>,
    /// A topological order of session order, reads and what lists show, if there is one.
    base_order: OnceLock<Option<Vec<u32>>>,
    base_cycles: OnceLock<Vec<Anomaly>>,
    chains: OnceLock<Chains>,
    repeated: OnceLock<Repeated>,
    wrong_versions: OnceLock<Vec<Anomaly>>,
    /// The levels that an order mended by windows satisfies, of those that were decided.
    by_windows: Mutex<Vec<Level>>,
}

/// What is done with inferences while they are made: it is given a function that makes them, and
/// gives that one a function that takes them.
type Collect<'c, T> = &'c (dyn Fn(&mut dyn FnMut(&mut dyn FnMut(Inference))) -> T + Sync);

impl<'h> Weak<'h> {
    pub(crate) fn new(resolved: Arc<Resolved<'h>>) -> Self {
        Weak {
            resolved,
            listed: OnceLock::new(),
            base_order: OnceLock::new(),
            base_cycles: OnceLock::new(),
            chains: OnceLock::new(),
            repeated: OnceLock::new(),
            wrong_versions: OnceLock::new(),
            by_windows: Mutex::default(),
        }
    }

    /// Whether a level that was decided is satisfied by an order that was mended window by window.
    pub(crate) fn is_by_windows(&self, level: Level) -> bool {
        level == Level::AdyaReadCommitted || self.by_windows().contains(&level)
    }

    fn by_windows(&self) -> MutexGuard<'_, Vec<Level>> {
        self.by_windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Session order and reads.
    pub(super) fn dependencies(&self) -> &Dependencies<'h> {
        &self.resolved.dependencies
    }

    /// Decides a level.
    pub(crate) fn check(&self, level: Level) -> Verdict {
        match level {
            Level::CutIsolation => {
                let Repeated { disagree, is_settled } = self.repeated();
                let refusal = &self.dependencies().reads.choices.refusal_at_cut;
                match (self.verdict(disagree.clone(), true, || Witness::Empty), refusal) {
                    (Verdict::NotApplicable(_), _) if *is_settled => {
                        Verdict::Satisfied(Witness::Empty)
                    }
                    (Verdict::Satisfied(_), Some(reason)) if !is_settled => {
                        Verdict::NotApplicable(reason.clone())
                    }
                    (verdict, _) => verdict,
                }
            }
            Level::AdyaReadCommitted => self.check_adya(),
            level => self.check_saturated(level),
        }
    }

    /// Adya's read committed (PL-2) forbids G0 and G1 for a version order. Lists show theirs.
    /// Registers do not, so the question is whether there is one. Reads must see final writes of
    /// committed transactions, and session order ∪ write-read must be acyclic. That is also
    /// enough: take any total order of the transactions that extends it, and let the versions of
    /// each key follow it; then overwrites, reads and session order all agree with one order.
    fn check_adya(&self) -> Verdict {
        let anomalies = [&self.bad_reads(), self.base_cycles()].concat();
        self.verdict(anomalies, true, || self.commit_order(self.base_order()))
    }

    /// Session order ∪ write-read ∪ the order that lists show.
    pub(super) fn base(&self) -> Saturated<'_> {
        let inferred = self.listed.get_or_init(|| {
            let Dependencies { history, reads, .. } = self.dependencies();
            let listed = reads.version_order.iter().map(|edge| (edge.before, edge.after));
            Inferred::new(history.txn_count(), &[listed.collect()])
        });
        Saturated { dependencies: self.dependencies(), inferred }
    }

    fn base_order(&self) -> Option<&[u32]> {
        if self.dependencies().reads.version_order.is_empty() {
            return self.resolved.order.as_deref();
        }
        let find = || topological_order(&self.base(), &self.resolved.guess.commits);
        self.base_order.get_or_init(find).as_deref()
    }

    /// What is wrong with session order, reads and the order of versions beside each other.
    pub(crate) fn base_cycles(&self) -> &[Anomaly] {
        self.base_cycles.get_or_init(|| self.find_base_cycles())
    }

    fn find_base_cycles(&self) -> Vec<Anomaly> {
        let Reads { from_later, .. } = &*self.dependencies().reads;
        let from_later =
            if self.dependencies().session_order { from_later.clone() } else { Vec::new() };
        let wrong = self.wrong_versions();
        if self.base_order().is_some() {
            return [wrong, &from_later].concat();
        }
        // What an assumption does to the versions of one key is told as that alone.
        let is_told = |anomaly: &Anomaly| {
            let cycle = anomaly.evidence.edges();
            let is_in = |edge: &Edge| cycle.iter().any(|other| other.from == edge.from);
            anomaly.evidence.rests_on_assumptions()
                && wrong.iter().any(|wrong| wrong.evidence.edges().iter().any(is_in))
        };
        let cycles = naming::base_cycles(&self.base()).into_iter().map(by_statement);
        let cycles: Vec<Anomaly> = cycles.filter(|anomaly| !is_told(anomaly)).collect();
        [wrong, &cycles, &from_later].concat()
    }

    /// Orders of versions that contradict themselves: what is stated or assumed has something before an
    /// initial version, or what is assumed has versions of a key in a cycle.
    pub(crate) fn wrong_versions(&self) -> &[Anomaly] {
        self.wrong_versions.get_or_init(|| {
            let edges = self.dependencies().reads.version_order.iter();
            let mut wrong: Vec<Anomaly> = edges.filter_map(VersionEdge::before_init).collect();
            if self.resolved.assumes_orders {
                wrong.extend(cyclic_versions(self.dependencies(), &self.resolved.versions()));
            }
            wrong
        })
    }

    /// The levels with a rule that orders writers.
    fn check_saturated(&self, level: Level) -> Verdict {
        let mut anomalies = self.bad_reads();
        if level != Level::ReadCommitted {
            anomalies.extend_from_slice(self.non_repeatable());
        }
        anomalies.extend_from_slice(self.base_cycles());
        // Causality is undefined where transactions depend on each other in a cycle.
        if self.resolved.order.is_none() && level == Level::Causal {
            return self.verdict(anomalies, true, || Witness::Empty);
        }
        if anomalies.is_empty()
            && let Some(order) = &self.resolved.order
            && let Some(order) = witness::find(self.dependencies(), self.writes(), order, level)
        {
            self.by_windows().push(level);
            return self.verdict(anomalies, true, || self.commit_order(Some(&order)));
        }
        let edges = self.inferred_edges(level, &[]);
        let inferred = Inferred::new(self.dependencies().history.txn_count(), &edges);
        drop(edges);
        let graph = Saturated { dependencies: self.dependencies(), inferred: &inferred };
        let order = topological_order(&graph, &self.resolved.guess.commits);
        let mut exact = true;
        if inferred.before_init || order.is_none() {
            let found = naming::name(level, &graph, &self.on_cycles(level, &graph, &[]));
            exact = found.exact;
            anomalies.extend(found.anomalies.into_iter().map(by_statement));
        }
        self.verdict(anomalies, exact, || self.commit_order(order.as_deref()))
    }

    /// What a level's rule and lists order beyond session order and reads. `more` is what its
    /// minimal form leaves out and the caller needs.
    pub(super) fn saturate(&self, level: Level, more: &[Inference]) -> Inferred {
        let edges = self.inferred_edges(level, more);
        Inferred::new(self.dependencies().history.txn_count(), &edges)
    }

    fn inferred_edges(&self, level: Level, more: &[Inference]) -> Vec<Vec<(TxnId, TxnId)>> {
        let mut edges = self.infer(level, &|run| {
            let mut edges = Vec::new();
            run(&mut |i: Inference| edges.push((i.before, i.after)));
            edges
        });
        edges.push(more.iter().map(|i| (i.before, i.after)).collect());
        let listed = &self.dependencies().reads.version_order;
        edges.push(listed.iter().map(|e| (e.before, e.after)).collect());
        edges
    }

    /// The verdict that a level's anomalies make, or the witness if there are none. With reads
    /// that could not be resolved, the anomalies found are real, but their absence proves nothing.
    fn verdict(
        &self,
        anomalies: Vec<Anomaly>,
        exact: bool,
        witness: impl FnOnce() -> Witness,
    ) -> Verdict {
        let ambiguous = &self.dependencies().reads.choices.refusal;
        match ambiguous {
            _ if !anomalies.is_empty() => {
                Verdict::Violated(Findings::new(anomalies, exact && ambiguous.is_none()))
            }
            Some(reason) => Verdict::NotApplicable(reason.clone()),
            None => Verdict::Satisfied(witness()),
        }
    }

    /// What refutes every level from read atomic up by itself: wrong reads, repeated reads that
    /// disagree, and cycles of session order and reads.
    #[cfg(test)]
    pub(crate) fn plain_anomalies(&self) -> Vec<Anomaly> {
        [&self.wrong_reads(), self.base_cycles()].concat()
    }

    /// Of these, what is wrong with the reads of single transactions.
    pub(crate) fn wrong_reads(&self) -> Vec<Anomaly> {
        [&self.bad_reads(), self.non_repeatable()].concat()
    }

    fn commit_order(&self, order: Option<&[u32]>) -> Witness {
        let kept = order.unwrap_or_default().iter().map(|txn| TxnId(*txn));
        Witness::CommitOrder(kept.filter(|txn| self.dependencies().reads.is_kept(*txn)).collect())
    }

    fn bad_reads(&self) -> Vec<Anomaly> {
        self.dependencies().reads.anomalies.clone()
    }

    pub(super) fn writes(&self) -> &WriteSets<'h> {
        self.resolved.write_sets()
    }

    pub(super) fn non_repeatable(&self) -> &[Anomaly] {
        &self.repeated().disagree
    }

    fn repeated(&self) -> &Repeated {
        let Dependencies { history, reads, .. } = self.dependencies();
        self.repeated.get_or_init(|| Repeated::new(history, reads))
    }

    /// Applies a level's rule everywhere. The parts of the result are in an order that does not
    /// depend on the number of threads.
    fn infer<T: Send>(&self, level: Level, collect: Collect<'_, T>) -> Vec<T> {
        let history = self.dependencies().history;
        let writes = self.writes();
        match level {
            Level::ReadCommitted => self.infer_read_committed(writes, collect),
            Level::ReadAtomic => (0..history.session_count())
                .into_par_iter()
                .map_init(
                    || read_atomic::Inferrer::new(self.dependencies(), writes),
                    |inferrer, session| {
                        collect(&mut |emit| {
                            inferrer.infer(SessionId::at(session), &mut |i| emit(i));
                        })
                    },
                )
                .collect(),
            _ => {
                let order = self.resolved.order.as_deref().unwrap_or_default();
                let chains = self.chains.get_or_init(|| Chains::new(self.dependencies(), order));
                Causality { dependencies: self.dependencies(), writes, order, chains }
                    .infer(collect)
            }
        }
    }

    fn infer_read_committed<T: Send>(
        &self,
        writes: &WriteSets<'_>,
        collect: Collect<'_, T>,
    ) -> Vec<T> {
        let txns = self.dependencies().history.txn_count();
        let starts: Vec<usize> = (0..txns).step_by(TXNS_PER_TASK).collect();
        let reads = &*self.dependencies().reads;
        starts
            .into_par_iter()
            .map_init(
                || read_committed::Inferrer::new(self.dependencies(), writes),
                |inferrer, start| {
                    let end = (start + TXNS_PER_TASK).min(txns);
                    collect(&mut |emit| {
                        for txn in (start..end).map(TxnId::at).filter(|txn| reads.is_kept(*txn)) {
                            inferrer.infer(txn, &mut |i| emit(i));
                        }
                    })
                },
            )
            .collect()
    }

    /// Infers once more, now with reasons, and keeps what closes a cycle.
    pub(super) fn on_cycles(
        &self,
        level: Level,
        graph: &Saturated<'_>,
        more: &[Inference],
    ) -> Cyclic {
        let components = components(graph);
        let mut component_of = vec![u32::MAX; self.dependencies().history.txn_count()];
        for (number, component) in components.iter().enumerate() {
            component.iter().for_each(|txn| component_of[*txn as usize] = number as u32);
        }
        let closes_a_cycle = |i: &Inference| {
            i.after.is_init() || {
                let component = component_of[i.before.index()];
                component != u32::MAX && component == component_of[i.after.index()]
            }
        };
        let mut inferences = self.infer(level, &|run| {
            let mut found = Vec::new();
            run(&mut |i: Inference| {
                if closes_a_cycle(&i) {
                    found.push(i);
                }
            });
            found
        });
        inferences.push(more.iter().copied().filter(closes_a_cycle).collect());
        Cyclic { components, component_of, inferences: inferences.concat() }
    }
}

/// An anomaly under its name, or as a contradiction of what is stated if it rests on that.
fn by_statement(anomaly: Anomaly) -> Anomaly {
    match cycles::rests_on_statements(anomaly.evidence.edges()) {
        true => Anomaly::new(AnomalyKind::OrderContradiction, anomaly.evidence),
        false => anomaly,
    }
}
