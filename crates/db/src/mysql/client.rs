//! A connection, and values as the server prints or sends them.

use isolario_model::Value;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn, Params, Row};

use super::binlog::place_of;
use super::errors::classify;
use super::mvcc::last_transaction;
use crate::database::{Access, Receipt, SqlResult};
use crate::error::DbError;
use crate::remote::Stage;
use crate::sql::{Client, decimal, hexadecimal};

/// What a session asks for besides the results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Nothing.
    None,
    /// From MariaDB: where in the log a transaction's snapshot is.
    Snapshots,
    /// From TiDB: when a transaction committed, and when it started, if its reads are of that moment.
    Timestamps {
        /// Whether they are.
        of_starts: bool,
    },
}

pub(super) struct MyClient {
    conn: Conn,
    evidence: Evidence,
    /// What the transaction began with.
    snapshot: Option<String>,
}

impl MyClient {
    pub(super) fn new(conn: Conn) -> MyClient {
        MyClient { conn, evidence: Evidence::None, snapshot: None }
    }

    pub(super) fn with(self, evidence: Evidence) -> MyClient {
        MyClient { evidence, ..self }
    }

    /// Runs statements that belong to no transaction of the workload.
    pub(super) fn batch(&mut self, statements: &[impl AsRef<str>]) -> Result<(), DbError> {
        let mut statements = statements.iter();
        statements.try_for_each(|statement| self.send(statement.as_ref(), Stage::Connect))
    }

    fn send(&mut self, sql: &str, stage: Stage) -> Result<(), DbError> {
        self.conn.query_drop(sql).map_err(|error| classify(error, stage))
    }

    /// The last value of an answer, as text; empty where there is none.
    pub(super) fn last(&mut self, question: &str) -> Result<String, DbError> {
        let row = self.run(question, Stage::Connect)?.rows.pop();
        Ok(match row.and_then(|mut row| row.pop()) {
            Some(Value::Text(text)) => text.into(),
            Some(value) => value.to_string(),
            None => String::new(),
        })
    }

    /// Begins with a snapshot, and learns its place in the log. Both are sent at once.
    fn begin_with_snapshot(&mut self, access: Access) -> Result<(), DbError> {
        let mode = if access == Access::Read { ", READ ONLY" } else { "" };
        let both = format!(
            "START TRANSACTION WITH CONSISTENT SNAPSHOT{mode}; SHOW STATUS LIKE 'binlog_snapshot_%'"
        );
        let failed = |error| classify(error, Stage::Statement);
        let (mut file, mut position) = (None, None);
        let mut answers = self.conn.query_iter(both).map_err(failed)?;
        while let Some(rows) = answers.iter() {
            for row in rows {
                let row: (String, String) = mysql::from_row(row.map_err(failed)?);
                match row.0.to_ascii_lowercase().as_str() {
                    "binlog_snapshot_file" => file = Some(row.1),
                    "binlog_snapshot_position" => position = row.1.parse().ok(),
                    _ => {}
                }
            }
        }
        let place = file.zip(position).and_then(|(file, position)| place_of(&file, position));
        self.snapshot = place.map(|place| place.to_string());
        Ok(())
    }

    /// What TiDB says of the transaction that has just committed. That it did is certain by now, whatever
    /// becomes of the question.
    fn receipt(&mut self, of_starts: bool) -> Receipt {
        let told: Option<String> =
            self.conn.query_first("SELECT @@tidb_last_txn_info").unwrap_or_default();
        match told.as_deref().and_then(last_transaction) {
            Some((start, commit)) => Receipt { snapshot: of_starts.then_some(start), commit },
            None => Receipt::default(),
        }
    }
}

impl Client for MyClient {
    fn run(&mut self, sql: &str, stage: Stage) -> Result<SqlResult, DbError> {
        let failed = |error| classify(error, stage);
        let mut result = self.conn.query_iter(sql).map_err(failed)?;
        let columns: Vec<Column> = result.columns().as_ref().to_vec();
        let names = columns.iter().map(|column| column.name_str().into_owned()).collect();
        let mut answer = SqlResult { columns: names, ..SqlResult::default() };
        if let Some(rows) = result.iter() {
            for row in rows {
                answer.rows.push(values(row.map_err(failed)?));
            }
        }
        drop(result);
        answer.changed = match columns.is_empty() {
            true => self.conn.affected_rows(),
            false => answer.rows.len() as u64,
        };
        Ok(answer)
    }

    /// All of an answer is read: an error may follow a row.
    fn ask(&mut self, sql: &str, values: &[i64], stage: Stage) -> Result<SqlResult, DbError> {
        let parameters = Params::Positional(values.iter().map(|value| (*value).into()).collect());
        let rows: Result<Vec<Row>, _> = self.conn.exec(sql, parameters);
        let rows = rows.map_err(|error| classify(error, stage))?;
        let rows = rows.into_iter().map(self::values).collect();
        Ok(SqlResult { rows, changed: self.conn.affected_rows(), ..SqlResult::default() })
    }

    fn number(&self) -> Option<u64> {
        Some(u64::from(self.conn.connection_id()))
    }

    /// A single operation is a statement outside of any transaction, unless it has to be told when it committed.
    fn begin(&mut self, access: Access) -> Result<bool, DbError> {
        let is_told = matches!(self.evidence, Evidence::Timestamps { .. });
        match access {
            Access::Single if !is_told => return Ok(false),
            _ if self.evidence == Evidence::Snapshots => self.begin_with_snapshot(access)?,
            Access::Read => self.send("START TRANSACTION READ ONLY", Stage::Statement)?,
            _ => self.send("START TRANSACTION", Stage::Statement)?,
        }
        Ok(true)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.send("COMMIT", Stage::Commit)?;
        match self.evidence {
            Evidence::Timestamps { of_starts } => Ok(self.receipt(of_starts)),
            _ => Ok(Receipt::default()),
        }
    }

    /// Also after a lock time-out, which undoes one statement and leaves the transaction open.
    fn rollback(&mut self) -> Result<(), DbError> {
        self.send("ROLLBACK", Stage::Statement)
    }

    fn writes_by_predicate_alone(&self) -> bool {
        matches!(self.evidence, Evidence::Timestamps { .. })
    }

    fn snapshot(&mut self) -> Option<String> {
        self.snapshot.take()
    }
}

fn values(row: Row) -> Vec<Value> {
    let columns = row.columns();
    columns.iter().zip(row.unwrap()).map(|(column, sent)| value(column, sent)).collect()
}

/// What was sent for a column: numbers in answers to prepared statements, otherwise text.
fn value(column: &Column, sent: mysql::Value) -> Value {
    let bytes = match sent {
        mysql::Value::Bytes(bytes) => bytes,
        mysql::Value::Int(number) => return number.into(),
        mysql::Value::UInt(number) => return number.into(),
        _ => return Value::Nil,
    };
    let Ok(text) = std::str::from_utf8(&bytes) else { return hexadecimal(&bytes) };
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_LONGLONG
        | ColumnType::MYSQL_TYPE_YEAR => whole(text),
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => decimal(text),
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB => Value::Text(text.into()),
        _ => Value::Other(text.into()),
    }
}

fn whole(text: &str) -> Value {
    let small = text.parse::<i64>().map(Value::from);
    small.or_else(|_| text.parse::<u64>().map(Value::from)).unwrap_or(Value::Other(text.into()))
}
