//! Arguments of several cases are about as few transactions as possible.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use isolario_check::{Checker, Options};
use isolario_model::{
    Edge, Evidence, Findings, History, Level, LevelResult, OpId, OpKind, Part, Reason, TxnId,
    Verdict, VersionOrder,
};
use isolario_oracle::random::{Rng, Shape, generate};
use isolario_oracle::volume;

const LEVELS: [Level; 3] = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];

/// Histories that are too long for the oracle, with many blind writes and values that come back.
fn histories() -> impl Iterator<Item = (u64, History)> {
    let plain = Shape { txns: (8, 14), keys: 3, sessions: 6, stray: 0, ..Shape::default() };
    let shapes = [
        Shape { stale: 50, forked: 20, wandering: 0, repeated: 5, ..plain.clone() },
        Shape { duplicates: 30, stale: 30, forked: 10, wandering: 0, repeated: 5, ..plain.clone() },
        Shape {
            duplicates: 20,
            unknown: 20,
            aborted: 10,
            stale: 40,
            wandering: 0,
            ..plain.clone()
        },
        Shape { deletes: 40, stale: 40, forked: 20, wandering: 0, ..plain },
    ];
    (0..volume() / 10).map(move |seed| {
        let shape = &shapes[seed as usize % shapes.len()];
        (seed, generate(shape, &mut Rng::new(seed)).history().unwrap())
    })
}

fn check(history: &History, level: Level, minimize: bool) -> LevelResult {
    let mut options = Options::default();
    options.minimize = minimize;
    Checker::new(history, options).check(level)
}

/// The transactions of an argument, and all who wrote what its reads saw.
fn taking_part(history: &History, findings: &Findings) -> BTreeSet<TxnId> {
    let mut txns = BTreeSet::new();
    let mut versions = BTreeSet::new();
    let version = |op: OpId| (history.op_keys()[op.index()], history.version_word(op));
    for anomaly in &findings.anomalies {
        let cycles = match &anomaly.evidence {
            Evidence::Cases { cycles } => cycles.clone(),
            evidence => vec![evidence.edges().to_vec()],
        };
        let mut waiting: Vec<Edge> = cycles.concat();
        while let Some(edge) = waiting.pop() {
            txns.extend([edge.from, edge.to]);
            let known = match edge.reason {
                Reason::Read { read, .. } => {
                    versions.insert(version(read));
                    None
                }
                Reason::AntiDependency { read, known, .. } => {
                    versions.insert(version(read));
                    Some(known)
                }
                Reason::Overwrite { known, .. } => Some(known),
                _ => None,
            };
            if let Some(VersionOrder::Path { edges } | VersionOrder::Refuted { cycle: edges }) =
                known
            {
                waiting.extend(edges);
            }
        }
    }
    for txn in history.txns() {
        let mut ops = history.txn_ops(txn);
        let is_write =
            |op: OpId| matches!(history.op_kinds()[op.index()], OpKind::Write | OpKind::Delete);
        if ops.any(|op| is_write(op) && versions.contains(&version(op))) {
            txns.insert(txn);
        }
    }
    txns.remove(&TxnId::INIT);
    txns
}

#[test]
fn nothing_can_go_from_an_argument_of_several_cases() {
    let (mut looked_at, mut smaller) = (0, 0);
    for (seed, history) in histories() {
        let level = LEVELS[seed as usize / 4 % 3];
        let plain = check(&history, level, false);
        let Verdict::Violated(found) = &plain.verdict else { continue };
        if !matches!(found.anomalies[0].evidence, Evidence::Cases { .. }) {
            continue;
        }
        let minimal = check(&history, level, true);
        let options = isolario_verify::Options::default();
        isolario_verify::verify(&history, &plain, &options).unwrap();
        isolario_verify::verify(&history, &minimal, &options).unwrap();
        let Verdict::Violated(least) = &minimal.verdict else { panic!("{seed} {minimal:?}") };
        let (before, txns) = (taking_part(&history, found), taking_part(&history, least));
        assert!(txns.len() <= before.len(), "{seed} {txns:?} {before:?}");
        smaller += usize::from(txns.len() < before.len());
        looked_at += 1;
        if !matches!(least.anomalies[0].evidence, Evidence::Cases { .. }) {
            continue;
        }
        for left_out in &txns {
            let others = txns.iter().copied().filter(|txn| txn != left_out);
            let part = Part::of_txns(&history, others).build(&history).unwrap();
            let verdict = check(&part, level, false).verdict;
            assert!(
                !matches!(verdict, Verdict::Violated(_)),
                "{seed} {level} {left_out:?} {minimal:?}"
            );
        }
    }
    assert!(looked_at > 0 && smaller > 0, "{looked_at}, {smaller} of them smaller");
}
