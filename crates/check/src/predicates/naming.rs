//! What cycles are called that rest on rows which predicates met.
//!
//! The engines of single rows see a row that was met as a read of it. Where only one version agrees with
//! what the transaction was told, that read is a dependency of a predicate, and the cycle is called as
//! with a [version certificate](crate::certificate), which says the same. Where several versions would
//! do, the cycle is one case of an argument.

use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Edge, EvaluatedVersion, Evidence, History, KeyId, Level, LevelSet, Op,
    OpId, Reason, TxnId, Verdict,
};

use super::candidates::Candidates;
use super::conditions::{self, Condition};
use crate::cycles;

/// The names of what was found for a level.
pub(super) struct Naming<'a, 'h> {
    pub(super) history: &'h History,
    pub(super) candidates: &'a Candidates<'h>,
    pub(super) level: Level,
}

/// An edge as it is told, and whether it holds at every level at which nobody sees what an aborted
/// transaction wrote. Else it holds where a transaction meets one version of a row.
struct Told {
    edge: Edge,
    everywhere: bool,
}

impl Naming<'_, '_> {
    pub(super) fn rename(&self, verdict: &mut Verdict) {
        let Verdict::Violated(findings) = verdict else { return };
        for anomaly in &mut findings.anomalies {
            let Evidence::Cycle { edges } = &anomaly.evidence else { continue };
            if edges.iter().any(|edge| rests_on_met(self.history, edge)) {
                *anomaly = Arc::new(self.cycle(edges).unwrap_or_else(|| self.case(edges)));
            }
        }
    }

    /// A cycle under its name, if it has one.
    fn cycle(&self, edges: &[Edge]) -> Option<Anomaly> {
        let told: Vec<Told> = edges.iter().map(|edge| self.told(edge)).collect::<Option<_>>()?;
        let everywhere = told.iter().all(|told| told.everywhere);
        let edges: Vec<Edge> = told.into_iter().map(|told| told.edge).collect();
        let kind = cycles::name_at(self.level, &edges);
        if kind == AnomalyKind::NoOrderPossible {
            return None;
        }
        let anomaly = Anomaly::new(kind, Evidence::Cycle { edges });
        Some(match everywhere {
            true => anomaly.at(self.level),
            false => self.here(anomaly),
        })
    }

    /// A cycle as the one case that there is.
    fn case(&self, edges: &[Edge]) -> Anomaly {
        let evidence = Evidence::Cases { cycles: vec![edges.to_vec()] };
        self.here(Anomaly::new(AnomalyKind::NoOrderPossible, evidence))
    }

    /// An anomaly that rules out no more than the level that it was found for.
    fn here(&self, mut anomaly: Anomaly) -> Anomaly {
        anomaly.rules_out = LevelSet::from_iter([self.level]).and_stronger();
        anomaly
    }

    /// An edge, as one of a predicate if it is one. None if it is there only in one of several cases.
    fn told(&self, edge: &Edge) -> Option<Told> {
        let (from, to) = (edge.from, edge.to);
        match &edge.reason {
            Reason::AntiDependency { key, read, writer, known }
                if is_met(self.history, *read, *key) =>
            {
                let overwrite = self.candidates.last(*key, to)?;
                let (key, write) = (*key, overwrite.row.write);
                let value = self.history.value(overwrite.row.value);
                let changes = |condition: &Condition<'_>| {
                    condition.agrees(self.history, key, value) == Ok(false)
                };
                let (read, everywhere) = self.teller(from, key, *writer, changes)?;
                let met = Some(EvaluatedVersion { writer: *writer, known: known.clone() });
                let reason = Reason::PredicateAntiDependency { read, key, write, evaluated: met };
                Some(Told { edge: Edge { from, to, reason }, everywhere })
            }
            Reason::Read { key, read, write } if is_met(self.history, *read, *key) => {
                let (key, write) = (*key, (*write)?);
                let (read, everywhere) = self.teller(to, key, from, |_| true)?;
                let reason = Reason::PredicateRead { read, key, write };
                Some(Told { edge: Edge { from, to, reason }, everywhere })
            }
            // Names are about what clients saw.
            reason if reason.kind().is_inferred() => None,
            _ => {
                let everywhere = !rests_on_met(self.history, edge);
                Some(Told { edge: edge.clone(), everywhere })
            }
        }
    }

    /// The operation of a reader that tells most about the version of a row that it met: by itself that
    /// it is this writer's, else one that is telling. None if other versions agree with all operations.
    fn teller(
        &self,
        reader: TxnId,
        key: KeyId,
        writer: TxnId,
        is_telling: impl Fn(&Condition<'_>) -> bool,
    ) -> Option<(OpId, bool)> {
        let met = self.candidates.met(reader, key).ok()??;
        if met.writers != [writer] {
            return None;
        }
        let conditions = conditions::conditions(self.history, reader, key);
        let by_itself = |condition: &&Condition<'_>| {
            let agreeing = self.candidates.agreeing(&[**condition], reader, key);
            agreeing.is_ok_and(|writers| writers == [writer])
        };
        let telling = || conditions.iter().filter(|condition| is_telling(condition));
        match telling().find(by_itself) {
            Some(condition) => Some((condition.op, true)),
            None => telling().next().map(|condition| (condition.op, false)),
        }
    }
}

/// Whether an edge, or one that it rests on, is there because of a row that was matched.
fn rests_on_met(history: &History, edge: &Edge) -> bool {
    Edge::walk([edge]).any(|edge| {
        let is_met = |key| edge.reason.reads().any(|read| is_met(history, read, key));
        edge.reason.key().is_some_and(is_met)
    })
}

/// Whether an operation does not tell the version of a row that it met.
fn is_met(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::PredicateRead { rows, .. } => {
            !rows.unwrap_or_default().iter().any(|row| row.key == key)
        }
        Op::PredicateWrite { .. } => true,
        _ => false,
    }
}
