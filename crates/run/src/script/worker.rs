//! A session of a script: a thread with a connection, which does what it is told.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolario_model::Value;

use super::answer::{ExpectedAnswer, shown, write_rows};
use isolario_db::SqlConnection;
use isolario_db::{Access, Connection, Database, RegisterValue};
use isolario_db::{DbError, ErrorClass};

/// What came of a statement that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// It is done, and there is nothing to tell.
    Done,
    /// What a register holds.
    Value(RegisterValue),
    /// The elements of a list.
    List(Vec<i64>),
    /// The rows that a statement in SQL returned, and how many it changed.
    Rows {
        /// The rows.
        rows: Vec<Vec<Value>>,
        /// How many rows were changed.
        changed: u64,
    },
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Done => Ok(()),
            Reply::Value(held) => ExpectedAnswer::Value(*held).fmt(f),
            Reply::List(elements) => ExpectedAnswer::List(elements.clone()).fmt(f),
            Reply::Rows { rows, changed } if rows.is_empty() && *changed > 0 => {
                ExpectedAnswer::Count(*changed).fmt(f)
            }
            Reply::Rows { rows, .. } => {
                let rows: Vec<Vec<String>> =
                    rows.iter().map(|row| row.iter().map(shown).collect()).collect();
                write_rows(f, &rows)
            }
        }
    }
}

/// What a session is told to do, with the numbers of its keys.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Begin { writes: bool },
    Commit,
    Rollback,
    Read(u64),
    Write(u64, i64),
    Delete(u64),
    ReadList(u64),
    Append(u64, i64),
    Sql(String),
}

/// What came of the step of that number.
pub(super) struct Report {
    pub(super) step: usize,
    pub(super) result: Result<Reply, DbError>,
    /// When the answer came.
    pub(super) at: Instant,
}

/// A connection of either kind.
pub(super) enum Line {
    Keys(Box<dyn Connection>),
    Sql(Box<dyn SqlConnection>),
}

impl Line {
    pub(super) fn open(database: &dyn Database, is_sql: bool) -> Result<Line, DbError> {
        Ok(match is_sql {
            true => Line::Sql(database.sql()?.connect_sql()?),
            false => Line::Keys(database.connect()?),
        })
    }

    /// The server's number of it, by which its view of locks knows it.
    fn id(&mut self) -> Result<Option<u64>, DbError> {
        match self {
            Line::Keys(connection) => connection.id(),
            Line::Sql(connection) => Ok(connection.id()),
        }
    }

    /// Does it. After an error the transaction is given up at once, as the contract of connections
    /// has it: nobody is to wait for what it has locked.
    fn obey(&mut self, order: &Order, in_transaction: &mut bool) -> Result<Reply, DbError> {
        let done = match self {
            Line::Keys(connection) => keys(connection.as_mut(), order),
            Line::Sql(connection) => sql(connection.as_mut(), order, *in_transaction),
        };
        match order {
            Order::Begin { .. } => *in_transaction = true,
            Order::Commit | Order::Rollback => *in_transaction = false,
            _ => {}
        }
        done.map_err(|error| {
            *in_transaction = false;
            match error.disconnected || self.give_up().is_ok() {
                true => error,
                false => error.disconnected(),
            }
        })
    }

    fn give_up(&mut self) -> Result<(), DbError> {
        match self {
            Line::Keys(connection) => connection.rollback(),
            // There is nothing to give up after some errors.
            Line::Sql(connection) => match connection.statement("ROLLBACK", false) {
                Err(error) if error.disconnected => Err(error),
                _ => Ok(()),
            },
        }
    }
}

fn keys(connection: &mut dyn Connection, order: &Order) -> Result<Reply, DbError> {
    match order {
        Order::Begin { writes: true } => connection.begin(Access::Write).map(|()| Reply::Done),
        Order::Begin { writes: false } => connection.begin(Access::Read).map(|()| Reply::Done),
        Order::Commit => connection.commit().map(|_| Reply::Done),
        Order::Rollback => connection.rollback().map(|()| Reply::Done),
        Order::Read(key) => connection.read(*key).map(Reply::Value),
        Order::Write(key, value) => connection.write(*key, *value).map(|()| Reply::Done),
        Order::Delete(key) => connection.delete(*key).map(|()| Reply::Done),
        Order::ReadList(key) => {
            let mut elements = Vec::new();
            connection.read_list(*key, &mut elements)?;
            Ok(Reply::List(elements))
        }
        Order::Append(key, element) => connection.append(*key, *element).map(|()| Reply::Done),
        Order::Sql(_) => Err(DbError::unsupported("statements in SQL")),
    }
}

fn sql(
    connection: &mut dyn SqlConnection,
    order: &Order,
    in_transaction: bool,
) -> Result<Reply, DbError> {
    let text = match order {
        Order::Begin { .. } => "BEGIN",
        Order::Commit => "COMMIT",
        Order::Rollback => "ROLLBACK",
        Order::Sql(text) => text,
        _ => return Err(DbError::unsupported("registers among statements in SQL")),
    };
    let ends = matches!(order, Order::Commit) || !in_transaction;
    let answer = connection.statement(text, ends)?;
    Ok(match order {
        Order::Sql(_) => Reply::Rows { rows: answer.rows, changed: answer.changed },
        _ => Reply::Done,
    })
}

/// What sessions wait for that are to send something at the same time: that all of them are awake.
#[derive(Clone)]
pub(super) struct Start(Option<Arc<AtomicUsize>>);

/// How long to wait for the others. A machine may be too busy to have them all awake at once.
const ASLEEP: Duration = Duration::from_millis(20);

impl Start {
    pub(super) fn of(sessions: usize) -> Start {
        Start((sessions > 1).then(|| Arc::new(AtomicUsize::new(sessions))))
    }

    fn wait(&self) {
        let Some(missing) = &self.0 else { return };
        missing.fetch_sub(1, Ordering::AcqRel);
        let begun = Instant::now();
        while missing.load(Ordering::Acquire) > 0 && begun.elapsed() < ASLEEP {
            std::hint::spin_loop();
        }
    }
}

/// The thread of a session.
pub(super) struct Worker {
    orders: Option<Sender<(usize, Order, Start)>>,
    thread: Option<JoinHandle<()>>,
    /// The server's number of its connection.
    pub(super) id: Option<u64>,
}

impl Worker {
    pub(super) fn start(mut line: Line, reports: Sender<Report>) -> Result<Worker, DbError> {
        let id = line.id()?;
        let (orders, received) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("isolario-script".to_owned())
            .spawn(move || work(line, &received, &reports))
            .map_err(|error| DbError::fatal(format!("cannot start a thread: {error}")))?;
        Ok(Worker { orders: Some(orders), thread: Some(thread), id })
    }

    pub(super) fn send(&self, step: usize, order: Order, start: Start) -> Result<(), DbError> {
        let orders = self.orders.as_ref();
        let sent = orders.and_then(|orders| orders.send((step, order, start)).ok());
        sent.ok_or_else(|| DbError::new(ErrorClass::Fatal, "the thread of a session has ended"))
    }
}

/// Ends when nobody can give orders any more, or nobody listens.
fn work(mut line: Line, orders: &Receiver<(usize, Order, Start)>, reports: &Sender<Report>) {
    let mut in_transaction = false;
    while let Ok((step, order, start)) = orders.recv() {
        start.wait();
        let result = line.obey(&order, &mut in_transaction);
        if reports.send(Report { step, result, at: Instant::now() }).is_err() {
            break;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to tell.
            let _ = thread.join();
        }
    }
}
