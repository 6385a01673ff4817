//! Servers that speak PostgreSQL's protocol and are not PostgreSQL: H2, CrateDB, Materialize and so on.
//!
//! What is sent keeps to the SQL standard: no catalogue but `information_schema`, no functions, no
//! arrays, no `ON CONFLICT`, no `RETURNING`. Statements go as text with their numbers in them, and
//! answers come as text: neither the types of parameters nor those of columns have to be known to
//! anybody.

use std::collections::BTreeSet;
use std::sync::Mutex;

use isolario_workload::Kind;
use tokio_postgres::SimpleQueryMessage;

use super::line::{Line, Server};
use super::session::first_text;
use super::{DIALECT, PLAIN};
use crate::certificate::Capture;
use crate::database::{
    Access, ConditionalResult, Connection, Database, Layout, Receipt, RegisterValue,
};
use crate::error::{DbError, ErrorClass};
use crate::remote::{Stage, not_ours, take_elements};
use crate::sql::SqlConnection;

/// Their name in the table of claims, in which they have none: nobody knows who they are.
const NAME: &str = "postgres-wire";

/// The server's own level, whatever it is: for servers that do not let it be set.
const SERVER_DEFAULT: &str = "server-default";

/// Those of the standard and, between them, that of H2 and others.
pub(super) const ISOLATIONS: &[&str] = &[
    SERVER_DEFAULT,
    "read-uncommitted",
    "read-committed",
    "repeatable-read",
    "snapshot",
    "serializable",
];

/// Our tables. Lists are texts.
const TABLES: [(&str, &str); 2] =
    [("isolario_register", "v BIGINT"), ("isolario_list", "e VARCHAR NOT NULL")];

/// The column by which we know our own tables again: not every server keeps comments.
const MARK: &str = "made_by_isolario";

/// How many registers are created at a time.
const AT_ONCE: u32 = 500;

pub(super) struct Plain {
    server: Server,
    /// What the server refused and the run does without, in words.
    skipped: Mutex<BTreeSet<String>>,
}

impl Plain {
    pub(super) fn new(server: Server) -> Plain {
        Plain { server, skipped: Mutex::default() }
    }

    /// Goes on without something that a server need not have. A line that broke is another matter.
    fn do_without(&self, error: DbError, what: &str, instead: &str) -> Result<(), DbError> {
        if error.code.is_none() || error.disconnected {
            return Err(error);
        }
        let why = error.message.lines().next().unwrap_or_default();
        if let Ok(mut skipped) = self.skipped.lock() {
            skipped.insert(format!("{what} is skipped: {instead} (the server says: {why})"));
        }
        Ok(())
    }

    /// A connection at the isolation level that was asked for, with a time-out if the server has one.
    fn set_up(&self) -> Result<Line, DbError> {
        let line = self.server.line()?;
        let site = &self.server.site;
        if site.isolation != SERVER_DEFAULT {
            let level = site.isolation.replace('-', " ");
            let set = format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}");
            line.batch(Stage::Connect, &set).map_err(|error| DbError {
                message: format!(
                    "{} cannot be set to {level}: {}. With --isolation {SERVER_DEFAULT}, the level \
                     is left as it is",
                    site.place, error.message
                ),
                ..error
            })?;
        }
        let timeout = format!("SET statement_timeout = {}", site.patience.as_millis());
        if let Err(error) = line.batch(Stage::Connect, &timeout) {
            let instead = "a statement that takes too long costs its connection";
            self.do_without(error, "statement_timeout", instead)?;
        }
        Ok(line)
    }

    /// The statements that remove the tables which an earlier run left.
    fn removals(&self, line: &Line) -> Result<Vec<String>, DbError> {
        let names = TABLES.map(|(name, _)| format!("'{name}'")).join(", ");
        let columns = ask(
            line,
            Stage::Connect,
            &format!(
                "SELECT table_name, column_name FROM information_schema.columns \
                 WHERE LOWER(table_name) IN ({names})"
            ),
        )?;
        let mut statements = Vec::new();
        for (name, _) in TABLES {
            let of_table = || {
                columns.iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).zip(row.get(1)),
                    _ => None,
                })
            };
            let is_there = of_table().any(|(table, _)| table.eq_ignore_ascii_case(name));
            let is_ours = of_table().any(|(table, column)| {
                table.eq_ignore_ascii_case(name) && column.eq_ignore_ascii_case(MARK)
            });
            match (is_there, is_ours) {
                (false, _) => {}
                (true, true) => statements.push(format!("DROP TABLE {name}")),
                (true, false) => {
                    return Err(not_ours(&format!("a table {name}"), &self.server.site.place));
                }
            }
        }
        Ok(statements)
    }
}

/// Why something is refused, and what to do about it.
fn not_in_plain(what: &str) -> DbError {
    DbError::fatal(format!(
        "{what} with {DIALECT}={PLAIN}: leave the parameter out, if the server is PostgreSQL"
    ))
}

impl Database for Plain {
    fn name(&self) -> &str {
        NAME
    }

    /// What the server says of itself, in its own words, without the machine that it runs on.
    fn version(&self) -> Result<String, DbError> {
        let line = self.server.line()?;
        let told = match ask(&line, Stage::Connect, "SELECT version()") {
            Ok(answer) => first_text(&answer),
            Err(error) => {
                let instead = "the version is the one that the server greets with";
                self.do_without(error, "version()", instead)?;
                None
            }
        };
        let greeting = line.greeting.as_deref().unwrap_or("of an unknown version");
        let told =
            told.unwrap_or_else(|| format!("a server with PostgreSQL's protocol, {greeting}"));
        Ok(told.split(" on ").next().unwrap_or(&told).to_owned())
    }

    fn isolation(&self) -> &str {
        self.server.site.isolation
    }

    fn supports(&self, kind: Kind) -> bool {
        Kind::KEYED.contains(&kind)
    }

    fn takes_new_keys(&self) -> bool {
        true
    }

    /// Statement by statement: not every server changes its schema inside of transactions.
    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let line = self.set_up()?;
        let mut statements = self.removals(&line)?;
        for (name, column) in TABLES {
            let columns = format!("k BIGINT PRIMARY KEY, {column}, {MARK} BIGINT");
            statements.push(format!("CREATE TABLE {name} ({columns})"));
        }
        for first in (0..layout.keys).step_by(AT_ONCE as usize) {
            let last = layout.keys.min(first.saturating_add(AT_ONCE));
            let rows: Vec<String> = (first..last).map(|key| format!("({key}, NULL)")).collect();
            let rows = rows.join(", ");
            statements.push(format!("INSERT INTO isolario_register (k, v) VALUES {rows}"));
        }
        statements.iter().try_for_each(|statement| line.batch(Stage::Connect, statement))
    }

    fn clear(&self) -> Result<(), DbError> {
        let line = self.server.line()?;
        let statements = self.removals(&line)?;
        statements.iter().try_for_each(|statement| line.batch(Stage::Connect, statement))
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        Err(not_in_plain("this database has no log from which the order of versions can be read"))
    }

    fn remarks(&self) -> Vec<String> {
        let ours = format!(
            "plain SQL ({DIALECT}={PLAIN}): PostgreSQL's functions, settings and view of locks are not \
             used, and lists are texts"
        );
        let skipped = self.skipped.lock().map(|skipped| skipped.clone()).unwrap_or_default();
        std::iter::once(ours).chain(skipped).collect()
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Session { line: self.set_up()?, stage: Stage::Statement }))
    }

    /// Its answers could be anything: which types there are, and how they look, is not known.
    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Err(not_in_plain("statements in SQL cannot be sent"))
    }
}

fn ask(line: &Line, stage: Stage, sql: &str) -> Result<Vec<SimpleQueryMessage>, DbError> {
    let answer = line.ask(stage, line.client.simple_query(sql));
    answer.map_err(|error| if stage == Stage::Commit { in_doubt(error) } else { error })
}

/// What an error in reply to a commit means. That nothing is committed after any error is
/// PostgreSQL's own rule; of others, conflicts, violated constraints and statements that are not
/// understood are believed.
fn in_doubt(error: DbError) -> DbError {
    match error.code.as_deref().and_then(|code| code.get(..2)) {
        Some("23" | "40" | "42") => error,
        _ => error.with_class(ErrorClass::Unknown),
    }
}

struct Session {
    line: Line,
    /// What a lost answer to a statement would mean.
    stage: Stage,
}

impl Session {
    /// The first value of the first row.
    fn first(&self, sql: &str) -> Result<Option<String>, DbError> {
        Ok(first_text(&ask(&self.line, self.stage, sql)?))
    }

    /// Runs a statement; tells how many rows it changed.
    fn execute(&self, sql: &str) -> Result<u64, DbError> {
        let answer = ask(&self.line, self.stage, sql)?;
        let changed = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(count) => Some(*count),
            _ => None,
        });
        Ok(changed.unwrap_or_default())
    }

    /// Changes a row, or inserts it if there is none. Another transaction may have inserted it in
    /// between, and then there is a row to change at the next attempt. An update that changed nothing
    /// has nothing to commit, so that this may be a single operation, too.
    fn update_or_insert(&self, update: &str, insert: &str) -> Result<(), DbError> {
        if self.execute(update)? > 0 {
            return Ok(());
        }
        match self.execute(insert) {
            Ok(_) => Ok(()),
            Err(error) if error.code.as_deref().is_some_and(|code| code.starts_with("23")) => {
                Err(error.with_class(ErrorClass::Retryable))
            }
            Err(error) => Err(error),
        }
    }
}

impl Connection for Session {
    /// A single operation is a statement outside of any transaction, which commits by itself. Those
    /// that only read begin as the others do: `READ ONLY` is not known everywhere.
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.stage = match access {
            Access::Single => Stage::Commit,
            Access::Read | Access::Write => Stage::Statement,
        };
        match access {
            Access::Single => Ok(()),
            Access::Read | Access::Write => self.line.batch(Stage::Statement, "BEGIN"),
        }
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let found = self.first(&format!("SELECT v FROM isolario_register WHERE k = {key}"))?;
        let number = found.map(|text| {
            text.parse().map_err(|_| {
                DbError::fatal(format!(
                    "register {key} has {text:?}, which no client of this run wrote"
                ))
            })
        });
        number.transpose()
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.update_or_insert(
            &format!("UPDATE isolario_register SET v = {value} WHERE k = {key}"),
            &format!("INSERT INTO isolario_register (k, v) VALUES ({key}, {value})"),
        )
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        let sql = format!("UPDATE isolario_register SET v = NULL WHERE k = {key}");
        self.execute(&sql).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        match self.first(&format!("SELECT e FROM isolario_list WHERE k = {key}"))? {
            Some(text) => take_elements(key, &text, elements),
            None => Ok(()),
        }
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.update_or_insert(
            &format!("UPDATE isolario_list SET e = e || ',{element}' WHERE k = {key}"),
            &format!("INSERT INTO isolario_list (k, e) VALUES ({key}, '{element}')"),
        )
    }

    /// What was there instead would be another question, and perhaps the answer of another moment.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        let is_expected = match expected {
            Some(value) => format!("v = {value}"),
            None => "v IS NULL".to_owned(),
        };
        let sql =
            format!("UPDATE isolario_register SET v = {new} WHERE k = {key} AND {is_expected}");
        match self.execute(&sql)? {
            0 => Ok(ConditionalResult::Failed { seen: None }),
            _ => Ok(ConditionalResult::Applied),
        }
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        if self.stage == Stage::Statement {
            ask(&self.line, Stage::Commit, "COMMIT")?;
        }
        Ok(Receipt::default())
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        match self.stage {
            Stage::Statement => self.line.batch(Stage::Statement, "ROLLBACK"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_errors_say_that_a_commit_did_not_happen() {
        for (code, expected) in [
            (Some("40001"), ErrorClass::Aborted),
            (Some("23505"), ErrorClass::Aborted),
            (Some("42000"), ErrorClass::Aborted),
            (Some("90131"), ErrorClass::Unknown),
            (Some("HYT00"), ErrorClass::Unknown),
            (None, ErrorClass::Unknown),
        ] {
            let error = DbError { code: code.map(str::to_owned), ..DbError::aborted("") };
            assert_eq!(in_doubt(error).class, expected, "{code:?}");
        }
    }
}
