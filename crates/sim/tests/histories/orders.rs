//! The true orders against the stamps, which tell them in another way.

use std::collections::BTreeMap;

use isolario_model::{AnomalyKind, Batch, History, Level, Op, SinkError, Stamp, TxnId, ValueRef};
use isolario_sim::{Chronicle, Config, Kind, Plant, Thinned, generate, generate_with};

use crate::support::random_config;

/// What was heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Heard {
    versions: BTreeMap<u64, Vec<i64>>,
    commits: Vec<(Stamp, u64)>,
}

impl Chronicle for Heard {
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError> {
        self.versions.entry(key).or_default().push(value);
        Ok(())
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.commits.push((place, txn));
        Ok(())
    }
}

fn heard(config: &Config) -> (History, Heard) {
    let (mut batch, mut heard) = (Batch::new(), Heard::default());
    generate_with(config, &mut batch, &mut heard).unwrap();
    heard.commits.sort_unstable();
    (batch.build().unwrap(), heard)
}

/// The last value that a transaction writes to each register.
fn written(history: &History, txn: TxnId) -> BTreeMap<u64, i64> {
    let number = |name: ValueRef<'_>| match name {
        ValueRef::Int(number) => number,
        other => panic!("{other}"),
    };
    let ops = history.txn_ops(txn).filter_map(|op| match history.op(op) {
        Op::Write { key, value } => {
            Some((number(history.key_name(key)) as u64, number(history.value(value))))
        }
        _ => None,
    });
    ops.collect()
}

#[test]
fn versions_and_commits_are_told_in_the_order_of_the_stamps() {
    for level in [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable] {
        for seed in 0..5 {
            let config = random_config(level, Kind::General, 500, seed);
            let (history, heard) = heard(&Config { stamps: true, ..config });
            let stamped = history.txns().filter_map(|txn| Some((history.db_commit(txn)?, txn)));
            let mut commits: Vec<(Stamp, TxnId)> = stamped.collect();
            commits.sort_unstable();
            let mut versions: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
            for (_, txn) in &commits {
                for (key, value) in written(&history, *txn) {
                    versions.entry(key).or_default().push(value);
                }
            }
            assert_eq!(heard.versions, versions, "{level} {seed}");
            let names = |(stamp, txn): &(Stamp, TxnId)| match history.txn_name(*txn) {
                Some(ValueRef::Int(name)) => (*stamp, name as u64),
                other => panic!("{other:?}"),
            };
            assert_eq!(heard.commits, commits.iter().map(names).collect::<Vec<_>>());
        }
    }
}

#[test]
fn who_listens_changes_nothing_and_planted_anomalies_are_not_told() {
    let config = random_config(Level::Serializable, Kind::General, 200, 1);
    let planted =
        Config { anomalies: vec![Plant::in_the_middle(AnomalyKind::LostUpdate)], ..config.clone() };
    let mut alone = Batch::new();
    generate(&planted, &mut alone).unwrap();
    let (history, with_plant) = heard(&planted);
    assert_eq!(alone.build().unwrap().txn_count(), history.txn_count());
    assert_eq!(with_plant.versions, heard(&config).1.versions);
}

#[test]
fn thinned_orders_are_what_is_left_of_the_whole() {
    let config = random_config(Level::Serializable, Kind::General, 500, 3);
    let (_, whole) = heard(&config);
    let count = |heard: &Heard| heard.versions.values().map(Vec::len).sum::<usize>();
    for share in [0.0, 0.5, 1.0] {
        let mut part = Heard::default();
        let mut thinned = Thinned::new(&mut part, share, 7);
        generate_with(&config, &mut Batch::new(), &mut thinned).unwrap();
        for (key, versions) in &part.versions {
            let mut all = whole.versions[key].iter();
            assert!(versions.iter().all(|version| all.any(|other| other == version)));
        }
        let (left, all) = (count(&part) as f64, count(&whole) as f64);
        assert!((left / all - share).abs() < 0.1, "{left} of {all}");
    }
}
