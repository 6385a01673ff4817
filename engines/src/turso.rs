//! Turso: SQLite in Rust, with many versions of each row (`BEGIN CONCURRENT`).

use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::SnapshotIsolation;
use tokio::runtime::{Builder, Handle, Runtime};
use turso::{Connection, Error, IntoParams, Value};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://github.com/tursodatabase/turso, its guide "MVCC".
const CLAIMS: &[ClaimRow] = &[row(
    "turso",
    "concurrent",
    KEYED,
    &[SnapshotIsolation],
    "\"multiple row versions, snapshot isolation. Each transaction sees consistent snapshot at begin \
         time\"",
)];

pub(crate) const DRIVER: Driver = Driver::new(
    &["turso"],
    "turso:[DIRECTORY]",
    "Turso with concurrent writes, in process",
    &["concurrent"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let file = directory.path().join("turso.db");
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(fatal)?;
    let database = runtime.block_on(create(&file.to_string_lossy())).map_err(fatal)?;
    let store = EmbeddedDatabase::watched("turso", Turso { database, runtime });
    Ok(complete(store, "turso", isolation, Some(directory), settings))
}

async fn create(file: &str) -> Result<turso::Database, Error> {
    let database = turso::Builder::new_local(file).build().await?;
    let connection = database.connect()?;
    connection.pragma_update("journal_mode", "'mvcc'").await?;
    let create = "CREATE TABLE IF NOT EXISTS records (k BLOB PRIMARY KEY, v BLOB)";
    connection.execute(create, ()).await?;
    Ok(database)
}

struct Turso {
    database: turso::Database,
    runtime: Runtime,
}

/// A connection of its own, which ends with it.
struct Txn {
    connection: Connection,
    runtime: Handle,
}

impl Store for Turso {
    type Transaction = Txn;

    fn begin(&self, _access: Access) -> Result<Txn, DbError> {
        let connection = self.database.connect().map_err(fatal)?;
        let txn = Txn { connection, runtime: self.runtime.handle().clone() };
        txn.execute("BEGIN CONCURRENT", ())?;
        Ok(txn)
    }
}

impl Txn {
    fn execute(&self, sql: &str, parameters: impl IntoParams) -> Result<u64, DbError> {
        self.runtime.block_on(self.connection.execute(sql, parameters)).map_err(classify)
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let select = async {
            let mut rows =
                self.connection.query("SELECT v FROM records WHERE k = ?1", [key.to_vec()]).await?;
            rows.next().await?.map(|row| row.get_value(0)).transpose()
        };
        match self.runtime.block_on(select).map_err(classify)? {
            None => Ok(None),
            Some(Value::Blob(value)) => Ok(Some(value)),
            Some(other) => Err(fatal(format!("it holds {other:?}"))),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let insert =
            "INSERT INTO records (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = ?2";
        self.execute(insert, [key.to_vec(), value.to_vec()]).map(|_| ())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.execute("DELETE FROM records WHERE k = ?1", [key.to_vec()]).map(|_| ())
    }

    fn commit(self) -> Result<(), DbError> {
        let done = self.runtime.block_on(self.connection.execute("COMMIT", ()));
        done.map(|_| ()).map_err(|error| match is_conflict(&error) {
            true => conflict(error),
            false => in_doubt(error),
        })
    }

    fn rollback(self) -> Result<(), DbError> {
        // A conflict may have ended it already.
        let _ = self.execute("ROLLBACK", ());
        Ok(())
    }
}

fn classify(error: Error) -> DbError {
    if is_conflict(&error) { conflict(error) } else { fatal(error) }
}

/// Another one wrote, or holds what is needed: the manual says to begin anew.
fn is_conflict(error: &Error) -> bool {
    match error {
        Error::Busy(_) | Error::BusySnapshot(_) => true,
        Error::Error(message) => message.contains("conflict"),
        _ => false,
    }
}
