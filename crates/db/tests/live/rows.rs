//! Operations on a table: the same on every database, and in every history.

use std::collections::BTreeMap;

use isolario_check::CheckOptions;
use isolario_db::{Access, Database, TABLE, TableResult};
use isolario_model::{
    History, KeyId, Level, Op, Outcome, PromisedOrder, TxnId, ValueId, ValueRef, Verdict,
};
use isolario_servers::Kind;
use isolario_workload::{
    Column, Function, Kind as WorkloadKind, Mix, RowValues, TableOp, ValueRange, Workload,
};

use super::site::{connect, database, prepare, start};
use super::trial::Trial;

const fn held(a: i64, b: i64, version: i64) -> RowValues {
    RowValues { a, b, version }
}

fn range(column: Column, low: i64, high: i64) -> ValueRange {
    ValueRange { column, low, high }
}

/// Every operation, with what it finds.
fn operations(database: &dyn Database) {
    assert!(database.traits().workloads.contains(&WorkloadKind::Predicate));
    prepare(database, WorkloadKind::Predicate, 10);
    let mut connection = connect(database);
    connection.begin(Access::Write).unwrap();
    let mut run = |op: TableOp| {
        let mut found = TableResult::default();
        connection.table(&op, &mut found).unwrap();
        found.rows.sort_by_key(|(key, _)| *key);
        found
    };
    assert!(run(TableOp::Read { key: 1 }).rows.is_empty());
    assert!(run(TableOp::Update { key: 1, held: held(0, 0, 1) }).rows.is_empty());
    for (key, held) in [(1, held(10, 500, 2)), (2, held(15, 600, 3)), (3, held(20, 700, 4))] {
        run(TableOp::Insert { key, held });
    }
    run(TableOp::Insert { key: 3, held: held(21, 701, 5) });
    assert_eq!(run(TableOp::Read { key: 3 }).rows, [(3, Some(held(21, 701, 5)))]);
    let update = run(TableOp::Update { key: 1, held: held(11, 500, 6) });
    assert_eq!(update.rows, [(1, Some(held(11, 500, 6)))]);
    let by_range = run(TableOp::RangeRead { range: range(Column::A, 11, 15) });
    assert_eq!(by_range.rows, [(1, Some(held(11, 500, 6))), (2, Some(held(15, 600, 3)))]);
    assert!(run(TableOp::RangeRead { range: range(Column::B, 501, 599) }).rows.is_empty());
    for (column, version) in [(Column::A, 7), (Column::B, 8)] {
        let (low, high) = if column == Column::A { (11, 15) } else { (42, 42) };
        let range = range(column, low, high);
        let updated = run(TableOp::RangeUpdate { range, b: 42, version });
        let rows = [(1, Some(held(11, 42, version))), (2, Some(held(15, 42, version)))];
        assert_eq!(updated.rows, rows, "by {column:?}");
    }
    let b = range(Column::B, 42, 42);
    for (function, value) in [
        (Function::Count, 2),
        (Function::Sum(Column::A), 26),
        (Function::Min(Column::A), 11),
        (Function::Max(Column::B), 42),
    ] {
        let found = run(TableOp::Aggregate { function, range: b });
        assert_eq!((found.value, found.rows.len()), (Some(value), 2), "{function:?}");
    }
    let nothing = range(Column::B, 900, 999);
    for (function, value) in [(Function::Count, Some(0)), (Function::Sum(Column::B), None)] {
        let found = run(TableOp::Aggregate { function, range: nothing });
        assert_eq!((found.value, found.rows.len()), (value, 0), "{function:?}");
    }
    let deleted = run(TableOp::Delete { range: range(Column::A, 12, 30), version: 9 });
    assert_eq!(deleted.rows, [(2, None), (3, None)]);
    assert!(run(TableOp::Delete { range: nothing, version: 10 }).rows.is_empty());
    connection.commit().unwrap();

    let mut other = connect(database);
    other.begin(Access::Read).unwrap();
    let mut found = TableResult::default();
    other.table(&TableOp::RangeRead { range: range(Column::A, 0, 999) }, &mut found).unwrap();
    assert_eq!(found.rows, [(1, Some(held(11, 42, 8)))]);
    other.commit().unwrap();
}

#[test]
fn operations_on_rows_are_the_same_on_every_database() {
    operations(&*database("sqlite:", ""));
    operations(&*database("sim:serializable", ""));
    let servers = start(Kind::Postgres);
    operations(&*database(servers.url(), "serializable"));
    let servers = start(Kind::MariaDb);
    operations(&*database(servers.url(), "serializable"));
}

/// A few rows, so that sessions meet, and many operations by range.
pub fn workload() -> Workload {
    let mix: Mix =
        "insert:20,update:20,read:20,increment:10,range-read:10,range-update:10,delete:2,aggregate:8"
            .parse()
            .unwrap();
    Workload { kind: WorkloadKind::Predicate, ops: 4, keys: 60, mix, ..Workload::default() }
}

fn trial(urls: &[String], isolation: &'static str) -> Trial {
    Trial { workload: workload(), txns: 800, ..Trial::new(urls, isolation) }
}

/// Whatever the level: rows that were returned satisfy their predicates, and what they hold was written by
/// somebody who did not abort.
fn makes_sense(history: &History) {
    let mut written: BTreeMap<(KeyId, ValueId), TxnId> = BTreeMap::new();
    for txn in history.txns() {
        for op in history.txn_ops(txn) {
            match history.op(op) {
                Op::Write { key, value } => _ = written.insert((key, value), txn),
                Op::PredicateWrite { rows, .. } => {
                    for row in rows.unwrap_or_default() {
                        written.insert((row.key, row.value), txn);
                    }
                }
                _ => {}
            }
        }
    }
    let (mut rows_read, mut aggregates) = (0, 0);
    let seen = |txn: TxnId, key, value| {
        if history.value(value) == ValueRef::Nil {
            return;
        }
        let Some(writer) = written.get(&(key, value)) else {
            panic!("{} has {} from nobody", history.key_name(key), history.value(value));
        };
        assert!(*writer == txn || history.outcome(*writer) != Outcome::Aborted);
    };
    for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
        assert!(history.txn_name(txn).is_some());
        for op in history.txn_ops(txn) {
            match history.op(op) {
                Op::Read { key, value: Some(value) } => seen(txn, key, value),
                Op::PredicateRead { predicate, rows } => {
                    assert_eq!(predicate.table(), Some(TABLE));
                    for row in rows.unwrap() {
                        rows_read += 1;
                        seen(txn, row.key, row.value);
                    }
                }
                Op::Aggregate { .. } => aggregates += 1,
                _ => {}
            }
        }
    }
    assert!(rows_read > 100 && aggregates > 50, "{rows_read}, {aggregates}");
}

#[test]
fn histories_of_rows_make_sense_on_every_database() {
    makes_sense(&trial(&["sqlite:".to_owned()], "").history());
    let servers = start(Kind::Postgres);
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        makes_sense(&trial(servers.urls(), isolation).history());
    }
    let servers = start(Kind::MariaDb);
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        makes_sense(&trial(servers.urls(), isolation).history());
    }
}

#[test]
fn the_simulated_store_keeps_the_order_that_it_promises() {
    for level in ["serializable", "snapshot-isolation"] {
        let history = trial(&[format!("sim:{level}")], "").history();
        makes_sense(&history);
        let options =
            CheckOptions::default().with_promised_order(PromisedOrder::of_stamps(&history));
        let level = Level::find(level).unwrap();
        let result = isolario_check::check(&history, &[level], &options).remove(0);
        assert!(matches!(result.verdict, Verdict::Satisfied(_)), "{level}: {:?}", result.verdict);
    }
}
