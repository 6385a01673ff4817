//! The same configuration gives the same history, for ever and everywhere.

use std::fmt::Write;

use crate::support::{engines, history, random_config};
use isolario_model::{History, Level};
use isolario_sim::{Config, Distribution, Kind, Plant, Preset, Summary, Workload, generate};

/// A history as text, everything in it included.
fn text(history: &History) -> String {
    let mut text = String::new();
    for txn in history.txns() {
        let session = history.session_name(history.session_of(txn));
        write!(text, "{session}: #{} ", history.txn_label(txn)).unwrap();
        for op in history.txn_ops(txn) {
            history.with_op_input(op, |op| write!(text, "{op:?} ").unwrap());
        }
        writeln!(text, "{:?}", history.txn_end(txn)).unwrap();
    }
    text
}

/// FNV-1a, so that the pinned number depends on nothing else.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn a_seed_is_a_history() {
    for level in engines() {
        for kind in Kind::KEYED {
            let config = random_config(level, kind, 50, 7);
            assert!(history(&config) == history(&config));
            assert!(history(&config) != history(&Config { seed: 8, ..config.clone() }));
        }
    }
}

/// If this fails, seeds that people wrote down have lost their meaning.
#[test]
fn histories_are_pinned() {
    let digests: Vec<u64> = Kind::KEYED
        .into_iter()
        .map(|kind| {
            let workload = Workload {
                kind,
                keys: 20,
                rmw_ratio: 0.25,
                distribution: Distribution::Zipf { exponent: 0.99 },
                ..Workload::default()
            };
            let (level, seed) = (Level::Causal, 2024);
            let anomalies = vec![Plant::in_the_middle(isolario_model::AnomalyKind::LongFork)];
            let config = Config {
                level,
                workload,
                txns: 200,
                abort_ratio: 0.1,
                unknown_ratio: 0.1,
                anomalies,
                seed,
                ..Config::default()
            };
            digest(&text(&history(&config)))
        })
        .collect();
    assert_eq!(
        digests,
        [9875919589324498484, 9742781792585507422, 10094570223017064662, 3051989178269023833]
    );
}

#[test]
fn shares_come_out_as_asked_for() {
    let config = Config { txns: 10_000, abort_ratio: 0.2, unknown_ratio: 0.4, ..Config::default() };
    let mut batch = isolario_model::Batch::new();
    let summary = generate(&config, &mut batch).unwrap();
    let Summary { committed, aborted, unknown, .. } = summary;
    assert_eq!(committed + aborted + unknown, 10_000);
    assert!((1_800..2_200).contains(&aborted) && (3_800..4_200).contains(&unknown), "{summary:?}");
}

#[test]
fn conflicts_cost_no_transactions() {
    let workload = Workload { kind: Kind::General, keys: 2, ..Workload::default() };
    let config = Config { workload, ..Config::default() };
    let mut batch = isolario_model::Batch::new();
    let summary = generate(&config, &mut batch).unwrap();
    assert_eq!(summary.committed, config.txns);
    assert!(summary.reruns > 0);
}

#[test]
fn presets_are_what_they_say() {
    let config = Config::from(Preset::find("blindw-rw").unwrap());
    let history = history(&config);
    assert_eq!((history.txn_count(), history.session_count()), (10_000, 24));
    assert_eq!(history.op_count(), 80_000);
}

#[test]
fn concurrency_bounds_how_many_transactions_overlap() {
    let workload = Workload { kind: Kind::General, ..Workload::default() };
    for (concurrency, most) in [(0.0, 1), (0.25, 5), (1.0, 20)] {
        let config =
            Config { workload: workload.clone(), sessions: 20, concurrency, ..Config::default() };
        let history = history(&config);
        let mut events: Vec<(i64, i32)> = history
            .txns()
            .flat_map(|txn| [(history.start(txn).unwrap(), 1), (history.finish(txn).unwrap(), -1)])
            .collect();
        events.sort_unstable();
        let running = events.iter().scan(0, |now, (_, change)| {
            *now += change;
            Some(*now)
        });
        assert_eq!(running.max(), Some(most));
    }
}
