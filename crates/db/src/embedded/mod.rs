//! Embedded stores: implement four methods on a key-value store, get every workload.
//!
//! A [`Store`] begins [`Transaction`]s; these get, put and commit bytes. [`EmbeddedDatabase`] makes a
//! [`Database`] of it: registers, lists and conditional writes, conflicts that are tried again,
//! panics that are told instead of passed on.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use isolario_db::embedded::{EmbeddedDatabase, Store, Transaction};
//! use isolario_db::{Access, DbError};
//! use isolario_model::Level;
//!
//! /// All that there is, and how often it has changed.
//! #[derive(Clone, Default)]
//! struct Toy(Arc<Mutex<(u64, HashMap<Vec<u8>, Vec<u8>>)>>);
//!
//! /// Works on a copy, and replaces the original unless somebody else did so first.
//! struct Copied { toy: Toy, version: u64, all: HashMap<Vec<u8>, Vec<u8>> }
//!
//! impl Store for Toy {
//!     type Transaction = Copied;
//!
//!     fn begin(&self, _: Access) -> Result<Copied, DbError> {
//!         let (version, all) = self.0.lock().unwrap().clone();
//!         Ok(Copied { toy: self.clone(), version, all })
//!     }
//! }
//!
//! impl Transaction for Copied {
//!     fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
//!         Ok(self.all.get(key).cloned())
//!     }
//!
//!     fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
//!         self.all.insert(key.to_vec(), value.to_vec());
//!         Ok(())
//!     }
//!
//!     fn commit(self) -> Result<(), DbError> {
//!         let mut current = self.toy.0.lock().unwrap();
//!         if current.0 != self.version {
//!             return Err(DbError::retryable("somebody else committed"));
//!         }
//!         *current = (self.version + 1, self.all);
//!         Ok(())
//!     }
//! }
//!
//! let database = EmbeddedDatabase::new("toy", Toy::default()).claiming([Level::StrictSerializable]);
//! ```
//!
//! `isolario::run::run_against` stresses it and checks what its clients saw.
//!
//! # Transactions that borrow
//!
//! A transaction that borrows its store, or has to stay on the thread that began it, is that of a
//! [`LocalStore`]. [`EmbeddedDatabase::local`] gives each session a thread for it. That costs a few
//! microseconds per operation, and in return a call that never comes back is noticed after a while.
//!
//! # What is stored
//!
//! Each run has keys of its own: 24 bytes, `isolario`, the moment the run began, and the number of
//! the key. So a store may be run again, and may hold other things. A register is eight bytes, and
//! as many more as [`Layout::value_size`] asks for; a list, eight bytes per element.

mod encoding;
mod session;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolario_model::Level;
use isolario_workload::Kind;

use crate::claims::{self, Claim};
use crate::database::{Access, Connection, Database, Layout, Traits};
use crate::error::DbError;
use crate::hold::Marking;
use crate::locked::locked;
use crate::temporary::Temporary;
use crate::url::DbUrl;
use encoding::Encoding;
use session::{Calls, Direct, Session};
use worker::Worker;

/// A store that transactions read and write.
///
/// Errors tell by their [class](crate::ErrorClass) what became of the transaction: a conflict is
/// [`retryable`](DbError::retryable), what should never happen is [`fatal`](DbError::fatal).
pub trait Store: Send + Sync + 'static {
    /// One of its transactions.
    type Transaction: Transaction + Send + 'static;

    /// Begins one. Where it is told that it only reads, the store may take that into account.
    fn begin(&self, access: Access) -> Result<Self::Transaction, DbError>;
}

/// A [`Store`] whose transactions borrow it, or cannot be sent to another thread.
pub trait LocalStore: Send + Sync + 'static {
    /// One of its transactions.
    type Transaction<'store>: Transaction
    where
        Self: 'store;

    /// Begins one. Where it is told that it only reads, the store may take that into account.
    fn begin(&self, access: Access) -> Result<Self::Transaction<'_>, DbError>;
}

/// A transaction on bytes. One that is dropped has not happened.
pub trait Transaction {
    /// Reads what is there, its own writes included.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError>;

    /// Writes.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError>;

    /// Deletes what is there, if anything is.
    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        let _ = key;
        Err(DbError::unsupported("deletes"))
    }

    /// Commits. An error after which nobody can tell whether it did is
    /// [`unknown`](DbError::unknown).
    fn commit(self) -> Result<(), DbError>
    where
        Self: Sized;

    /// Gives it up.
    fn rollback(self) -> Result<(), DbError>
    where
        Self: Sized,
    {
        drop(self);
        Ok(())
    }
}

/// A [`Database`] made of a store.
pub struct EmbeddedDatabase {
    name: String,
    version: String,
    isolation: String,
    /// Where the author says what it claims; otherwise the table of claims does.
    claimed: Option<Claim>,
    timeout: Duration,
    connect: Connect,
    /// Which keys the run has, from [`Database::prepare`] on.
    encoding: Mutex<Encoding>,
    /// Dropped after the store.
    _directory: Option<Directory>,
}

/// Opens the way to the store for a session, which waits for it no longer than this.
type Connect = Box<dyn Fn(Duration) -> Result<Box<dyn Calls>, DbError> + Send + Sync>;

impl EmbeddedDatabase {
    /// A database of a store, called by a name.
    pub fn new(name: &str, store: impl Store) -> EmbeddedDatabase {
        let store = Arc::new(store);
        EmbeddedDatabase::over(
            name,
            Box::new(move |_| Ok(Box::new(Direct::new(Arc::clone(&store))))),
        )
    }

    /// A database of a store whose transactions have to stay where they were begun.
    pub fn local(name: &str, store: impl LocalStore) -> EmbeddedDatabase {
        let store = Arc::new(store);
        let connect = move |patience| -> Result<Box<dyn Calls>, DbError> {
            Ok(Box::new(Worker::start(Arc::clone(&store), patience)?))
        };
        EmbeddedDatabase::over(name, Box::new(connect))
    }

    /// As [`new`](EmbeddedDatabase::new), with a thread for each session as a [`LocalStore`] has it: a call
    /// that never comes back is noticed.
    pub fn watched(name: &str, store: impl Store) -> EmbeddedDatabase {
        EmbeddedDatabase::local(name, Watched(store))
    }

    fn over(name: &str, connect: Connect) -> EmbeddedDatabase {
        EmbeddedDatabase {
            name: name.to_owned(),
            version: name.to_owned(),
            isolation: "transactions".to_owned(),
            claimed: None,
            timeout: crate::Settings::default().statement_timeout,
            connect,
            encoding: Mutex::new(Encoding::new(now(), 0)),
            _directory: None,
        }
    }

    /// With the product and its version, as reports show it: `Toy 1.2.0`.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> EmbeddedDatabase {
        EmbeddedDatabase { version: version.into(), ..self }
    }

    /// With the name of its isolation setting, where it has several.
    #[must_use]
    pub fn isolation(self, isolation: impl Into<String>) -> EmbeddedDatabase {
        EmbeddedDatabase { isolation: isolation.into(), ..self }
    }

    /// With what it claims. Where transactions claim to be strictly serializable, single operations
    /// claim to be linearizable.
    #[must_use]
    pub fn claiming(self, levels: impl IntoIterator<Item = Level>) -> EmbeddedDatabase {
        let (levels, words) = (levels.into_iter().collect(), "what its author says".to_owned());
        EmbeddedDatabase { claimed: Some(Claim { levels, source: words }), ..self }
    }

    /// With a limit for the calls of a [`LocalStore`]; nobody else can be interrupted.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> EmbeddedDatabase {
        EmbeddedDatabase { timeout, ..self }
    }

    /// With the directory of its files, which goes when the database does if it is a temporary one.
    #[must_use]
    pub fn stored_in(self, directory: Directory) -> EmbeddedDatabase {
        EmbeddedDatabase { _directory: Some(directory), ..self }
    }
}

impl Database for EmbeddedDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(self.version.clone())
    }

    fn traits(&self) -> Traits<'_> {
        Traits {
            isolation: &self.isolation,
            workloads: &Kind::KEYED,
            value_sizes: true,
            new_keys: true,
            ..Traits::default()
        }
    }

    fn claim(&self, kind: Kind, nodes: usize) -> Claim {
        match &self.claimed {
            None => claims::look_up(&self.name, &self.isolation, kind, nodes),
            Some(Claim { levels, source: words }) => {
                let levels = levels.iter().map(|level| match (level, kind) {
                    (Level::StrictSerializable, Kind::Lwt) => Level::Linearizable,
                    (level, _) => *level,
                });
                Claim { levels: levels.collect(), source: words.clone() }
            }
        }
    }

    /// Each run has keys of its own.
    fn marking(&self) -> Marking<'_> {
        Marking::NotNeeded
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let run = layout.run.unwrap_or_else(now);
        let encoding = Encoding::new(run, layout.value_size as usize);
        *locked(&self.encoding) = encoding;
        Ok(())
    }

    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn resume(&self, layout: &Layout) -> Result<(), DbError> {
        self.prepare(layout)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let encoding = *locked(&self.encoding);
        Ok(Box::new(Session::new((self.connect)(self.timeout)?, encoding)))
    }
}

/// A store whose calls are made on threads of their own, although they could be made anywhere.
struct Watched<S>(S);

impl<S: Store> LocalStore for Watched<S> {
    type Transaction<'store> = S::Transaction;

    fn begin(&self, access: Access) -> Result<S::Transaction, DbError> {
        self.0.begin(access)
    }
}

/// A moment that no earlier run began at.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The directory of a store's files: a given one, or a temporary one that goes with its database.
pub struct Directory {
    path: PathBuf,
    _temporary: Option<Temporary>,
}

impl Directory {
    /// The one that the path of a URL names; without a path, a temporary one. It may have to be
    /// made.
    pub fn of(url: &DbUrl) -> Result<Directory, DbError> {
        let (path, parameters) = url.path_and_parameters()?;
        if let Some((name, _)) = parameters.first() {
            return Err(DbError::fatal(format!("{url}: expected no parameters, found {name}")));
        }
        if !path.is_empty() {
            return Ok(Directory { path: path.into(), _temporary: None });
        }
        let temporary = Temporary::make()?;
        Ok(Directory { path: temporary.path().to_owned(), _temporary: Some(temporary) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests;
