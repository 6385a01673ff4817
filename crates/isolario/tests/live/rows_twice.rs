//! Reads by key that find two rows: at PostgreSQL's repeatable read, a transaction that inserts a row after another
//! transaction deleted it sees the deleted row as well. It has a snapshot all the same.

use std::time::Duration;

use isolario::Level;
use isolario::model::{History, Op, Outcome};
use isolario::run::{Handle, RunOutcome, Settings, Shrinking, run_with};
use isolario::workload::{
    AttemptedTxn, Column, Generator, Kind as WorkloadKind, PlannedOp, Rendezvous, RowValues,
    TableOp, ValueRange, Workload,
};
use isolario_servers::{Durability, Kind, Servers};
use tempfile::TempDir;

/// Two sessions read the only row at the same time. Then the first one deletes it and commits; the second one waits,
/// inserts the row, and reads it.
struct Replacing;

const KEY: u32 = 0;

impl Generator for Replacing {
    fn plan(&self, attempted: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
        let AttemptedTxn { session, position, attempt } = attempted;
        let version = 12 * position as i64 + 2 * i64::from(attempt) + i64::from(session);
        let read = TableOp::Read { key: KEY };
        let ops = if session == 0 {
            let range = ValueRange { column: Column::A, low: 0, high: 9 };
            vec![read, TableOp::Delete { range, version }]
        } else {
            vec![read, TableOp::Insert { key: KEY, held: RowValues { a: 5, b: 0, version } }, read]
        };
        plan.extend(ops.into_iter().map(PlannedOp::Table));
    }

    fn rendezvous(&self, session: u32) -> Option<Rendezvous> {
        let pause = Duration::from_millis(30 * u64::from(session));
        Some(Rendezvous { group: 0, before: 1, pause })
    }
}

fn recorded(url: &str, txns: u64) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let kind = WorkloadKind::Predicate;
    let settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_isolation("repeatable-read")
        .with_workload(Workload { kind, keys: 1, ..Workload::default() })
        .with_sessions(2)
        .with_txns(txns)
        .with_levels([Level::Prefix, Level::SnapshotIsolation])
        .with_shrinking(Shrinking::Never)
        .with_out(directory.path().join("run"));
    run_with(&settings, &Replacing, &Handle::new(), &mut ()).unwrap()
}

/// Number of committed reads by key that returned two rows.
fn reads_of_two_rows(history: &History) -> usize {
    let committed = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
    let finds_two = |op| match history.op(op) {
        Op::PredicateRead { rows: Some(rows), .. } => rows.len() == 2,
        _ => false,
    };
    committed.flat_map(|txn| history.txn_ops(txn)).filter(|op| finds_two(*op)).count()
}

#[test]
fn reads_by_key_that_find_two_rows_accuse_no_snapshot_of_postgres() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let happened = [20, 40, 80, 160, 320].into_iter().any(|txns| {
        let outcome = recorded(servers.url(), txns);
        for result in &outcome.examination.results {
            assert!(result.verdict.is_satisfied(), "{}: {:?}", result.level, result.verdict);
        }
        reads_of_two_rows(&outcome.history) > 0
    });
    assert!(happened, "no read by key found two rows");
}
