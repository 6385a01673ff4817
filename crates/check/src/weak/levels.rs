//! Decides the weak levels, sharing what they have in common.

use std::sync::{Arc, OnceLock};

use isolario_model::{Anomaly, AnomalyKind, Edge, Findings, Level, TxnId, Witness};

use super::causal::Causality;
use super::chains::TxnChains;
use super::contradictions::WriterRule;
use super::cut::Repeated;
use super::inference::Inference;
use super::naming::{self, Cyclic};
use super::{read_atomic, read_committed};
use crate::blocks;
use crate::cycles::{self, Explain, real_time};
use crate::graph::components;
use crate::order::Patience;
use crate::plan::Conclusion;
use crate::resolved::{
    Dependencies, Inferred, Reads, Resolved, Saturated, VersionEdge, WriteSets, cyclic_versions,
};

/// Transactions per task of read committed.
const TXNS_PER_TASK: usize = 1 << 14;

/// How often an order is repaired.
const ROUNDS: usize = 16;

/// At most one demand in this many transactions may be denied: else the order was no good guess.
const FEW: usize = 4;

/// A history on which weak levels are decided.
pub(crate) struct Weak<'h> {
    pub(crate) resolved: Arc<Resolved<'h>>,
    /// The order of writers that lists show.
    listed: OnceLock<Inferred>,
    /// A topological order of session order, reads and what lists show, if there is one.
    base_order: OnceLock<Option<Vec<u32>>>,
    base_cycles: OnceLock<Vec<Anomaly>>,
    chains: OnceLock<TxnChains>,
    repeated: OnceLock<Repeated>,
    wrong_versions: OnceLock<Vec<Anomaly>>,
}

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
        }
    }

    /// Session order and reads.
    pub(super) fn dependencies(&self) -> &Dependencies<'h> {
        &self.resolved.dependencies
    }

    /// Decides a level.
    pub(crate) fn check(&self, level: Level) -> Conclusion {
        match level {
            Level::AdyaReadCommitted => self.by_reads(),
            Level::StrongAdyaReadCommitted => self.by_reads_in_time(),
            level => self.by_order(level).or(|| self.by_rule(level)),
        }
    }

    /// Decides cut isolation.
    pub(crate) fn cut_isolation(&self) -> Conclusion {
        let Repeated { disagree, is_settled } = self.repeated();
        if !disagree.is_empty() {
            return self.conclusion(disagree.clone(), true, || Witness::Empty);
        }
        let choices = &self.dependencies().reads.choices;
        let refusal = choices.refusal.as_ref().or(choices.refusal_at_cut.as_ref());
        match refusal.filter(|_| !is_settled) {
            Some(reason) => reason.clone().into(),
            None => Conclusion::Holds(Witness::Empty),
        }
    }

    /// Decides Adya's read committed (PL-2), which forbids G0 and G1 for a version order. Lists show theirs.
    /// Registers do not, so the question is whether there is one. Reads must see final writes of
    /// committed transactions, and session order ∪ write-read must be acyclic. That is also
    /// enough: take any total order of the transactions that extends it, and let the versions of
    /// each key follow it; then overwrites, reads and session order all agree with one order.
    pub(crate) fn by_reads(&self) -> Conclusion {
        let anomalies = self.plain_anomalies(Level::AdyaReadCommitted);
        self.conclusion(anomalies, true, || self.commit_order(self.base_order()))
    }

    /// Decides Adya's read committed in real time: session order, reads, real time and what is known of the
    /// order of versions are acyclic. As without real time, any total order that extends them will do for the
    /// rest of the versions.
    fn by_reads_in_time(&self) -> Conclusion {
        let Dependencies { reads, session_order, .. } = self.dependencies();
        let from_later = if *session_order { &reads.from_later[..] } else { &[] };
        let mut anomalies = [&reads.anomalies, from_later, self.wrong_versions()].concat();
        let order = self.resolved.order_of(&self.base(), &self.resolved.guess.commits, true);
        if order.is_none() {
            let level = Level::StrongAdyaReadCommitted;
            let cycles = cycles::cycles(&self.resolved, level, &self.base(), self.dependencies());
            anomalies.extend(cycles);
        }
        if !anomalies.is_empty() {
            return Conclusion::Refuted(Findings::new(anomalies, true));
        }
        self.conclusion(anomalies, true, || self.commit_order(order.as_deref()))
    }

    /// Decides a level with a rule that orders writers, if an order of commits that has all that the rule
    /// demands is easily found.
    pub(crate) fn by_order(&self, level: Level) -> Conclusion {
        if self.resolved.order.is_none() || !self.plain_anomalies(level).is_empty() {
            return Conclusion::Pass;
        }
        match self.find_order(level) {
            Some(order) => self.conclusion(Vec::new(), true, || self.commit_order(Some(&order))),
            None => Conclusion::Pass,
        }
    }

    /// An order of all transactions that gives what a level with a rule that orders writers demands, if one is
    /// easily found. If none is, that proves nothing: the rule is then applied in full.
    pub(super) fn find_order(&self, level: Level) -> Option<Vec<u32>> {
        let dependencies = self.dependencies();
        let rule = WriterRule { dependencies, writes: self.writes(), level };
        let denied = dependencies.history.txn_count() / FEW;
        let patience = Patience { rounds: ROUNDS, denied };
        let guess = self.resolved.order.clone()?;
        dependencies.order(guess, &[&*dependencies.reads, &rule], patience).ok()?.order()
    }

    /// Decides a level with a rule that orders writers, by all that the rule orders.
    pub(crate) fn by_rule(&self, level: Level) -> Conclusion {
        let mut anomalies = self.plain_anomalies(level);
        // Causality is undefined where transactions depend on each other in a cycle.
        if self.resolved.order.is_none() && level == Level::Causal {
            return self.conclusion(anomalies, true, || Witness::Empty);
        }
        let inferred = self.saturate(level, &[]);
        let graph = Saturated { dependencies: self.dependencies(), inferred: &inferred };
        let order = self.resolved.guessed_order(&graph);
        let mut exact = true;
        if inferred.before_init || order.is_none() {
            let found = naming::name(level, &graph, &self.on_cycles(level, &graph, &[]));
            exact = found.exact;
            anomalies.extend(found.anomalies.into_iter().map(by_statement));
        }
        self.conclusion(anomalies, exact, || self.commit_order(order.as_deref()))
    }

    /// Session order ∪ write-read ∪ the order that lists show.
    pub(super) fn base(&self) -> Saturated<'_> {
        let inferred = self.listed.get_or_init(|| {
            let Dependencies { history, reads, .. } = self.dependencies();
            Inferred::new(history.txn_count(), &[reads.demands().collect()])
        });
        Saturated { dependencies: self.dependencies(), inferred }
    }

    fn base_order(&self) -> Option<&[u32]> {
        if self.dependencies().reads.version_order.is_empty() {
            return self.resolved.order.as_deref();
        }
        let find = || self.resolved.guessed_order(&self.base());
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

    /// What a level's rule and lists order beyond session order and reads. `more` is what its
    /// minimal form leaves out and the caller needs.
    pub(super) fn saturate(&self, level: Level, more: &[Inference]) -> Inferred {
        let mut edges = self.infer(level, |i| Some((i.before.0, i.after.0)));
        edges.push(more.iter().map(|i| (i.before.0, i.after.0)).collect());
        edges.push(self.dependencies().reads.demands().collect());
        Inferred::new(self.dependencies().history.txn_count(), &edges)
    }

    /// What a level's anomalies result in, or the witness if there are none. With reads
    /// that could not be resolved, the anomalies found are real, but their absence proves nothing.
    fn conclusion(
        &self,
        anomalies: Vec<Anomaly>,
        exact: bool,
        witness: impl FnOnce() -> Witness,
    ) -> Conclusion {
        let is_open = self.dependencies().reads.choices.refusal.is_some();
        match anomalies.is_empty() {
            false => Conclusion::Refuted(Findings::new(anomalies, exact && !is_open)),
            true if is_open => Conclusion::Open,
            true => Conclusion::Holds(witness()),
        }
    }

    /// What refutes a level by itself: wrong reads, repeated reads that disagree where that counts, and
    /// cycles of session order, reads and known versions.
    pub(crate) fn plain_anomalies(&self, level: Level) -> Vec<Anomaly> {
        let may_repeat = matches!(level, Level::AdyaReadCommitted | Level::ReadCommitted);
        let repeated = if may_repeat { &[][..] } else { self.non_repeatable() };
        [&self.dependencies().reads.anomalies, repeated, self.base_cycles()].concat()
    }

    /// What is wrong with the reads of single transactions.
    pub(crate) fn wrong_reads(&self) -> Vec<Anomaly> {
        [&self.dependencies().reads.anomalies, self.non_repeatable()].concat()
    }

    fn commit_order(&self, order: Option<&[u32]>) -> Witness {
        let kept = order.unwrap_or_default().iter().map(|txn| TxnId(*txn));
        Witness::CommitOrder(kept.filter(|txn| self.dependencies().reads.is_kept(*txn)).collect())
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

    /// Applies a level's rule everywhere, and gathers what `keep` makes of its inferences. The parts of the
    /// result are in an order that does not depend on the number of threads.
    fn infer<T: Send>(
        &self,
        level: Level,
        keep: impl Fn(Inference) -> Option<T> + Sync + Send,
    ) -> Vec<Vec<T>> {
        let (dependencies, writes) = (self.dependencies(), self.writes());
        let Dependencies { history, reads, .. } = dependencies;
        match level {
            Level::ReadCommitted => blocks::gather(
                &blocks::consecutive(history, TXNS_PER_TASK),
                || read_committed::Inferrer::new(dependencies, writes),
                |inferrer, reader, found| {
                    if reads.is_kept(reader) {
                        inferrer.infer(reader, &mut |inference| found.extend(keep(inference)));
                    }
                },
            ),
            Level::ReadAtomic => blocks::gather(
                &blocks::groups(history, 1),
                || read_atomic::Inferrer::new(dependencies, writes),
                |inferrer, reader, found| {
                    if reads.is_kept(reader) {
                        inferrer.infer(reader, &mut |inference| found.extend(keep(inference)));
                    }
                },
            ),
            _ => {
                let order = self.resolved.order.as_deref().unwrap_or_default();
                let chains = self.chains.get_or_init(|| TxnChains::new(dependencies, order));
                Causality { dependencies, writes, order, chains }.infer(keep)
            }
        }
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
        let mut inferences = self.infer(level, |i| closes_a_cycle(&i).then_some(i));
        inferences.push(more.iter().copied().filter(closes_a_cycle).collect());
        Cyclic { components, component_of, inferences: inferences.concat() }
    }
}

/// Session order and reads, and what is shown or stated of versions.
impl Explain for Dependencies<'_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.plain_edge(from, to)
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        real_time(self.history, from, to)
    }
}

/// An anomaly under its name, or as a contradiction of what is stated if it rests on that.
fn by_statement(anomaly: Anomaly) -> Anomaly {
    match cycles::rests_on_statements(anomaly.evidence.edges()) {
        true => Anomaly::new(AnomalyKind::OrderContradiction, anomaly.evidence),
        false => anomaly,
    }
}

#[cfg(test)]
mod tests {
    use isolario_oracle::random::Case;

    use super::*;
    use crate::CheckOptions;

    /// Whether the saturated relation of a level has an order.
    fn is_orderable(weak: &Weak<'_>, level: Level) -> bool {
        let inferred = weak.saturate(level, &[]);
        let graph = Saturated { dependencies: weak.dependencies(), inferred: &inferred };
        !inferred.before_init && weak.resolved.guessed_order(&graph).is_some()
    }

    #[test]
    fn a_witness_is_found_only_where_saturation_finds_an_order_and_nearly_always_there() {
        let (mut orderable, mut found) = (0, 0);
        for case in Case::first(5_000) {
            let history = case.draft().history().unwrap();
            let options = CheckOptions::default().with_session_order(case.seed % 4 != 0);
            let resolved = Arc::new(Resolved::new(&history, &options));
            let weak = Weak::new(resolved);
            if weak.resolved.order.is_none() {
                continue;
            }
            for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
                let is_found = weak.find_order(level).is_some();
                let is_orderable = is_orderable(&weak, level);
                assert!(is_orderable || !is_found, "{level}: {}", case.draft());
                orderable += usize::from(is_orderable);
                found += usize::from(is_found);
            }
        }
        assert!(found * 100 > orderable * 95, "{found} of {orderable}");
    }
}
