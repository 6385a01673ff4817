//! Decides whether single patterns occur, instead of whole levels.
//!
//! A pattern belongs to the weakest level that forbids it, and the commit relation of that level
//! says what comes before what. First come the inferences that the level's rule makes anyway; a
//! pattern that is not among them is looked for everywhere.

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, AnomalyKind, Findings, Inapplicable, Level, Limit, PatternResult, Undecided, Verdict,
    Witness,
};

use super::Weak;
use super::instances::{Instance, Instances, at_read, of_repeated_reads};
use super::naming::{self, Closed, Closer, Cyclic, Namer};
use super::saturated::Saturated;
use crate::graph::{BUDGET, topological_order};

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

/// The level whose commit relation a pattern is about.
fn level_of(kind: AnomalyKind) -> Option<Level> {
    PATTERNS.iter().find(|(pattern, _)| *pattern == kind).map(|(_, level)| *level)
}

impl Weak<'_> {
    /// Decides which of the patterns occur.
    pub(crate) fn patterns(&self, kinds: &[AnomalyKind]) -> Vec<PatternResult> {
        let mut of_level: BTreeMap<Level, OfLevel> = BTreeMap::new();
        for level in kinds.iter().filter_map(|kind| level_of(*kind)) {
            let wanted: Vec<_> =
                kinds.iter().copied().filter(|kind| level_of(*kind) == Some(level)).collect();
            of_level.entry(level).or_insert_with(|| self.patterns_of(level, &wanted));
        }
        let answer = |kind: &AnomalyKind| {
            let found = level_of(*kind).and_then(|level| of_level.get(&level));
            let verdict = match found {
                Some(found) => self.answer(*kind, found),
                None => Verdict::NotApplicable(Inapplicable::NoChecker),
            };
            PatternResult { kind: *kind, verdict }
        };
        kinds.iter().map(answer).collect()
    }

    fn patterns_of(&self, level: Level, wanted: &[AnomalyKind]) -> OfLevel {
        match level {
            Level::AdyaReadCommitted | Level::CutIsolation => {
                let found = self.check(level);
                let mut anomalies: Vec<Anomaly> =
                    found.anomalies().iter().map(|anomaly| Anomaly::clone(anomaly)).collect();
                if level == Level::AdyaReadCommitted {
                    let missed = naming::behind_dirty_writes(&self.base(), &anomalies);
                    anomalies.extend(missed);
                }
                OfLevel { anomalies, all_found: true, looked_everywhere: true, undefined: false }
            }
            // Causality is undefined where transactions depend on each other in a circle.
            Level::Causal if self.order.is_none() => {
                OfLevel { undefined: true, ..OfLevel::default() }
            }
            level => self.patterns_of_relation(level, wanted),
        }
    }

    fn patterns_of_relation(&self, level: Level, wanted: &[AnomalyKind]) -> OfLevel {
        let more = match level {
            Level::ReadCommitted => of_repeated_reads(self.dependencies),
            _ => Vec::new(),
        };
        let inferred = self.saturate(level, &more);
        let graph = Saturated { dependencies: self.dependencies, inferred: &inferred };
        if !inferred.before_init && topological_order(&graph, &self.guess).is_some() {
            return OfLevel { looked_everywhere: true, ..OfLevel::default() };
        }
        let cyclic = self.on_cycles(level, &graph, &more);
        let hunt = Hunt { level, graph: &graph, cyclic: &cyclic };
        let at_hand: Vec<Instance> = (cyclic.inferences.iter())
            .flat_map(|inference| at_read(level, self.dependencies, inference))
            .collect();
        let (mut anomalies, _) = hunt.among(&at_hand, wanted);
        let is_found = |kind: &AnomalyKind| anomalies.iter().any(|found| found.kind == *kind);
        let missing: Vec<_> = wanted.iter().copied().filter(|kind| !is_found(kind)).collect();
        let mut looked_everywhere = true;
        if !missing.is_empty() {
            let (everywhere, all) = Instances::find(level, self.dependencies, &cyclic);
            let (more, all_closed) = hunt.among(&everywhere, &missing);
            anomalies.extend(more);
            looked_everywhere = all && all_closed;
        }
        OfLevel { anomalies, looked_everywhere, ..OfLevel::default() }
    }

    fn answer(&self, kind: AnomalyKind, found: &OfLevel) -> Verdict {
        let anomalies: Vec<_> =
            found.anomalies.iter().filter(|anomaly| anomaly.kind == kind).cloned().collect();
        let ambiguous = &self.dependencies.reads.ambiguous;
        match ambiguous {
            _ if !anomalies.is_empty() => {
                let exact = found.all_found && ambiguous.is_none();
                Verdict::Violated(Findings::new(anomalies, exact))
            }
            Some(reason) => Verdict::NotApplicable(reason.clone()),
            None if found.undefined => Verdict::NotApplicable(Inapplicable::CyclicDependencies),
            None if found.looked_everywhere => Verdict::Satisfied(Witness::Empty),
            None => Verdict::Undecided(Undecided::new(Limit::Steps)),
        }
    }
}

/// What was found of the patterns of one level.
#[derive(Default)]
struct OfLevel {
    anomalies: Vec<Anomaly>,
    /// Whether these are all that there are.
    all_found: bool,
    /// Whether a pattern that was not found does not occur.
    looked_everywhere: bool,
    /// Whether the patterns mean nothing in this history.
    undefined: bool,
}

/// Looks for patterns of a level on the cycles of its commit relation.
struct Hunt<'a> {
    level: Level,
    graph: &'a Saturated<'a>,
    cyclic: &'a Cyclic,
}

impl Hunt<'_> {
    /// For each wanted pattern and each component, the one with the shortest cycle; and whether
    /// there was time to look at all instances.
    fn among(&self, instances: &[Instance], wanted: &[AnomalyKind]) -> (Vec<Anomaly>, bool) {
        let wants = |i: &&Instance| wanted.contains(&i.causally) || wanted.contains(&i.by_commit);
        let mut by_component: BTreeMap<u32, Vec<&Instance>> = BTreeMap::new();
        for instance in instances.iter().filter(wants) {
            let component = self.cyclic.component(&instance.inference);
            by_component.entry(component).or_default().push(instance);
        }
        let mut inferences = self.cyclic.by_component();
        let (mut anomalies, mut spent, mut all) = (Vec::new(), 0, true);
        for (component, instances) in by_component {
            let inferences = inferences.remove(&component).unwrap_or_default();
            let members = self.cyclic.members(component);
            let namer = Namer::new(self.level, self.graph, members, inferences);
            let mut closer = Closer::new(&namer);
            let mut best: BTreeMap<AnomalyKind, Closed> = BTreeMap::new();
            for instance in instances {
                if spent + closer.spent() > BUDGET {
                    all = false;
                    break;
                }
                if let Some((kind, closed)) = close(&mut closer, instance, wanted)
                    && best.get(&kind).is_none_or(|best| closed.path.len() < best.path.len())
                {
                    best.insert(kind, closed);
                }
            }
            spent += closer.spent();
            anomalies.extend(best.iter().map(|(kind, closed)| namer.anomaly(*kind, closed)));
        }
        anomalies.sort_by_key(|anomaly: &Anomaly| anomaly.evidence.edges().len());
        (anomalies, all)
    }
}

/// Which pattern an instance is, if it is a wanted one, and its cycle.
fn close(
    closer: &mut Closer<'_>,
    instance: &Instance,
    wanted: &[AnomalyKind],
) -> Option<(AnomalyKind, Closed)> {
    let causal = closer.causally(&instance.inference);
    let kind = if causal.is_some() { instance.causally } else { instance.by_commit };
    if !wanted.contains(&kind) {
        return None;
    }
    Some((kind, causal.or_else(|| closer.anyhow(&instance.inference))?))
}
