//! Stoolap: tables in memory with many versions of each row, and a log.

use isolario::db::claims::{ClaimRow, KEYED, REGISTERS, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::{AdyaReadCommitted, SnapshotIsolation};
use stoolap::{Database as Tables, IsolationLevel};

use crate::hex::{from_hex, to_hex};
use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://stoolap.io/docs/architecture/transaction-isolation.
const CLAIMS: &[ClaimRow] = &[
    row(
        "stoolap",
        "read-committed",
        REGISTERS,
        &[AdyaReadCommitted],
        "\"a transaction only sees data that has been committed by other transactions\"",
    ),
    row(
        "stoolap",
        "snapshot",
        KEYED,
        &[SnapshotIsolation],
        "\"All queries within the transaction see the same snapshot of data\", and \"write-write conflict \
         detection to prevent lost updates\"",
    ),
];

pub(crate) const DRIVER: Driver = Driver::new(
    &["stoolap"],
    "stoolap:[DIRECTORY]",
    "Stoolap, in process",
    &["read-committed", "snapshot"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let level = match isolation {
        "read-committed" => IsolationLevel::ReadCommitted,
        _ => IsolationLevel::SnapshotIsolation,
    };
    let directory = directory_of(url)?;
    let place = directory.path().join("stoolap");
    let sync = if settings.durable { "full" } else { "normal" };
    let name = format!("file://{}?sync_mode={sync}", place.display());
    let tables = Tables::open(&name).map_err(fatal)?;
    // A primary key has to be a number.
    for create in [
        "CREATE TABLE IF NOT EXISTS records (k TEXT NOT NULL, v TEXT)",
        "CREATE UNIQUE INDEX IF NOT EXISTS record_keys ON records (k)",
    ] {
        tables.execute(create, ()).map_err(fatal)?;
    }
    let store = EmbeddedDatabase::watched("stoolap", Stoolap { tables, level });
    Ok(complete(store, "stoolap", isolation, Some(directory), settings))
}

struct Stoolap {
    tables: Tables,
    level: IsolationLevel,
}

struct Txn(stoolap::api::Transaction);

impl Store for Stoolap {
    type Transaction = Txn;

    fn begin(&self, _access: Access) -> Result<Txn, DbError> {
        self.tables.begin_with_isolation(self.level).map(Txn).map_err(fatal)
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let select = "SELECT v FROM records WHERE k = $1";
        let held: Option<String> = self.0.query_opt(select, (to_hex(key),)).map_err(classify)?;
        held.map(|held| from_hex(&held).ok_or_else(|| fatal(format!("it holds {held:?}"))))
            .transpose()
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let (key, value) = (to_hex(key), to_hex(value));
        let update = "UPDATE records SET v = $1 WHERE k = $2";
        let changed = self.0.execute(update, (value.as_str(), key.as_str())).map_err(classify)?;
        if changed == 0 {
            self.0
                .execute("INSERT INTO records (k, v) VALUES ($1, $2)", (key, value))
                .map_err(classify)?;
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let delete = "DELETE FROM records WHERE k = $1";
        self.0.execute(delete, (to_hex(key),)).map(|_| ()).map_err(classify)
    }

    fn commit(mut self) -> Result<(), DbError> {
        self.0.commit().map_err(|error| match is_conflict(&error) {
            true => conflict(error),
            false => in_doubt(error),
        })
    }

    fn rollback(mut self) -> Result<(), DbError> {
        self.0.rollback().map_err(fatal)
    }
}

fn classify(error: stoolap::Error) -> DbError {
    if is_conflict(&error) { conflict(error) } else { fatal(error) }
}

/// Somebody else was faster: there is no kind of error for that.
fn is_conflict(error: &stoolap::Error) -> bool {
    use stoolap::Error::{PrimaryKeyConstraint, TransactionAborted, UniqueConstraint};
    matches!(error, PrimaryKeyConstraint { .. } | TransactionAborted | UniqueConstraint { .. })
        || ["conflict", "uncommitted changes"].iter().any(|word| error.to_string().contains(word))
}
