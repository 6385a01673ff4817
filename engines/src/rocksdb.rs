//! RocksDB: a log-structured merge tree in C++, with transactions that lock or that check at their commit.

use std::fs;
use std::path::Path;

use isolario::db::embedded::{EmbeddedDatabase, LocalStore, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level;
use rocksdb::{
    Error, ErrorKind, OptimisticTransactionDB, OptimisticTransactionOptions, Options,
    TransactionDB, TransactionDBOptions, TransactionOptions, WriteOptions,
};

use crate::{complete_as, conflict, directory_of, fatal, in_doubt};

/// As its examples do it for snapshot isolation, a transaction reads from the snapshot that it sets when it
/// begins; or it reads everything by `GetForUpdate`, and then nothing that it read may have changed.
pub(crate) const DRIVER: Driver = Driver::new(
    &["rocksdb"],
    "rocksdb:[DIRECTORY]",
    "RocksDB, in process",
    &["optimistic", "pessimistic", "optimistic-for-update", "pessimistic-for-update"],
    &[],
    open,
);

/// Who waits for a lock longer than this tries again.
const LOCK_TIMEOUT_MS: i64 = 100;

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let path = directory.path();
    let mut options = Options::default();
    options.create_if_missing(true);
    let for_update = isolation.ends_with("for-update");
    let durable = settings.durable;
    let store = if isolation.starts_with("optimistic") {
        let database = OptimisticTransactionDB::open(&options, path).map_err(fatal)?;
        EmbeddedDatabase::local("rocksdb", RocksDb { database, for_update, durable })
    } else {
        let locks = TransactionDBOptions::default();
        let database = TransactionDB::open(&options, &locks, path).map_err(fatal)?;
        EmbeddedDatabase::local("rocksdb", RocksDb { database, for_update, durable })
    };
    let claim = if for_update { Level::Serializable } else { Level::SnapshotIsolation };
    let version = format!("rocksdb {}", version(path)?);
    Ok(complete_as(version, store.claiming([claim]), isolation, Some(directory), settings))
}

/// The version of the library, which is not that of its bindings. It writes it to the head of its log.
fn version(path: &Path) -> Result<String, DbError> {
    let log = fs::read(path.join("LOG")).map_err(fatal)?;
    let log = String::from_utf8_lossy(&log);
    let told = log.split_once("RocksDB version: ").and_then(|(_, rest)| rest.lines().next());
    told.map(|told| told.trim().to_owned())
        .ok_or_else(|| fatal("its log does not tell its version"))
}

struct RocksDb<D> {
    database: D,
    for_update: bool,
    /// Whether the log is synced at each commit.
    durable: bool,
}

/// What both kinds of databases have, but not as a trait.
trait Begin: Send + Sync + Sized + 'static {
    fn begin(&self, write: &WriteOptions, set_snapshot: bool) -> rocksdb::Transaction<'_, Self>;
}

impl Begin for OptimisticTransactionDB {
    fn begin(&self, write: &WriteOptions, set_snapshot: bool) -> rocksdb::Transaction<'_, Self> {
        let mut options = OptimisticTransactionOptions::default();
        options.set_snapshot(set_snapshot);
        self.transaction_opt(write, &options)
    }
}

impl Begin for TransactionDB {
    fn begin(&self, write: &WriteOptions, set_snapshot: bool) -> rocksdb::Transaction<'_, Self> {
        let mut options = TransactionOptions::default();
        options.set_snapshot(set_snapshot);
        options.set_deadlock_detect(true);
        options.set_lock_timeout(LOCK_TIMEOUT_MS);
        self.transaction_opt(write, &options)
    }
}

struct Txn<'s, D> {
    txn: rocksdb::Transaction<'s, D>,
    for_update: bool,
}

impl<D: Begin> LocalStore for RocksDb<D> {
    type Transaction<'s> = Txn<'s, D>;

    fn begin(&self, _: Access) -> Result<Txn<'_, D>, DbError> {
        let mut write = WriteOptions::default();
        write.set_sync(self.durable);
        let txn = self.database.begin(&write, !self.for_update);
        Ok(Txn { txn, for_update: self.for_update })
    }
}

impl<D> Transaction for Txn<'_, D> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        match self.for_update {
            // Who only reads shares the lock.
            true => self.txn.get_for_update(key, false),
            // The one it set when it began.
            false => self.txn.snapshot().get(key),
        }
        .map_err(classify)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.txn.put(key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.txn.delete(key).map_err(classify)
    }

    fn commit(self) -> Result<(), DbError> {
        self.txn.commit().map_err(|error| match is_conflict(&error) {
            true => conflict(error),
            false => in_doubt(error),
        })
    }
}

fn classify(error: Error) -> DbError {
    if is_conflict(&error) { conflict(error) } else { fatal(error) }
}

/// Somebody else wrote, or holds the lock; `TryAgain`: it no longer remembers whether somebody wrote.
fn is_conflict(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain)
}
