//! One attempt at a transaction: asked of the database, and recorded.

use std::collections::HashMap;
use std::time::Instant;

use isolario_formats::SessionRecorder;
use isolario_model::{Op, OpInput, Outcome, SinkError, TxnEnd, TxnStart, ValueRef};
use isolario_workload::{KeyNames, PlannedOp, TableOp};

use super::lockstep::Stepper;
use super::meeting::{Gatherer, Member, Point};
use super::think::Think;
use isolario_db::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use isolario_db::{DbError, ErrorClass, StateReport, TableResult};

use super::rows;

/// Why an attempt did not commit.
pub(super) enum Failed {
    /// The database said so, or said nothing.
    Database(DbError),
    /// It could not be recorded. Then nothing was sent, or the run is over.
    Recording(SinkError),
}

impl From<SinkError> for Failed {
    fn from(error: SinkError) -> Failed {
        Failed::Recording(error)
    }
}

/// What a session needs for its attempts.
pub(super) struct Client<'r> {
    /// Where it is recorded; nowhere in a run that only measures.
    pub(super) records: Option<SessionRecorder<'r>>,
    /// All times are nanoseconds since this moment.
    pub(super) epoch: Instant,
    think: Think<'r>,
    /// What keys are called, if not by their numbers.
    names: Option<&'r KeyNames>,
    /// What compare-and-sets expect: the last value the client saw of a key.
    known: HashMap<u64, RegisterValue>,
    /// Reused from attempt to attempt.
    elements: Vec<i64>,
    intended: Vec<OpInput<'r>>,
    found: TableResult,
    /// What the database told about itself.
    pub(super) sightings: Vec<StateReport>,
    /// The others that its transactions meet, if any.
    pub(super) group: Option<Member<'r>>,
    /// All sessions, where they gather in some transactions.
    pub(super) gatherer: Option<Gatherer<'r>>,
    /// All sessions, where they stay together.
    pub(super) stepper: Option<Stepper<'r>>,
}

/// What an operation came to.
enum Answer {
    Done,
    Held(RegisterValue),
    Conditional(ConditionalResult),
    /// In [`Client::elements`].
    List,
}

impl<'r> Client<'r> {
    pub(super) fn new(
        records: Option<SessionRecorder<'r>>,
        epoch: Instant,
        think: Think<'r>,
        names: Option<&'r KeyNames>,
    ) -> Client<'r> {
        Client {
            records,
            epoch,
            think,
            names,
            known: HashMap::new(),
            elements: Vec::new(),
            intended: Vec::new(),
            found: TableResult::default(),
            sightings: Vec::new(),
            group: None,
            gatherer: None,
            stepper: None,
        }
    }

    /// Runs a plan as a transaction of a session, and records it. Tells how many nanoseconds it
    /// took, if it committed.
    pub(super) fn attempt(
        &mut self,
        session: i64,
        name: Option<i64>,
        plan: &[PlannedOp],
        connection: &mut dyn Connection,
    ) -> Result<u64, Failed> {
        let id = name.map(ValueRef::Int);
        self.record_intent(&TxnStart { session: session.into(), id, line: None }, plan)?;
        let start = self.now();
        let result = self.execute(name, plan, connection)?;
        let finish = self.now();
        let message = result.as_ref().err().map(DbError::to_string);
        let end = match &result {
            Ok(receipt) => TxnEnd {
                finish: Some(finish),
                db_start: receipt.snapshot,
                db_commit: receipt.commit,
                ..TxnEnd::new(Outcome::Committed)
            },
            Err(error) if error.class == ErrorClass::Unknown => TxnEnd::new(Outcome::Unknown),
            Err(_) => TxnEnd { finish: Some(finish), ..TxnEnd::new(Outcome::Aborted) },
        };
        if let Some(records) = &mut self.records {
            // Whatever was sent is recorded, with an answer or without.
            records.end_complete(&TxnEnd {
                start: Some(start),
                error: message.as_deref(),
                ..end
            })?;
        }
        result.map(|_| finish.abs_diff(start)).map_err(Failed::Database)
    }

    /// Writes what is held back.
    pub(super) fn flush(&mut self) -> Result<(), SinkError> {
        self.records.as_mut().map_or(Ok(()), SessionRecorder::flush)
    }

    fn now(&self) -> i64 {
        self.epoch.elapsed().as_nanos() as i64
    }

    fn record_intent(&mut self, start: &TxnStart<'_>, plan: &[PlannedOp]) -> Result<(), SinkError> {
        let now = self.now();
        let Client { records: Some(records), names, known, intended, .. } = self else {
            return Ok(());
        };
        let writes = plan.iter().filter(|op| op.writes());
        intended.clear();
        let as_intended = |op: &PlannedOp| intent(*op, expected(known, op.key()), *names);
        intended.extend(writes.clone().filter_map(as_intended));
        let on_table = writes.filter_map(|op| match op {
            PlannedOp::Table(op) => Some(*op),
            _ => None,
        });
        rows::with_intents(on_table, intended, |intended| records.begin(start, Some(now), intended))
    }

    fn reach(&self, point: Point) {
        if let Some(gatherer) = &self.gatherer {
            gatherer.reach(point);
        }
    }

    /// Asks for one operation after the other, and for the commit. The outer result is about the
    /// recording, the inner one about the database.
    fn execute(
        &mut self,
        name: Option<i64>,
        plan: &[PlannedOp],
        connection: &mut dyn Connection,
    ) -> Result<Result<Receipt, DbError>, SinkError> {
        self.think.begin();
        if let Err(error) = connection.begin(access(plan)) {
            return Ok(Err(error));
        }
        if let (Some(name), snapshot @ Some(_)) = (name, connection.snapshot()) {
            self.sightings.push(StateReport { snapshot, ..StateReport::of(name, None) });
        }
        self.reach(Point::Begun);
        let mut number = 0;
        for (at, op) in plan.iter().enumerate() {
            if let Some(group) = &self.group {
                group.meet_before(at);
            }
            self.think.pause();
            if let PlannedOp::Table(op) = op {
                match self.run_on_table(name, &mut number, op, connection)? {
                    Ok(()) => continue,
                    Err(error) => return Ok(Err(error)),
                }
            }
            number += 1;
            let expected = expected(&self.known, op.key());
            let answer = self.ask(*op, expected, connection);
            self.record(*op, expected, answer.as_ref().ok())?;
            match answer {
                Ok(answer) => self.learn(*op, &answer),
                Err(error) => return Ok(Err(error)),
            }
            if let Some(stepper) = &self.stepper {
                stepper.done(at);
            }
        }
        self.think.pause();
        self.reach(Point::Done);
        let committed = connection.commit();
        if let (Ok(_), Some(name), shadow @ Some(_)) = (&committed, name, connection.shadow()) {
            self.sightings.push(StateReport { shadow, ..StateReport::of(name, None) });
        }
        Ok(committed)
    }

    /// Runs an operation on a table, and counts the operations that it makes in the history. An
    /// increment updates the row to what follows from what was read.
    fn run_on_table(
        &mut self,
        name: Option<i64>,
        number: &mut usize,
        op: &TableOp,
        connection: &mut dyn Connection,
    ) -> Result<Result<(), DbError>, SinkError> {
        let TableOp::Increment { key, version } = *op else {
            return self.ask_table(name, number, op, connection);
        };
        let read = self.ask_table(name, number, &TableOp::Read { key }, connection)?;
        match (read, self.found.rows.first()) {
            (Err(error), _) => Ok(Err(error)),
            (Ok(()), Some((_, Some(held)))) => {
                let held = held.incremented(version);
                self.ask_table(name, number, &TableOp::Update { key, held }, connection)
            }
            (Ok(()), _) => Ok(Ok(())),
        }
    }

    fn ask_table(
        &mut self,
        name: Option<i64>,
        number: &mut usize,
        op: &TableOp,
        connection: &mut dyn Connection,
    ) -> Result<Result<(), DbError>, SinkError> {
        self.found.clear();
        let asked = connection.table(op, &mut self.found);
        if let Some(records) = &mut self.records {
            let found = asked.is_ok().then_some(&self.found);
            let first = *number;
            *number += rows::record(op, found, |op| records.op(op))?;
            let TableResult { snapshot, txn, mark, .. } = &mut self.found;
            let told = snapshot.is_some() || txn.is_some() || mark.is_some();
            if let (Some(name), true) = (name, told) {
                let (snapshot, op) = (snapshot.take(), Some(first));
                let (txn, mark) = (*txn, *mark);
                self.sightings.push(StateReport {
                    snapshot,
                    txn,
                    mark,
                    ..StateReport::of(name, op)
                });
            }
        }
        Ok(asked)
    }

    fn ask(
        &mut self,
        op: PlannedOp,
        expected: RegisterValue,
        connection: &mut dyn Connection,
    ) -> Result<Answer, DbError> {
        Ok(match op {
            PlannedOp::Read { key } => Answer::Held(connection.read(key)?),
            PlannedOp::Write { key, value } => {
                connection.write(key, value)?;
                Answer::Done
            }
            PlannedOp::ReadList { key } => {
                self.elements.clear();
                connection.read_list(key, &mut self.elements)?;
                Answer::List
            }
            PlannedOp::Append { key, element } => {
                connection.append(key, element)?;
                Answer::Done
            }
            PlannedOp::InsertIfAbsent { key, value } => {
                Answer::Conditional(connection.insert_if_absent(key, value)?)
            }
            PlannedOp::CompareAndSet { key, new } => {
                Answer::Conditional(connection.compare_and_set(key, expected, new)?)
            }
            // They are asked for elsewhere.
            PlannedOp::Table(_) => Answer::Done,
        })
    }

    /// Records an operation with its answer. One without an answer was asked for all the same: it
    /// may have been done.
    fn record(
        &mut self,
        op: PlannedOp,
        expected: RegisterValue,
        answer: Option<&Answer>,
    ) -> Result<(), SinkError> {
        let Client { records: Some(records), names, elements, .. } = self else { return Ok(()) };
        if let (PlannedOp::ReadList { key }, Some(Answer::List)) = (op, answer) {
            let elements: Vec<_> = elements.iter().map(|element| ValueRef::Int(*element)).collect();
            let key = key_name(key, *names);
            return records.op(&Op::ReadList { key, elements: Some(&elements) });
        }
        match intent(op, expected, *names) {
            Some(op) => records.op(&with_answer(op, answer)),
            None => Ok(()),
        }
    }

    /// Remembers what single operations are going to compare with.
    fn learn(&mut self, op: PlannedOp, answer: &Answer) {
        match (op, answer) {
            (
                PlannedOp::InsertIfAbsent { key, value: new }
                | PlannedOp::CompareAndSet { key, new },
                Answer::Conditional(ConditionalResult::Applied),
            ) => _ = self.known.insert(key, Some(new)),
            (
                PlannedOp::InsertIfAbsent { key, .. } | PlannedOp::CompareAndSet { key, .. },
                Answer::Conditional(ConditionalResult::Failed { seen: Some(seen) }),
            ) => _ = self.known.insert(key, *seen),
            // Only who compares has to remember; others would remember every key.
            (PlannedOp::Read { key }, Answer::Held(held)) => {
                if let Some(known) = self.known.get_mut(&key) {
                    *known = *held;
                }
            }
            _ => {}
        }
    }
}

fn expected(known: &HashMap<u64, RegisterValue>, key: Option<u64>) -> RegisterValue {
    key.and_then(|key| known.get(&key)).copied().flatten()
}

fn access(plan: &[PlannedOp]) -> Access {
    match plan {
        plan if !plan.iter().any(PlannedOp::writes) => Access::Read,
        // An operation on a table may be several statements.
        [op] if op.key().is_some() => Access::Single,
        _ => Access::Write,
    }
}

/// What a key is called in a history.
pub fn key_name(key: u64, names: Option<&KeyNames>) -> ValueRef<'_> {
    let known = names.and_then(|names| names.get(key));
    known.map_or(ValueRef::Int(key as i64), ValueRef::Text)
}

fn value<'a>(held: RegisterValue) -> ValueRef<'a> {
    held.map_or(ValueRef::Nil, ValueRef::Int)
}

/// An operation before it has an answer; none for those on tables.
fn intent(op: PlannedOp, expected: RegisterValue, names: Option<&KeyNames>) -> Option<OpInput<'_>> {
    let key = key_name(op.key()?, names);
    Some(match op {
        PlannedOp::Read { .. } => Op::Read { key, value: None },
        PlannedOp::Write { value, .. } => Op::Write { key, value: value.into() },
        PlannedOp::ReadList { .. } => Op::ReadList { key, elements: None },
        PlannedOp::Append { element, .. } => Op::Append { key, element: element.into() },
        PlannedOp::InsertIfAbsent { value, .. } => {
            Op::InsertIfAbsent { key, value: value.into(), applied: None, seen: None }
        }
        PlannedOp::CompareAndSet { new, .. } => {
            let expected = value(expected);
            Op::CompareAndSet { key, expected, new: new.into(), applied: None, seen: None }
        }
        PlannedOp::Table(_) => return None,
    })
}

fn with_answer<'a>(op: OpInput<'a>, answer: Option<&Answer>) -> OpInput<'a> {
    let (applied, seen) = match answer {
        Some(Answer::Conditional(ConditionalResult::Applied)) => (Some(true), None),
        Some(Answer::Conditional(ConditionalResult::Failed { seen })) => {
            (Some(false), seen.map(value))
        }
        _ => (None, None),
    };
    match (op, answer) {
        (Op::Read { key, .. }, Some(Answer::Held(held))) => {
            Op::Read { key, value: Some(value(*held)) }
        }
        (Op::InsertIfAbsent { key, value, .. }, _) => {
            Op::InsertIfAbsent { key, value, applied, seen }
        }
        (Op::CompareAndSet { key, expected, new, .. }, _) => {
            Op::CompareAndSet { key, expected, new, applied, seen }
        }
        (op, _) => op,
    }
}
