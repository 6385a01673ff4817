//! A connection, and values as SQLite has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isolario_model::{Stamp, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, Statement, TransactionState, params_from_iter};

use super::classify;
use super::waiting::Place;
use crate::database::{Access, Receipt, SqlResult};
use crate::error::{DbError, ErrorClass};
use crate::remote::Stage;
use crate::sql::{Client, hexadecimal};

/// How many statements a connection keeps prepared: more than any workload has.
const STATEMENTS: usize = 64;

pub(super) struct SqliteClient {
    connection: Connection,
    place: Place,
    /// How many readers there have been, where commits are counted.
    readers: Option<Arc<AtomicU64>>,
    /// The position of the transaction among all, by the counter.
    receipt: Receipt,
}

impl SqliteClient {
    pub(super) fn new(
        connection: Connection,
        place: Place,
        readers: Option<Arc<AtomicU64>>,
    ) -> SqliteClient {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        SqliteClient { connection, place, readers, receipt: Receipt::default() }
    }

    /// A transaction that has read cannot wait for the write lock: when it gets the lock, its snapshot
    /// may be too old. SQLite's own waiting makes the same difference.
    fn has_snapshot(&self) -> bool {
        let state = self.connection.transaction_state(None::<&str>);
        !matches!(state, Ok(TransactionState::None))
    }

    /// Runs a statement that was prepared before, mostly.
    fn cached(&self, sql: &str, values: &[i64]) -> Result<SqlResult, DbError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        self.rows(&mut statement, params_from_iter(values), false).map_err(classify)
    }

    fn rows(
        &self,
        statement: &mut Statement<'_>,
        values: impl Params,
        names: bool,
    ) -> rusqlite::Result<SqlResult> {
        let width = statement.column_count();
        let columns = match names {
            true => statement.column_names().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let row = |row: &Row<'_>| (0..width).map(|at| row.get_ref(at).map(value)).collect();
        let rows: Vec<_> = statement.query_map(values, row)?.collect::<rusqlite::Result<_>>()?;
        let changed = if width == 0 { self.connection.changes() } else { rows.len() as u64 };
        Ok(SqlResult { columns, rows, changed })
    }

    /// Counts a writer, or reads the count: a reader comes after that writer, and in no order
    /// with other readers.
    fn count(&mut self, access: Access) -> Result<(), DbError> {
        let Some(readers) = &self.readers else { return Ok(()) };
        let is_reader = access == Access::Read;
        let sql = match is_reader {
            true => "SELECT n FROM isolario_counter",
            false => "UPDATE isolario_counter SET n = n + 1 RETURNING n",
        };
        let physical = match self.cached(sql, &[])?.rows.first().map(Vec::as_slice) {
            Some([Value::Int(count)]) => *count as u64,
            other => return Err(DbError::fatal(format!("expected a count, found {other:?}"))),
        };
        self.receipt = match is_reader {
            true => {
                let logical = 1 + readers.fetch_add(1, Ordering::Relaxed);
                Receipt { snapshot: Some(Stamp { physical, logical }), commit: None }
            }
            false => Receipt::at(Stamp { physical, logical: 0 }),
        };
        Ok(())
    }
}

impl Client for SqliteClient {
    /// SQLite answers in any case, so nothing is ever in doubt. An error of a statement that somebody made up is no
    /// reason to end a run.
    fn run(&mut self, sql: &str, stage: Stage) -> Result<SqlResult, DbError> {
        let attempt = || {
            let mut statement = self.connection.prepare(sql).map_err(classify)?;
            self.rows(&mut statement, [], true).map_err(classify)
        };
        let answer = if self.has_snapshot() { attempt() } else { self.place.wait(attempt) };
        answer.map_err(|error| match (stage, error.class) {
            (Stage::Statement | Stage::Commit, ErrorClass::Fatal) => {
                error.with_class(ErrorClass::Aborted)
            }
            _ => error,
        })
    }

    fn ask(&mut self, sql: &str, values: &[i64], _: Stage) -> Result<SqlResult, DbError> {
        self.cached(sql, values)
    }

    fn number(&self) -> Option<u64> {
        Some(self.place.id)
    }

    fn begin(&mut self, access: Access) -> Result<bool, DbError> {
        match access {
            Access::Read => self.cached("BEGIN", &[])?,
            Access::Write | Access::Single => {
                self.place.wait(|| self.cached("BEGIN IMMEDIATE", &[]))?
            }
        };
        self.count(access)?;
        Ok(true)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.cached("COMMIT", &[])?;
        Ok(std::mem::take(&mut self.receipt))
    }

    /// Some errors have rolled the transaction back already: then there is none.
    fn rollback(&mut self) -> Result<(), DbError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.cached("ROLLBACK", &[]).map(drop)
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
