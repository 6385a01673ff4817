//! What a product that speaks SQL has of its own, and what follows for its tables and for the mark of a run.

use std::ops::Range;

use isolario_model::Value;
use isolario_workload::Schema;

use super::application::{definitions, rows};
use super::statements::INDEXES;
use crate::database::{Access, Layout, Receipt, SqlConnection, SqlResult};
use crate::error::DbError;
use crate::hold::MarkStore;
use crate::remote::{OURS, Stage};

/// A product that speaks SQL.
pub(crate) trait SqlProduct {
    /// Its connections.
    type Client: Client;

    /// The tables of every run: names and columns.
    const TABLES: &'static [(&'static str, &'static str)];

    /// Asks for what shows to whom the table belongs whose name takes the place of `{}`. Without such a table,
    /// no row comes back.
    const OWNER: &'static str;

    /// A connection for tables and the mark of the run, at the isolation level that the server has.
    fn client(&self) -> Result<Self::Client, DbError>;

    /// The application whose rows have tables of their own.
    fn schema(&self) -> Option<Schema> {
        None
    }

    /// The statements that make a table which can be recognised.
    fn create(&self, name: &str, columns: &str) -> Vec<String>;

    /// Whether the answer for the owner shows that a table is ours, which the first of the statements made.
    fn is_ours(&self, owner: &str, create: &[String]) -> bool {
        let _ = create;
        owner == OURS
    }

    /// The error for a table of others under a name of ours.
    fn not_ours(&self, table: &str) -> DbError;

    /// Whether changes of tables can be parts of a transaction.
    fn is_transactional(&self) -> bool {
        false
    }

    /// The statements that fill the tables of every run: each register has its row from the beginning, with
    /// nothing in it.
    fn fill(&self, registers: Range<u32>) -> Vec<String> {
        let at_once = |first: u32| {
            let keys = first..registers.end.min(first.saturating_add(ROWS_AT_ONCE));
            let rows: Vec<_> = keys.map(|key| format!("({key}, NULL)")).collect();
            format!("INSERT INTO isolario_register (k, v) VALUES {}", rows.join(", "))
        };
        registers.clone().step_by(ROWS_AT_ONCE as usize).map(at_once).collect()
    }
}

/// How many registers are created at a time.
const ROWS_AT_ONCE: u32 = 500;

/// A connection to a product that speaks SQL.
pub(crate) trait Client: Send {
    /// Runs a statement as it is written.
    fn run(&mut self, sql: &str, stage: Stage) -> Result<SqlResult, DbError>;

    /// Runs a prepared statement.
    fn ask(&mut self, sql: &str, values: &[i64], stage: Stage) -> Result<SqlResult, DbError>;

    /// The server's own number of this connection.
    fn number(&self) -> Option<u64>;

    /// Begins a transaction, and returns whether there is one now: a single operation may be a statement outside of
    /// any, which commits by itself.
    fn begin(&mut self, access: Access) -> Result<bool, DbError>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<Receipt, DbError>;

    /// Gives the transaction up.
    fn rollback(&mut self) -> Result<(), DbError> {
        self.run("ROLLBACK", Stage::Statement).map(drop)
    }

    /// See [`Connection::is_read_only`](crate::Connection::is_read_only).
    fn is_read_only(&self) -> bool {
        false
    }

    /// See [`Connection::writes_by_predicate_alone`](crate::Connection::writes_by_predicate_alone).
    fn writes_by_predicate_alone(&self) -> bool {
        false
    }

    /// See [`Connection::snapshot`](crate::Connection::snapshot).
    fn snapshot(&mut self) -> Option<String> {
        None
    }

    /// See [`Connection::shadow`](crate::Connection::shadow).
    fn shadow(&mut self) -> Option<Vec<(i64, i64)>> {
        None
    }
}

impl<C: Client> SqlConnection for C {
    fn statement(&mut self, sql: &str, ends: bool) -> Result<SqlResult, DbError> {
        self.run(sql, if ends { Stage::Commit } else { Stage::Statement })
    }

    fn id(&self) -> Option<u64> {
        self.number()
    }
}

/// Replaces the tables that an earlier run left by empty ones; without a layout, removes them.
pub(crate) fn make_tables<P: SqlProduct>(
    product: &P,
    layout: Option<&Layout>,
) -> Result<(), DbError> {
    let mut client = product.client()?;
    let mut run = |statement: &str| client.run(statement, Stage::Connect);
    if product.is_transactional() {
        run("BEGIN")?;
    }
    let always = P::TABLES.iter().map(|(name, columns)| (name.to_string(), columns.to_string()));
    let mut made = Vec::new();
    for (name, columns) in always.chain(product.schema().into_iter().flat_map(definitions)) {
        let create = product.create(&name, &columns);
        let owner = run(&P::OWNER.replace("{}", &name))?.rows;
        let is_ours = |value: &Value| match value {
            Value::Text(owner) => product.is_ours(owner, &create),
            _ => false,
        };
        if owner.iter().flatten().any(is_ours) {
            run(&format!("DROP TABLE {name}"))?;
        } else if !owner.is_empty() {
            return Err(product.not_ours(&name));
        }
        made.extend(create);
    }
    if let Some(layout) = layout {
        let first = product.schema().map_or(0, Schema::rows) as u32;
        made.extend(product.fill(first..layout.keys));
        if P::TABLES.iter().any(|(name, _)| *name == crate::table::TABLE) {
            made.extend(INDEXES.map(str::to_owned));
        }
        let rows = product.schema().into_iter().flat_map(rows);
        made.into_iter().chain(rows).try_for_each(|statement| run(&statement).map(drop))?;
    }
    if product.is_transactional() {
        run("COMMIT")?;
    }
    Ok(())
}

const MARK_TABLE: &str = "isolario_run";
const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS isolario_run (k INTEGER PRIMARY KEY, mark VARCHAR(250) NOT NULL)";

/// The mark of a run, in a table of its own.
impl<P: SqlProduct> MarkStore for P {
    fn read_mark(&self) -> Result<Option<String>, DbError> {
        read_mark(&mut self.client()?)
    }

    /// Marks have no quotes in them.
    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        let mut client = self.client()?;
        let mut change = |sql: &str| client.run(sql, Stage::Commit).map(drop);
        let changed = match (old, new) {
            (None, None) => Ok(()),
            // Of two that create the table, one may be refused.
            (None, Some(new)) => {
                let created = change(CREATE);
                let inserted = change(&format!("INSERT INTO {MARK_TABLE} VALUES (1, '{new}')"));
                if inserted.as_ref().is_err_and(is_absent_table) { created } else { inserted }
            }
            (Some(old), Some(new)) => {
                change(&format!("UPDATE {MARK_TABLE} SET mark = '{new}' WHERE mark = '{old}'"))
            }
            (Some(old), None) => {
                // The mark goes with its table in one step. No other run replaces it while it is renewed.
                if read_mark(&mut client)?.as_deref() != Some(old) {
                    return Ok(false);
                }
                let dropped = client.run(&format!("DROP TABLE {MARK_TABLE}"), Stage::Commit);
                return dropped.map(|_| true);
            }
        };
        if let Err(error) = &changed
            && (error.disconnected || error.code.is_none())
        {
            return changed.map(|()| false);
        }
        // An insert next to another mark is refused, and so is an update where no table is.
        match (read_mark(&mut client)?, changed) {
            (Some(found), _) => Ok(Some(found.as_str()) == new),
            (None, Err(error)) if !is_absent_table(&error) => Err(error),
            (None, _) => Ok(false),
        }
    }
}

/// The mark; none where there is no table.
fn read_mark(client: &mut impl Client) -> Result<Option<String>, DbError> {
    match client.run("SELECT mark FROM isolario_run", Stage::Commit) {
        Ok(answer) => Ok(answer.first_text()),
        Err(error) if is_absent_table(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error says that there is no table.
fn is_absent_table(error: &DbError) -> bool {
    let is_absent = ["exist", "no such table"].iter().any(|words| error.message.contains(words));
    error.code.is_some() && !error.disconnected && error.message.contains(MARK_TABLE) && is_absent
}
