//! The transactions of one session.

use isolario_model::Value;
use isolario_workload::TableOp;
use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Params, Row};

use super::errors::classify;
use crate::certificate::binlog::place_of;
use crate::certificate::mvcc::last_transaction;
use crate::database::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use crate::error::DbError;
use crate::remote::{Stage, take_elements};
use crate::table::TableResult;
use crate::table::application::OwnTables;
use crate::table::sql::{self, Prepared, Reply};

const READ: &str = "SELECT v FROM isolario_register WHERE k = ?";
const WRITE: &str = "UPDATE isolario_register SET v = ? WHERE k = ?";
/// The first write of a register that has no row before the run.
const INSERT: &str =
    "INSERT INTO isolario_register VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)";
const COMPARE_AND_SET: &str = "UPDATE isolario_register SET v = ? WHERE k = ? AND v <=> ?";
const READ_LIST: &str = "SELECT e FROM isolario_list WHERE k = ?";
const APPEND: &str = "INSERT INTO isolario_list VALUES (?, ?) \
     ON DUPLICATE KEY UPDATE e = CONCAT(e, ',', VALUES(e))";

/// What a session asks for beside the results.
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

pub(super) struct Session {
    conn: Conn,
    evidence: Evidence,
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
    /// What the transaction began with.
    snapshot: Option<String>,
    /// What a lost answer to a statement would mean.
    stage: Stage,
}

impl Session {
    pub(super) fn new(conn: Conn, evidence: Evidence) -> Session {
        Session { conn, evidence, own_tables: None, snapshot: None, stage: Stage::Statement }
    }

    /// With the rows of an application in tables of their own.
    pub(super) fn with_tables(self, own_tables: Option<OwnTables>) -> Session {
        Session { own_tables, ..self }
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

    /// Runs a statement; tells how many rows it changed.
    fn execute(&mut self, sql: &str, values: impl Into<Params>) -> Result<u64, DbError> {
        let done = self.conn.exec_drop(sql, values);
        done.map_err(|error| classify(error, self.stage))?;
        Ok(self.conn.affected_rows())
    }

    /// The first row of an answer, all of which is read: an error may follow a row.
    fn first<T: FromRow>(&mut self, sql: &str, key: u64) -> Result<Option<T>, DbError> {
        let rows: Result<Vec<T>, _> = self.conn.exec(sql, (key,));
        Ok(rows.map_err(|error| classify(error, self.stage))?.into_iter().next())
    }

    fn send(&mut self, sql: &str, stage: Stage) -> Result<(), DbError> {
        self.conn.query_drop(sql).map_err(|error| classify(error, stage))
    }
}

impl Connection for Session {
    fn writes_by_predicate_alone(&self) -> bool {
        matches!(self.evidence, Evidence::Timestamps { .. })
    }

    fn id(&mut self) -> Result<Option<u64>, DbError> {
        Ok(Some(u64::from(self.conn.connection_id())))
    }

    /// A single operation is a statement outside of any transaction, which commits by itself; unless it
    /// has to be told when.
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        let access = match (access, self.evidence) {
            (Access::Single, Evidence::Timestamps { .. }) => Access::Write,
            (access, _) => access,
        };
        self.stage = match access {
            Access::Single => Stage::Commit,
            Access::Read | Access::Write => Stage::Statement,
        };
        match access {
            Access::Single => Ok(()),
            Access::Read | Access::Write if self.evidence == Evidence::Snapshots => {
                self.begin_with_snapshot(access)
            }
            Access::Read => self.send("START TRANSACTION READ ONLY", Stage::Statement),
            Access::Write => self.send("START TRANSACTION", Stage::Statement),
        }
    }

    fn snapshot(&mut self) -> Option<String> {
        self.snapshot.take()
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.read(self, key);
        }
        Ok(self.first::<RegisterValue>(READ, key)?.flatten())
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.write(self, key, value);
        }
        match self.execute(WRITE, (value, key))? {
            0 => self.execute(INSERT, (key, value)).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.execute(WRITE, (RegisterValue::None, key)).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        match self.first::<String>(READ_LIST, key)? {
            Some(text) => take_elements(key, &text, elements),
            None => Ok(()),
        }
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.execute(APPEND, (key, element.to_string())).map(|_| ())
    }

    /// What was there instead would be another question, and perhaps the answer of another moment.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        match self.execute(COMPARE_AND_SET, (new, key, expected))? {
            0 => Ok(ConditionalResult::Failed { seen: None }),
            _ => Ok(ConditionalResult::Applied),
        }
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        sql::MYSQL.run(self, op, found)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        if self.stage == Stage::Statement {
            self.send("COMMIT", Stage::Commit)?;
            if let Evidence::Timestamps { of_starts } = self.evidence {
                return Ok(self.receipt(of_starts));
            }
        }
        Ok(Receipt::default())
    }

    /// Also after a lock time-out, which undoes one statement and leaves the transaction open.
    fn rollback(&mut self) -> Result<(), DbError> {
        match self.stage {
            Stage::Statement => self.send("ROLLBACK", Stage::Statement),
            _ => Ok(()),
        }
    }
}

impl Prepared for Session {
    fn ask(&mut self, sql: &'static str, values: &[i64]) -> Result<Reply, DbError> {
        let values = Params::Positional(values.iter().map(|value| (*value).into()).collect());
        let rows: Result<Vec<Row>, _> = self.conn.exec(sql, values);
        let rows = rows.map_err(|error| classify(error, self.stage))?;
        let rows = rows.into_iter().map(|row| row.unwrap().into_iter().map(value).collect());
        Ok(Reply { rows: rows.collect(), changed: self.conn.affected_rows() })
    }
}

fn value(value: mysql::Value) -> Value {
    match value {
        mysql::Value::NULL => Value::Nil,
        mysql::Value::Int(number) => Value::Int(number),
        mysql::Value::UInt(number) => Value::Uint(number),
        other => Value::Other(other.as_sql(true).into()),
    }
}
