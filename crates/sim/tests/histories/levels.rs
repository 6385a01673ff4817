//! Histories satisfy what they were made for, and weaker levels do show their anomalies.

use crate::support::{engines, history, random_config, satisfies};
use isolario_model::Level;
use isolario_oracle::{Answer, Options, levels, volume};
use isolario_sim::{Config, Kind, Workload};

fn by_brute_force(history: &isolario_model::History, level: Level) -> Answer {
    isolario_oracle::satisfies(history, level, Options::default())
}

#[test]
fn small_histories_satisfy_their_level_by_brute_force() {
    for level in engines() {
        for seed in 0..volume() / 50 {
            let kind = [Kind::Mini, Kind::General, Kind::Append][seed as usize % 3];
            let config = random_config(level, kind, 3 + seed % 4, seed);
            let history = history(&config);
            for implied in levels().filter(|implied| level.implies(*implied)) {
                let answer = by_brute_force(&history, implied);
                assert!(
                    answer == Answer::Satisfied
                        || (answer == Answer::Unsupported && kind == Kind::Append),
                    "{implied}: {answer:?}\n{config:?}\n{history:?}"
                );
            }
        }
    }
}

#[test]
fn larger_histories_satisfy_their_level_by_the_checkers() {
    let mut decided = 0;
    for level in engines() {
        for seed in 0..60 {
            let kind = [Kind::Mini, Kind::General, Kind::Append][seed as usize % 3];
            let config = random_config(level, kind, 300, seed);
            let history = history(&config);
            for implied in isolario_check::supported().iter().filter(|l| level.implies(**l)) {
                let answer = satisfies(&history, *implied);
                assert_ne!(answer, Some(false), "{implied} {config:?}");
                decided += u32::from(answer.is_some());
            }
        }
    }
    assert!(decided > 1000, "{decided}");
}

/// How many of 300 small histories of a level violate another one.
fn violations(made_for: Level, asked: Level) -> usize {
    let is_violated = |seed: &u64| {
        let workload = Workload {
            kind: Kind::General,
            ops: 4,
            keys: 3,
            read_ratio: 0.6,
            ..Workload::default()
        };
        let (txns, sessions, seed) = (8, 4, *seed);
        let config =
            Config { level: made_for, workload, txns, sessions, seed, ..Config::default() };
        by_brute_force(&history(&config), asked) == Answer::Violated
    };
    (0..300).filter(is_violated).count()
}

#[test]
fn weaker_levels_do_show_what_stronger_ones_forbid() {
    for (made_for, asked) in [
        (Level::ReadCommitted, Level::CutIsolation),
        (Level::ReadCommitted, Level::ReadAtomic),
        (Level::ReadAtomic, Level::Causal),
        (Level::Causal, Level::Prefix),
        (Level::Prefix, Level::SnapshotIsolation),
        (Level::SnapshotIsolation, Level::StrongSnapshotIsolation),
        (Level::SnapshotIsolation, Level::Serializable),
        (Level::StrongSnapshotIsolation, Level::Serializable),
        (Level::Serializable, Level::StrongSnapshotIsolation),
        (Level::Serializable, Level::StrictSerializable),
    ] {
        let found = violations(made_for, asked);
        assert!(found > 0, "no history made for {made_for} violates {asked}");
    }
}

#[test]
fn contention_makes_anomalies_common_in_larger_histories() {
    for (made_for, asked) in [
        (Level::ReadCommitted, Level::CutIsolation),
        (Level::ReadCommitted, Level::ReadAtomic),
        (Level::ReadAtomic, Level::Causal),
    ] {
        let violated = (0..20)
            .filter(|seed| {
                let mut config = random_config(made_for, Kind::General, 300, *seed);
                (config.sessions, config.workload.keys) = (4, 5);
                config.workload.ops = 4;
                satisfies(&history(&config), asked) == Some(false)
            })
            .count();
        assert!(violated >= 15, "{made_for} {asked}: {violated} of 20");
    }
}
