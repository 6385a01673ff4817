//! Persy: a single file with a write-ahead log; values are kept in one of its indexes.

use isolario::db::claims::{ClaimRow, REGISTERS, row};
use isolario::db::embedded::{EmbeddedDatabase, LocalStore, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::AdyaReadCommitted;
use persy::{ByteVec, Config, Persy, PersyError, TransactionConfig, ValueMode};

use crate::{complete, conflict, directory_of, fatal};

const INDEX: &str = "isolario";

/// From https://docs.rs/persy/latest/persy/struct.Persy.html#method.begin.
const CLAIMS: &[ClaimRow] = &[row(
    "persy",
    "read-committed",
    REGISTERS,
    &[AdyaReadCommitted],
    "\"The transaction isolation level is 'read_committed'\"",
)];

pub(crate) const DRIVER: Driver = Driver::new(
    &["persy"],
    "persy:[DIRECTORY]",
    "Persy, in process",
    &["read-committed"],
    CLAIMS,
    open,
);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let path = directory.path().join("isolario.persy");
    let made = Persy::open_or_create_with(path, Config::new(), |made| {
        let mut txn = made.begin()?;
        txn.create_index::<ByteVec, ByteVec>(INDEX, ValueMode::Replace)?;
        txn.prepare()?.commit()?;
        Ok(())
    });
    let store = Stored { database: made.map_err(fatal)?, durable: settings.durable };
    let store = EmbeddedDatabase::local("persy", store);
    Ok(complete(store, "persy", isolation, Some(directory), settings))
}

struct Stored {
    database: Persy,
    durable: bool,
}

struct Txn(persy::Transaction);

impl LocalStore for Stored {
    type Transaction<'s> = Txn;

    fn begin(&self, _: Access) -> Result<Txn, DbError> {
        // Otherwise a run asks what is isolated, not what survives.
        let config = TransactionConfig::new().set_background_sync(!self.durable);
        self.database.begin_with(config).map(Txn).map_err(fatal)
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let held = self.0.one::<ByteVec, ByteVec>(INDEX, &key.into());
        held.map(|held| held.map(Into::into)).map_err(|error| classify(error.error().into()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let put = self.0.put::<ByteVec, ByteVec>(INDEX, key.into(), value.into());
        put.map_err(|error| classify(error.error().into()))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let gone = self.0.remove::<ByteVec, ByteVec>(INDEX, key.into(), None);
        gone.map_err(|error| classify(error.error().into()))
    }

    fn commit(self) -> Result<(), DbError> {
        // What cannot be prepared is not committed.
        let prepared = self.0.prepare().map_err(|error| classify(error.error().into()))?;
        prepared.commit().map_err(crate::in_doubt)
    }
}

fn classify(error: PersyError) -> DbError {
    match error {
        PersyError::TransactionTimeout
        | PersyError::VersionNotLatest
        | PersyError::ReachedLimitOfRetry => conflict(error),
        _ => fatal(error),
    }
}
