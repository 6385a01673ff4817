//! Decides whether single patterns occur, instead of whole levels.
//!
//! A pattern belongs to the weakest level that forbids it, and the commit relation of that level
//! says what comes before what. Bad reads, repeated reads and cycles of dependencies are found as the
//! levels find them: all of them. The patterns that order writers are looked for together, since an
//! instance that does not close in the relation of a weak level may close in that of a stronger one,
//! and then goes by another name.

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, AnomalyKind, Findings, Inapplicable, Level, Limit, PatternResult, Witness,
};

use super::Weak;
use super::instances::{Instance, Instances};
use super::naming::{self, Closed, Closer, Namer};
use super::relation::Relation;
use crate::graph::BUDGET;
use crate::plan::Conclusion;
use crate::resolved::Saturated;

/// The patterns that can be looked for.
pub(crate) const PATTERNS: [AnomalyKind; 17] = [
    AnomalyKind::ThinAirRead,
    AnomalyKind::AbortedRead,
    AnomalyKind::FutureRead,
    AnomalyKind::NotMyOwnWrite,
    AnomalyKind::NotMyLastWrite,
    AnomalyKind::IntermediateRead,
    AnomalyKind::CyclicCo,
    AnomalyKind::NonMonoReadCo,
    AnomalyKind::NonMonoReadCm,
    AnomalyKind::NonMonotonicRead,
    AnomalyKind::NonRepeatableRead,
    AnomalyKind::FracturedReadCo,
    AnomalyKind::FracturedReadCm,
    AnomalyKind::CoConflictCm,
    AnomalyKind::ConflictCm,
    AnomalyKind::IncompatibleOrder,
    AnomalyKind::DuplicateElements,
];

/// The levels with a commit relation of their own, the weakest first.
const ORDERING: [Level; 3] = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

/// The level whose commit relation a pattern is about: the weakest that forbids it.
fn level_of(kind: AnomalyKind) -> Option<Level> {
    use Level::{AdyaReadCommitted, Causal, CutIsolation, ReadAtomic, ReadCommitted};
    let levels = [AdyaReadCommitted, ReadCommitted, CutIsolation, ReadAtomic, Causal];
    levels.into_iter().find(|level| PATTERNS.contains(&kind) && kind.forbidden_at(*level))
}

impl Weak<'_> {
    /// Decides which of the patterns occur.
    pub(crate) fn patterns(&self, kinds: &[AnomalyKind]) -> Vec<PatternResult> {
        let is_asked = |level| kinds.iter().any(|kind| level_of(*kind) == Some(level));
        let (mut found, unfinished) = self.ordering_patterns(kinds);
        if is_asked(Level::AdyaReadCommitted) {
            let plain = self.plain_anomalies(Level::AdyaReadCommitted);
            let hidden = naming::behind_dirty_writes(&self.base(), &plain);
            found.extend(plain.into_iter().chain(hidden));
        }
        if is_asked(Level::CutIsolation) {
            found.extend_from_slice(self.non_repeatable());
        }
        let conclude =
            |kind: &AnomalyKind| self.conclude(*kind, &found, &unfinished).pattern(*kind);
        kinds.iter().map(conclude).collect()
    }

    /// The patterns from TAP-h to TAP-n but for TAP-j, and the non-monotonic read of one key; and the levels
    /// of whose patterns some may occur that were not found.
    fn ordering_patterns(&self, kinds: &[AnomalyKind]) -> (Vec<Anomaly>, Vec<Level>) {
        let is_asked = |level: Level| {
            let is_ordering = ORDERING.contains(&level) && self.is_defined(level);
            is_ordering.then_some(level)
        };
        let asked = |kind: &AnomalyKind| level_of(*kind).and_then(is_asked);
        let mut wanted = kinds.to_vec();
        wanted.retain(|kind| asked(kind).is_some());
        let none = (Vec::new(), Vec::new());
        let Some(strongest) = wanted.iter().filter_map(asked).max() else { return none };
        if self.has_witness(strongest) {
            return none;
        }
        // Each relation contains those of the weaker levels, so if the strongest has no cycle, none
        // of them has.
        let last = Relation::new(self, strongest);
        if last.is_acyclic() {
            return none;
        }
        let weaker = ORDERING.iter().filter(|level| **level < strongest);
        let weaker = weaker.map(|level| Relation::new(self, *level));
        let relations: Vec<Relation> = weaker.chain([last]).collect();
        let mut at_hand = Instances::new(self, &wanted, &relations);
        at_hand.add_inferred();
        let (mut anomalies, _) = self.close_all(&relations, &at_hand.found, &wanted);
        let mut missing = wanted.clone();
        missing.retain(|kind| anomalies.iter().all(|found| found.kind != *kind));
        if missing.is_empty() {
            return (anomalies, Vec::new());
        }
        let mut all = Instances::new(self, &missing, &relations);
        let (all_near, all_distant) = all.add_all();
        let (more, unclosed) = self.close_all(&relations, &all.found, &missing);
        anomalies.extend(more);
        let is_unfinished = |relation: &&Relation| {
            let distant = relation.level == Level::Causal && !all_distant;
            !relation.is_acyclic() && (distant || !all_near || unclosed.contains(&relation.level))
        };
        (anomalies, relations.iter().filter(is_unfinished).map(|r| r.level).collect())
    }

    /// Whether some order gives what a level demands, if that is easily found out. It is not tried
    /// where reads of a key differ: it does not look at all that they demand.
    fn has_witness(&self, level: Level) -> bool {
        self.non_repeatable().is_empty() && self.find_order(level).is_some()
    }

    /// Whether the commit relation of a level means anything: there is no causality where
    /// transactions depend on each other in a cycle.
    fn is_defined(&self, level: Level) -> bool {
        level != Level::Causal || self.resolved.order.is_some()
    }

    /// For each wanted pattern and each component, the instance with the shortest cycle; and the
    /// levels in whose relations there was no time to look at all instances.
    fn close_all(
        &self,
        relations: &[Relation],
        instances: &[Instance],
        wanted: &[AnomalyKind],
    ) -> (Vec<Anomaly>, Vec<Level>) {
        let (mut anomalies, mut unclosed) = (Vec::new(), Vec::new());
        for Relation { level, inferred, cyclic } in relations {
            let graph = Saturated { dependencies: self.dependencies(), inferred };
            let mut by_component: BTreeMap<u32, Vec<&Instance>> = BTreeMap::new();
            for instance in instances.iter().filter(|instance| instance.closes_in == *level) {
                let component = cyclic.component(&instance.inference);
                by_component.entry(component).or_default().push(instance);
            }
            let mut inferences = cyclic.by_component();
            let mut left = BUDGET;
            let mut is_over = false;
            for (component, instances) in by_component {
                let inferences = inferences.remove(&component).unwrap_or_default();
                let namer = Namer::new(*level, &graph, cyclic.members(component), inferences);
                let (found, spent) = namer.shortest(
                    instances,
                    |spent, _| spent > left,
                    |closer, instance| close(closer, instance, wanted),
                );
                anomalies.extend(found);
                is_over |= spent > left;
                left = left.saturating_sub(spent);
            }
            unclosed.extend(is_over.then_some(*level));
        }
        anomalies.sort_by_key(|anomaly: &Anomaly| anomaly.evidence.edges().len());
        (anomalies, unclosed)
    }

    fn conclude(&self, kind: AnomalyKind, found: &[Anomaly], unfinished: &[Level]) -> Conclusion {
        let Some(level) = level_of(kind) else { return Inapplicable::NoChecker.into() };
        let anomalies: Vec<_> =
            found.iter().filter(|anomaly| anomaly.kind == kind).cloned().collect();
        match &self.dependencies().reads.choices.refusal {
            ambiguous if !anomalies.is_empty() => {
                let exact = !ORDERING.contains(&level) && ambiguous.is_none();
                Conclusion::Refuted(Findings::new(anomalies, exact))
            }
            Some(reason) => reason.clone().into(),
            None if !self.is_defined(level) => Inapplicable::CyclicDependencies.into(),
            None if unfinished.contains(&level) => Conclusion::limit(Limit::Steps),
            None => Conclusion::Holds(Witness::Empty),
        }
    }
}

/// Which pattern an instance is, if it is a wanted one, and its cycle.
fn close(
    closer: &mut Closer<'_>,
    instance: &Instance,
    wanted: &[AnomalyKind],
) -> Option<(AnomalyKind, Closed)> {
    let Instance { inference, causally, by_commit, .. } = instance;
    if let Some(kind) = causally
        && let Some(closed) = closer.close(inference, true)
    {
        return wanted.contains(kind).then_some((*kind, closed));
    }
    let kind = wanted.contains(by_commit).then_some(*by_commit)?;
    Some((kind, closer.close(inference, false)?))
}
