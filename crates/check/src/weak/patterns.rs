//! Decides whether single patterns occur, instead of whole levels.
//!
//! A pattern belongs to the weakest level that forbids it, and the commit relation of that level
//! says what comes before what. Bad reads, repeated reads and cycles of dependencies are found as the
//! levels find them: all of them. The patterns that order writers are looked for together, since an
//! instance that does not close in the relation of a weak level may close in that of a stronger one,
//! and then goes by another name.

use std::collections::BTreeMap;
use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Findings, Inapplicable, Level, Limit, PatternResult, Witness,
};

use super::Weak;
use super::instances::{Everywhere, Instance, at_hand};
use super::naming::{self, Closed, Closer, Namer};
use super::relation::Relation;
use crate::graph::BUDGET;
use crate::plan::Conclusion;
use crate::resolved::Saturated;

/// The patterns that can be looked for, and the level whose commit relation each is about.
pub(crate) const PATTERNS: &[(AnomalyKind, Level)] = &[
    (AnomalyKind::ThinAirRead, Level::AdyaReadCommitted),
    (AnomalyKind::AbortedRead, Level::AdyaReadCommitted),
    (AnomalyKind::FutureRead, Level::AdyaReadCommitted),
    (AnomalyKind::NotMyOwnWrite, Level::AdyaReadCommitted),
    (AnomalyKind::NotMyLastWrite, Level::AdyaReadCommitted),
    (AnomalyKind::IntermediateRead, Level::AdyaReadCommitted),
    (AnomalyKind::CyclicCo, Level::AdyaReadCommitted),
    (AnomalyKind::NonMonoReadCo, Level::ReadCommitted),
    (AnomalyKind::NonMonoReadCm, Level::ReadCommitted),
    (AnomalyKind::NonMonotonicRead, Level::ReadCommitted),
    (AnomalyKind::NonRepeatableRead, Level::CutIsolation),
    (AnomalyKind::FracturedReadCo, Level::ReadAtomic),
    (AnomalyKind::FracturedReadCm, Level::ReadAtomic),
    (AnomalyKind::CoConflictCm, Level::Causal),
    (AnomalyKind::ConflictCm, Level::Causal),
    (AnomalyKind::IncompatibleOrder, Level::AdyaReadCommitted),
    (AnomalyKind::DuplicateElements, Level::AdyaReadCommitted),
];

/// The levels with a commit relation of their own, the weakest first.
const ORDERING: [Level; 3] = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

/// The level whose commit relation a pattern is about.
fn level_of(kind: AnomalyKind) -> Option<Level> {
    PATTERNS.iter().find(|(pattern, _)| *pattern == kind).map(|(_, level)| *level)
}

impl Weak<'_> {
    /// Decides which of the patterns occur.
    pub(crate) fn patterns(&self, kinds: &[AnomalyKind]) -> Vec<PatternResult> {
        let is_asked = |level| kinds.iter().any(|kind| level_of(*kind) == Some(level));
        let reads = is_asked(Level::AdyaReadCommitted).then(|| self.wrong_by_themselves());
        let cut = is_asked(Level::CutIsolation).then(|| Matches::all_of(self.cut_isolation()));
        let ordering = self.ordering_patterns(kinds);
        let answer = |kind: &AnomalyKind| {
            let found = match level_of(*kind) {
                Some(Level::AdyaReadCommitted) => reads.as_ref(),
                Some(Level::CutIsolation) => cut.as_ref(),
                Some(_) => Some(&ordering),
                None => None,
            };
            let conclusion = match found {
                Some(found) => self.conclude(*kind, found),
                None => Inapplicable::NoChecker.into(),
            };
            conclusion.pattern(*kind)
        };
        kinds.iter().map(answer).collect()
    }

    /// Bad reads, and cycles of dependencies.
    fn wrong_by_themselves(&self) -> Matches {
        let mut found = Matches::all_of(self.by_reads());
        let missed = naming::behind_dirty_writes(&self.base(), &found.anomalies);
        found.anomalies.extend(missed);
        found
    }

    /// The patterns from TAP-h to TAP-n but for TAP-j, and the non-monotonic read of one key.
    fn ordering_patterns(&self, kinds: &[AnomalyKind]) -> Matches {
        let is_asked = |level: &Level| {
            self.is_defined(*level) && kinds.iter().any(|kind| level_of(*kind) == Some(*level))
        };
        let Some(strongest) = ORDERING.iter().rposition(is_asked) else {
            return Matches::default();
        };
        if self.has_witness(ORDERING[strongest]) {
            return Matches::default();
        }
        // Each relation contains those of the weaker levels, so if the strongest has no cycle, none
        // of them has.
        let last = Relation::new(self, ORDERING[strongest]);
        if last.is_acyclic() {
            return Matches::default();
        }
        let weaker = ORDERING[..strongest].iter().map(|level| Relation::new(self, *level));
        let relations: Vec<Relation> = weaker.chain([last]).collect();
        let (mut anomalies, _) =
            self.close_all(&relations, &at_hand(self.dependencies(), kinds, &relations), kinds);
        let is_found = |kind: &AnomalyKind| anomalies.iter().any(|found| found.kind == *kind);
        let missing: Vec<_> = kinds.iter().copied().filter(|kind| !is_found(kind)).collect();
        if !missing.iter().filter_map(|kind| level_of(*kind)).any(|level| is_asked(&level)) {
            return Matches { anomalies, ..Matches::default() };
        }
        let everywhere = Everywhere::find(self, &missing, &relations);
        let (more, unclosed) = self.close_all(&relations, &everywhere.instances, &missing);
        anomalies.extend(more);
        let is_unfinished = |relation: &&Relation| {
            let distant = relation.level == Level::Causal && !everywhere.all_distant;
            !relation.is_acyclic()
                && (distant || !everywhere.all_by_steps || unclosed.contains(&relation.level))
        };
        let unfinished = relations.iter().filter(is_unfinished).map(|r| r.level).collect();
        Matches { anomalies, unfinished, all_found: false }
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
        for relation in relations {
            let of_level = instances.iter().filter(|i| i.closes_in == relation.level);
            let (found, spent) = self.close_in(relation, of_level, wanted);
            anomalies.extend(found);
            if spent > BUDGET {
                unclosed.push(relation.level);
            }
        }
        anomalies.sort_by_key(|anomaly: &Anomaly| anomaly.evidence.edges().len());
        (anomalies, unclosed)
    }

    /// As [`Weak::close_all`], of the instances that close in one relation, and how many edges were
    /// looked at. If these are more than the budget, some instances were not looked at.
    fn close_in<'i>(
        &self,
        relation: &Relation,
        instances: impl Iterator<Item = &'i Instance>,
        wanted: &[AnomalyKind],
    ) -> (Vec<Anomaly>, usize) {
        let Relation { level, inferred, cyclic } = relation;
        let graph = Saturated { dependencies: self.dependencies(), inferred };
        let mut by_component: BTreeMap<u32, Vec<&Instance>> = BTreeMap::new();
        for instance in instances {
            by_component.entry(cyclic.component(&instance.inference)).or_default().push(instance);
        }
        let mut inferences = cyclic.by_component();
        let (mut anomalies, mut spent) = (Vec::new(), 0);
        for (component, instances) in by_component {
            let inferences = inferences.remove(&component).unwrap_or_default();
            let namer = Namer::new(*level, &graph, cyclic.members(component), inferences);
            let budget = BUDGET.saturating_sub(spent);
            let (best, spent_here) = shortest(&namer, &instances, wanted, budget);
            spent += spent_here;
            anomalies.extend(best.iter().map(|(kind, closed)| namer.anomaly(*kind, closed)));
        }
        (anomalies, spent)
    }

    fn conclude(&self, kind: AnomalyKind, found: &Matches) -> Conclusion {
        let anomalies: Vec<_> =
            found.anomalies.iter().filter(|anomaly| anomaly.kind == kind).cloned().collect();
        let ambiguous = &self.dependencies().reads.choices.refusal;
        match ambiguous {
            _ if !anomalies.is_empty() => {
                let exact = found.all_found && ambiguous.is_none();
                Conclusion::Refuted(Findings::new(anomalies, exact))
            }
            Some(reason) => reason.clone().into(),
            None if level_of(kind).is_some_and(|level| !self.is_defined(level)) => {
                Inapplicable::CyclicDependencies.into()
            }
            None if level_of(kind).is_some_and(|level| found.unfinished.contains(&level)) => {
                Conclusion::limit(Limit::Steps)
            }
            None => Conclusion::Holds(Witness::Empty),
        }
    }
}

/// What was found of some patterns.
#[derive(Default)]
struct Matches {
    anomalies: Vec<Anomaly>,
    /// Whether these are all that there are.
    all_found: bool,
    /// The levels of whose patterns some may occur that were not found.
    unfinished: Vec<Level>,
}

impl Matches {
    /// The anomalies of a level that reports all of them.
    fn all_of(conclusion: Conclusion) -> Matches {
        let anomalies = match conclusion {
            Conclusion::Refuted(findings) => {
                findings.anomalies.into_iter().map(Arc::unwrap_or_clone).collect()
            }
            _ => Vec::new(),
        };
        Matches { anomalies, all_found: true, ..Matches::default() }
    }
}

/// For each wanted pattern, the shortest cycle in one component, and how many edges were looked at to
/// find it. If these are more than the budget, some instances were not looked at.
fn shortest(
    namer: &Namer<'_>,
    instances: &[&Instance],
    wanted: &[AnomalyKind],
    budget: usize,
) -> (BTreeMap<AnomalyKind, Closed>, usize) {
    let mut closer = Closer::new(namer);
    let mut best: BTreeMap<AnomalyKind, Closed> = BTreeMap::new();
    for instance in instances {
        if closer.spent() > budget {
            break;
        }
        if let Some((kind, closed)) = close(&mut closer, instance, wanted)
            && best.get(&kind).is_none_or(|best| closed.path.len() < best.path.len())
        {
            best.insert(kind, closed);
        }
    }
    (best, closer.spent())
}

/// Which pattern an instance is, if it is a wanted one, and its cycle.
fn close(
    closer: &mut Closer<'_>,
    instance: &Instance,
    wanted: &[AnomalyKind],
) -> Option<(AnomalyKind, Closed)> {
    let is_wanted = |kind: &AnomalyKind| wanted.contains(kind);
    if let Some(kind) = instance.causally
        && let Some(closed) = closer.causally(&instance.inference)
    {
        return is_wanted(&kind).then_some((kind, closed));
    }
    let kind = Some(instance.by_commit).filter(is_wanted)?;
    Some((kind, closer.anyhow(&instance.inference)?))
}
