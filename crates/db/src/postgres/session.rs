//! The transactions of one session.

use std::collections::HashMap;

use futures_util::future::try_join;
use isolario_model::Value;
use isolario_workload::TableOp;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, SimpleQueryMessage, Statement};

use super::Line;
use super::shadow::Shadow;
use crate::certificate::changefeed::timestamp;
use crate::database::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use crate::error::DbError;
use crate::remote::Stage;
use crate::table::TableResult;
use crate::table::application::OwnTables;
use crate::table::sql::{self, Prepared, Reply, TableSql};

const READ: &str = "SELECT v FROM isolario_register WHERE k = $1";
const WRITE: &str = "UPDATE isolario_register SET v = $2 WHERE k = $1";
/// The first write of a register that has no row before the run.
const INSERT: &str = "INSERT INTO isolario_register VALUES ($1, $2) \
     ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE: &str = "UPDATE isolario_register SET v = NULL WHERE k = $1";
const COMPARE_AND_SET: &str =
    "UPDATE isolario_register SET v = $3 WHERE k = $1 AND v IS NOT DISTINCT FROM $2";
const READ_LIST: &str = "SELECT e FROM isolario_list WHERE k = $1";
const APPEND: &str = "INSERT INTO isolario_list AS l VALUES ($1, ARRAY[$2::BIGINT]) \
     ON CONFLICT (k) DO UPDATE SET e = l.e || $2::BIGINT";

/// What a session asks for beside the results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Nothing.
    None,
    /// The snapshot of each operation by predicate: at this level each has its own.
    Statements,
    /// The snapshot that a transaction begins with, and keeps.
    Transactions,
    /// From CockroachDB: when a transaction committed, if the answer is the moment of its rows.
    Commits {
        /// Whether it is. At read committed it need not be.
        are_told: bool,
    },
}

/// Commits, and tells when that was: within a transaction the first statement does both, and the second
/// one ends it (CockroachDB's release notes of 23.1).
const COMMIT_AND_TELL: &str = "SHOW COMMIT TIMESTAMP; COMMIT";

/// Takes the snapshot of a transaction, and tells it.
const SNAPSHOT: &str = "SELECT txid_current_snapshot()::text";

pub(super) struct Session {
    line: Line,
    read: Statement,
    write: Statement,
    insert: Statement,
    delete: Statement,
    compare_and_set: Statement,
    read_list: Statement,
    append: Statement,
    /// The statements on a table, prepared when they are first needed.
    prepared: HashMap<&'static str, Statement>,
    table: &'static TableSql,
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
    evidence: Evidence,
    /// Takes a snapshot, where transactions are asked for theirs.
    take_snapshot: Option<Statement>,
    /// Who looks at the snapshot of each transaction.
    shadow: Option<Shadow>,
    /// What the transaction began with.
    snapshot: Option<String>,
    /// Whether the server takes no writes.
    is_standby: bool,
    /// What a lost answer to a statement would mean.
    stage: Stage,
}

impl Session {
    pub(super) fn new(
        line: Line,
        is_standby: bool,
        evidence: Evidence,
        shadow: Option<Shadow>,
    ) -> Result<Session, DbError> {
        let prepare = |sql| line.ask(Stage::Connect, line.client.prepare(sql));
        Ok(Session {
            read: prepare(READ)?,
            write: prepare(WRITE)?,
            insert: prepare(INSERT)?,
            delete: prepare(DELETE)?,
            compare_and_set: prepare(COMPARE_AND_SET)?,
            read_list: prepare(READ_LIST)?,
            append: prepare(APPEND)?,
            prepared: HashMap::new(),
            table: match evidence {
                Evidence::None | Evidence::Commits { .. } => &sql::POSTGRES,
                Evidence::Transactions => &sql::POSTGRES_DELETES,
                Evidence::Statements => &sql::POSTGRES_STATEMENTS,
            },
            own_tables: None,
            evidence,
            take_snapshot: match evidence {
                Evidence::Transactions => Some(prepare(SNAPSHOT)?),
                _ => None,
            },
            shadow,
            snapshot: None,
            is_standby,
            stage: Stage::Statement,
            line,
        })
    }

    /// With the rows of an application in tables of their own.
    pub(super) fn with_tables(self, own_tables: Option<OwnTables>) -> Session {
        Session { own_tables, ..self }
    }

    /// Runs a statement; tells how many rows it changed.
    fn execute(
        &self,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, DbError> {
        self.line.ask(self.stage, self.line.client.execute(statement, values))
    }

    fn batch(&self, stage: Stage, statement: &str) -> Result<(), DbError> {
        self.line.batch(stage, statement)
    }
}

impl Connection for Session {
    fn is_read_only(&self) -> bool {
        self.is_standby
    }

    fn writes_by_predicate_alone(&self) -> bool {
        matches!(self.evidence, Evidence::Commits { .. })
    }

    fn id(&mut self) -> Result<Option<u64>, DbError> {
        let id: i64 = self.line.query("SELECT pg_backend_pid()::BIGINT")?;
        Ok(u64::try_from(id).ok())
    }

    /// A single operation is a statement outside of any transaction, which commits by itself; unless it
    /// has to be told when.
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        let access = match (access, self.evidence) {
            (Access::Single, Evidence::Commits { are_told: true }) => Access::Write,
            (access, _) => access,
        };
        self.stage = match access {
            Access::Single => Stage::Commit,
            Access::Read | Access::Write => Stage::Statement,
        };
        let begin = match access {
            Access::Single => return Ok(()),
            Access::Read => "BEGIN READ ONLY",
            Access::Write => "BEGIN",
        };
        let Some(snapshot) = &self.take_snapshot else {
            return self.batch(Stage::Statement, begin);
        };
        // Both are sent at once, and the answers come one after the other.
        let client = &self.line.client;
        let both = try_join(client.batch_execute(begin), client.query_one(snapshot, &[]));
        let ((), told) = self.line.ask(Stage::Statement, both)?;
        self.snapshot = told.get(0);
        Ok(())
    }

    fn snapshot(&mut self) -> Option<String> {
        self.snapshot.take()
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.read(self, key);
        }
        let key = key as i64;
        let row = self.line.ask(self.stage, self.line.client.query_opt(&self.read, &[&key]))?;
        Ok(row.and_then(|row| row.get(0)))
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.write(self, key, value);
        }
        let values: [&(dyn ToSql + Sync); 2] = [&(key as i64), &value];
        match self.execute(&self.write, &values)? {
            0 => self.execute(&self.insert, &values).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.execute(&self.delete, &[&(key as i64)]).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let key = key as i64;
        let row =
            self.line.ask(self.stage, self.line.client.query_opt(&self.read_list, &[&key]))?;
        if let Some(row) = row {
            *elements = row.get(0);
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.execute(&self.append, &[&(key as i64), &element]).map(|_| ())
    }

    /// What was there instead would be another question, and perhaps the answer of another moment.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        match self.execute(&self.compare_and_set, &[&(key as i64), &expected, &new])? {
            0 => Ok(ConditionalResult::Failed { seen: None }),
            _ => Ok(ConditionalResult::Applied),
        }
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        self.table.run(self, op, found)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        if let (Stage::Statement, Some(shadow)) = (self.stage, &mut self.shadow) {
            shadow.look(&self.line)?;
        }
        match (self.stage, self.evidence) {
            (Stage::Statement, Evidence::Commits { are_told: true }) => {
                let asked = self.line.client.simple_query(COMMIT_AND_TELL);
                let told = first_text(&self.line.ask(Stage::Commit, asked)?);
                let commit = told.as_deref().and_then(timestamp);
                Ok(Receipt { snapshot: None, commit })
            }
            (Stage::Statement, _) => {
                self.batch(Stage::Commit, "COMMIT")?;
                Ok(Receipt::default())
            }
            _ => Ok(Receipt::default()),
        }
    }

    fn shadow(&mut self) -> Option<Vec<(i64, i64)>> {
        self.shadow.as_mut()?.seen.take()
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        match self.stage {
            Stage::Statement => self.batch(Stage::Statement, "ROLLBACK"),
            _ => Ok(()),
        }
    }
}

impl Prepared for Session {
    fn ask(&mut self, sql: &'static str, values: &[i64]) -> Result<Reply, DbError> {
        let Session { line, prepared, stage, .. } = self;
        let statement = match prepared.get(sql) {
            Some(statement) => statement,
            None => {
                let statement = line.ask(*stage, line.client.prepare(sql))?;
                prepared.entry(sql).or_insert(statement)
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let rows = line.ask(*stage, line.client.query(statement, &values))?;
        Ok(Reply { rows: rows.iter().map(values_of).collect(), changed: 0 })
    }
}

/// The first value of the first row.
pub(super) fn first_text(answers: &[SimpleQueryMessage]) -> Option<String> {
    answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

/// The values of a row that holds nothing but numbers and texts.
fn values_of(row: &Row) -> Vec<Value> {
    let value = |at: usize| match *row.columns()[at].type_() {
        Type::TEXT => row.get::<_, Option<String>>(at).map(|text| Value::Text(text.into())),
        _ => row.get::<_, Option<i64>>(at).map(Value::Int),
    };
    (0..row.len()).map(|at| value(at).unwrap_or(Value::Nil)).collect()
}
