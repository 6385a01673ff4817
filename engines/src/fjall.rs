//! Fjall: log-structured merge trees, with one writer at a time or optimistic transactions.

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace, SingleWriterWriteTx,
    Snapshot,
};
use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, LocalStore, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::Serializable;

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://github.com/fjall-rs/fjall/blob/main/README.md.
const CLAIMS: &[ClaimRow] = &[
    row(
        "fjall",
        "single-writer",
        KEYED,
        &[Serializable],
        "\"This is trivially serializable because it literally serializes write transactions\"",
    ),
    row(
        "fjall",
        "optimistic",
        KEYED,
        &[Serializable],
        "\"a transactional database for multi-writer, serializable transactions\"",
    ),
];

pub(crate) const DRIVER: Driver = Driver::new(
    &["fjall"],
    "fjall:[DIRECTORY]",
    "Fjall, in process",
    &["single-writer", "optimistic"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let mode = settings.durable.then_some(PersistMode::SyncAll);
    let store = match isolation {
        "optimistic" => {
            let builder = OptimisticTxDatabase::builder(directory.path());
            let database = builder.open().map_err(fatal)?;
            let keys = database.keyspace("isolario", KeyspaceCreateOptions::default);
            EmbeddedDatabase::watched(
                "fjall",
                Optimistic { keys: keys.map_err(fatal)?, database, mode },
            )
        }
        _ => {
            let builder = SingleWriterTxDatabase::builder(directory.path());
            let database = builder.open().map_err(fatal)?;
            let keys = database.keyspace("isolario", KeyspaceCreateOptions::default);
            EmbeddedDatabase::local(
                "fjall",
                SingleWriter { keys: keys.map_err(fatal)?, database, mode },
            )
        }
    };
    Ok(complete(store, "fjall", isolation, Some(directory), settings))
}

struct Optimistic {
    database: OptimisticTxDatabase,
    keys: OptimisticTxKeyspace,
    /// How far a commit gets before it is acknowledged.
    mode: Option<PersistMode>,
}

struct SingleWriter {
    database: SingleWriterTxDatabase,
    keys: SingleWriterTxKeyspace,
    mode: Option<PersistMode>,
}

/// A transaction on a keyspace: a snapshot, or one that writes.
struct Txn<K, W> {
    keys: K,
    work: Work<W>,
}

enum Work<W> {
    Read(Snapshot),
    Write(W),
}

impl Store for Optimistic {
    type Transaction = Txn<OptimisticTxKeyspace, OptimisticWriteTx>;

    fn begin(&self, access: Access) -> Result<Self::Transaction, DbError> {
        let work = match access {
            Access::Read => Work::Read(self.database.read_tx()),
            _ => Work::Write(self.database.write_tx().map_err(fatal)?.durability(self.mode)),
        };
        Ok(Txn { keys: self.keys.clone(), work })
    }
}

impl Transaction for Txn<OptimisticTxKeyspace, OptimisticWriteTx> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let held = match &self.work {
            Work::Read(snapshot) => snapshot.get(&self.keys, key),
            Work::Write(txn) => txn.get(&self.keys, key),
        };
        Ok(held.map_err(fatal)?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let Work::Write(txn) = &mut self.work else { return Err(fatal("it only reads")) };
        txn.insert(&self.keys, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let Work::Write(txn) = &mut self.work else { return Err(fatal("it only reads")) };
        txn.remove(&self.keys, key);
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        match self.work {
            Work::Read(_) => Ok(()),
            Work::Write(txn) => txn.commit().map_err(in_doubt)?.map_err(conflict),
        }
    }
}

impl LocalStore for SingleWriter {
    type Transaction<'s> = Txn<&'s SingleWriterTxKeyspace, SingleWriterWriteTx<'s>>;

    fn begin(&self, access: Access) -> Result<Self::Transaction<'_>, DbError> {
        let work = match access {
            Access::Read => Work::Read(self.database.read_tx()),
            _ => Work::Write(self.database.write_tx().durability(self.mode)),
        };
        Ok(Txn { keys: &self.keys, work })
    }
}

impl Transaction for Txn<&SingleWriterTxKeyspace, SingleWriterWriteTx<'_>> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let held = match &self.work {
            Work::Read(snapshot) => snapshot.get(self.keys.inner(), key),
            Work::Write(txn) => txn.get(self.keys.inner(), key),
        };
        Ok(held.map_err(fatal)?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let Work::Write(txn) = &mut self.work else { return Err(fatal("it only reads")) };
        txn.insert(self.keys, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let Work::Write(txn) = &mut self.work else { return Err(fatal("it only reads")) };
        txn.remove(self.keys, key);
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        match self.work {
            Work::Read(_) => Ok(()),
            Work::Write(txn) => txn.commit().map_err(in_doubt),
        }
    }
}
