//! What answers owe to the database's own word: which promise was broken, whether the clients could tell,
//! and what the word leaves open.

use std::collections::BTreeSet;

use isolario_model::{
    Anomaly, Evidence, KeyId, Level, LevelSet, OpId, Reason, VerdictKind, VersionOrder,
};

use super::no_answer::why_no_answer;
use crate::implied::known;
use crate::names::{Names, counted, grouped, listed};
use crate::report::{Report, StatedOrderEffect};

/// How many rows or operations are named.
const MOST: usize = 3;

/// What there is to say, in whole sentences.
pub(crate) fn stated(report: &Report<'_>) -> Vec<String> {
    let Some(stated) = report.stated else { return Vec::new() };
    let mut sentences = Vec::new();
    if !stated.otherwise.is_empty() {
        sentences.extend(broken(report));
        sentences.extend(otherwise(report, stated));
    }
    if stated.operations_without_set > 0
        && report.results.iter().any(|result| result.verdict.is_satisfied())
    {
        let operations = counted(stated.operations_without_set, "operation");
        sentences.push(format!(
            "Nothing says what {operations} by predicate met; what is satisfied is so for versions \
             that may have been met."
        ));
    }
    sentences
}

/// What the database stated, and what contradicts it.
fn broken(report: &Report<'_>) -> Option<String> {
    let (mut rows, mut ops) = (BTreeSet::new(), BTreeSet::new());
    for anomaly in report.anomalies() {
        promises(anomaly, &mut rows, &mut ops);
    }
    let names = Names::new(report.history);
    let some = |all: Vec<String>| match all.len().checked_sub(MOST) {
        None | Some(0) => listed(&all),
        Some(more) => format!("{} and {} more", all[..MOST].join(", "), grouped(more as u64)),
    };
    let mut broken = Vec::new();
    if !rows.is_empty() {
        let rows = rows.iter().map(|key| names.key(*key)).collect();
        broken.push(format!("how the versions of {} follow each other", some(rows)));
    }
    if !ops.is_empty() {
        let op = |op: &OpId| format!("`{}` of {}", names.op(*op), names.txn_of(*op));
        broken.push(format!("which versions {} met", some(ops.iter().map(op).collect())));
    }
    let broken = broken.join(", and ");
    (!broken.is_empty())
        .then(|| format!("What is contradicted is the database\'s own word: {broken}."))
}

/// The rows whose stated order an anomaly rests on, and the operations whose version sets.
fn promises(anomaly: &Anomaly, rows: &mut BTreeSet<KeyId>, ops: &mut BTreeSet<OpId>) {
    match &anomaly.evidence {
        Evidence::Unexpected { op, .. } => _ = ops.insert(*op),
        Evidence::Cycle { edges } => {
            for edge in edges {
                match &edge.reason {
                    Reason::Overwrite { key, known: VersionOrder::Stated { .. } }
                    | Reason::AntiDependency { key, known: VersionOrder::Stated { .. }, .. } => {
                        rows.insert(*key);
                    }
                    Reason::PredicateRead { read, .. }
                    | Reason::PredicateAntiDependency { read, .. }
                    | Reason::StartDependency { op: read, .. } => _ = ops.insert(*read),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether another order would have done, levels with the same answer together. Of those, the ones that
/// the others follow from.
fn otherwise(report: &Report<'_>, stated: &StatedOrderEffect) -> Vec<String> {
    let of = |kind: VerdictKind| -> LevelSet {
        let levels = stated.otherwise.iter().map(|result| result.level);
        let is = |level: &Level| {
            known(&stated.otherwise, *level).is_some_and(|known| known.verdict == kind)
        };
        levels.filter(is).collect()
    };
    let listed_as = |levels: LevelSet| -> Option<String> {
        let levels: Vec<Level> = levels.iter().collect();
        let verb = if levels.len() == 1 { "is" } else { "are" };
        (!levels.is_empty()).then(|| format!("{} {verb}", listed(&levels)))
    };
    let mut sentences = Vec::new();
    if let Some(satisfied) = listed_as(of(VerdictKind::Satisfied).strongest()) {
        sentences.push(format!(
            "Without it, {satisfied} satisfied: another order would have done, and clients cannot tell."
        ));
    }
    if let Some(violated) = listed_as(of(VerdictKind::Violated).weakest()) {
        sentences.push(format!(
            "Without it, {violated} violated as well: no other order would have done."
        ));
    }
    let decided: Vec<Level> = [VerdictKind::Satisfied, VerdictKind::Violated]
        .into_iter()
        .flat_map(|kind| of(kind).iter().collect::<Vec<_>>())
        .collect();
    let mut open: Vec<(String, Vec<Level>)> = Vec::new();
    for result in stated.otherwise.iter().filter(|result| !decided.contains(&result.level)) {
        let why = why_no_answer(Names::new(report.history), &result.verdict).unwrap_or_default();
        match open.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, levels)) => levels.push(result.level),
            None => open.push((why, vec![result.level])),
        }
    }
    sentences.extend(open.iter().map(|(why, levels)| {
        let levels = listed(levels);
        format!("Whether another order would have satisfied {levels} is not known: {why}.")
    }));
    sentences
}
