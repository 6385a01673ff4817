//! SlateDB: a log-structured merge tree in an object store, which is a folder here.

use std::sync::Arc;

use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::{Serializable, SnapshotIsolation};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{Db, DbTransaction, Error, ErrorKind, IsolationLevel};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://docs.rs/slatedb/latest/slatedb/enum.IsolationLevel.html.
const CLAIMS: &[ClaimRow] = &[
    row(
        "slatedb",
        "snapshot",
        KEYED,
        &[SnapshotIsolation],
        "\"Snapshot Isolation - only detects write-write conflicts\"",
    ),
    row(
        "slatedb",
        "serializable-snapshot",
        KEYED,
        &[Serializable],
        "\"Serializable Snapshot Isolation - detects both read-write and write-write conflicts\"",
    ),
];

pub(crate) const DRIVER: Driver = Driver::new(
    &["slatedb"],
    "slatedb:[DIRECTORY]",
    "SlateDB on a local folder, in process",
    &["snapshot", "serializable-snapshot"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let level = match isolation {
        "snapshot" => IsolationLevel::Snapshot,
        _ => IsolationLevel::SerializableSnapshot,
    };
    let directory = directory_of(url)?;
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(fatal)?;
    let objects = LocalFileSystem::new_with_prefix(directory.path()).map_err(fatal)?;
    let database = runtime.block_on(Db::open("isolario", Arc::new(objects))).map_err(fatal)?;
    let store = EmbeddedDatabase::watched(
        "slatedb",
        SlateDb { database, level, runtime, durable: settings.durable },
    );
    Ok(complete(store, "slatedb", isolation, Some(directory), settings))
}

struct SlateDb {
    database: Db,
    level: IsolationLevel,
    runtime: Runtime,
    durable: bool,
}

struct Txn {
    txn: DbTransaction,
    runtime: Handle,
    durable: bool,
}

impl Store for SlateDb {
    type Transaction = Txn;

    fn begin(&self, _access: Access) -> Result<Txn, DbError> {
        let txn = self.database.begin(self.level).map_err(fatal)?;
        Ok(Txn { txn, runtime: self.runtime.handle().clone(), durable: self.durable })
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let held = self.runtime.block_on(self.txn.get(key)).map_err(fatal)?;
        Ok(held.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.txn.put(key, value).map_err(fatal)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.txn.delete(key).map_err(fatal)
    }

    /// What is committed is seen by others at once; that it is durable is waited for only where that is asked for.
    fn commit(self) -> Result<(), DbError> {
        let done = self.runtime.block_on(self.txn.commit());
        let handle = done.map_err(|error: Error| match error.kind() {
            ErrorKind::Transaction => conflict(error),
            _ => in_doubt(error),
        })?;
        match handle.filter(|_| self.durable) {
            Some(handle) => self.runtime.block_on(handle.await_durable()).map_err(in_doubt),
            None => Ok(()),
        }
    }
}
