//! SurrealKV: a log-structured merge tree with snapshots and optimistic commits.

use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::SnapshotIsolation;
use surrealkv::{Durability, Error, Mode, Tree, TreeBuilder};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://github.com/surrealdb/surrealkv/blob/main/README.md.
const CLAIMS: &[ClaimRow] = &[row(
    "surrealkv",
    "snapshot-isolation",
    KEYED,
    &[SnapshotIsolation],
    "\"Snapshot Isolation: Multi-version concurrency control\"",
)];

pub(crate) const DRIVER: Driver = Driver::new(
    &["surrealkv"],
    "surrealkv:[DIRECTORY]",
    "SurrealKV, in process",
    &["snapshot-isolation"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let durability = if settings.durable { Durability::Immediate } else { Durability::Eventual };
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(fatal)?;
    let tree = {
        let _entered = runtime.enter();
        TreeBuilder::new().with_path(directory.path().to_owned()).build().map_err(fatal)?
    };
    let store = EmbeddedDatabase::watched("surrealkv", SurrealKv { tree, runtime, durability });
    Ok(complete(store, "surrealkv", isolation, Some(directory), settings))
}

struct SurrealKv {
    tree: Tree,
    /// Commits and background work are asynchronous.
    runtime: Runtime,
    durability: Durability,
}

struct Txn {
    txn: surrealkv::Transaction,
    runtime: Handle,
    reads: bool,
}

impl Store for SurrealKv {
    type Transaction = Txn;

    fn begin(&self, access: Access) -> Result<Txn, DbError> {
        let reads = access == Access::Read;
        let mode = if reads { Mode::ReadOnly } else { Mode::ReadWrite };
        let txn = self.tree.begin_with_mode(mode).map_err(fatal)?.with_durability(self.durability);
        Ok(Txn { txn, runtime: self.runtime.handle().clone(), reads })
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        self.txn.get(key).map_err(fatal)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.txn.set(key, value).map_err(fatal)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.txn.delete(key).map_err(fatal)
    }

    fn commit(mut self) -> Result<(), DbError> {
        if self.reads {
            return Ok(());
        }
        self.runtime.block_on(self.txn.commit()).map_err(|error| match error {
            Error::TransactionWriteConflict | Error::TransactionRetry => conflict(error),
            _ => in_doubt(error),
        })
    }
}
