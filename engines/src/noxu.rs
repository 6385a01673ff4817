//! Noxu: Berkeley DB's Java Edition anew, with locks on records.

use std::sync::Arc;

use isolario::db::claims::{ClaimRow, KEYED, REGISTERS, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::{AdyaReadCommitted, Serializable};
use noxu::{
    DatabaseConfig, Durability, Environment, EnvironmentConfig, NoxuError, TransactionConfig,
};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

/// From https://github.com/gburd/noxu/blob/main/docs/src/transactions/isolation.md.
const CLAIMS: &[ClaimRow] = &[
    row("noxu", "read-committed", REGISTERS, &[AdyaReadCommitted], "\"Dirty reads are prevented\""),
    // Locks on the records that were read, and none on what was not found: the manual says so.
    row(
        "noxu",
        "repeatable-read",
        REGISTERS,
        &[AdyaReadCommitted],
        "\"Read and write locks are held until the transaction completes\", of records that exist",
    ),
    row(
        "noxu",
        "serializable",
        KEYED,
        &[Serializable],
        "\"Repeatable read is observed plus no phantom reads\"",
    ),
];

pub(crate) const DRIVER: Driver = Driver::new(
    &["noxu"],
    "noxu:[DIRECTORY]",
    "Noxu DB, in process",
    &["read-committed", "repeatable-read", "serializable"],
    CLAIMS,
    open,
);

/// Who waits for a lock longer than this tries again.
const LOCK_TIMEOUT_MS: u64 = 100;

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let environment = EnvironmentConfig::new(directory.path().to_owned())
        .with_allow_create(true)
        .with_transactional(true)
        // Otherwise a run asks what is isolated, not what survives.
        .with_durability(match settings.durable {
            true => Durability::COMMIT_SYNC,
            false => Durability::COMMIT_NO_SYNC,
        });
    let environment = Environment::open(environment).map_err(fatal)?;
    let config = DatabaseConfig::new().with_allow_create(true).with_transactional(true);
    let database = environment.open_database(None, "isolario", &config).map_err(fatal)?;
    let config = TransactionConfig::new()
        .with_lock_timeout_ms(LOCK_TIMEOUT_MS)
        .with_read_committed(isolation == "read-committed")
        .with_serializable_isolation(isolation == "serializable");
    let store = Noxu { database: Arc::new(database), environment, config };
    Ok(complete(
        EmbeddedDatabase::watched("noxu", store),
        "noxu",
        isolation,
        Some(directory),
        settings,
    ))
}

struct Noxu {
    /// Closed before its environment.
    database: Arc<noxu::Database>,
    environment: Environment,
    config: TransactionConfig,
}

struct Txn {
    database: Arc<noxu::Database>,
    txn: noxu::Transaction,
}

impl Store for Noxu {
    type Transaction = Txn;

    fn begin(&self, _: Access) -> Result<Txn, DbError> {
        let txn = self.environment.begin_transaction(Some(&self.config)).map_err(classify)?;
        Ok(Txn { database: Arc::clone(&self.database), txn })
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.database.get_in(&self.txn, key).map_err(classify)?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.database.put_in(&self.txn, key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.database.delete_in(&self.txn, key).map(drop).map_err(classify)
    }

    fn commit(self) -> Result<(), DbError> {
        self.txn.commit().map_err(in_doubt)
    }

    fn rollback(self) -> Result<(), DbError> {
        self.txn.abort().map_err(fatal)
    }
}

fn classify(error: NoxuError) -> DbError {
    match error.is_retryable() || error.is_lock_conflict() || error.is_lock_timeout() {
        true => conflict(error),
        false => fatal(error),
    }
}
