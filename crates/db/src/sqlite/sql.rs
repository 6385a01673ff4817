//! Statements as text.

use isolario_model::Value;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement, TransactionState};

use super::classify;
use super::waiting::Place;
use crate::error::DbError;
use crate::sql::{SqlConnection, SqlResult, hexadecimal};

pub(super) struct SqlSession {
    connection: Connection,
    place: Place,
}

impl SqlSession {
    pub(super) fn new(connection: Connection, place: Place) -> SqlSession {
        SqlSession { connection, place }
    }

    fn attempt(&self, sql: &str) -> Result<SqlResult, DbError> {
        let mut statement = self.connection.prepare(sql).map_err(refused)?;
        run(&mut statement).map_err(refused)
    }

    /// A transaction that has read cannot wait for the write lock: when it gets the lock, its snapshot
    /// may be too old. SQLite's own waiting makes the same difference.
    fn has_snapshot(&self) -> bool {
        let state = self.connection.transaction_state(None::<&str>);
        !matches!(state, Ok(TransactionState::None))
    }
}

impl SqlConnection for SqlSession {
    /// SQLite answers in any case, so nothing is ever in doubt.
    fn statement(&mut self, sql: &str, _: bool) -> Result<SqlResult, DbError> {
        let answer = match self.has_snapshot() {
            true => self.attempt(sql)?,
            false => self.place.wait(|| self.attempt(sql))?,
        };
        let changed = match answer.columns.is_empty() {
            true => self.connection.changes(),
            false => answer.rows.len() as u64,
        };
        Ok(SqlResult { changed, ..answer })
    }

    fn id(&self) -> Option<u64> {
        Some(self.place.id)
    }
}

fn run(statement: &mut Statement<'_>) -> rusqlite::Result<SqlResult> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let values = |row: &Row<'_>| (0..width).map(|at| row.get_ref(at).map(value)).collect();
    let rows = statement.query_map([], values)?.collect::<rusqlite::Result<_>>()?;
    Ok(SqlResult { columns, rows, changed: 0 })
}

/// An error of a statement that somebody made up is no reason to end a run.
fn refused(error: rusqlite::Error) -> DbError {
    let error = classify(error);
    match error.class {
        crate::ErrorClass::Fatal => error.with_class(crate::ErrorClass::Aborted),
        _ => error,
    }
}

fn value(sent: ValueRef<'_>) -> Value {
    match sent {
        ValueRef::Null => Value::Nil,
        ValueRef::Integer(whole) => whole.into(),
        ValueRef::Real(number) => Value::Other(number.to_string().into()),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => hexadecimal(bytes),
        },
        ValueRef::Blob(bytes) => hexadecimal(bytes),
    }
}
