//! A session of a round: sends transactions, and records what comes back.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use isolario_db::{DbError, ErrorClass, SqlConnection};
use isolario_model::Outcome;
use isolario_sql::{
    Failure, Instrument, Instrumented, Planned, Product, Recorded, RecordedTxn, Schema, Snapshot,
    savepoint_of, take_seen,
};

/// A read of whole tables beside each query, which tells what the query met and did not show. In either case, all
/// tables are read before each statement and before the commit, so that the contents of all versions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Companion {
    /// That read tells it: it comes from the same snapshot.
    BeforeStatement,
    /// The query itself tells it.
    InStatement,
}

/// What the sessions of a round share.
pub(super) struct Shared<'r> {
    pub(super) product: &'r Product,
    /// How statements are rewritten; none if they are sent as they are.
    pub(super) instrument: Option<Instrument<'r>>,
    /// How sessions tell which versions their queries meet, if they are to.
    pub(super) companion: Option<Companion>,
    /// The reads of all tables beside their statements.
    looks: Vec<Instrumented>,
    begun: Instant,
    next_txn: AtomicU32,
    next_turn: AtomicU64,
}

impl<'r> Shared<'r> {
    pub(super) fn new(product: &'r Product, instrument: Option<Instrument<'r>>) -> Shared<'r> {
        Shared {
            product,
            instrument,
            companion: None,
            looks: Vec::new(),
            begun: Instant::now(),
            next_txn: AtomicU32::new(1),
            next_turn: AtomicU64::new(1),
        }
    }

    /// The same, and sessions tell which versions their queries meet, if that is wanted.
    pub(super) fn with_companion(self, companion: Option<Companion>) -> Shared<'r> {
        let Some(instrument) = self.instrument.filter(|_| companion.is_some()) else { return self };
        let look = |table| instrument.statement(&Schema::full_read(table), 0, 0);
        let looks = instrument.schema.tables.iter().map(look).collect();
        Shared { companion, looks, ..self }
    }

    /// The number of a transaction that begins.
    pub(super) fn next_txn(&self) -> u32 {
        self.next_txn.fetch_add(1, Ordering::SeqCst)
    }

    /// The next event of the round.
    pub(super) fn turn(&self) -> u64 {
        self.next_turn.fetch_add(1, Ordering::SeqCst)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// A statement as it is sent.
    pub(super) fn prepared(&self, sql: &str, txn: u32, number: u32) -> Instrumented {
        match &self.instrument {
            Some(instrument) => {
                let sent = instrument.statement(sql, txn, number);
                match self.companion {
                    Some(Companion::InStatement) => instrument.with_all_rows(sql, sent),
                    _ => sent,
                }
            }
            None => Instrumented::plain(
                isolario_sql::kind_of(self.product, sql),
                self.product.respell(sql),
            ),
        }
    }
}

/// What an error leaves of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aftermath {
    /// It goes on: the statement alone was undone.
    GoesOn,
    /// It is over, and has to be rolled back.
    Over,
    /// It is over, and so is the connection.
    Lost,
}

impl Aftermath {
    /// PostgreSQL gives the whole transaction up after any error; the others undo the statement,
    /// unless the error says that the transaction has no prospects.
    fn of(error: &DbError, product: &Product) -> Aftermath {
        match error.class {
            _ if error.disconnected => Aftermath::Lost,
            ErrorClass::Retryable => Aftermath::Over,
            _ if product.ends_on_error() => Aftermath::Over,
            _ => Aftermath::GoesOn,
        }
    }
}

/// A session with its connection.
pub(super) struct Client<'r> {
    pub(super) shared: &'r Shared<'r>,
    pub(super) session: u32,
    pub(super) connection: Box<dyn SqlConnection>,
}

/// A transaction that was run, and whether the connection survived it.
pub(super) struct Ran {
    pub(super) txn: RecordedTxn,
    pub(super) is_lost: bool,
}

/// What is there before any transaction, if that is wanted.
pub(super) fn first_state(clients: &mut [Client<'_>]) -> Result<Option<Snapshot>, DbError> {
    clients.first_mut().map_or(Ok(None), Client::snapshot)
}

impl Client<'_> {
    /// Runs a transaction, from its beginning to its end, or until it is to stop: then it is rolled back.
    pub(super) fn transaction(&mut self, planned: &Planned, stop: &dyn Fn() -> bool) -> Ran {
        let mut txn = RecordedTxn::new(self.shared.next_txn(), self.session);
        let start = self.shared.now();
        let is_lost = self.run(planned, stop, &mut txn);
        txn.times = Some((start, self.shared.now()));
        Ran { txn, is_lost }
    }

    /// Tells whether the connection was lost.
    fn run(&mut self, planned: &Planned, stop: &dyn Fn() -> bool, txn: &mut RecordedTxn) -> bool {
        // A statement by itself has no time to look around.
        if planned.autocommit && self.shared.companion.is_none() {
            let sent = self.shared.prepared(&planned.statements[0], txn.id, 1);
            // A read that has to go before it makes it two statements.
            if sent.before.is_none() {
                return self.alone(&planned.statements[0], &sent, txn);
            }
        }
        if self.begin(txn) {
            return true;
        }
        if txn.error.is_some() {
            return false;
        }
        for (number, sql) in (1..).zip(&planned.statements) {
            if stop() {
                return self.roll_back();
            }
            let sent = self.shared.prepared(sql, txn.id, number);
            match self.statement(sql, &sent, number, txn) {
                None | Some(Aftermath::GoesOn) => {}
                Some(Aftermath::Lost) => return true,
                Some(Aftermath::Over) => return self.roll_back(),
            }
        }
        self.end(txn, planned.commits)
    }

    /// Ends a transaction; tells whether the connection was lost.
    pub(super) fn end(&mut self, txn: &mut RecordedTxn, commits: bool) -> bool {
        let left = if commits { self.snapshot() } else { Ok(None) };
        txn.end_turn.0 = self.shared.turn();
        let is_lost = match left {
            Ok(left) if commits => {
                txn.left = left;
                self.commit(txn)
            }
            Ok(_) => self.roll_back(),
            // A commit after an error is a rollback that PostgreSQL calls a success.
            Err(error) => {
                txn.error = Some(error.to_string());
                error.disconnected || self.roll_back()
            }
        };
        txn.end_turn.1 = self.shared.turn();
        is_lost
    }

    /// Begins a transaction; tells whether the connection was lost.
    pub(super) fn begin(&mut self, txn: &mut RecordedTxn) -> bool {
        let Err(error) = self.connection.statement(self.shared.product.begin(), false) else {
            return false;
        };
        txn.error = Some(error.to_string());
        error.disconnected
    }

    /// A statement outside of any transaction; tells whether the connection was lost.
    pub(super) fn alone(&mut self, sql: &str, sent: &Instrumented, txn: &mut RecordedTxn) -> bool {
        txn.autocommit = true;
        let mut recorded = Recorded::new(1, sql, sent);
        recorded.turn.0 = self.shared.turn();
        let answer = self.connection.statement(&sent.sql, true);
        recorded.turn.1 = self.shared.turn();
        txn.end_turn = recorded.turn;
        let mut is_lost = false;
        match answer {
            Ok(answer) => {
                recorded.answered(sent, None, answer.rows, answer.changed);
                txn.outcome = Outcome::Committed;
            }
            Err(error) => {
                if error.class == ErrorClass::Unknown {
                    txn.outcome = Outcome::Unknown;
                }
                is_lost = error.disconnected;
                recorded.failure = Some(failure(&error));
                txn.error = Some(error.to_string());
            }
        }
        txn.statements.push(recorded);
        is_lost
    }

    /// A statement within a transaction; tells what an error leaves of it.
    pub(super) fn statement(
        &mut self,
        sql: &str,
        sent: &Instrumented,
        number: u32,
        txn: &mut RecordedTxn,
    ) -> Option<Aftermath> {
        let mut recorded = Recorded::new(number, sql, sent);
        recorded.turn.0 = self.shared.turn();
        let before = self.snapshot().and_then(|looked| {
            if self.shared.companion == Some(Companion::BeforeStatement) {
                let met = looked.iter().flatten().map(|(seen, _)| seen.clone());
                recorded.met = Some(met.collect());
            }
            recorded.looked = looked;
            let Some(before) = &sent.before else { return Ok(None) };
            Ok(Some(self.connection.statement(before, false)?.rows))
        });
        let answer =
            before.and_then(|before| Ok((before, self.connection.statement(&sent.sql, false)?)));
        recorded.turn.1 = self.shared.turn();
        let aftermath = match answer {
            Ok((before, answer)) => {
                recorded.answered(sent, before, answer.rows, answer.changed);
                if let Some(savepoint) = savepoint_of(sql, "ROLLBACK TO SAVEPOINT ") {
                    txn.undo_to(savepoint, number);
                }
                None
            }
            Err(error) => {
                recorded.failure = Some(failure(&error));
                let aftermath = Aftermath::of(&error, self.shared.product);
                if aftermath != Aftermath::GoesOn {
                    txn.error = Some(error.to_string());
                }
                Some(aftermath)
            }
        };
        txn.statements.push(recorded);
        aftermath
    }

    /// All rows of all tables, if they are wanted.
    fn snapshot(&mut self) -> Result<Option<Snapshot>, DbError> {
        if self.shared.companion.is_none() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for sent in &self.shared.looks {
            for mut row in self.connection.statement(&sent.sql, false)?.rows {
                let seen = take_seen(&sent.shows, std::slice::from_mut(&mut row)).pop();
                let Some(seen) = seen else { return Ok(None) };
                all.push((seen, row));
            }
        }
        Ok(Some(all))
    }

    /// Commits; tells whether the connection was lost.
    pub(super) fn commit(&mut self, txn: &mut RecordedTxn) -> bool {
        let Err(error) = self.connection.statement("COMMIT", true) else {
            txn.outcome = Outcome::Committed;
            return false;
        };
        txn.error = Some(error.to_string());
        if error.class == ErrorClass::Unknown {
            txn.outcome = Outcome::Unknown;
        }
        error.disconnected || self.roll_back()
    }

    /// Rolls back, and tells whether the connection was lost. Some errors have rolled back already: then there is
    /// nothing to do, which some databases call an error.
    pub(super) fn roll_back(&mut self) -> bool {
        self.connection.statement("ROLLBACK", false).is_err_and(|error| error.disconnected)
    }
}

fn failure(error: &DbError) -> Failure {
    Failure { code: error.code.clone(), message: error.message.clone() }
}
