//! SurrealMX: many versions in memory. It has no files, so its URL has no path.

use isolario::db::claims::{ClaimRow, KEYED, SINGLE, TRANSACTIONS, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::{Linearizable, StrictSerializable, StrongSnapshotIsolation};
use surrealmx::Error;

use crate::{complete, conflict, fatal, in_doubt};

/// From https://github.com/surrealdb/surrealmx/blob/main/README.md, "Isolation Levels".
const CLAIMS: &[ClaimRow] = &[
    row(
        "surrealmx",
        "read-only",
        KEYED,
        &[StrongSnapshotIsolation],
        "read-only transactions \"observe a completely consistent, linearizable point-in-time cut of \
         the database pinned at transaction creation\"",
    ),
    row(
        "surrealmx",
        "update",
        TRANSACTIONS,
        &[StrictSerializable],
        "update transactions \"execute with Strict Serializable guarantees\"",
    ),
    row(
        "surrealmx",
        "update",
        SINGLE,
        &[Linearizable],
        "update transactions \"execute with Strict Serializable guarantees\"",
    ),
];

/// Read-only transactions promise a snapshot, the others to be strictly serializable. With `update`,
/// those that only read are of the second kind as well.
pub(crate) const DRIVER: Driver = Driver::new(
    &["surrealmx"],
    "surrealmx:",
    "SurrealMX, in process",
    &["read-only", "update"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    if !url.rest().is_empty() {
        return Err(fatal(format!("{url}: it keeps everything in memory, and has no path")));
    }
    let snapshots = isolation == "read-only";
    let store = SurrealMx { database: surrealmx::Database::new(), snapshots };
    Ok(complete(
        EmbeddedDatabase::watched("surrealmx", store),
        "surrealmx",
        isolation,
        None,
        settings,
    ))
}

struct SurrealMx {
    database: surrealmx::Database,
    snapshots: bool,
}

struct Txn(surrealmx::Transaction);

impl Store for SurrealMx {
    type Transaction = Txn;

    fn begin(&self, access: Access) -> Result<Txn, DbError> {
        let reads = self.snapshots && access == Access::Read;
        Ok(Txn(self.database.transaction(!reads)))
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.0.get(key).map_err(classify)?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.0.set(key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.0.del(key).map_err(classify)
    }

    fn commit(mut self) -> Result<(), DbError> {
        match self.0.commit() {
            // Who only reads has nothing to commit.
            Ok(()) | Err(Error::TxNotWritable) => Ok(()),
            Err(error @ (Error::KeyReadConflict | Error::KeyWriteConflict)) => Err(conflict(error)),
            Err(error) => Err(in_doubt(error)),
        }
    }

    fn rollback(mut self) -> Result<(), DbError> {
        self.0.cancel().map_err(fatal)
    }
}

fn classify(error: Error) -> DbError {
    match error {
        Error::KeyReadConflict | Error::KeyWriteConflict => conflict(error),
        _ => fatal(error),
    }
}
