//! One transaction after the other: with and without instrumentation they answer the same, and the
//! history that they show is that of one transaction after the other.

use isolario_sql::{
    Aux, Bounds, Instrument, Planned, Planner, Product, Round, Schema, StatementKind,
};
use rusqlite::Connection;

use super::client::{Rows, Running, Shared, make, send};
use super::{Counts, full_read, mark_final, style};

/// The answers to a transaction as it stands; nothing for statements that failed.
fn plainly(connection: &Connection, planned: &Planned) -> Vec<Option<Rows>> {
    if !planned.autocommit {
        send(connection, "BEGIN").unwrap();
    }
    let answers = planned.statements.iter().map(|sql| send(connection, sql).ok()).collect();
    if !planned.autocommit {
        send(connection, if planned.commits { "COMMIT" } else { "ROLLBACK" }).unwrap();
    }
    answers
}

/// Rows in an order of their own: without ORDER BY, none is promised.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// How many statements there were, how many of them failed, and how many rows they showed.
#[derive(Debug, Default)]
struct Answers {
    statements: usize,
    failed: usize,
    seen: usize,
}

fn rounds(seed: u64, count: u64, looks: bool) -> (Counts, Answers) {
    let (style, product) = (style(looks), Product::SQLITE);
    let (mut counts, mut answers) = (Counts::default(), Answers::default());
    for round in 0..count {
        let schema = Schema::random(seed, round, &Bounds::default());
        let aux = Aux::avoiding(&schema);
        let planner =
            Planner { schema: &schema, product: &product, style: &style, models: &[], seed, round };
        let instrument = Instrument { product: &product, schema: &schema, aux: &aux };
        let shared = Shared::new(instrument, looks);
        let open = |aux| {
            let connection = Connection::open_in_memory().unwrap();
            make(&connection, &schema, aux);
            connection
        };
        let (plain, ours) = (open(None), open(Some(&aux)));
        let mut record = Round { first: shared.snapshot(&ours).unwrap(), ..Round::default() };
        for id in 1..=40u32 {
            let planned = planner.transaction(u64::from(id % 3), u64::from(id));
            let expected = plainly(&plain, &planned);
            let txn = Running::begin(&shared, &ours, &planned, id, id % 3).finish(&shared, &ours);
            for (expected, statement) in expected.into_iter().zip(&txn.statements) {
                let sql = &statement.sql;
                assert_eq!(expected.is_none(), statement.failure.is_some(), "{sql}");
                answers.statements += 1;
                answers.failed += usize::from(expected.is_none());
                answers.seen += statement.reads.len();
                if let Some(expected) = expected
                    && statement.kind == StatementKind::Select
                {
                    assert_eq!(sorted(statement.rows.clone()), sorted(expected), "{sql}");
                }
            }
            record.transactions.push(txn);
        }
        for session in 0..3 {
            let last = Running::begin(&shared, &ours, &full_read(&schema), 41 + session, session);
            let mut last = last.finish(&shared, &ours);
            mark_final(&mut last, &schema);
            record.transactions.push(last);
        }
        counts.check(&format!("seed {seed}, round {round}"), &record, &schema, &instrument);
    }
    (counts, answers)
}

#[test]
fn instrumentation_changes_no_answer_and_the_history_is_serial() {
    let (_, Answers { statements, failed, seen }) = rounds(11, 60, false);
    // Most statements work, and most of these show something.
    assert!(failed * 10 < statements, "{failed} of {statements} failed");
    assert!(seen > statements, "{seen} rows seen by {statements} statements");
}

/// The version of each row that each query met is that of the serial order; any other one would make a
/// cycle, or be of the future.
#[test]
fn predicates_of_serial_transactions_accuse_nobody() {
    let (counts, _) = rounds(12, 100, true);
    assert_eq!(counts.overlapping, 0, "{counts:?}");
    assert!(counts.certified * 10 > counts.rounds * 9, "{counts:?}");
    assert!(counts.sets > 10 * counts.certified, "{counts:?}");
    assert!(counts.before_own_insert > 20, "{counts:?}");
    assert!(counts.after_own_delete > 100, "{counts:?}");
}
