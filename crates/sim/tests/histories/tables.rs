//! Histories of tables, replayed by brute force: every recorded result must be what the rows make it.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Batch, History, KeyId, Level, Op, OpView, RowRef, SinkError, Stamp, TupleParts, TxnId, ValueId,
    ValueRef,
};
use isolario_predicate::{Dialect, Operand, Predicate};
use isolario_sim::{
    KEY_COLUMN, Mix, TABLE, TableAnomaly, TableChronicle, TableConfig, TableDefect, TablePlant,
    TableWorkload, VersionSet, generate_table,
};

/// What was heard of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Heard {
    versions: BTreeMap<u64, Vec<u64>>,
    /// By transaction and operation.
    snapshots: BTreeMap<(u64, usize), Stamp>,
    planted: usize,
    commits: Vec<(Stamp, u64)>,
}

impl TableChronicle for Heard {
    fn version(&mut self, row: u64, writer: u64) -> Result<(), SinkError> {
        self.versions.entry(row).or_default().push(writer);
        Ok(())
    }

    fn met(&mut self, txn: u64, op: usize, set: VersionSet<'_>) -> Result<(), SinkError> {
        match set {
            VersionSet::Snapshot(snapshot) => {
                assert_eq!(self.snapshots.insert((txn, op), snapshot), None);
            }
            VersionSet::Versions(_) => self.planted += 1,
        }
        Ok(())
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.commits.push((place, txn));
        Ok(())
    }
}

const LEVELS: [Level; 4] =
    [Level::ReadCommitted, Level::RepeatableRead, Level::SnapshotIsolation, Level::Serializable];

/// A configuration with some contention.
fn config(level: Level, seed: u64) -> TableConfig {
    let pick = |choices: &[u32]| choices[(seed % choices.len() as u64) as usize];
    let mix = "insert:15,update:15,read:10,increment:10,range-read:15,range-update:10,delete:10,\
               aggregate:15";
    TableConfig {
        level,
        workload: TableWorkload {
            ops: pick(&[1, 3, 5, 8]),
            keys: pick(&[20, 100, 300]),
            mix: mix.parse::<Mix>().unwrap(),
            ..TableWorkload::default()
        },
        txns: 300,
        sessions: pick(&[2, 5, 10, 20, 7]),
        abort_ratio: if seed.is_multiple_of(3) { 0.2 } else { 0.0 },
        unknown_ratio: if seed.is_multiple_of(4) { 0.2 } else { 0.0 },
        seed,
        ..TableConfig::default()
    }
}

fn generated(config: &TableConfig) -> (History, Heard) {
    let (mut batch, mut heard) = (Batch::new(), Heard::default());
    let summary = generate_table(config, &mut batch, &mut heard).unwrap();
    assert_eq!(summary.committed + summary.aborted + summary.unknown, config.txns);
    heard.commits.sort_unstable();
    let history = batch.build().unwrap();
    assert!(history.contradictory_times().is_empty(), "it finishes before it starts");
    assert_eq!(summary.operations, history.op_count() as u64);
    (history, heard)
}

fn name(history: &History, txn: TxnId) -> u64 {
    match history.txn_name(txn) {
        Some(ValueRef::Int(name)) => name as u64,
        other => panic!("{other:?}"),
    }
}

/// Rows that are there, and what they hold.
type Rows = BTreeMap<KeyId, ValueId>;

/// The rows that match, looked at one by one.
fn matching(history: &History, rows: &Rows, predicate: &Predicate) -> Rows {
    let matches = |key: KeyId, value: ValueId| {
        let row = RowRef { key: history.key_name(key), value: history.value(value) };
        row.matches(predicate, Dialect::Postgres).unwrap()
    };
    rows.iter().filter(|(k, v)| matches(**k, **v)).map(|(k, v)| (*k, *v)).collect()
}

/// Whether an operation returned what these rows make it return, and what they are after it.
fn replay(history: &History, op: OpView<'_>, rows: &mut Rows) -> bool {
    let nil = history.find_value(ValueRef::Nil);
    let is_nil = |value: ValueId| Some(value) == nil;
    match op {
        Op::Read { value: None, .. } => true,
        Op::Read { key, value: Some(value) } => match rows.get(&key) {
            Some(held) => *held == value,
            None => is_nil(value),
        },
        Op::Write { key, value } => {
            rows.insert(key, value);
            true
        }
        Op::PredicateRead { rows: None, .. } => true,
        Op::PredicateRead { predicate, rows: Some(found) } => {
            let found: Rows = found.iter().map(|row| (row.key, row.value)).collect();
            found == matching(history, rows, predicate)
        }
        Op::PredicateWrite { predicate, rows: Some(written) } => {
            let keys: BTreeSet<_> = written.iter().map(|row| row.key).collect();
            let right =
                matching(history, rows, predicate).into_keys().collect::<BTreeSet<_>>() == keys;
            for row in written {
                match is_nil(row.value) {
                    true => rows.remove(&row.key),
                    false => rows.insert(row.key, row.value),
                };
            }
            right
        }
        Op::Aggregate { result: None, .. } => true,
        Op::Aggregate { function, predicate, result: Some(result) } => {
            let matching = matching(history, rows, predicate);
            let rows = matching.iter().map(|(key, value)| RowRef {
                key: history.key_name(*key),
                value: history.value(*value),
            });
            let expected = function.over(rows, Dialect::Postgres).unwrap();
            let result = match history.value(result) {
                ValueRef::Nil => Operand::Null,
                ValueRef::Int(i) => Operand::Int(i),
                other => panic!("{other}"),
            };
            expected.is(result, Dialect::Postgres).unwrap()
        }
        _ => panic!("no operation on a table"),
    }
}

/// How many results are not those of running the transactions one after the other, in this order.
fn mismatches(history: &History, order: &[TxnId]) -> usize {
    let mut rows = Rows::new();
    let ops = order.iter().flat_map(|txn| history.txn_ops(*txn));
    ops.filter(|op| !replay(history, history.op(*op), &mut rows)).count()
}

/// Transactions by their places in the true order.
fn true_order(history: &History, heard: &Heard) -> Vec<TxnId> {
    let by_name: BTreeMap<u64, TxnId> =
        history.txns().map(|txn| (name(history, txn), txn)).collect();
    heard.commits.iter().map(|(_, txn)| by_name[txn]).collect()
}

/// What each commit left.
fn states(history: &History, order: &[TxnId]) -> BTreeMap<u64, Rows> {
    let mut states = BTreeMap::from([(0, Rows::new())]);
    let mut rows = Rows::new();
    for txn in order {
        for op in history.txn_ops(*txn) {
            replay(history, history.op(op), &mut rows);
        }
        states.insert(history.db_commit(*txn).unwrap().physical, rows.clone());
    }
    states
}

#[test]
fn a_serializable_history_is_its_replay() {
    for seed in 0..60 {
        let (history, heard) = generated(&config(Level::Serializable, seed));
        let order = true_order(&history, &heard);
        assert_eq!(mismatches(&history, &order), 0, "seed {seed}");
    }
}

#[test]
fn weaker_levels_and_defects_are_not() {
    let broken = |config: &TableConfig| {
        let (history, heard) = generated(config);
        usize::from(mismatches(&history, &true_order(&history, &heard)) > 0)
    };
    for level in &LEVELS[..3] {
        let count: usize = (0..20).map(|seed| broken(&config(*level, seed))).sum();
        assert!(count > 3, "{level}: {count}");
    }
    for defect in TableDefect::ALL {
        let with =
            |seed| TableConfig { defect: Some(*defect), ..config(Level::Serializable, seed) };
        let count: usize = (0..20).map(|seed| broken(&with(seed))).sum();
        assert!(count > 3, "{defect}: {count}");
    }
}

#[test]
fn ranges_show_their_snapshots_and_versions_are_ordered_by_commits() {
    for (level, seed) in LEVELS.into_iter().flat_map(|level| (0..20).map(move |s| (level, s))) {
        let (history, heard) = generated(&config(level, seed));
        let order = true_order(&history, &heard);
        let states = states(&history, &order);
        let mut versions: BTreeMap<KeyId, Vec<u64>> = BTreeMap::new();
        for txn in &order {
            let mut own: BTreeSet<KeyId> = BTreeSet::new();
            let mut snapshot_before = 0;
            // What the transaction itself did, to be done again on top of each snapshot.
            let mut earlier = Vec::new();
            for (at, op) in history.txn_ops(*txn).enumerate() {
                let op = history.op(op);
                if let Some(snapshot) = heard.snapshots.get(&(name(&history, *txn), at)) {
                    assert!(snapshot.physical >= snapshot_before);
                    snapshot_before = snapshot.physical;
                    let mut rows =
                        states.range(..=snapshot.physical).next_back().unwrap().1.clone();
                    for op in &earlier {
                        replay_writes(&history, *op, &mut rows);
                    }
                    assert!(replay(&history, op, &mut rows), "{level} {seed}");
                }
                own.extend(written(op));
                earlier.push(op);
            }
            for key in own {
                versions.entry(key).or_default().push(name(&history, *txn));
            }
        }
        let told: BTreeMap<KeyId, Vec<u64>> =
            heard.versions.iter().map(|(row, of)| (key(&history, *row), of.clone())).collect();
        assert_eq!(told, versions, "{level} {seed}");
    }
}

fn replay_writes(history: &History, op: OpView<'_>, rows: &mut Rows) {
    if !matches!(op, Op::Read { .. } | Op::PredicateRead { .. } | Op::Aggregate { .. }) {
        replay(history, op, rows);
    }
}

fn written(op: OpView<'_>) -> Vec<KeyId> {
    match op {
        Op::Write { key, .. } => vec![key],
        Op::PredicateWrite { rows: Some(rows), .. } => rows.iter().map(|row| row.key).collect(),
        _ => Vec::new(),
    }
}

fn key(history: &History, id: u64) -> KeyId {
    let columns = [(KEY_COLUMN, ValueRef::from(id))];
    history.find_key((&TupleParts { table: TABLE, columns: &columns }).into()).unwrap()
}

/// The rows that an operation read, with their versions.
fn rows_read(op: OpView<'_>) -> Vec<(KeyId, ValueId)> {
    match op {
        Op::Read { key, value: Some(value) } => vec![(key, value)],
        Op::PredicateRead { rows: Some(rows), .. } => {
            rows.iter().map(|row| (row.key, row.value)).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn rows_that_were_read_do_not_change_before_the_commit_at_repeatable_read() {
    let mut compared = 0;
    for seed in 0..40 {
        let (history, heard) = generated(&config(Level::RepeatableRead, seed));
        let order = true_order(&history, &heard);
        let states = states(&history, &order);
        let nil = history.find_value(ValueRef::Nil);
        for txn in &order {
            let commit = history.db_commit(*txn).unwrap();
            // Who wrote nothing is at the state of that commit, and others come after the one before.
            let is_read_only = commit.logical > 0;
            let before = commit.physical - u64::from(!is_read_only);
            let rows = states.range(..=before).next_back().unwrap().1;
            let mut own: BTreeSet<KeyId> = BTreeSet::new();
            for op in history.txn_ops(*txn).map(|op| history.op(op)) {
                for (key, value) in rows_read(op) {
                    if !own.contains(&key) {
                        let held = rows.get(&key).copied().or(nil);
                        assert_eq!(held, Some(value), "seed {seed}");
                        compared += 1;
                    }
                }
                own.extend(written(op));
            }
        }
    }
    assert!(compared > 1000);
}

#[test]
fn snapshots_hold_and_the_first_committer_wins() {
    for seed in 0..40 {
        let (history, heard) = generated(&config(Level::SnapshotIsolation, seed));
        let order = true_order(&history, &heard);
        let states = states(&history, &order);
        let mut last_commit: BTreeMap<KeyId, u64> = BTreeMap::new();
        for txn in &order {
            let snapshot = history.db_start(*txn).unwrap().physical;
            let mut rows = states.range(..=snapshot).next_back().unwrap().1.clone();
            for op in history.txn_ops(*txn).map(|op| history.op(op)) {
                assert!(replay(&history, op, &mut rows), "seed {seed}");
                for key in written(op) {
                    let commit = history.db_commit(*txn).unwrap().physical;
                    let before = last_commit.insert(key, commit).unwrap_or(0);
                    assert!(before <= snapshot || before == commit, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn planted_anomalies_have_no_serial_order() {
    for anomaly in TableAnomaly::ALL {
        let plain = config(Level::Serializable, 5);
        let anomalies = vec![TablePlant { kind: *anomaly, at: 0.5 }];
        let (history, heard) = generated(&TableConfig { anomalies, ..plain.clone() });
        let planted: Vec<TxnId> =
            history.txns().filter(|txn| history.db_commit(*txn).is_none()).collect();
        let reversed: Vec<TxnId> = planted.iter().rev().copied().collect();
        assert_eq!((planted.len(), heard.planted), (2, 2));
        assert!(mismatches(&history, &planted) > 0 && mismatches(&history, &reversed) > 0);
        // The rest is as it was.
        assert_eq!(mismatches(&history, &true_order(&history, &heard)), 0);
        assert_eq!(generated(&plain).1.versions.len(), heard.versions.len());
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    let config = config(Level::SnapshotIsolation, 4);
    assert_eq!(generated(&config), generated(&config));
    assert_ne!(generated(&config).1, generated(&TableConfig { seed: 5, ..config.clone() }).1);
}
