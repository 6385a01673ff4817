//! A session on an embedded store: the operations of workloads as gets and puts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::encoding::{Encoding, elements};
use super::{Store, Transaction};
use crate::database::{
    Access, ConditionalResult, Connection, Receipt, RegisterValue, read_then_write,
};
use crate::error::{DbError, ErrorClass};

/// What is asked of a store.
pub(super) enum Call {
    Begin(Access),
    Get(Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Commit,
    Rollback,
}

/// What it says; bytes only where something was read.
pub(super) type Answer = Result<Option<Vec<u8>>, DbError>;

/// The way to a store.
pub(super) trait Calls: Send {
    fn call(&mut self, call: Call) -> Answer;
}

/// On the thread of the session.
pub(super) struct Direct<S: Store> {
    store: Arc<S>,
    open: Open<S::Transaction>,
}

impl<S: Store> Direct<S> {
    pub(super) fn new(store: Arc<S>) -> Direct<S> {
        Direct { store, open: Open::default() }
    }
}

impl<S: Store> Calls for Direct<S> {
    fn call(&mut self, call: Call) -> Answer {
        self.open.perform(call, |access| self.store.begin(access))
    }
}

/// The transaction that is open, if one is.
pub(super) struct Open<T>(Option<T>);

impl<T> Default for Open<T> {
    fn default() -> Open<T> {
        Open(None)
    }
}

impl<T: Transaction> Open<T> {
    /// Passes a call on. A store that panics has failed, and does not take the run along.
    pub(super) fn perform(
        &mut self,
        call: Call,
        begin: impl FnOnce(Access) -> Result<T, DbError>,
    ) -> Answer {
        let is_commit = matches!(call, Call::Commit);
        let panicked = |payload: Box<dyn Any + Send>| {
            let message = format!("it panicked: {}", words(payload.as_ref()));
            // Who panics during a commit may have committed.
            let class = if is_commit { ErrorClass::Unknown } else { ErrorClass::Fatal };
            Err(DbError::new(class, message).with_code("panic").disconnected())
        };
        catch_unwind(AssertUnwindSafe(|| self.pass_on(call, begin))).unwrap_or_else(panicked)
    }

    fn pass_on(&mut self, call: Call, begin: impl FnOnce(Access) -> Result<T, DbError>) -> Answer {
        match call {
            Call::Begin(access) => {
                // One at a time: some stores would wait for the other one for ever.
                self.0 = None;
                self.0 = Some(begin(access)?);
            }
            Call::Get(key) => return self.running()?.get(&key),
            Call::Put(key, value) => self.running()?.put(&key, &value)?,
            Call::Delete(key) => self.running()?.delete(&key)?,
            Call::Commit => self.0.take().ok_or_else(not_begun)?.commit()?,
            Call::Rollback => {
                if let Some(txn) = self.0.take() {
                    txn.rollback()?;
                }
            }
        }
        Ok(None)
    }

    fn running(&mut self) -> Result<&mut T, DbError> {
        self.0.as_mut().ok_or_else(not_begun)
    }
}

fn not_begun() -> DbError {
    DbError::fatal("no transaction has begun")
}

/// What somebody panicked with.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

pub(super) struct Session {
    calls: Box<dyn Calls>,
    encoding: Encoding,
}

impl Session {
    pub(super) fn new(calls: Box<dyn Calls>, encoding: Encoding) -> Session {
        Session { calls, encoding }
    }

    fn get(&mut self, key: u64) -> Answer {
        self.calls.call(Call::Get(self.encoding.key(key)))
    }

    fn put(&mut self, key: u64, value: Vec<u8>) -> Result<(), DbError> {
        self.calls.call(Call::Put(self.encoding.key(key), value)).map(drop)
    }
}

impl Connection for Session {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.calls.call(Call::Begin(access)).map(drop)
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let stored = self.get(key)?;
        Ok(self.encoding.held(stored.as_deref()))
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.put(key, self.encoding.register(value))
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.calls.call(Call::Delete(self.encoding.key(key))).map(drop)
    }

    fn read_list(&mut self, key: u64, read: &mut Vec<i64>) -> Result<(), DbError> {
        let stored = self.get(key)?;
        read.extend(elements(&stored.unwrap_or_default()));
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let mut list = self.get(key)?.unwrap_or_default();
        list.extend(element.to_le_bytes());
        self.put(key, list)
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        read_then_write(self, key, expected, new)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.calls.call(Call::Commit).map(|_| Receipt::default())
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.calls.call(Call::Rollback).map(drop)
    }
}
