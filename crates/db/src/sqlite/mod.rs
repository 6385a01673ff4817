//! SQLite, compiled in: write-ahead log, no waiting for the disk.
//!
//! The shortest adapter of a database that speaks SQL, and the example of the book's guide to adding one.

mod claims;
mod client;
pub mod matches;
mod waiting;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use isolario_model::Level;
use isolario_predicate::Dialect;
use isolario_workload::{Kind, Schema};
use rusqlite::ErrorCode;

use crate::database::{Connection, Database, Layout, LockView, SqlConnection, SqlDatabase, Traits};
use crate::error::DbError;
use crate::hold::Marking;
use crate::registry::{Driver, Service, Settings};
use crate::sql::{Reported, Session, SqlProduct, Statements, Style, make_tables};
use crate::table::TABLE;
use crate::temporary::Temporary;
use crate::url::DbUrl;
use client::SqliteClient;
use waiting::{Queue, View};

const ISOLATIONS: &[&str] = &["serializable"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["sqlite"],
    form: "sqlite:[PATH]",
    about: "SQLite, embedded; without a path, in a temporary file",
    isolations: ISOLATIONS,
    claims: claims::CLAIMS,
    service: Service::Embedded,
    open,
};

/// A list has a row per element. What a transaction reads, nobody changes before it writes: the write lock is held
/// from the beginning.
pub(crate) const STYLE: Style = Style {
    parameter: |number| format!("?{number}"),
    positional: false,
    returning: true,
    integer: "BIGINT",
    reported: Reported::Nothing,
    insert: "INSERT INTO isolario_register VALUES ({1}, {2}) \
         ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    delete: "DELETE FROM isolario_register WHERE k = {1}",
    compares: false,
    read_list: "SELECT e FROM isolario_list WHERE k = {1} ORDER BY n",
    append: &["INSERT INTO isolario_list \
         SELECT {1}, ifnull(max(n), 0) + 1, {2} FROM isolario_list WHERE k = {1}"],
};

struct Sqlite {
    path: PathBuf,
    isolation: &'static str,
    patience: Duration,
    queue: Arc<Queue>,
    /// Whether commits are to be counted.
    evidence: bool,
    /// Whether they are to survive whatever happens.
    durable: bool,
    /// How many readers there have been.
    readers: Arc<AtomicU64>,
    /// The application whose rows are not registers.
    schema: Option<Schema>,
    /// Removed with the database, which nobody else can open.
    temporary: Option<Temporary>,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(ISOLATIONS)?;
    let (path, temporary) = if url.rest().is_empty() {
        let dir = Temporary::make()?;
        (dir.path().join("sqlite.db"), Some(dir))
    } else {
        (PathBuf::from(url.rest()), None)
    };
    Ok(Box::new(Sqlite {
        path,
        isolation,
        patience: settings.statement_timeout,
        queue: Arc::default(),
        evidence: settings.evidence,
        durable: settings.durable,
        readers: Arc::default(),
        schema: settings.tables,
        temporary,
    }))
}

impl Sqlite {
    fn synchronous(&self) -> &'static str {
        if self.durable { "full" } else { "off" }
    }
}

impl SqlProduct for Sqlite {
    type Client = SqliteClient;

    /// Exactly as SQLite remembers them: by that text we recognise our own.
    const TABLES: &'static [(&'static str, &'static str)] = &[
        ("isolario_register", "(k INTEGER PRIMARY KEY, v INTEGER NOT NULL)"),
        (
            "isolario_list",
            "(k INTEGER, n INTEGER, e INTEGER NOT NULL, PRIMARY KEY (k, n)) WITHOUT ROWID",
        ),
        (
            TABLE,
            "(id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL, v INTEGER NOT NULL, \
             w INTEGER)",
        ),
        ("isolario_counter", "(n INTEGER NOT NULL)"),
    ];

    const OWNER: &'static str = "SELECT sql FROM sqlite_master WHERE name = '{}'";

    fn client(&self) -> Result<SqliteClient, DbError> {
        let connection = rusqlite::Connection::open(&self.path).map_err(|error| {
            DbError::fatal(format!("cannot open {}: {error}", self.path.display()))
        })?;
        // We wait for the write lock by ourselves; nothing else has to.
        connection.busy_timeout(Duration::ZERO).map_err(classify)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(classify)?;
        connection.pragma_update(None, "synchronous", self.synchronous()).map_err(classify)?;
        let readers = self.evidence.then(|| Arc::clone(&self.readers));
        Ok(SqliteClient::new(connection, self.queue.place(self.patience), readers))
    }

    fn schema(&self) -> Option<Schema> {
        self.schema
    }

    fn create(&self, name: &str, columns: &str) -> Vec<String> {
        vec![format!("CREATE TABLE {name} {columns}")]
    }

    fn is_ours(&self, owner: &str, create: &[String]) -> bool {
        create.iter().any(|create| create == owner)
    }

    fn not_ours(&self, table: &str) -> DbError {
        DbError::fatal(format!(
            "{} has a table {table} that is not ours: rename it, or choose another file",
            self.path.display()
        ))
    }

    fn is_transactional(&self) -> bool {
        true
    }

    fn fill(&self, _: Range<u32>) -> Vec<String> {
        vec!["INSERT INTO isolario_counter VALUES (0)".to_owned()]
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        make_tables(self, Some(layout))
    }

    fn clear(&self) -> Result<(), DbError> {
        make_tables(self, None)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Session::new(self.client()?, Statements::new(&STYLE, self.schema))))
    }

    fn traits(&self) -> Traits<'_> {
        Traits {
            isolation: self.isolation,
            workloads: &Kind::ALL,
            new_keys: true,
            tables: true,
            ..Traits::default()
        }
    }

    fn marking(&self) -> Marking<'_> {
        if self.temporary.is_some() { Marking::NotNeeded } else { Marking::Separate(self) }
    }

    fn sql(&self) -> Result<&dyn SqlDatabase, DbError> {
        Ok(self)
    }

    fn resume(&self, _: &Layout) -> Result<(), DbError> {
        self.client().map(drop)
    }

    /// Writers come one after the other, and are counted.
    fn promised(&self, _: Kind) -> Option<Level> {
        self.evidence.then_some(Level::StrictSerializable)
    }

    fn durability(&self) -> Option<String> {
        Some(format!("synchronous={}", self.synchronous()))
    }
}

impl SqlDatabase for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Ok(Box::new(self.client()?))
    }

    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        Ok(Some(Box::new(View(Arc::clone(&self.queue)))))
    }

    fn clock(&self) -> (&'static str, i64) {
        ("SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)", 1000)
    }
}

const BUSY: &str = "SQLITE_BUSY";

fn is_busy(error: &DbError) -> bool {
    error.code.as_deref() == Some(BUSY)
}

/// SQLite runs in our own process: there is always an answer, and an error always means that the
/// transaction did not commit.
#[expect(clippy::needless_pass_by_value, reason = "so it fits into map_err")]
fn classify(error: rusqlite::Error) -> DbError {
    let message = error.to_string();
    match error.sqlite_error() {
        Some(cause) if cause.code == ErrorCode::DatabaseBusy => {
            DbError::retryable(message).with_code(BUSY)
        }
        Some(cause) if cause.code == ErrorCode::DatabaseLocked => {
            DbError::retryable(message).with_code("SQLITE_LOCKED")
        }
        Some(cause) => DbError::fatal(message).with_code(cause.extended_code),
        None => DbError::fatal(message),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::database::{Access, ConditionalResult};

    fn database(path: &str, patience_ms: u64) -> Box<dyn Database> {
        let url = DbUrl::parse(&format!("sqlite:{path}")).unwrap();
        let statement_timeout = Duration::from_millis(patience_ms);
        open(&url, &Settings { statement_timeout, ..Settings::default() }).unwrap()
    }

    fn prepared(kind: Kind) -> Box<dyn Database> {
        let database = database("", 1000);
        database.prepare(&Layout::new(kind, 10)).unwrap();
        database
    }

    #[test]
    fn registers_begin_with_nothing_and_keep_what_is_committed() {
        let database = prepared(Kind::Mini);
        let mut one = database.connect().unwrap();
        let mut two = database.connect().unwrap();
        one.begin(Access::Write).unwrap();
        assert_eq!(one.read(1), Ok(None));
        one.write(1, 5).unwrap();
        assert_eq!(one.read(1), Ok(Some(5)));
        two.begin(Access::Read).unwrap();
        assert_eq!(two.read(1), Ok(None));
        one.commit().unwrap();
        assert_eq!(two.read(1), Ok(None), "the snapshot stays");
        two.commit().unwrap();
        two.begin(Access::Write).unwrap();
        assert_eq!(two.read(1), Ok(Some(5)));
        two.delete(1).unwrap();
        two.rollback().unwrap();
        one.begin(Access::Read).unwrap();
        assert_eq!(one.read(1), Ok(Some(5)));
    }

    #[test]
    fn lists_keep_their_order() {
        let database = prepared(Kind::Append);
        let mut connection = database.connect().unwrap();
        connection.begin(Access::Write).unwrap();
        for (key, element) in [(1, 10), (2, 20), (1, 11), (1, 5)] {
            connection.append(key, element).unwrap();
        }
        let mut elements = Vec::new();
        connection.read_list(1, &mut elements).unwrap();
        assert_eq!(elements, [10, 11, 5]);
        elements.clear();
        connection.read_list(3, &mut elements).unwrap();
        assert!(elements.is_empty());
    }

    #[test]
    fn conditional_writes_tell_what_was_there() {
        let database = prepared(Kind::Lwt);
        let mut connection = database.connect().unwrap();
        connection.begin(Access::Single).unwrap();
        assert_eq!(connection.insert_if_absent(1, 5), Ok(ConditionalResult::Applied));
        let failed = ConditionalResult::Failed { seen: Some(Some(5)) };
        assert_eq!(connection.insert_if_absent(1, 6), Ok(failed));
        assert_eq!(connection.compare_and_set(1, Some(4), 6), Ok(failed));
        assert_eq!(connection.compare_and_set(1, Some(5), 6), Ok(ConditionalResult::Applied));
        let absent = ConditionalResult::Failed { seen: Some(None) };
        assert_eq!(connection.compare_and_set(2, Some(5), 6), Ok(absent));
    }

    #[test]
    fn a_lock_that_takes_too_long_is_worth_another_attempt() {
        let database = database("", 5);
        database.prepare(&Layout::new(Kind::Mini, 10)).unwrap();
        let mut one = database.connect().unwrap();
        let mut two = database.connect().unwrap();
        one.begin(Access::Write).unwrap();
        let error = two.begin(Access::Write).unwrap_err();
        assert_eq!(
            (error.class, error.code.as_deref()),
            (crate::ErrorClass::Retryable, Some(BUSY))
        );
        two.rollback().unwrap();
        one.commit().unwrap();
        two.begin(Access::Write).unwrap();
    }

    #[test]
    fn our_own_tables_are_replaced_and_those_of_others_are_not() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("theirs.db");
        let database = database(path.to_str().unwrap(), 1000);
        let layout = Layout::new(Kind::Mini, 10);
        database.prepare(&layout).unwrap();
        database.prepare(&layout).unwrap();
        let theirs = rusqlite::Connection::open(&path).unwrap();
        theirs
            .execute_batch("DROP TABLE isolario_register; CREATE TABLE isolario_register (x)")
            .unwrap();
        let message = database.prepare(&layout).unwrap_err().message;
        assert!(message.contains("has a table isolario_register that is not ours"), "{message}");
    }
}
