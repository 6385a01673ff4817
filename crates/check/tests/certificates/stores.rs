//! Stores whose certificates are known.

use std::collections::BTreeMap;

use isolario_check::{CheckOptions, StatedOrder, StatedSet, check};
use isolario_model::{
    AnomalyKind, Batch, History, ItemView, Level, SinkError, Stamp, TupleParts, TxnId, ValueRef,
    Verdict,
};
use isolario_sim::{
    KEY_COLUMN, Mix, TABLE, TableAnomaly, TableChronicle, TableConfig, TableDefect, TablePlant,
    TableWorkload, VersionSet, generate_table,
};

use super::decided;

/// What the store tells of itself.
#[derive(Default)]
struct Heard {
    versions: BTreeMap<u64, Vec<u64>>,
    sets: Vec<(u64, usize, Told)>,
}

enum Told {
    Snapshot(Stamp),
    Versions(Vec<(String, u64, u64)>),
}

impl TableChronicle for Heard {
    fn version(&mut self, row: u64, writer: u64) -> Result<(), SinkError> {
        self.versions.entry(row).or_default().push(writer);
        Ok(())
    }

    fn met(&mut self, txn: u64, op: usize, set: VersionSet<'_>) -> Result<(), SinkError> {
        let told = match set {
            VersionSet::Snapshot(at) => Told::Snapshot(at),
            VersionSet::Versions(rows) => {
                Told::Versions(rows.iter().map(|(r, w)| (r.table.to_owned(), r.id, *w)).collect())
            }
        };
        self.sets.push((txn, op, told));
        Ok(())
    }

    fn committed(&mut self, _: u64, _: Stamp) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A history with the store's own certificate.
fn generated(config: &TableConfig) -> (History, Vec<StatedOrder>, Vec<StatedSet>) {
    let (mut batch, mut heard) = (Batch::new(), Heard::default());
    generate_table(config, &mut batch, &mut heard).unwrap();
    let history = batch.build().unwrap();
    let by_name: BTreeMap<u64, TxnId> = history
        .txns()
        .filter_map(|txn| match history.txn_name(txn)? {
            ValueRef::Int(name) => Some((name as u64, txn)),
            _ => None,
        })
        .collect();
    let key = |table: &str, id: u64| {
        let columns = [(KEY_COLUMN, id.into())];
        history.find_key((&TupleParts { table, columns: &columns }).into())
    };
    let order = |(at, (row, writers)): (u64, (&u64, &Vec<u64>))| {
        let writers = writers.iter().filter_map(|writer| by_name.get(writer).copied()).collect();
        Some(StatedOrder { key: key(TABLE, *row)?, writers, at })
    };
    let orders = (1..).zip(&heard.versions).filter_map(order).collect();
    let set = |(at, (txn, op, told)): (u64, &(u64, usize, Told))| {
        let op = history.txn_ops(*by_name.get(txn)?).nth(*op)?;
        let versions = match told {
            Told::Snapshot(stamp) => isolario_model::VersionSet::Snapshot(*stamp),
            Told::Versions(rows) => {
                let row = |(table, id, writer): &(String, u64, u64)| {
                    Some((key(table, *id)?, *by_name.get(writer)?))
                };
                isolario_model::VersionSet::Writers(rows.iter().filter_map(row).collect())
            }
        };
        Some(StatedSet { op, versions, at })
    };
    let sets = (1000..).zip(&heard.sets).filter_map(set).collect();
    (history, orders, sets)
}

fn config(level: Level, seed: u64) -> TableConfig {
    let mix = "insert:15,update:15,read:10,increment:10,range-read:20,range-update:10,aggregate:15,\
               delete:5";
    TableConfig {
        level,
        workload: TableWorkload {
            ops: 4,
            keys: 60,
            mix: mix.parse::<Mix>().unwrap(),
            ..TableWorkload::default()
        },
        txns: 200,
        sessions: 8,
        abort_ratio: 0.1,
        seed,
        ..TableConfig::default()
    }
}

#[test]
fn stores_give_the_level_that_they_promise() {
    for seed in 0..6 {
        for level in [Level::RepeatableRead, Level::SnapshotIsolation, Level::Serializable] {
            let (history, orders, sets) = generated(&config(level, seed));
            let verdict = decided(&history, &orders, &sets, level);
            assert!(verdict.is_satisfied(), "seed {seed}, {level}: {verdict:?}");
        }
    }
}

#[test]
fn each_defect_of_the_store_is_found() {
    for defect in TableDefect::ALL {
        let found = (0..20).any(|seed| {
            let mut config = config(Level::Serializable, seed);
            config.defect = Some(*defect);
            let (history, orders, sets) = generated(&config);
            decided(&history, &orders, &sets, Level::Serializable).is_violated()
        });
        assert!(found, "{defect}");
    }
}

#[test]
fn planted_anomalies_of_predicates_tell_repeatable_read_and_serializability_apart() {
    for (kind, name) in [
        (TableAnomaly::Phantom, AnomalyKind::Phantom),
        (TableAnomaly::PredicateWriteSkew, AnomalyKind::PredicateWriteSkew),
    ] {
        let mut config = config(Level::Serializable, 3);
        config.workload.mix = "insert:30,update:30,range-read:40".parse::<Mix>().unwrap();
        config.anomalies = vec![TablePlant { kind, at: 0.5 }];
        let (history, orders, sets) = generated(&config);
        let rr = decided(&history, &orders, &sets, Level::RepeatableRead);
        assert!(rr.is_satisfied(), "{kind}: {rr:?}");
        let ser = decided(&history, &orders, &sets, Level::Serializable);
        assert_eq!(ser.anomalies().len(), 1, "{kind}: {ser:?}");
        assert_eq!(ser.anomalies()[0].kind, name);
        // The rows that were seen are in order.
        let items = ItemView::new(&history).unwrap();
        let options =
            CheckOptions::default().with_version_order(orders).with_trusted_version_order(true);
        let of_items = check(items.history(), &[Level::Serializable], &options);
        assert!(of_items[0].verdict.is_satisfied(), "{kind}: {of_items:?}");
    }
}

/// A certificate that is right says what can be worked out without it: whatever the general solver
/// refutes, it refutes, and whatever it accepts, the solver accepts.
#[test]
fn a_right_certificate_agrees_with_the_general_solver() {
    let (mut equal, mut all) = (0, 0);
    for seed in 0..8 {
        for level in [Level::RepeatableRead, Level::SnapshotIsolation, Level::Serializable] {
            let mut config = config(level, seed);
            config.workload.mix =
                "insert:20,update:25,read:20,increment:10,range-read:25".parse::<Mix>().unwrap();
            config.txns = 60;
            let (history, orders, sets) = generated(&config);
            for asked in [Level::SnapshotIsolation, Level::Serializable] {
                let certified = decided(&history, &orders, &sets, asked);
                let options = CheckOptions::default()
                    .with_version_order(orders.clone())
                    .with_timeout(std::time::Duration::from_secs(20));
                let solved = check(&history, &[asked], &options).remove(0).verdict;
                let is_open = |verdict: &Verdict| !verdict.is_satisfied() && !verdict.is_violated();
                if is_open(&certified) || is_open(&solved) {
                    continue;
                }
                all += 1;
                equal += usize::from(certified.kind() == solved.kind());
                // Only what the store says of itself is more than what clients saw.
                let agrees = certified.is_violated() || solved.is_satisfied();
                assert!(agrees, "seed {seed}, {level}, {asked}: {certified:?} {solved:?}");
                if level.implies(asked) {
                    assert!(certified.is_satisfied(), "seed {seed}, {level}, {asked}");
                }
            }
        }
    }
    assert!(all > 30 && equal * 10 > all * 8, "{equal} of {all}");
}
