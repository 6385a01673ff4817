//! A recorder for tests: what clients of a store do and see, checked in the same process.
//!
//! A [`Recorder`] hands out a [`Session`] per client: per thread, or per asynchronous task. A
//! session [begins](Session::begin) one [`Transaction`] after the other. The client tells it what it
//! asked the store for and what the store answered, *after* the answer came; then how it ended.
//!
//! ```
#![doc = include_str!("../../examples/record_from_threads/first_test.rs")]
//! ```
//!
//! # What is written down, and when
//!
//! **Times** are the recorder's own: [`Session::begin`] is the start, so call it before the first
//! statement goes to the store; [`Transaction::commit`] and [`Transaction::rollback`] are the finish,
//! so call them after the store has answered. Strict serializability and linearizability order a
//! transaction before another one if it finished before the other started; a time that is taken too
//! late at the start, or too early at the end, orders what really overlapped, and accuses a store
//! that did nothing wrong.
//!
//! **Writes** are recorded even if the store did not answer: whoever does not know whether a write
//! took effect records it and ends the transaction with [`Transaction::unknown`].
//!
//! **A transaction that is dropped** without an end is of unknown outcome, also if a panic or a
//! cancelled task dropped it. A check then takes it for committed or not, whatever fits what others
//! saw; it never accuses a store because of it.
//!
//! **Values** should be different for every write of a key, since reads are matched with writes by
//! value. A store begins empty: a key that nobody wrote reads as [`None`], and so does one that was
//! deleted. [`Recorder::with_initial`] says otherwise.

mod value;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use isolario_check::{CheckOptions, check};
use isolario_model::{
    Batch, BatchEntries, Contention, History, Initial, Level, LevelResult, Meta, Op, OpInput,
    Outcome, SinkError, TxnEnd, TxnSink, TxnStart,
};
use isolario_report::Report;
use isolario_report::sentences::too_few_overlapped;

pub use value::AsValue;

use isolario_report::as_text;

/// Records what the clients of a store do and see. See the [module](self).
///
/// Clones record into the same history.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    meta: Meta,
    /// All times are nanoseconds since this moment.
    epoch: Instant,
    sessions: AtomicI64,
    /// One per session, so that sessions do not wait for each other.
    logs: Mutex<Vec<Arc<Mutex<Log>>>>,
}

/// What one session did.
struct Log {
    session: i64,
    batch: Batch,
    /// When the transaction began that is not over.
    open: Option<i64>,
    /// What could not be recorded; then the history is worth nothing.
    lost: Option<SinkError>,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new()
    }
}

impl Recorder {
    /// A recorder for a store that begins empty.
    pub fn new() -> Recorder {
        Recorder::with_meta(Meta::default())
    }

    /// A recorder for a store in which every key holds a value at first.
    pub fn with_initial(value: impl AsValue) -> Recorder {
        let initial = Initial::Value(value.to_value());
        Recorder::with_meta(Meta { initial, ..Meta::default() })
    }

    fn with_meta(meta: Meta) -> Recorder {
        let (epoch, sessions, logs) = (Instant::now(), AtomicI64::new(0), Mutex::default());
        Recorder { shared: Arc::new(Shared { meta, epoch, sessions, logs }) }
    }

    /// A session for one more client. Transactions of a session happened one after the other, and
    /// every level takes their order for granted.
    pub fn session(&self) -> Session {
        let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed);
        let log = Log { session, batch: Batch::new(), open: None, lost: None };
        let log = Arc::new(Mutex::new(log));
        lock(&self.shared.logs).push(Arc::clone(&log));
        Session { shared: Arc::clone(&self.shared), log }
    }

    /// What was recorded so far. Transactions that are not over count as of unknown outcome.
    pub fn history(&self) -> Result<History, SinkError> {
        let mut batches = vec![Batch::new()];
        batches[0].meta(&self.shared.meta)?;
        for log in lock(&self.shared.logs).iter() {
            batches.push(lock(log).snapshot()?);
        }
        History::from_batches(batches, BatchEntries::Whole)
    }

    /// Decides a level for what was recorded so far.
    pub fn check(&self, level: Level) -> Result<Checked, SinkError> {
        self.check_with(level, &CheckOptions::default())
    }

    /// Decides a level, with options.
    pub fn check_with(&self, level: Level, options: &CheckOptions) -> Result<Checked, SinkError> {
        let history = self.history()?;
        let results = check(&history, &[level], options);
        Ok(Checked { level, history, results })
    }

    /// Panics unless what was recorded satisfies a level; with the explanation that `isolario check`
    /// prints. A history in which nothing committed satisfies nothing, and one in which hardly any
    /// transactions overlapped shows nothing: it panics, too. [`Recorder::check`] answers without that
    /// demand.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn assert(&self, level: Level) {
        let checked = match self.check(level) {
            Ok(checked) => checked,
            Err(error) => panic!("the history could not be recorded: {error}"),
        };
        if !checked.is_satisfied() {
            panic!("{checked}");
        }
        if let Some(too_few) = checked.contention().as_ref().and_then(too_few_overlapped) {
            panic!(
                "{too_few}: use more threads and fewer keys, or let clients pause between the \
                 operations of a transaction"
            );
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = self.shared.sessions.load(Ordering::Relaxed);
        f.debug_struct("Recorder").field("sessions", &sessions).finish_non_exhaustive()
    }
}

impl Log {
    fn op(&mut self, op: &OpInput<'_>) {
        let recorded = self.batch.op(op);
        self.keep(recorded);
    }

    fn end(&mut self, outcome: Outcome, finish: Option<i64>) {
        let end = TxnEnd { start: self.open.take(), finish, ..TxnEnd::new(outcome) };
        let recorded = self.batch.end(&end);
        self.keep(recorded);
    }

    fn keep(&mut self, recorded: Result<(), SinkError>) {
        if let Err(error) = recorded {
            self.lost.get_or_insert(error);
        }
    }

    /// What is there by now, with an end for what is open.
    fn snapshot(&mut self) -> Result<Batch, SinkError> {
        if let Some(error) = self.lost.take() {
            return Err(error);
        }
        let mut batch = self.batch.clone();
        if self.open.is_some() {
            batch.end(&TxnEnd { start: self.open, ..TxnEnd::new(Outcome::Unknown) })?;
        }
        Ok(batch)
    }
}

/// A thread that panicked while it recorded left whole operations behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client of a store: a thread, a task, a connection.
pub struct Session {
    shared: Arc<Shared>,
    log: Arc<Mutex<Log>>,
}

impl Session {
    /// Begins a transaction: call it before the first statement goes to the store.
    pub fn begin(&mut self) -> Transaction<'_> {
        {
            let mut log = lock(&self.log);
            let session = log.session.into();
            let begun = log.batch.begin(&TxnStart { session, id: None, line: None });
            log.keep(begun);
            // Last, so that the time it took to get here is not the transaction's.
            log.open = Some(self.shared.now());
        }
        Transaction { session: self }
    }
}

impl Shared {
    fn now(&self) -> i64 {
        i64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&lock(&self.log).session).finish()
    }
}

/// A transaction that a client runs. Each call records what the store has answered.
///
/// One that is dropped without an end is of unknown outcome.
#[must_use = "a transaction that is dropped is of unknown outcome"]
#[derive(Debug)]
pub struct Transaction<'s> {
    session: &'s Session,
}

impl Transaction<'_> {
    /// The client read a key, and this is what it held; [`None`] if nothing was there.
    pub fn read(&mut self, key: impl AsValue, value: impl AsValue) -> &mut Self {
        key.with_value(|key| {
            value.with_value(|value| self.op(&Op::Read { key, value: Some(value) }))
        })
    }

    /// The client wrote a key.
    pub fn write(&mut self, key: impl AsValue, value: impl AsValue) -> &mut Self {
        key.with_value(|key| value.with_value(|value| self.op(&Op::Write { key, value })))
    }

    /// The client deleted a key.
    pub fn delete(&mut self, key: impl AsValue) -> &mut Self {
        key.with_value(|key| self.op(&Op::Delete { key }))
    }

    /// The client appended an element to a list.
    pub fn append(&mut self, key: impl AsValue, element: impl AsValue) -> &mut Self {
        key.with_value(|key| element.with_value(|element| self.op(&Op::Append { key, element })))
    }

    /// The client read a whole list, and these are its elements.
    pub fn read_list<V: AsValue>(
        &mut self,
        key: impl AsValue,
        elements: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        let elements: Vec<_> = elements.into_iter().map(|element| element.to_value()).collect();
        let elements: Vec<_> = elements.iter().map(|element| element.as_ref()).collect();
        key.with_value(|key| self.op(&Op::ReadList { key, elements: Some(&elements) }))
    }

    /// The client wrote a key if it held an expected value, and this is whether it did.
    pub fn compare_and_set(
        &mut self,
        key: impl AsValue,
        expected: impl AsValue,
        new: impl AsValue,
        applied: bool,
    ) -> &mut Self {
        let applied = Some(applied);
        key.with_value(|key| {
            expected.with_value(|expected| {
                new.with_value(|new| {
                    self.op(&Op::CompareAndSet { key, expected, new, applied, seen: None })
                })
            })
        })
    }

    /// The client wrote a key if nothing was there, and this is whether it did.
    pub fn insert_if_absent(
        &mut self,
        key: impl AsValue,
        value: impl AsValue,
        applied: bool,
    ) -> &mut Self {
        let applied = Some(applied);
        key.with_value(|key| {
            value.with_value(|value| {
                self.op(&Op::InsertIfAbsent { key, value, applied, seen: None })
            })
        })
    }

    /// The store said that the transaction committed: call it after that answer came.
    pub fn commit(self) {
        self.end(Outcome::Committed);
    }

    /// The transaction certainly did not commit: the client gave it up, or the store refused it.
    pub fn rollback(self) {
        self.end(Outcome::Aborted);
    }

    /// Nobody can tell whether the transaction committed: the commit was sent, and no answer came.
    /// Dropping it says the same.
    pub fn unknown(self) {
        drop(self);
    }

    fn op(&mut self, op: &OpInput<'_>) -> &mut Self {
        lock(&self.session.log).op(op);
        self
    }

    fn end(self, outcome: Outcome) {
        let finish = self.session.shared.now();
        lock(&self.session.log).end(outcome, Some(finish));
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let mut log = lock(&self.session.log);
        if log.open.is_some() {
            log.end(Outcome::Unknown, None);
        }
    }
}

/// What a check of recorded transactions came to. As text, it is the explanation for a person.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The level that was asked for.
    pub level: Level,
    /// What was recorded.
    pub history: History,
    /// The answer: one.
    pub results: Vec<LevelResult>,
}

impl Checked {
    /// Whether the history has something to show, and satisfies the level.
    pub fn is_satisfied(&self) -> bool {
        self.history.has_evidence()
            && self.results.iter().all(|result| result.verdict.is_satisfied())
    }

    /// How often transactions overlapped: a history in which they hardly did shows little.
    pub fn contention(&self) -> Option<Contention> {
        Contention::of(&self.history)
    }

    /// Whether the level is violated.
    pub fn is_violated(&self) -> bool {
        self.results.iter().any(|result| result.verdict.is_violated())
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.history.has_evidence() {
            return f
                .write_str("nothing to check: no transaction that reads or writes was committed");
        }
        let named = [self.level];
        let report = Report::new("recorded", &self.history, &self.results)
            .with_named(&named)
            .with_max_anomalies(SHOWN);
        f.write_str(&as_text(&report))
    }
}

/// How many anomalies a failed test shows in full.
const SHOWN: usize = 3;
