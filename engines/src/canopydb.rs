//! Canopydb: copy-on-write B+trees, with exclusive or concurrent writers.

use canopydb::{EnvOptions, Error, ReadTransaction, WriteTransaction};
use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::{Serializable, SnapshotIsolation};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

const TREE: &[u8] = b"isolario";

/// From https://github.com/arthurprs/canopydb/blob/master/README.md, and the documentation of WriteTransaction.
const CLAIMS: &[ClaimRow] = &[
    row(
        "canopydb",
        "concurrent",
        KEYED,
        &[SnapshotIsolation],
        "\"These transactions provide Snapshot-Isolation (SI)\"",
    ),
    row(
        "canopydb",
        "exclusive",
        KEYED,
        &[Serializable],
        "\"exclusive mode with Serializable-Snapshot-Isolation (SSI)\"",
    ),
];

/// Concurrent write transactions give snapshot isolation, exclusive ones are serializable.
pub(crate) const DRIVER: Driver = Driver::new(
    &["canopydb"],
    "canopydb:[DIRECTORY]",
    "Canopydb, in process",
    &["concurrent", "exclusive"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let mut options = EnvOptions::new(directory.path());
    // Otherwise a run asks what is isolated, not what survives.
    options.disable_fsync = !settings.durable;
    let database = canopydb::Database::with_options(options, Default::default()).map_err(fatal)?;
    // Later transactions would conflict over who creates it.
    let first = database.begin_write().map_err(fatal)?;
    first.get_or_create_tree(TREE).map_err(fatal)?;
    first.commit().map_err(fatal)?;
    let concurrent = isolation == "concurrent";
    let store = EmbeddedDatabase::watched("canopydb", Canopy { database, concurrent });
    Ok(complete(store, "canopydb", isolation, Some(directory), settings))
}

struct Canopy {
    database: canopydb::Database,
    concurrent: bool,
}

enum Txn {
    Read(ReadTransaction),
    Write(WriteTransaction),
}

impl Store for Canopy {
    type Transaction = Txn;

    fn begin(&self, access: Access) -> Result<Txn, DbError> {
        match access {
            Access::Read => self.database.begin_read().map(Txn::Read),
            _ => self.database.begin_write_with(self.concurrent).map(Txn::Write),
        }
        .map_err(fatal)
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let tree = match self {
            Txn::Read(txn) => txn.get_tree(TREE),
            Txn::Write(txn) => txn.get_tree(TREE),
        };
        let Some(tree) = tree.map_err(fatal)? else { return Ok(None) };
        Ok(tree.get(key).map_err(fatal)?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        txn.get_or_create_tree(TREE).and_then(|mut tree| tree.insert(key, value)).map_err(fatal)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        let gone = txn.get_or_create_tree(TREE).and_then(|mut tree| tree.delete(key));
        gone.map(drop).map_err(fatal)
    }

    fn commit(self) -> Result<(), DbError> {
        match self {
            Txn::Read(_) => Ok(()),
            Txn::Write(txn) => txn.commit().map(drop).map_err(|error| match error {
                Error::WriteConflict => conflict(error),
                _ => in_doubt(error),
            }),
        }
    }
}
