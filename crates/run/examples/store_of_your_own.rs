//! A store of your own, held to its claim: four methods, and every workload runs on it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolario::Level;
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, DbError};
use isolario::run::{Handle, Settings, run_against};
use isolario::workload::Kind;

type All = HashMap<Vec<u8>, Vec<u8>>;

/// The store: what is committed.
#[derive(Clone, Default)]
struct Toy(Arc<Mutex<All>>);

/// A transaction works on a copy, and commits if what it read is still there.
struct Copied {
    toy: Toy,
    copy: All,
    read: Vec<Vec<u8>>,
    written: All,
}

impl Toy {
    fn committed(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Toy {
    type Transaction = Copied;

    fn begin(&self, _: Access) -> Result<Copied, DbError> {
        let copy = self.committed().clone();
        Ok(Copied { toy: self.clone(), copy, read: Vec::new(), written: All::new() })
    }
}

impl Transaction for Copied {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        self.read.push(key.to_vec());
        Ok(self.written.get(key).or(self.copy.get(key)).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.written.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        let mut committed = self.toy.committed();
        if self.read.iter().any(|key| committed.get(key) != self.copy.get(key)) {
            return Err(DbError::retryable("what was read has changed"));
        }
        committed.extend(self.written);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    for kind in Kind::KEYED {
        let store =
            EmbeddedDatabase::new("toy", Toy::default()).claiming([Level::StrictSerializable]);
        let out = directory.path().join(kind.name());
        let settings = Settings::new(kind).with_txns(500).with_out(out);
        run_against(&settings, vec![Box::new(store)], &Handle::new(), &mut ())?.assert_kept();
    }
    Ok(())
}
