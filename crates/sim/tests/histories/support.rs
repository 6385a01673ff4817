//! What the tests of this crate share.

use isolario_check::{CheckOptions, check};
use isolario_model::{Batch, History, Level, Verdict};
use isolario_sim::{Config, Distribution, Kind, Store, Workload, generate};
use isolario_workload::Rng;

/// The levels of transactions with rules of their own.
pub fn engines() -> impl Iterator<Item = Level> {
    Level::all().filter(|level| *level != Level::Linearizable && Store::has_rules_for(*level))
}

pub fn history(config: &Config) -> History {
    let mut batch = Batch::new();
    generate(config, &mut batch).unwrap();
    let history = batch.build().unwrap();
    assert!(history.contradictory_times().is_empty(), "it finishes before it starts");
    history
}

/// A configuration with much contention, drawn from a seed.
pub fn random_config(level: Level, kind: Kind, txns: u64, seed: u64) -> Config {
    let mut rng = Rng::derive(seed, &[1, 2, 3]);
    let mut any = |choices: &[f64]| choices[rng.below(choices.len() as u64) as usize];
    let workload = Workload {
        kind,
        ops: any(&[1.0, 2.0, 3.0, 4.0]) as u32,
        keys: any(&[1.0, 2.0, 3.0, 5.0]) as u32,
        read_ratio: any(&[0.3, 0.5, 0.7]),
        rmw_ratio: any(&[0.0, 0.3]),
        one_kind_per_txn: any(&[0.0, 1.0]) > 0.0,
        distribution: Distribution::Zipf { exponent: any(&[0.0, 1.0]) },
        list_length: any(&[2.0, 20.0]) as u32,
        duplicate_ratio: any(&[0.0, 0.0, 0.5]),
        ..Workload::default()
    };
    Config {
        level,
        workload,
        txns,
        sessions: any(&[1.0, 2.0, 3.0, 4.0, 7.0]) as u32,
        concurrency: any(&[0.5, 1.0]),
        abort_ratio: any(&[0.0, 0.2]),
        unknown_ratio: any(&[0.0, 0.0, 0.3]),
        anomalies: Vec::new(),
        stamps: false,
        seed,
    }
}

/// Whether the checker says that a history satisfies a level; none if it cannot tell.
pub fn satisfies(history: &History, level: Level) -> Option<bool> {
    match check(history, &[level], &CheckOptions::default()).remove(0).verdict {
        Verdict::Satisfied(_) => Some(true),
        Verdict::Violated(_) => Some(false),
        _ => None,
    }
}
