//! Planted anomalies are there, and are the only ones.

use crate::support::{history, satisfies};
use isolario_model::{AnomalyKind, Level, OpKind, Verdict};
use isolario_oracle::{Answer, Options, levels};
use isolario_sim::{Config, Kind, Plant, Template, Workload, templates};

fn planted(kind: AnomalyKind, txns: u64) -> Config {
    Config {
        level: Level::StrictSerializable,
        workload: Workload { kind: Kind::General, ops: 3, keys: 5, ..Workload::default() },
        txns,
        sessions: 3,
        anomalies: vec![Plant::in_the_middle(kind)],
        ..Config::default()
    }
}

fn forbids(level: Level, template: &Template) -> bool {
    template.beside.iter().chain([&template.kind]).any(|kind| kind.forbidden_at(level))
}

/// Whether the name of an anomaly says that a level forbids it. At consistent view it depends: session
/// order may be a part of what has the name, and does not count there.
fn is_told_by_names(level: &Level) -> bool {
    level.shape().session_order
}

#[test]
fn templates_violate_exactly_the_levels_that_forbid_them_by_brute_force() {
    for template in templates() {
        // Brute force takes ten transactions at most.
        let history = history(&planted(template.kind, 2));
        for level in levels().filter(is_told_by_names) {
            let answer = isolario_oracle::satisfies(&history, level, Options::default());
            let expected =
                if forbids(level, template) { Answer::Violated } else { Answer::Satisfied };
            let beyond_brute_force = answer == Answer::Unsupported
                && history.op_kinds().iter().any(|kind| {
                    matches!(kind, OpKind::ReadList | OpKind::Append | OpKind::CompareAndSet)
                });
            assert!(
                answer == expected || beyond_brute_force,
                "{} {level}: {answer:?}",
                template.kind
            );
        }
    }
}

#[test]
fn the_checkers_find_what_is_planted_and_nothing_else() {
    for template in templates() {
        let history = history(&planted(template.kind, 200));
        for level in isolario_check::supported().iter().filter(|level| is_told_by_names(level)) {
            if let Some(satisfied) = satisfies(&history, *level) {
                assert_eq!(satisfied, !forbids(*level, template), "{} {level}", template.kind);
            }
        }
    }
}

/// The six read anomalies and Plume's patterns have names of their own in findings.
#[test]
fn the_checkers_call_it_by_its_name() {
    let mut named = 0;
    for template in templates().iter().filter(|template| template.kind.names().plume.is_some()) {
        let history = history(&planted(template.kind, 100));
        let level = template.kind.names().forbidden_by[0];
        let results =
            isolario_check::check(&history, &[level], &isolario_check::CheckOptions::default());
        let Verdict::Violated(findings) = &results[0].verdict else {
            panic!("{} is not found", template.kind)
        };
        let kinds: Vec<AnomalyKind> = findings.anomalies.iter().map(|a| a.kind).collect();
        assert!(kinds.contains(&template.kind), "{}: found {kinds:?}", template.kind);
        named += 1;
    }
    assert_eq!(named, 14);
}

#[test]
fn an_anomaly_is_planted_where_it_was_asked_for() {
    for (at, before) in [(0.0, 0), (0.25, 25), (1.0, 100)] {
        let mut config = planted(AnomalyKind::StaleRead, 100);
        config.anomalies = vec![Plant { kind: AnomalyKind::StaleRead, at }];
        let history = history(&config);
        assert_eq!(history.txn_count(), 102);
        // Transactions are numbered in the order they finished.
        let planted = history.txns().filter(|txn| history.session_of(*txn).index() >= 3);
        let names: Vec<String> = planted.map(|txn| history.txn_label(txn)).collect();
        assert!(at == 0.0 || names == [(before + 1).to_string(), (before + 2).to_string()]);
    }
}

#[test]
fn several_anomalies_do_not_disturb_each_other() {
    let kinds = [AnomalyKind::LostUpdate, AnomalyKind::ReadSkew, AnomalyKind::LostUpdate];
    let config = Config {
        anomalies: kinds.map(Plant::in_the_middle).to_vec(),
        ..planted(AnomalyKind::ReadSkew, 0)
    };
    let history = history(&config);
    assert_eq!((history.txn_count(), history.session_count(), history.key_count()), (6, 6, 4));
}
