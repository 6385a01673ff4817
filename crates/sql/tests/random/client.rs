//! A session of SQLite that sends instrumented statements, and records what comes back.

use std::cell::Cell;

use isolario_model::{Outcome, Value};
use isolario_sql::{
    Aux, Failure, Instrument, Instrumented, Planned, Product, Recorded, RecordedTxn, Schema,
    Snapshot, savepoint_of, take_seen,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

pub type Rows = Vec<Vec<Value>>;

/// Makes a schema in an empty database.
pub fn make(connection: &Connection, schema: &Schema, aux: Option<&Aux>) {
    let product = Product::SQLITE;
    for sql in product.enter_namespace("").into_iter().chain(schema.create(&product, aux)) {
        connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
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

pub fn send(connection: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let width = statement.column_count();
    let rows =
        statement.query_map([], |row| (0..width).map(|at| row.get_ref(at).map(value)).collect())?;
    rows.collect()
}

/// What the sessions of a round share: how statements are rewritten, and the clock.
pub struct Shared<'r> {
    pub instrument: Instrument<'r>,
    /// The reads of all tables before each statement, if there are any.
    looks: Vec<Instrumented>,
    clock: Cell<u64>,
}

impl<'r> Shared<'r> {
    pub fn new(instrument: Instrument<'r>, looks: bool) -> Shared<'r> {
        let look = |table| instrument.statement(&Schema::full_read(table), 0, 0);
        let tables = instrument.schema.tables.iter().filter(|_| looks);
        Shared { instrument, looks: tables.map(look).collect(), clock: Cell::new(0) }
    }

    pub fn turn(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// All rows of all tables, if they are wanted.
    pub fn snapshot(&self, connection: &Connection) -> rusqlite::Result<Option<Snapshot>> {
        if self.looks.is_empty() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for sent in &self.looks {
            for mut row in send(connection, &sent.sql)? {
                let seen = take_seen(&sent.shows, std::slice::from_mut(&mut row)).pop().unwrap();
                all.push((seen, row));
            }
        }
        Ok(Some(all))
    }
}

/// What a step leaves of a transaction.
pub enum Next {
    GoesOn(Running),
    Over(RecordedTxn),
}

/// A transaction that goes on.
pub struct Running {
    planned: Planned,
    txn: RecordedTxn,
}

impl Running {
    pub fn begin(
        shared: &Shared<'_>,
        connection: &Connection,
        planned: &Planned,
        id: u32,
        session: u32,
    ) -> Running {
        let mut txn = RecordedTxn::new(id, session);
        let now = i64::try_from(shared.turn()).unwrap();
        txn.times = Some((now, now));
        send(connection, "BEGIN").unwrap();
        Running { planned: planned.clone(), txn }
    }

    /// Sends the next statement, or ends the transaction.
    pub fn step(mut self, shared: &Shared<'_>, connection: &Connection) -> Next {
        let at = self.txn.statements.len();
        let Some(sql) = self.planned.statements.get(at).cloned() else {
            return Next::Over(self.end(shared, connection));
        };
        let number = u32::try_from(at).unwrap() + 1;
        let sent = shared.instrument.statement(&sql, self.txn.id, number);
        assert_eq!(sent.refusal, None, "{sql}");
        let mut recorded = Recorded::new(number, &sql, &sent);
        recorded.turn.0 = shared.turn();
        let answer = shared.snapshot(connection).and_then(|looked| {
            recorded.met = looked.as_ref().map(|all| all.iter().map(|(s, _)| s.clone()).collect());
            recorded.looked = looked;
            let before = sent.before.as_ref().map(|sql| send(connection, sql)).transpose()?;
            Ok((before, send(connection, &sent.sql)?))
        });
        recorded.turn.1 = shared.turn();
        let mut is_over = false;
        match answer {
            Ok((before, rows)) => {
                recorded.answered(&sent, before, rows, connection.changes());
                if let Some(savepoint) = savepoint_of(&sql, "ROLLBACK TO SAVEPOINT ") {
                    self.txn.undo_to(savepoint, number);
                }
            }
            Err(error) => {
                is_over = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
                recorded.failure = Some(Failure { code: None, message: error.to_string() });
            }
        }
        self.txn.statements.push(recorded);
        if is_over {
            self.planned.commits = false;
            return Next::Over(self.end(shared, connection));
        }
        Next::GoesOn(self)
    }

    /// Goes through the whole transaction.
    pub fn finish(mut self, shared: &Shared<'_>, connection: &Connection) -> RecordedTxn {
        loop {
            match self.step(shared, connection) {
                Next::Over(txn) => return txn,
                Next::GoesOn(running) => self = running,
            }
        }
    }

    fn end(self, shared: &Shared<'_>, connection: &Connection) -> RecordedTxn {
        let Running { planned, mut txn } = self;
        if planned.commits {
            txn.left = shared.snapshot(connection).unwrap();
        }
        txn.end_turn.0 = shared.turn();
        txn.outcome = match planned.commits && send(connection, "COMMIT").is_ok() {
            true => Outcome::Committed,
            false => {
                send(connection, "ROLLBACK").unwrap();
                Outcome::Aborted
            }
        };
        txn.end_turn.1 = shared.turn();
        let (start, _) = txn.times.unwrap();
        txn.times = Some((start, i64::try_from(txn.end_turn.1).unwrap()));
        txn
    }
}
