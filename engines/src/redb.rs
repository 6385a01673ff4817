//! redb: copy-on-write B+trees in a file, one writer at a time.

use isolario::db::claims::{ClaimRow, KEYED, row};
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level::Serializable;
use redb::{
    Durability, ReadTransaction, ReadableDatabase, TableDefinition, TableError, WriteTransaction,
};

use crate::{complete, directory_of, fatal, in_doubt};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("isolario");

/// From https://github.com/cberner/redb/blob/master/docs/design.md.
const CLAIMS: &[ClaimRow] = &[row(
    "redb",
    "serializable",
    KEYED,
    &[Serializable],
    "\"a single isolation level: serializable, in which all writes are applied sequentially\"",
)];

pub(crate) const DRIVER: Driver =
    Driver::new(&["redb"], "redb:[DIRECTORY]", "redb, in process", &["serializable"], CLAIMS, open);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let database = redb::Database::create(directory.path().join("isolario.redb")).map_err(fatal)?;
    // Otherwise a run asks what is isolated, not what survives.
    let durability = if settings.durable { Durability::Immediate } else { Durability::None };
    let store = EmbeddedDatabase::watched("redb", Redb { database, durability });
    Ok(complete(store, "redb", isolation, Some(directory), settings))
}

struct Redb {
    database: redb::Database,
    durability: Durability,
}

enum Txn {
    Read(ReadTransaction),
    Write(Box<WriteTransaction>),
}

impl Store for Redb {
    type Transaction = Txn;

    fn begin(&self, access: Access) -> Result<Txn, DbError> {
        if access == Access::Read {
            return Ok(Txn::Read(self.database.begin_read().map_err(fatal)?));
        }
        let mut txn = self.database.begin_write().map_err(fatal)?;
        txn.set_durability(self.durability).map_err(fatal)?;
        Ok(Txn::Write(Box::new(txn)))
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        let found = match self {
            Txn::Read(txn) => match txn.open_table(TABLE) {
                // Nobody has written yet.
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => {
                    let table = table.map_err(fatal)?;
                    redb::ReadableTable::get(&table, key)
                        .map_err(fatal)?
                        .map(|held| held.value().to_vec())
                }
            },
            Txn::Write(txn) => {
                let table = txn.open_table(TABLE).map_err(fatal)?;
                let held = redb::ReadableTable::get(&table, key).map_err(fatal)?;
                held.map(|held| held.value().to_vec())
            }
        };
        Ok(found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        txn.open_table(TABLE).map_err(fatal)?.insert(key, value).map_err(fatal)?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let Txn::Write(txn) = self else { return Err(fatal("it only reads")) };
        txn.open_table(TABLE).map_err(fatal)?.remove(key).map_err(fatal)?;
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        match self {
            Txn::Read(_) => Ok(()),
            Txn::Write(txn) => txn.commit().map_err(in_doubt),
        }
    }
}
