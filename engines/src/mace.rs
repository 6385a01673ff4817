//! Mace: a B+tree over a log, with many versions.

use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, LocalStore, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::SnapshotIsolation;
use mace::{Bucket, BucketOptions, Mace, OpCode, Options, TxnKV, TxnView};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://github.com/abbycin/mace/blob/master/README.md.
const CLAIMS: &[ClaimRow] = &[row(
    "mace",
    "snapshot-isolation",
    KEYED,
    &[SnapshotIsolation],
    "\"Non-blocking concurrent reads and writes with snapshot isolation\"",
)];

pub(crate) const DRIVER: Driver = Driver::new(
    &["mace"],
    "mace:[DIRECTORY]",
    "Mace, in process",
    &["snapshot-isolation"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let mut options = Options::new(directory.path());
    // Otherwise a run asks what is isolated, not what survives.
    options.sync_on_write = settings.durable;
    let options = options.validate().map_err(|error| fatal(format!("{error:?}")))?;
    let database = Mace::new(options).map_err(fatal)?;
    let bucket = match database.new_bucket("isolario", BucketOptions::default()) {
        Err(OpCode::Exist) => database.open_bucket("isolario"),
        made => made,
    };
    let store = EmbeddedDatabase::local(
        "mace",
        Stored { bucket: bucket.map_err(fatal)?, _database: database },
    );
    Ok(complete(store, "mace-kv", isolation, Some(directory), settings))
}

struct Stored {
    bucket: Bucket,
    _database: Mace,
}

enum Txn<'s> {
    Read(TxnView<'s>),
    Write(TxnKV<'s>),
}

impl LocalStore for Stored {
    type Transaction<'s> = Txn<'s>;

    fn begin(&self, access: Access) -> Result<Txn<'_>, DbError> {
        match access {
            Access::Read => self.bucket.view().map(Txn::Read),
            _ => self.bucket.begin().map(Txn::Write),
        }
        .map_err(classify)
    }
}

impl Transaction for Txn<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let held = match self {
            Txn::Read(view) => view.get(key),
            Txn::Write(txn) => txn.get(key),
        };
        match held {
            Ok(held) => Ok(Some(held.slice().to_vec())),
            Err(OpCode::NotFound) => Ok(None),
            Err(error) => Err(classify(error)),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        txn.upsert(key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        match txn.del(key) {
            Ok(()) | Err(OpCode::NotFound) => Ok(()),
            Err(error) => Err(classify(error)),
        }
    }

    fn commit(self) -> Result<(), DbError> {
        match self {
            Txn::Read(_) => Ok(()),
            Txn::Write(txn) => txn.commit().map_err(|error| match error {
                OpCode::AbortTx => conflict(error),
                _ => in_doubt(error),
            }),
        }
    }
}

fn classify(error: OpCode) -> DbError {
    match error {
        OpCode::AbortTx | OpCode::Again => conflict(error),
        _ => fatal(error),
    }
}
