//! Servers that speak PostgreSQL's protocol and are not PostgreSQL: H2, CrateDB, Materialize and so on.
//!
//! What is sent keeps to the SQL standard: no catalogue but `information_schema`, no functions, no
//! arrays, no `ON CONFLICT`, no `RETURNING`. Statements go as text with their numbers in them, and
//! answers come as text: neither the types of parameters nor those of columns have to be known to
//! anybody.

use std::collections::BTreeSet;
use std::sync::Mutex;

use isolario_workload::Kind;

use super::server::{Line, Server};
use super::{DIALECT, PLAIN};
use crate::certificate::Capture;
use crate::database::{
    Access, Connection, Database, Layout, Receipt, SqlDatabase, SqlResult, Traits,
};
use crate::error::{DbError, ErrorClass};
use crate::remote::Stage;
use crate::site::not_ours;
use crate::sql::{Client, Session, SqlProduct, Statements, Style, make_tables};

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

const STYLE: Style = Style {
    parameter: |number| format!("{{{number}}}"),
    insert: "INSERT INTO isolario_register (k, v) VALUES ({1}, {2})",
    append: &[
        "UPDATE isolario_list SET e = e || ',{2}' WHERE k = {1}",
        "INSERT INTO isolario_list (k, e) VALUES ({1}, '{2}')",
    ],
    ..super::STYLE
};

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
}

impl SqlProduct for Plain {
    type Client = PlainClient;

    /// Lists are texts. By the last column we recognise our own tables: not every server keeps comments.
    const TABLES: &'static [(&'static str, &'static str)] = &[
        ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT, made_by_isolario BIGINT)"),
        ("isolario_list", "(k BIGINT PRIMARY KEY, e VARCHAR NOT NULL, made_by_isolario BIGINT)"),
    ];

    const OWNER: &'static str =
        "SELECT column_name FROM information_schema.columns WHERE LOWER(table_name) = '{}'";

    /// At the isolation level that was asked for, with a time-out if the server has one.
    fn client(&self) -> Result<PlainClient, DbError> {
        Ok(PlainClient(self.set_up()?))
    }

    fn create(&self, name: &str, columns: &str) -> Vec<String> {
        vec![format!("CREATE TABLE {name} {columns}")]
    }

    fn is_ours(&self, owner: &str, _: &[String]) -> bool {
        owner.eq_ignore_ascii_case("made_by_isolario")
    }

    fn not_ours(&self, table: &str) -> DbError {
        not_ours(&format!("a table {table}"), &self.server.site.place)
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
        let told = match line.simple(Stage::Connect, "SELECT version()") {
            Ok(answer) => answer.first_text(),
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

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        make_tables(self, Some(layout))
    }

    fn clear(&self) -> Result<(), DbError> {
        make_tables(self, None)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Session::new(self.client()?, Statements::new(&STYLE, None))))
    }

    fn traits(&self) -> Traits<'_> {
        let isolation = self.server.site.isolation;
        Traits { isolation, workloads: &Kind::KEYED, new_keys: true, ..Traits::default() }
    }

    /// Its answers could be anything: which types there are, and how they look, is not known.
    fn sql(&self) -> Result<&dyn SqlDatabase, DbError> {
        Err(not_in_plain("statements in SQL cannot be sent"))
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

pub(super) struct PlainClient(Line);

impl Client for PlainClient {
    fn run(&mut self, sql: &str, stage: Stage) -> Result<SqlResult, DbError> {
        let answer = self.0.simple(stage, sql);
        answer.map_err(|error| if stage == Stage::Commit { in_doubt(error) } else { error })
    }

    /// A constraint is violated where another transaction has inserted the row since the update did not find it: at the
    /// next attempt there is a row to change. An update that changed nothing has nothing to commit, so that this may
    /// be a single operation, too.
    fn ask(&mut self, sql: &str, values: &[i64], stage: Stage) -> Result<SqlResult, DbError> {
        let sql = values.iter().zip(1..).fold(sql.to_owned(), |sql, (value, number)| {
            sql.replace(&format!("{{{number}}}"), &value.to_string())
        });
        self.run(&sql, stage).map_err(|error| match &error.code {
            Some(code) if code.starts_with("23") => error.with_class(ErrorClass::Retryable),
            _ => error,
        })
    }

    fn number(&self) -> Option<u64> {
        None
    }

    /// A single operation is a statement outside of any transaction, which commits by itself. Those
    /// that only read begin as the others do: `READ ONLY` is not known everywhere.
    fn begin(&mut self, access: Access) -> Result<bool, DbError> {
        if access == Access::Single {
            return Ok(false);
        }
        self.0.batch(Stage::Statement, "BEGIN").map(|()| true)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.run("COMMIT", Stage::Commit).map(|_| Receipt::default())
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
