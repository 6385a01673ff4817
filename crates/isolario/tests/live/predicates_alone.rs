//! What only predicates show: a check of single rows accepts it, and a version certificate does not.

use std::time::Duration;

use isolario::model::{ItemView, Level};
use isolario::run::{Handle, RunOutcome, Settings, Shrinking, run_with};
use isolario::workload::{
    AttemptedTxn, Column, Generator, Kind as WorkloadKind, PlannedOp, Rendezvous, RowValues,
    TableOp, ValueRange, Workload,
};
use isolario::{check, model};
use isolario_servers::{Durability, Kind, Servers};
use tempfile::TempDir;

/// The first session makes two rows, one after the other, and then changes both in one transaction: the
/// second one leaves its range. The others read the first row, and then the range. Who finds the first
/// row as it was and the range empty saw half of that transaction. But a range that is empty shows no
/// version of any row.
struct Leaving;

const SESSIONS: u32 = 4;

impl Leaving {
    fn number(place: AttemptedTxn) -> i64 {
        i64::from(place.attempt)
            + 6 * (place.position as i64 * i64::from(SESSIONS) + i64::from(place.session))
    }
}

impl Generator for Leaving {
    fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
        let round = (place.position / 3) as u32;
        let (first, second) = (2 * round, 2 * round + 1);
        let low = i64::from(round) * 100;
        let held = |a, op| RowValues { a, b: 0, version: 4 * Leaving::number(place) + op };
        let ops = match (place.session, place.position % 3) {
            (0, 0) => vec![TableOp::Insert { key: second, held: held(low + 5, 0) }],
            (0, 1) => vec![TableOp::Insert { key: first, held: held(low + 50, 0) }],
            (0, _) => vec![
                TableOp::Update { key: first, held: held(low + 51, 0) },
                TableOp::Update { key: second, held: held(low + 55, 1) },
            ],
            _ => vec![
                TableOp::Read { key: first },
                TableOp::RangeRead { range: ValueRange { column: Column::A, low, high: low + 9 } },
            ],
        };
        plan.extend(ops.into_iter().map(PlannedOp::Table));
    }

    fn name(&self, place: AttemptedTxn) -> Option<i64> {
        Some(Leaving::number(place))
    }

    fn rendezvous(&self, session: u32) -> Option<Rendezvous> {
        Some(Rendezvous { group: session, before: 1, pause: Duration::from_millis(5) })
    }
}

fn recorded(url: &str, txns: u64) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let kind = WorkloadKind::Predicate;
    let settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_isolation("read-committed")
        .with_workload(Workload { kind, ..Workload::default() })
        .with_sessions(SESSIONS)
        .with_txns(txns)
        .with_levels([Level::RepeatableRead, Level::Serializable])
        .with_shrinking(Shrinking::Never)
        .with_whitebox(true)
        .with_out(directory.path().join("run"));
    run_with(&settings, &Leaving, &Handle::new(), &mut ()).unwrap()
}

/// Whether single rows show nothing that rules a level out.
fn rows_satisfy(history: &model::History, level: Level) -> bool {
    let view = ItemView::new(history).unwrap();
    let answers = check::check(view.history(), &[level], &check::CheckOptions::default());
    answers[0].verdict.is_satisfied()
}

#[test]
fn read_committed_of_postgres_shows_predicates_half_of_a_transaction() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let happened = [60, 120, 240, 480, 960].into_iter().any(|txns| {
        let outcome = recorded(servers.url(), txns);
        let own = outcome.whitebox.as_ref().unwrap();
        assert_eq!(own.failure, None);
        assert!(rows_satisfy(&outcome.history, Level::Serializable));
        own.by_versions.iter().all(|answer| answer.verdict.is_violated())
    });
    assert!(happened, "nobody saw half of a transaction");
}
