//! A session: a thread with a connection, one transaction after the other.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isolario_formats::LiveRecorder;
use isolario_model::{SinkError, StopReason};
use isolario_workload::{AttemptedTxn, PlannedOp};

use super::attempt::{Client, Failed};
use super::events::Lost;
use super::think::Think;
use super::{Node, Shared, failed, not_recorded};
use isolario_db::Connection;
use isolario_db::{DbError, ErrorClass};

/// How long the first connection may take: a server may still be starting.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Between two attempts at what comes last: nobody else is there to be let go first.
const LAST_PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Session<'r> {
    shared: &'r Shared<'r>,
    /// Its number in the workload.
    number: u32,
    /// How many connections it had. A connection is a session of the history: what was promised to
    /// one holds for it alone, and nothing follows a transaction of unknown outcome.
    connections: u32,
    connection: Option<Box<dyn Connection>>,
    /// Since when there is none, once there was one.
    lost: Option<Lost>,
    client: Client<'r>,
    plan: Vec<PlannedOp>,
}

/// What came of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Committed,
    /// Not committed, and not to be tried again.
    GivenUp,
    /// The session cannot go on.
    Over,
}

impl<'r> Session<'r> {
    pub(super) fn new(shared: &'r Shared<'r>, number: u32) -> Session<'r> {
        let think = Think::new(shared.plan.think, number, shared.control);
        let records = shared.recorder.map(LiveRecorder::session);
        let mut client = Client::new(records, shared.epoch, think, shared.names.as_ref());
        client.group = shared.meetings.member(number);
        client.gatherer = shared.gathering.as_ref().and_then(|all| all.member(number));
        client.stepper = shared.lockstep.as_ref().and_then(|all| all.member(number));
        Session {
            shared,
            number,
            connections: 0,
            connection: None,
            lost: None,
            client,
            plan: Vec::new(),
        }
    }

    /// Opens the first connection.
    pub(super) fn connect_first(&mut self) -> Result<(), DbError> {
        let deadline = Instant::now() + FIRST_PATIENCE;
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.shared.node(self.number).connect() {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Err(error) if error.class == ErrorClass::Fatal => return Err(error),
                Err(error) if Instant::now() > deadline || self.shared.control.is_stopped() => {
                    return Err(error);
                }
                Err(_) => self.pause(&mut pause),
            }
        }
    }

    /// Runs transactions until there are enough of them, or until the run is stopped.
    pub(super) fn drive(mut self) {
        for position in 0.. {
            if !self.wait_for_turn() {
                break;
            }
            self.shared.positions.fetch_max(position + 1, Ordering::Relaxed);
            if let Some(stepper) = &self.client.stepper {
                stepper.begin(position);
            }
            let ended = self.transaction(position);
            match &self.client.stepper {
                _ if ended != Ended::Committed => self.shared.tickets.give_back(),
                Some(stepper) => stepper.committed(),
                None => {}
            }
            if ended == Ended::Over {
                break;
            }
        }
        if self.connection.is_some() {
            self.node().reached.fetch_add(1, Ordering::Relaxed);
        }
        self.found_again(true);
        let flushed = self.client.flush();
        self.recorded(flushed);
        self.shared.sighted(std::mem::take(&mut self.client.sightings));
    }

    /// Runs these transactions when everybody else is done, each until it commits, and returns whether all of them
    /// did.
    pub(super) fn drive_last(mut self, txns: &[Vec<PlannedOp>]) -> bool {
        let deadline = Instant::now() + self.shared.plan.patience;
        for plan in txns {
            while self.attempt_last(plan).is_none() {
                if Instant::now() > deadline {
                    return false;
                }
                std::thread::sleep(LAST_PAUSE);
            }
        }
        let flushed = self.client.flush();
        self.recorded(flushed);
        true
    }

    /// One attempt, on a new connection if there is none; nothing if it has to be tried again.
    fn attempt_last(&mut self, plan: &[PlannedOp]) -> Option<()> {
        if self.connection.is_none() {
            self.connection = Some(self.shared.node(self.number).connect().ok()?);
            self.connections += 1;
        }
        // Other sessions have numbers from 0 on.
        let session = -i64::from(self.connections);
        let connection = self.connection.as_mut()?;
        match self.client.attempt(session, None, plan, connection.as_mut()) {
            Ok(_) => Some(()),
            Err(Failed::Recording(error)) => {
                self.recorded(Err(error));
                Some(())
            }
            Err(Failed::Database(error)) => {
                self.clean_up(&error);
                None
            }
        }
    }

    fn node(&self) -> &'r Node {
        &self.shared.nodes[self.shared.node_number(self.number)]
    }

    /// Waits until the next transaction may begin, if one is still wanted.
    fn wait_for_turn(&mut self) -> bool {
        let Shared { control, tickets, pace, .. } = self.shared;
        if control.is_stopped() || !tickets.take() {
            return false;
        }
        if let Some(moment) = pace.next() {
            if moment > Instant::now() {
                let flushed = self.client.flush();
                self.recorded(flushed);
            }
            control.sleep_until(moment);
        }
        if control.is_stopped() {
            tickets.give_back();
            return false;
        }
        true
    }

    /// A transaction, tried as often as allowed.
    fn transaction(&mut self, position: u64) -> Ended {
        let mut pause = SHORTEST_PAUSE;
        for attempt in 0..=self.shared.plan.max_retries {
            if attempt > 0 {
                self.shared.meter.retried();
                self.pause_before_attempt(&mut pause);
            }
            if self.shared.control.is_stopped() || !self.reconnect() {
                return Ended::Over;
            }
            if let Some(group) = &self.client.group {
                group.begin();
            }
            if let Some(gatherer) = &mut self.client.gatherer {
                gatherer.begin(position, attempt);
            }
            let error = match self.attempt(AttemptedTxn { session: self.number, position, attempt })
            {
                Ok(took) => {
                    self.shared.meter.committed(Duration::from_nanos(took));
                    return Ended::Committed;
                }
                Err(Failed::Recording(error)) => {
                    self.recorded(Err(error));
                    return Ended::Over;
                }
                Err(Failed::Database(error)) => error,
            };
            self.clean_up(&error);
            match error.class {
                ErrorClass::Retryable => {}
                ErrorClass::Aborted | ErrorClass::Unknown => return Ended::GivenUp,
                ErrorClass::Fatal => {
                    self.give_up(&error);
                    return Ended::Over;
                }
            }
        }
        Ended::GivenUp
    }

    fn attempt(&mut self, place: AttemptedTxn) -> Result<u64, Failed> {
        self.plan.clear();
        self.shared.plan.generator.plan(place, &mut self.plan);
        let gone = || Failed::Database(DbError::retryable("not connected").disconnected());
        let connection = self.connection.as_mut().ok_or_else(gone)?;
        if connection.is_read_only() {
            self.plan.iter_mut().for_each(|op| *op = op.without_writing());
        }
        if connection.writes_by_predicate_alone() {
            leave_alone(&mut self.plan);
        }
        if let Some(stepper) = &mut self.client.stepper {
            // A later attempt waits for no session: the others may wait for what it holds.
            let waits = place.attempt == 0 && self.shared.plan.generator.is_slow(place);
            stepper.set_slow(waits.then_some(&self.plan));
        }
        let lives = i64::from(self.connections) * i64::from(self.shared.plan.sessions);
        let session = i64::from(self.number) + lives;
        let name = self.shared.plan.generator.name(place);
        let done = self.client.attempt(session, name, &self.plan, connection.as_mut());
        if done.is_ok() {
            self.shared.meter.operations(self.plan.len() as u64);
        }
        done
    }

    /// Counts an error, and brings the connection to where a transaction can begin.
    fn clean_up(&mut self, error: &DbError) {
        let node = self.shared.node_number(self.number);
        self.shared.meter.failed(node, error);
        // Conflicts are what a run is for.
        if error.class != ErrorClass::Retryable {
            self.shared.events.error(node, error);
        }
        let lost = error.disconnected || error.class == ErrorClass::Unknown;
        let usable = !lost && self.connection.as_mut().is_some_and(|open| open.rollback().is_ok());
        if !usable {
            self.connection = None;
            self.lost = Some(Lost::now(error));
        }
    }

    /// Opens another connection if there is none, as soon as there is one to be had. Tells whether
    /// the session can go on.
    fn reconnect(&mut self) -> bool {
        let mut pause = SHORTEST_PAUSE;
        while self.connection.is_none() {
            let flushed = self.client.flush();
            self.recorded(flushed);
            if self.shared.control.is_stopped() {
                return false;
            }
            match self.shared.node(self.number).connect() {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.connections += 1;
                    self.shared.meter.reconnected();
                    self.node().refused(None);
                    self.found_again(false);
                }
                Err(error) if error.class == ErrorClass::Fatal => {
                    self.give_up(&error);
                    return false;
                }
                Err(error) => {
                    self.shared.meter.unreachable(self.shared.node_number(self.number), &error);
                    self.lost.iter_mut().for_each(|lost| lost.refused(&error));
                    self.node().refused(Some(error.to_string()));
                    self.pause(&mut pause);
                }
            }
        }
        true
    }

    /// Notes for how long there was no connection.
    fn found_again(&mut self, is_over: bool) {
        if let Some(lost) = self.lost.take() {
            self.shared.events.lost(&lost, self.shared.node_number(self.number), is_over);
        }
    }

    /// Ends the run: the node cannot be used.
    fn give_up(&self, error: &DbError) {
        let cause = failed(self.shared.node_number(self.number), error);
        self.shared.control.stop(StopReason::Database, Some(cause));
    }

    /// A history that cannot be written ends the run.
    fn recorded(&self, result: Result<(), SinkError>) {
        if let Err(error) = result {
            self.shared.control.stop(StopReason::Recording, Some(not_recorded(&error)));
        }
    }

    /// As [`Session::pause`], but not while other sessions wait for this one.
    fn pause_before_attempt(&self, pause: &mut Duration) {
        match &self.client.stepper {
            Some(stepper) => {
                stepper.pause(*pause, self.shared.control);
                *pause = (*pause * 2).min(LONGEST_PAUSE);
            }
            None => self.pause(pause),
        }
    }

    fn pause(&self, pause: &mut Duration) {
        self.shared.control.sleep_until(Instant::now() + *pause);
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }
}

/// Leaves the first change by predicate as the only write of a transaction that has one.
fn leave_alone(plan: &mut [PlannedOp]) {
    let Some(first) = plan.iter().position(PlannedOp::writes_by_predicate) else { return };
    for (_, op) in plan.iter_mut().enumerate().filter(|(at, _)| *at != first) {
        *op = op.without_writing();
    }
}

#[cfg(test)]
mod tests {
    use isolario_workload::{Column, RowValues, TableOp, ValueRange};

    use super::*;

    #[test]
    fn a_change_by_predicate_can_be_left_alone() {
        let range = ValueRange { column: Column::A, low: 1, high: 9 };
        let held = RowValues { a: 1, b: 2, version: 3 };
        let insert = PlannedOp::Table(TableOp::Insert { key: 5, held });
        let update = PlannedOp::Table(TableOp::RangeUpdate { range, b: 7, version: 4 });
        let delete = PlannedOp::Table(TableOp::Delete { range, version: 5 });
        let mut plan = [insert, update, delete];
        leave_alone(&mut plan);
        assert_eq!(plan, [insert.without_writing(), update, delete.without_writing()]);
        let mut plan = [insert, insert];
        leave_alone(&mut plan);
        assert_eq!(plan, [insert, insert]);
    }
}
