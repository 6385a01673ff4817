//! Random transactions, one after the other on SQLite: with and without instrumentation they answer
//! the same, and the history that they show is that of one transaction after the other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{Checker, Options};
use isolario_model::{Level, Outcome, Value};
use isolario_sql::{
    Aux, Bounds, Instrument, Planned, Planner, Product, Reading, Recorded, RecordedTxn, Round,
    Schema, StatementKind, Style, history, savepoint_of,
};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

type Rows = Vec<Vec<Value>>;

fn database(schema: &Schema, aux: Option<&Aux>) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let product = Product::SQLITE;
    for sql in product.enter_namespace("").into_iter().chain(schema.create(&product, aux)) {
        connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    connection
}

fn value(sent: ValueRef<'_>) -> Value {
    match sent {
        ValueRef::Null => Value::Nil,
        ValueRef::Integer(whole) => whole.into(),
        ValueRef::Real(number) => Value::Other(number.to_string().into()),
        ValueRef::Text(text) => Value::Text(std::str::from_utf8(text).unwrap().into()),
        ValueRef::Blob(_) => unreachable!(),
    }
}

fn send(connection: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let width = statement.column_count();
    let rows =
        statement.query_map([], |row| (0..width).map(|at| row.get_ref(at).map(value)).collect())?;
    rows.collect()
}

/// What somebody sees of a transaction: the answers, and which statements failed.
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

/// The same with instrumentation, recorded.
fn instrumented(
    connection: &Connection,
    instrument: &Instrument<'_>,
    planned: &Planned,
    id: u32,
) -> RecordedTxn {
    let mut txn = RecordedTxn::new(id, id % 3);
    txn.times = Some((2 * i64::from(id), 2 * i64::from(id) + 1));
    txn.outcome = if planned.commits { Outcome::Committed } else { Outcome::Aborted };
    send(connection, "BEGIN").unwrap();
    for (number, sql) in (1..).zip(&planned.statements) {
        let sent = instrument.statement(sql, id, number);
        assert_eq!(sent.refusal, None, "{sql}");
        let mut recorded = Recorded::new(number, sql, &sent);
        let before = sent.before.as_ref().map(|sql| send(connection, sql).unwrap());
        match send(connection, &sent.sql) {
            Ok(rows) => {
                recorded.answered(&sent, before, rows, connection.changes());
                if let Some(savepoint) = savepoint_of(sql, "ROLLBACK TO SAVEPOINT ") {
                    txn.undo_to(savepoint, number);
                }
            }
            Err(error) => {
                let message = error.to_string();
                recorded.failure = Some(isolario_sql::Failure { code: None, message });
            }
        }
        txn.statements.push(recorded);
    }
    send(connection, if planned.commits { "COMMIT" } else { "ROLLBACK" }).unwrap();
    txn
}

fn full_read(schema: &Schema) -> Planned {
    let statements = schema.tables.iter().map(Schema::full_read).collect();
    Planned { statements, autocommit: false, commits: true }
}

/// Rows in an order of their own: without ORDER BY, none is promised.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

#[test]
fn instrumentation_changes_no_answer_and_the_history_is_serial() {
    let style = Style::default();
    let (mut statements, mut failed, mut seen) = (0, 0, 0);
    for round in 0..60 {
        let schema = Schema::random(11, round, &Bounds::default());
        let aux = Aux::avoiding(&schema);
        let product = Product::SQLITE;
        let planner = Planner {
            schema: &schema,
            product: &product,
            style: &style,
            models: &[],
            seed: 11,
            round,
        };
        let instrument = Instrument { product: &product, schema: &schema, aux: &aux };
        let (plain, ours) = (database(&schema, None), database(&schema, Some(&aux)));
        let mut record = Round::default();
        for id in 1..=40u32 {
            let planned = planner.transaction(u64::from(id % 3), u64::from(id));
            let expected = plainly(&plain, &planned);
            let txn = instrumented(&ours, &instrument, &planned, id);
            for (expected, statement) in expected.into_iter().zip(&txn.statements) {
                let sql = &statement.sql;
                assert_eq!(expected.is_none(), statement.failure.is_some(), "{sql}");
                statements += 1;
                failed += u32::from(expected.is_none());
                seen += statement.reads.len();
                if let Some(expected) = expected
                    && statement.kind == StatementKind::Select
                {
                    assert_eq!(sorted(statement.rows.clone()), sorted(expected), "{sql}");
                }
            }
            record.transactions.push(txn);
        }
        for session in 0..3 {
            let id = 41 + session;
            let mut last = instrumented(&ours, &instrument, &full_read(&schema), id);
            last.is_final = true;
            for (table, statement) in schema.tables.iter().zip(&mut last.statements) {
                statement.table = Some(table.name.clone());
            }
            last.session = session;
            record.transactions.push(last);
        }
        let history = history(&record, Reading::default()).unwrap();
        let checker = Checker::new(&history, Options::default());
        let result = checker.check(Level::StrictSerializable);
        assert!(result.verdict.is_satisfied(), "round {round}: {:?}", result.verdict);
    }
    // Most statements work, and most of these show something.
    assert!(failed * 10 < statements, "{failed} of {statements} failed");
    assert!(seen > statements as usize, "{seen} rows seen by {statements} statements");
}
