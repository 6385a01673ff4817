//! SQLite, compiled in: write-ahead log, no waiting for the disk.
//!
//! The shortest adapter there is, and the example of the book's guide to adding one.

mod sql;
mod waiting;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isolario_model::{Level, Stamp, Value};
use isolario_predicate::Dialect;
use isolario_workload::{Kind, TableOp};
use rusqlite::{ErrorCode, OptionalExtension, params};

use crate::database::{
    Access, ConditionalResult, Connection, Database, Layout, LockView, Receipt, RegisterValue,
    read_then_write,
};
use crate::error::DbError;
use crate::hold::{Marking, table as mark};
use crate::registry::{Driver, Settings};
use crate::sql::SqlConnection;
use crate::table::application::OwnTables;
use crate::table::sql::{self as rows, Prepared, Reply};
use crate::table::{TABLE, TableResult};
use crate::temporary::Temporary;
use crate::url::DbUrl;
use waiting::{Place, Queue, View};

const ISOLATIONS: &[&str] = &["serializable"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["sqlite"],
    form: "sqlite:[PATH]",
    about: "SQLite, embedded; without a path, in a temporary file",
    isolations: ISOLATIONS,
    port: None,
    open,
};

/// Our tables, exactly as SQLite remembers them: by that text we know them again.
const TABLES: [(&str, &str); 4] = [
    (
        "isolario_register",
        "CREATE TABLE isolario_register (k INTEGER PRIMARY KEY, v INTEGER NOT NULL)",
    ),
    (
        "isolario_list",
        "CREATE TABLE isolario_list (k INTEGER, n INTEGER, e INTEGER NOT NULL, PRIMARY KEY (k, n)) \
         WITHOUT ROWID",
    ),
    (
        TABLE,
        "CREATE TABLE isolario_row (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, \
         b INTEGER NOT NULL, v INTEGER NOT NULL, w INTEGER)",
    ),
    ("isolario_counter", "CREATE TABLE isolario_counter (n INTEGER NOT NULL)"),
];

const READ: &str = "SELECT v FROM isolario_register WHERE k = ?";
const WRITE: &str = "INSERT INTO isolario_register VALUES (?, ?) \
     ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE: &str = "DELETE FROM isolario_register WHERE k = ?";
const READ_LIST: &str = "SELECT e FROM isolario_list WHERE k = ? ORDER BY n";
const APPEND: &str = "INSERT INTO isolario_list \
     SELECT ?1, ifnull(max(n), 0) + 1, ?2 FROM isolario_list WHERE k = ?1";

/// How many statements a connection keeps prepared: more than any workload has.
const STATEMENTS: usize = 64;

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
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
    /// Removed with the database, which nobody else can open.
    temporary: Option<Temporary>,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(ISOLATIONS)?;
    let (path, temporary) = if url.rest().is_empty() {
        let dir = Temporary::make().map_err(|error| {
            DbError::fatal(format!("cannot make a temporary directory: {error}"))
        })?;
        (dir.path().join("sqlite.db"), Some(dir))
    } else {
        (PathBuf::from(url.rest()), None)
    };
    let patience = settings.statement_timeout;
    Ok(Box::new(Sqlite {
        path,
        isolation,
        patience,
        queue: Arc::default(),
        evidence: settings.evidence,
        durable: settings.durable,
        readers: Arc::default(),
        own_tables: settings.tables.map(OwnTables::sqlite),
        temporary,
    }))
}

impl Sqlite {
    fn connection(&self) -> Result<rusqlite::Connection, DbError> {
        let connection = rusqlite::Connection::open(&self.path).map_err(|error| {
            DbError::fatal(format!("cannot open {}: {error}", self.path.display()))
        })?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // We wait for the write lock by ourselves; nothing else has to.
        connection.busy_timeout(Duration::ZERO).map_err(classify)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(classify)?;
        let synchronous = if self.durable { "full" } else { "off" };
        connection.pragma_update(None, "synchronous", synchronous).map_err(classify)?;
        Ok(connection)
    }

    /// A connection that takes statements as text.
    fn statements(&self) -> Result<sql::SqlSession, DbError> {
        let place = self.queue.place(self.patience);
        Ok(sql::SqlSession::new(self.connection()?, place))
    }

    /// The tables of this run: names, and what makes them.
    fn tables(&self) -> Vec<(String, String)> {
        let always = TABLES.map(|(name, create)| (name.to_owned(), create.to_owned()));
        let own = self.own_tables.into_iter().flat_map(OwnTables::definitions);
        let create = |(name, columns): (String, String)| {
            let create = format!("CREATE TABLE {name} {columns}");
            (name, create)
        };
        always.into_iter().chain(own.map(create)).collect()
    }

    /// Removes the tables that an earlier run left.
    fn drop_tables(&self, transaction: &rusqlite::Transaction<'_>) -> Result<(), DbError> {
        for (name, definition) in self.tables() {
            let find = "SELECT sql FROM sqlite_master WHERE name = ?";
            let found: Option<Option<String>> = transaction
                .query_row(find, [&name], |row| row.get(0))
                .optional()
                .map_err(classify)?;
            match found {
                Some(Some(sql)) if sql == definition => {
                    transaction.execute(&format!("DROP TABLE {name}"), []).map_err(classify)?;
                }
                Some(_) => return Err(not_ours(&name, &self.path.display().to_string())),
                None => {}
            }
        }
        Ok(())
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn durability(&self) -> Option<String> {
        Some(format!("synchronous={}", if self.durable { "full" } else { "off" }))
    }

    fn isolation(&self) -> &str {
        self.isolation
    }

    fn supports(&self, _: Kind) -> bool {
        true
    }

    fn takes_new_keys(&self) -> bool {
        true
    }

    fn has_tables(&self) -> bool {
        true
    }

    fn marking(&self) -> Marking {
        match self.temporary {
            Some(_) => Marking::NotNeeded,
            None => Marking::Separate,
        }
    }

    fn read_mark(&self) -> Result<Option<String>, DbError> {
        mark::read(&mut self.statements()?)
    }

    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        mark::replace(&mut self.statements()?, old, new)
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        let mut connection = self.connection()?;
        let transaction = connection.transaction().map_err(classify)?;
        self.drop_tables(&transaction)?;
        for (_, definition) in self.tables() {
            transaction.execute(&definition, []).map_err(classify)?;
        }
        transaction.execute("INSERT INTO isolario_counter VALUES (0)", []).map_err(classify)?;
        for index in rows::INDEXES {
            transaction.execute(index, []).map_err(classify)?;
        }
        for insert in self.own_tables.into_iter().flat_map(OwnTables::rows) {
            transaction.execute(&insert, []).map_err(classify)?;
        }
        transaction.commit().map_err(classify)
    }

    fn resume(&self, _: &Layout) -> Result<(), DbError> {
        self.connection().map(drop)
    }

    fn clear(&self) -> Result<(), DbError> {
        let mut connection = self.connection()?;
        let transaction = connection.transaction().map_err(classify)?;
        self.drop_tables(&transaction)?;
        transaction.commit().map_err(classify)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Session {
            connection: self.connection()?,
            place: self.queue.place(self.patience),
            readers: self.evidence.then(|| Arc::clone(&self.readers)),
            own_tables: self.own_tables,
            receipt: Receipt::default(),
        }))
    }

    /// Writers come one after the other, and are counted.
    fn promised(&self, _: Kind) -> Option<Level> {
        self.evidence.then_some(Level::StrictSerializable)
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Sqlite)
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Ok(Box::new(self.statements()?))
    }

    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        Ok(Some(Box::new(View(Arc::clone(&self.queue)))))
    }
}

fn not_ours(name: &str, path: &str) -> DbError {
    DbError::fatal(format!(
        "{path} has a table {name} that is not ours: rename it, or choose another file"
    ))
}

struct Session {
    connection: rusqlite::Connection,
    place: Place,
    /// How many readers there have been, where commits are counted.
    readers: Option<Arc<AtomicU64>>,
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
    /// The place of the transaction among all, as the counter tells.
    receipt: Receipt,
}

impl Session {
    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, DbError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        statement.execute(parameters).map_err(classify)
    }

    /// Counts a writer, or looks what the count is: a reader comes after that writer, and in no order
    /// with other readers.
    fn count(&mut self, access: Access) -> Result<(), DbError> {
        let Some(readers) = &self.readers else { return Ok(()) };
        let sql = match access {
            Access::Read => "SELECT n FROM isolario_counter",
            _ => "UPDATE isolario_counter SET n = n + 1 RETURNING n",
        };
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        let physical =
            statement.query_row([], |row| row.get::<_, i64>(0)).map_err(classify)? as u64;
        self.receipt = match access {
            Access::Read => {
                let logical = 1 + readers.fetch_add(1, Ordering::Relaxed);
                Receipt { snapshot: Some(Stamp { physical, logical }), commit: None }
            }
            _ => Receipt::at(Stamp { physical, logical: 0 }),
        };
        Ok(())
    }
}

impl Connection for Session {
    fn id(&mut self) -> Result<Option<u64>, DbError> {
        Ok(Some(self.place.id))
    }

    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        let begun = match access {
            Access::Read => self.execute("BEGIN", []),
            Access::Write | Access::Single => {
                self.place.wait(|| self.execute("BEGIN IMMEDIATE", []))
            }
        };
        begun?;
        self.count(access)
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.read(self, key);
        }
        let mut statement = self.connection.prepare_cached(READ).map_err(classify)?;
        statement.query_row([key as i64], |row| row.get(0)).optional().map_err(classify)
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        if let Some(tables) = OwnTables::of_key(self.own_tables, key) {
            return tables.write(self, key, value);
        }
        self.execute(WRITE, params![key as i64, value]).map(|_| ())
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.execute(DELETE, [key as i64]).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let mut statement = self.connection.prepare_cached(READ_LIST).map_err(classify)?;
        let rows = statement.query_map([key as i64], |row| row.get(0)).map_err(classify)?;
        for element in rows {
            elements.push(element.map_err(classify)?);
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.execute(APPEND, params![key as i64, element]).map(|_| ())
    }

    /// The write lock is held since the beginning, so nothing comes between read and write.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        read_then_write(self, key, expected, new)
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        rows::SQLITE.run(self, op, found)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.execute("COMMIT", [])?;
        Ok(std::mem::take(&mut self.receipt))
    }

    /// Some errors have rolled the transaction back already: then there is none.
    fn rollback(&mut self) -> Result<(), DbError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.execute("ROLLBACK", []).map(|_| ())
    }
}

impl Prepared for Session {
    fn ask(&mut self, sql: &'static str, values: &[i64]) -> Result<Reply, DbError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(classify)?;
        let width = statement.column_count();
        let mut found = statement.query(rusqlite::params_from_iter(values)).map_err(classify)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(classify)? {
            let value =
                |at| row.get::<_, Option<i64>>(at).map(|it| it.map_or(Value::Nil, Value::Int));
            rows.push((0..width).map(value).collect::<Result<_, _>>().map_err(classify)?);
        }
        Ok(Reply { rows, changed: 0 })
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
