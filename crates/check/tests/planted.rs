//! Anomalies planted among thousands of blind writes: the strong levels find those that they forbid,
//! and nothing else; every answer is verified.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use isolario_check::{CheckOptions, check};
use isolario_model::{AnomalyKind, Attempt, Batch, History, Level, LevelResult, Verdict};
use isolario_sim::{Config, Kind, Plant, Template, Workload, generate, templates};

const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// A store that gives a level, and clients that mostly write blindly.
fn blind(level: Level, seed: u64) -> Config {
    let workload =
        Workload { kind: Kind::General, ops: 5, keys: 12, read_ratio: 0.4, ..Workload::default() };
    Config {
        level,
        workload,
        txns: 300,
        sessions: 6,
        abort_ratio: 0.1,
        unknown_ratio: 0.1,
        seed,
        ..Config::default()
    }
}

fn history(config: &Config) -> History {
    let mut batch = Batch::new();
    generate(config, &mut batch).unwrap();
    batch.build().unwrap()
}

/// The verified answers of the levels that apply.
fn answers(history: &History, session_order: bool) -> Vec<LevelResult> {
    let mut options = CheckOptions::default();
    options.session_order = session_order;
    let read = isolario_verify::VerifyOptions::default().with_session_order(session_order);
    let mut results = check(history, &LEVELS, &options);
    results.retain(|result| !matches!(result.verdict, Verdict::NotApplicable(_)));
    for result in &results {
        let verified = isolario_verify::verify(history, result, &read);
        assert!(verified.is_ok(), "{}: {verified:?}", result.level);
    }
    results
}

fn forbids(level: Level, template: &Template) -> bool {
    template.beside.iter().chain([&template.kind]).any(|kind| kind.forbidden_at(level))
}

#[test]
fn planted_anomalies_are_found_where_they_are_forbidden() {
    let mut found: BTreeSet<AnomalyKind> = BTreeSet::new();
    for template in templates() {
        for seed in 0..2 {
            let anomalies = vec![Plant { kind: template.kind, at: 0.3 }];
            let config = Config { anomalies, ..blind(Level::StrictSerializable, seed) };
            for result in answers(&history(&config), true) {
                let expected = forbids(result.level, template);
                let violated = matches!(result.verdict, Verdict::Violated(_));
                assert_eq!(violated, expected, "{} at {}", template.kind, result.level);
                if violated && matches!(result.decided_by, Attempt::Segments | Attempt::Search) {
                    found.insert(template.kind);
                }
            }
        }
    }
    // Wrong and non-repeatable reads are found before anything is searched for, and some anomalies
    // take lists or single operations; all others need an order of all the blind writes.
    assert!(found.len() >= 14, "{found:?}");
}

#[test]
fn what_satisfies_a_level_is_accepted_with_session_order_and_without() {
    for level in LEVELS {
        for seed in 0..4 {
            let history = history(&blind(level, seed));
            for session_order in [true, false] {
                for result in answers(&history, session_order) {
                    let satisfied = matches!(result.verdict, Verdict::Satisfied(_));
                    let implied = level.implies(result.level);
                    assert!(satisfied || !implied, "{} of a store at {level}", result.level);
                }
            }
        }
    }
}
