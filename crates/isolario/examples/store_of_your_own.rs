//! A store of your own, held to its claim: four methods, and every workload runs on it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use isolario::Level;
use isolario::db::embedded::{Embedded, Store, Transaction};
use isolario::db::{Access, DbError};
use isolario::run::{Handle, Settings, run_against};
use isolario::workload::Kind;

type All = HashMap<Vec<u8>, Vec<u8>>;

/// All that there is, and how often it has changed.
#[derive(Clone, Default)]
struct Toy(Arc<Mutex<(u64, All)>>);

/// Works on a copy, and replaces the original unless somebody else did so first.
struct Copied {
    toy: Toy,
    version: u64,
    all: All,
}

impl Store for Toy {
    type Transaction = Copied;

    fn begin(&self, _: Access) -> Result<Copied, DbError> {
        let (version, all) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Copied { toy: self.clone(), version, all })
    }
}

impl Transaction for Copied {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.all.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.all.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        let mut current = self.toy.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != self.version {
            return Err(DbError::retryable("somebody else committed"));
        }
        *current = (self.version + 1, self.all);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    for kind in Kind::KEYED {
        let store = Embedded::new("toy", Toy::default()).claiming([Level::StrictSerializable]);
        let out = directory.path().join(kind.name());
        let settings = Settings::new(kind).with_txns(500).with_out(out);
        run_against(&settings, vec![Box::new(store)], &Handle::new(), &mut ())?.assert_kept();
    }
    Ok(())
}
