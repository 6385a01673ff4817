//! The names of cycles that rest on rows which predicates matched or excluded.
//!
//! The engines of single rows see such a row as a read of it. Where only one version agrees with what the
//! transaction says, that read is a dependency of a predicate, and the cycle has the name that it has with
//! a [version certificate](crate::certificate), which says the same. Where several versions would
//! do, the cycle is one case of an argument.

use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Edge, EvaluatedVersion, Evidence, History, KeyId, Level, LevelSet, Op,
    OpId, Reason, TxnId, Verdict,
};

use super::candidates::Candidates;
use super::conditions::{self, Condition};
use crate::cycles;

impl Candidates<'_> {
    /// Names the cycles of a verdict on a level.
    pub(super) fn name_cycles(&self, level: Level, verdict: &mut Verdict) {
        let Verdict::Violated(findings) = verdict else { return };
        for anomaly in &mut findings.anomalies {
            let Evidence::Cycle { edges } = &anomaly.evidence else { continue };
            if edges.iter().any(|edge| rests_on_match(self.history, edge)) {
                // Without a name, it is the one case that there is.
                let case = || {
                    let evidence = Evidence::Cases { cycles: vec![edges.to_vec()] };
                    Anomaly::new(AnomalyKind::NoOrderPossible, evidence).at(level)
                };
                *anomaly = Arc::new(self.named(level, edges).unwrap_or_else(case));
            }
        }
    }

    /// A cycle under its name, if it has one.
    fn named(&self, level: Level, edges: &[Edge]) -> Option<Anomaly> {
        let edges: Option<Vec<_>> = edges.iter().map(|edge| self.by_predicate(edge)).collect();
        let (edges, everywhere): (Vec<Edge>, Vec<bool>) = edges?.into_iter().unzip();
        let kind = cycles::name_at(level, &edges);
        if kind == AnomalyKind::NoOrderPossible {
            return None;
        }
        let mut anomaly = Anomaly::new(kind, Evidence::Cycle { edges });
        if everywhere.contains(&false) {
            anomaly.rules_out = LevelSet::default();
        }
        Some(anomaly.at(level))
    }

    /// An edge, as one of a predicate if it is one, and whether it holds at every level at which reads return
    /// committed versions alone. Otherwise it holds where a transaction observes one version of a row. None
    /// if the edge is there only in one of several cases.
    fn by_predicate(&self, edge: &Edge) -> Option<(Edge, bool)> {
        let (from, to) = (edge.from, edge.to);
        let (reason, everywhere) = match &edge.reason {
            Reason::AntiDependency { key, read, writer, known }
                if is_match(self.history, *read, *key) =>
            {
                let overwrite = self.last(*key, to)?.row;
                let (key, write) = (*key, overwrite.write);
                let value = self.history.value(overwrite.value);
                let changes = |condition: &Condition<'_>| {
                    condition.agrees(self.history, key, value) == Ok(false)
                };
                let (read, everywhere) = self.teller(from, key, *writer, changes)?;
                let evaluated = Some(EvaluatedVersion { writer: *writer, known: known.clone() });
                let reason = Reason::PredicateAntiDependency { read, key, write, evaluated };
                (reason, everywhere)
            }
            Reason::Read { key, read, write } if is_match(self.history, *read, *key) => {
                let (key, write) = (*key, (*write)?);
                let (read, everywhere) = self.teller(to, key, from, |_| true)?;
                (Reason::PredicateRead { read, key, write }, everywhere)
            }
            // Names are about what clients saw.
            reason if reason.kind().is_inferred() => return None,
            reason => (reason.clone(), !rests_on_match(self.history, edge)),
        };
        Some((Edge { from, to, reason }, everywhere))
    }

    /// The operation of a reader that says most about the version of a row that it observed: by itself that
    /// it is this writer's, else one that `is_telling`. None if other versions agree with all operations.
    fn teller(
        &self,
        reader: TxnId,
        key: KeyId,
        writer: TxnId,
        is_telling: impl Fn(&Condition<'_>) -> bool,
    ) -> Option<(OpId, bool)> {
        if self.matched(reader, key).ok()??.writers != [writer] {
            return None;
        }
        let conditions = conditions::conditions(self.history, reader, key);
        let by_itself = |condition: &&Condition<'_>| {
            let agreeing = self.agreeing(&[**condition], reader, key);
            agreeing.is_ok_and(|writers| writers == [writer])
        };
        let telling = || conditions.iter().filter(|condition| is_telling(condition));
        match telling().find(by_itself) {
            Some(condition) => Some((condition.op, true)),
            None => telling().next().map(|condition| (condition.op, false)),
        }
    }
}

/// Whether an edge, or one that it rests on, is there because of a row that was matched or excluded.
fn rests_on_match(history: &History, edge: &Edge) -> bool {
    Edge::walk([edge]).any(|edge| {
        let is_match = |key| edge.reason.reads().any(|read| is_match(history, read, key));
        edge.reason.key().is_some_and(is_match)
    })
}

/// Whether an operation does not return the version of a row that it observed.
fn is_match(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::PredicateRead { .. } => history.row_of(op, key).is_none(),
        Op::PredicateWrite { .. } => true,
        _ => false,
    }
}
