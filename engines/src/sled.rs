//! sled: a lock-free tree whose transactions are closures.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, Database, DbError, DbUrl, Driver, Settings};
use isolario::model::Level;
use sled::transaction::{
    ConflictableTransactionResult, TransactionError, TransactionResult, TransactionalTree, abort,
};
use sled::{Db, IVec};

use crate::{complete, conflict, directory_of, fatal, in_doubt};

pub(crate) const DRIVER: Driver =
    Driver::new(&["sled"], "sled:[DIRECTORY]", "sled, in process", &["serializable"], &[], open);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(DRIVER.isolations)?;
    let directory = directory_of(url)?;
    let database = sled::open(directory.path()).map_err(fatal)?;
    let store = Sled { database, durable: settings.durable };
    let store = EmbeddedDatabase::watched("sled", store).claiming([Level::Serializable]);
    Ok(complete(store, "sled", isolation, Some(directory), settings))
}

struct Sled {
    database: Db,
    /// Whether commits wait until they are flushed. Otherwise sled does that every 500 ms.
    durable: bool,
}

enum Call {
    Get(Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Commit,
}

/// A transaction on a thread of its own, within the closure that does what it is told.
struct Txn {
    /// Nothing once it is over: the closure waits for the next call.
    calls: Option<Sender<Call>>,
    answers: Receiver<Option<IVec>>,
    /// Nothing once its end is known.
    thread: Option<JoinHandle<TransactionResult<(), DbError>>>,
}

impl Store for Sled {
    type Transaction = Txn;

    fn begin(&self, _: Access) -> Result<Txn, DbError> {
        let (calls, asked) = channel();
        let (answer, answers) = channel();
        let (database, durable) = (self.database.clone(), self.durable);
        let serve = move || {
            let again = Cell::new(false);
            database.transaction(|tree| match again.replace(true) {
                // Its session has been told already what the first run of the closure read.
                true => abort(conflict("sled repeats it")),
                false => perform(tree, &asked, &answer, durable),
            })
        };
        let thread = thread::Builder::new().spawn(serve).map_err(fatal)?;
        let mut txn = Txn { calls: Some(calls), answers, thread: Some(thread) };
        // It has begun when the closure runs: transactions wait for each other.
        txn.answer()?;
        Ok(txn)
    }
}

/// Answers calls until the session commits or is gone.
fn perform(
    tree: &TransactionalTree,
    calls: &Receiver<Call>,
    answers: &Sender<Option<IVec>>,
    durable: bool,
) -> ConflictableTransactionResult<(), DbError> {
    // Who no longer listens will not ask for a commit either.
    let _ = answers.send(None);
    for call in calls {
        let held = match call {
            Call::Get(key) => tree.get(key)?,
            Call::Put(key, value) => tree.insert(key, value)?,
            Call::Delete(key) => tree.remove(key)?,
            Call::Commit => {
                if durable {
                    tree.flush();
                }
                return Ok(());
            }
        };
        let _ = answers.send(held);
    }
    abort(fatal("it was given up"))
}

impl Txn {
    fn ask(&mut self, call: Call) -> Result<Option<IVec>, DbError> {
        // A closure that is gone does not answer either.
        let _ = self.calls.as_ref().map(|calls| calls.send(call));
        self.answer()
    }

    fn answer(&mut self) -> Result<Option<IVec>, DbError> {
        self.answers.recv().map_err(|_| match self.end(fatal) {
            Ok(()) => fatal("it is over"),
            Err(error) => error,
        })
    }

    /// Waits for the closure and what sled makes of it.
    fn end(&mut self, failed: fn(sled::Error) -> DbError) -> Result<(), DbError> {
        self.calls = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map_err(|error| match error {
                TransactionError::Abort(error) => error,
                TransactionError::Storage(error) => failed(error),
            }),
            // It is told as the panic that it is.
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(fatal("it is over")),
        }
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.ask(Call::Get(key.to_vec()))?.map(|held| held.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.ask(Call::Put(key.to_vec(), value.to_vec())).map(drop)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), DbError> {
        self.ask(Call::Delete(key.to_vec())).map(drop)
    }

    fn commit(mut self) -> Result<(), DbError> {
        let _ = self.calls.as_ref().map(|calls| calls.send(Call::Commit));
        self.end(in_doubt)
    }
}

impl Drop for Txn {
    /// The next one of this session waits for it, and so does who closes the store.
    fn drop(&mut self) {
        self.calls = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
