//! Why there is no order: cycles of edges, each with its reason.
//!
//! Edges are what clients saw, or settled orders of versions. A settled order rests on the cycle
//! that the opposite would close, whose edges may again be settled orders: so there is a list of
//! lemmas, each resting on earlier ones. Reasons are looked for only here, once something is wrong.

mod arcs;
mod edges;
mod lemmas;

use std::collections::BTreeMap;

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, Findings, TxnId};

use super::problem::{Arc, Problem, Under};
use super::saturate::Settled;
use super::search::Refutation;
use crate::cycles;
use crate::resolved::Dependencies;
use arcs::Arcs;
use edges::Reasons;
use lemmas::{Lemmas, Refuted, Step};

/// An argument with more edges than this is told as a list of cases, without nesting.
const LONGEST: usize = 2_000;
/// In a list of cases, a lemma of so many edges is told where it is used.
const SHORT: usize = 6;
/// So is one with lemmas that rest on more lemmas in a row.
const DEEPEST: usize = 40;

/// An edge of a cycle, with the alternatives it was added for, if it was.
pub(crate) type CycleArc = (Arc, Option<Under>);

/// What there is to explain.
pub(crate) struct Explainer<'a> {
    pub(crate) dependencies: &'a Dependencies<'a>,
    pub(crate) problem: &'a Problem,
    pub(crate) settled: &'a Settled,
}

impl Explainer<'_> {
    /// Explains cycles of settled edges, each an anomaly of its own.
    pub(crate) fn cycles(&self, cycles: &[Vec<u32>]) -> Findings {
        let arcs = Arcs::new(self.problem, self.settled);
        let mut anomalies: Vec<Anomaly> = Vec::new();
        for nodes in cycles {
            let next = nodes.iter().cycle().skip(1);
            let steps = nodes.iter().zip(next).map(|(from, to)| ((*from, *to), None)).collect();
            let refutation = Refutation { cycles: vec![steps], reads: Vec::new() };
            anomalies.push(self.anomaly(&arcs, refutation));
        }
        anomalies
            .sort_by_key(|anomaly| (cycles::clarity(anomaly.kind), anomaly.evidence.edges().len()));
        findings(anomalies)
    }

    /// Explains a refutation by search.
    pub(crate) fn refutation(&self, refutation: Refutation<CycleArc>) -> Findings {
        let arcs = Arcs::new(self.problem, self.settled);
        findings(vec![self.anomaly(&arcs, refutation)])
    }

    /// Explains that a read has no candidate left.
    pub(crate) fn no_source(&self, read: u32) -> Findings {
        self.refutation(Refutation { cycles: Vec::new(), reads: vec![read] })
    }

    fn anomaly(&self, arcs: &Arcs<'_>, refutation: Refutation<CycleArc>) -> Anomaly {
        let mut lemmas = Lemmas::new(self.problem, self.settled, arcs);
        let refuted = lemmas.build(refutation);
        let reasons = Reasons { explainer: self };
        match refuted {
            Refuted::Cycle(cycle) if lemmas.cost(&cycle) <= (LONGEST, DEEPEST) => {
                let edges = self.nested(&reasons, &lemmas, &cycle);
                cycles::anomaly(self.problem.layout.level, edges)
            }
            Refuted::Cycle(cycle) => self.cases(&reasons, &lemmas, vec![cycle]),
            Refuted::Cases(cycles) => self.cases(&reasons, &lemmas, cycles),
        }
    }

    /// A cycle with its lemmas as reasons of its edges.
    fn nested(&self, reasons: &Reasons<'_>, lemmas: &Lemmas<'_>, cycle: &[Step]) -> Vec<Edge> {
        let told = self.told(reasons, lemmas, |_| true);
        reasons.edges(cycle, &told)
    }

    /// The cycles of some lemmas, each with those of earlier ones as reasons of its edges.
    fn told(
        &self,
        reasons: &Reasons<'_>,
        lemmas: &Lemmas<'_>,
        is_told: impl Fn(usize) -> bool,
    ) -> Vec<Option<Vec<Edge>>> {
        let mut told: Vec<Option<Vec<Edge>>> = Vec::with_capacity(lemmas.list.len());
        for (at, lemma) in lemmas.list.iter().enumerate() {
            let edges = is_told(at).then(|| reasons.edges(&lemma.cycle, &told));
            told.push(edges);
        }
        told
    }

    /// All cycles side by side: what the one assumes, another one rules out.
    fn cases(
        &self,
        reasons: &Reasons<'_>,
        lemmas: &Lemmas<'_>,
        mut cycles: Vec<Vec<Step>>,
    ) -> Anomaly {
        let plain = lemmas.plain();
        let told = self.told(reasons, lemmas, |lemma| plain[lemma]);
        let others = lemmas.list.iter().zip(&plain).filter(|(_, is_plain)| !**is_plain);
        cycles.extend(others.map(|(lemma, _)| lemma.cycle.clone()));
        let mut cycles: Vec<Vec<Edge>> =
            cycles.iter().map(|cycle| reasons.edges(cycle, &told)).collect();
        cycles.sort_by_key(Vec::len);
        drop_rotations(&mut cycles);
        Anomaly::new(AnomalyKind::NoOrderPossible, Evidence::Cases { cycles })
    }
}

/// Drops cycles that come earlier in the list, wherever they begin.
fn drop_rotations(cycles: &mut Vec<Vec<Edge>>) {
    let mut known: BTreeMap<Vec<(TxnId, TxnId)>, Vec<Vec<Edge>>> = BTreeMap::new();
    cycles.retain(|cycle| {
        let mut cycle = cycle.clone();
        let first = (0..cycle.len()).min_by_key(|at| (cycle[*at].from, cycle[*at].to));
        cycle.rotate_left(first.unwrap_or_default());
        let alike =
            known.entry(cycle.iter().map(|edge| (edge.from, edge.to)).collect()).or_default();
        let is_new = !alike.contains(&cycle);
        if is_new {
            alike.push(cycle);
        }
        is_new
    });
}

/// There may be more: cycles are looked for until the level is refuted.
fn findings(anomalies: Vec<Anomaly>) -> Findings {
    Findings::new(anomalies, false)
}
