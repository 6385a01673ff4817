//! Case analyses with something changed: what destroys the argument is refused.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, Evidence, Findings, History, KeyId, Level, LevelResult,
    OpId, Reason, TxnId, Verdict, VersionOrder,
};
use isolario_oracle::random::Rng;
use isolario_oracle::{Draft, history, volume};
use isolario_verify::{Refusal, VerifyOptions, verify};

const LEVELS: [Level; 3] = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
const NOWHERE: OpId = OpId(u32::MAX);

/// Two writes of two keys each, and readers who saw every combination: each pair of orders is
/// refuted by two readers of its own, so that no case is one too many. Sessions come in any order,
/// and some have more to do.
fn draft(rng: &mut Rng) -> Draft {
    let mut sessions: Vec<String> = Vec::new();
    for (key, value) in [("x", 1), ("x", 2), ("y", 1), ("y", 2)] {
        sessions.push(format!("w {key} {value}"));
    }
    for (x, y) in [(1, 1), (2, 1), (2, 2), (1, 2)] {
        let (x, y) = (format!("r x {x}"), format!("r y {y}"));
        sessions.push(if rng.below(2) == 0 { format!("{x}, {y}") } else { format!("{y}, {x}") });
    }
    for at in (1..sessions.len()).rev() {
        sessions.swap(at, rng.below(at + 1));
    }
    let mut lines = Vec::new();
    for (at, ops) in sessions.iter().enumerate() {
        // Keys of one's own tie nobody to anybody.
        for value in 1..=rng.below(3) {
            lines.push(format!("s{at}: w own{at} {value}"));
        }
        lines.push(format!("s{at}: {ops}"));
    }
    Draft::parse(&lines.join("\n")).expect("well formed")
}

/// The cases by which a level is refuted.
fn cases(history: &History, level: Level) -> Vec<Vec<Edge>> {
    let results = check(history, &[level], &isolario_check::CheckOptions::default());
    let Verdict::Violated(findings) = &results[0].verdict else { panic!("{results:?}") };
    match &findings.anomalies[0].evidence {
        Evidence::Cases { cycles } => cycles.clone(),
        other => panic!("{other:?}"),
    }
}

fn verified(history: &History, level: Level, cycles: Vec<Vec<Edge>>) -> Result<(), Refusal> {
    let evidence = Evidence::Cases { cycles };
    let anomalies = vec![Anomaly::new(AnomalyKind::NoOrderPossible, evidence)];
    let verdict = Verdict::Violated(Findings::new(anomalies, false));
    let result = LevelResult { level, decided_by: Attempt::Search, verdict };
    verify(history, &result, &VerifyOptions::default())
}

/// Goes through many histories and levels with what may be done to the cases.
#[track_caller]
fn all_refused(change: impl Fn(&[Vec<Edge>]) -> Vec<Vec<Vec<Edge>>>) {
    let mut tried = 0;
    for seed in 0..volume() / 400 {
        let draft = draft(&mut Rng::new(seed));
        let history = draft.history().expect("small");
        for level in LEVELS {
            let cases = cases(&history, level);
            assert!(cases.len() > 1 && verified(&history, level, cases.clone()).is_ok());
            for changed in change(&cases) {
                let refused = verified(&history, level, changed.clone()).is_err();
                assert!(refused, "{level}: {changed:#?}\n{draft}");
                tried += 1;
            }
        }
    }
    assert!(tried > 0);
}

fn is_assumed(edge: &Edge) -> bool {
    matches!(
        &edge.reason,
        Reason::AntiDependency { known: VersionOrder::Assumed, .. }
            | Reason::Overwrite { known: VersionOrder::Assumed, .. }
    )
}

/// Every way to put another edge into one of the cases.
fn with_edges(
    cases: &[Vec<Edge>],
    others: impl Fn(usize, &Edge) -> Vec<Edge>,
) -> Vec<Vec<Vec<Edge>>> {
    let mut changed = Vec::new();
    for (case, cycle) in cases.iter().enumerate() {
        for (at, edge) in cycle.iter().enumerate() {
            for other in others(case, edge) {
                let mut cases = cases.to_vec();
                cases[case][at] = other;
                changed.push(cases);
            }
        }
    }
    changed
}

#[test]
fn a_case_left_out_is_missed() {
    all_refused(|cases| {
        let without = |left_out: usize| {
            let mut cases = cases.to_vec();
            cases.remove(left_out);
            cases
        };
        (0..cases.len()).map(without).chain([Vec::new()]).collect()
    });
}

#[test]
fn a_case_told_twice_does_not_stand_for_another() {
    all_refused(|cases| {
        let pairs = (0..cases.len()).flat_map(|a| (0..cases.len()).map(move |b| (a, b)));
        let told_twice = |(twice, instead_of): (usize, usize)| {
            let mut changed = cases.to_vec();
            changed[instead_of] = cases[twice].clone();
            changed
        };
        pairs.filter(|(a, b)| a != b).map(told_twice).collect()
    });
}

#[test]
fn an_edge_changed_or_left_out_is_noticed() {
    all_refused(|cases| {
        let mut changed = with_edges(cases, |_, edge| {
            let with = |reason: Reason| Edge { reason, ..edge.clone() };
            let mut others = vec![
                Edge { from: edge.to, to: edge.from, ..edge.clone() },
                Edge { to: TxnId(1_000), ..edge.clone() },
                with(Reason::Session),
                with(Reason::Initial),
            ];
            if let Reason::Read { key, read, write } = edge.reason {
                others.push(with(Reason::Read { key: KeyId(key.0 + 1), read, write }));
                others.push(with(Reason::Read { key, read: NOWHERE, write }));
                others.push(with(Reason::Read { key, read, write: None }));
            }
            others
        });
        for (case, cycle) in cases.iter().enumerate() {
            for at in 0..cycle.len() {
                let mut shorter = cases.to_vec();
                shorter[case].remove(at);
                changed.push(shorter);
            }
            let mut empty = cases.to_vec();
            empty[case] = Vec::new();
            changed.push(empty);
        }
        changed
    });
}

#[test]
fn another_assumption_is_another_argument() {
    all_refused(|cases| {
        with_edges(cases, |_, edge| {
            let Reason::AntiDependency { key, read, writer, known } = &edge.reason else {
                return Vec::new();
            };
            let with = |key, read, writer, known: VersionOrder| Edge {
                reason: Reason::AntiDependency { key, read, writer, known },
                ..edge.clone()
            };
            let known_otherwise = [
                VersionOrder::Initial,
                VersionOrder::Stated { at: 1 },
                VersionOrder::ReadModifyWrite { read: *read },
                VersionOrder::Refuted { cycle: Vec::new() },
                VersionOrder::Path { edges: Vec::new() },
            ];
            let mut others: Vec<Edge> = known_otherwise
                .into_iter()
                .map(|known| with(*key, *read, *writer, known))
                .collect();
            others.push(with(KeyId(key.0 + 1), *read, *writer, known.clone()));
            others.push(with(*key, NOWHERE, *writer, known.clone()));
            // That the write itself was overwritten, by itself or by who read it.
            others.push(with(*key, *read, edge.to, known.clone()));
            others.push(with(*key, *read, edge.from, known.clone()));
            others
        })
    });
}

#[test]
fn assumptions_of_one_case_do_not_serve_another() {
    all_refused(|cases| {
        with_edges(cases, |case, edge| {
            if !is_assumed(edge) {
                return Vec::new();
            }
            let elsewhere = cases.iter().enumerate().filter(|(other, _)| *other != case);
            let assumed = elsewhere.flat_map(|(_, cycle)| cycle).filter(|other| is_assumed(other));
            assumed.filter(|other| *other != edge).cloned().collect()
        })
    });
}

/// Both conditional writes of the second transaction may have met the same versions. What one of them did not
/// meet is shown by what is known of the other, and not by itself.
#[test]
fn no_case_rests_on_what_it_shows() {
    let history = history(
        "a: insert x 1 ok, delete x
         a: cas x 2 -> 2 failed, cas x nil -> 2 ok
         b: insert x 3 ok",
    );
    let level = Level::SnapshotIsolation;
    assert_eq!(verified(&history, level, cases(&history, level)), Ok(()));
}
