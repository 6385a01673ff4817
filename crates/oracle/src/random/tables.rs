//! Random small histories of a table: reads and writes of single rows and of those that satisfy a
//! predicate, in an order that the database promises.
//!
//! A store runs the transactions one after the other, or each on a snapshot, and what they see is
//! recorded; now and then a result is changed, or the promise is another one than what happened.

use std::collections::BTreeMap;

use isolario_model::{
    Aggregate, Batch, History, Initial, Meta, Op, Outcome, Predicate, PredicateRow, PromisedOrder,
    RowInput, RowRef, SinkError, Stamp, Tuple, TxnEnd, TxnId, TxnSink, TxnStart, Value, ValueRef,
};
use isolario_predicate::{Comparison, Dialect, Expr, ExprError, Literal};

use super::Rng;
use super::certificates::show_both;

/// A history of a table, and the order that is promised for it.
#[derive(Debug)]
pub struct TableCase {
    /// The history.
    pub history: History,
    /// The promise.
    pub order: PromisedOrder,
}

/// A transaction on its way.
pub(super) struct Draft {
    pub(super) session: usize,
    pub(super) outcome: Outcome,
    pub(super) ops: Vec<Asked>,
    /// Its places in the order in which things happen.
    pub(super) start: u64,
    pub(super) commit: u64,
    pub(super) has_place: bool,
    /// When its client says that it started and finished.
    pub(super) times: (i64, i64),
}

impl Draft {
    /// Whether it committed, seen by its client or not.
    pub(super) fn has_committed(&self) -> bool {
        match self.outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => self.has_place,
        }
    }
}

/// What is asked of the store.
#[derive(Clone)]
pub(super) enum Asked {
    Read(i64),
    Write(i64, i64),
    Delete(i64),
    Select(Predicate),
    Update(Predicate, Option<i64>),
    Aggregate(Aggregate, Predicate),
    Swap(i64, i64),
}

pub(super) type Rows = BTreeMap<i64, Value>;

/// A history of which nothing is promised. Some tables have rows from the beginning, and clients of
/// transactions of unknown outcome did not see all that these read and wrote.
pub fn black_box_case(seed: u64) -> Result<History, SinkError> {
    let mut rng = Rng::new(seed);
    let on_snapshots = rng.percent(60);
    let drafts = drafts(&mut rng, on_snapshots);
    black_box(&mut rng, &drafts, on_snapshots)
}

/// As [`black_box_case`], with few rows that come and go while others look at them. Some results show a
/// row beside the transaction's own of the same key.
pub fn incarnations_case(seed: u64) -> Result<History, SinkError> {
    let mut rng = Rng::new(seed);
    let mut drafts = drafts(&mut rng, true);
    for draft in &mut drafts {
        draft.ops =
            (0..rng.between(1, 3)).filter_map(|_| coming_and_going(&mut rng).ok()).collect();
    }
    black_box(&mut rng, &drafts, true)
}

fn black_box(rng: &mut Rng, drafts: &[Draft], on_snapshots: bool) -> Result<History, SinkError> {
    let initial = match rng.percent(20) {
        true => numbered(rng.below(4) as i64, 0),
        false => Value::Nil,
    };
    let mut store = Store::new(rng);
    if initial != Value::Nil {
        store.rows = (1..=3).map(|key| (key, initial.clone())).collect();
    }
    let mut recorded = store.run(drafts);
    if on_snapshots {
        show_both(drafts, &mut recorded, rng);
    }
    let mut batch = Batch::new();
    batch.meta(&Meta { initial: Initial::Value(initial), ..Meta::default() })?;
    for (draft, ops) in drafts.iter().zip(&recorded) {
        let session = ValueRef::Int(draft.session as i64);
        batch.begin(&TxnStart { session, id: None, line: None })?;
        for op in ops {
            let is_seen = draft.outcome != Outcome::Unknown || rng.percent(75);
            op.record(&mut batch, is_seen)?;
        }
        batch.end(&TxnEnd {
            start: Some(draft.start as i64 * 10),
            finish: Some(draft.commit as i64 * 10 + 5),
            ..TxnEnd::new(draft.outcome)
        })?;
    }
    batch.build()
}

/// The history of a seed.
pub fn table_case(seed: u64) -> Result<TableCase, SinkError> {
    let mut rng = Rng::new(seed);
    let on_snapshots = rng.below(2) == 0;
    let mut drafts = drafts(&mut rng, on_snapshots);
    other_times(&mut drafts, &mut rng);
    with_swaps(&mut drafts, &mut rng);
    let mut recorded = Store::new(&mut rng).run(&drafts);
    for (draft, ops) in drafts.iter_mut().zip(&mut recorded) {
        forget_effects(draft, ops, &mut rng);
        if draft.outcome == Outcome::Unknown {
            draft.has_place &= rng.percent(60);
        }
    }
    let history = record(&drafts, &recorded)?;
    let order = promise(&history, on_snapshots, &mut rng);
    Ok(TableCase { history, order })
}

/// The history of what was done. Transactions are called by their numbers.
pub(super) fn record(drafts: &[Draft], recorded: &[Vec<Done>]) -> Result<History, SinkError> {
    let mut batch = Batch::new();
    batch.meta(&Meta { initial: Initial::Value(Value::Nil), ..Meta::default() })?;
    for (name, (draft, ops)) in (0i64..).zip(drafts.iter().zip(recorded)) {
        let session = ValueRef::Int(draft.session as i64);
        batch.begin(&TxnStart { session, id: Some(name.into()), line: None })?;
        ops.iter().try_for_each(|op| op.record(&mut batch, true))?;
        let stamp = |place: u64| draft.has_place.then_some(Stamp { physical: place, logical: 0 });
        batch.end(&TxnEnd {
            db_start: stamp(draft.start),
            db_commit: stamp(draft.commit),
            start: Some(draft.times.0),
            finish: Some(draft.times.1),
            ..TxnEnd::new(draft.outcome)
        })?;
    }
    batch.build()
}

pub(super) fn drafts(rng: &mut Rng, on_snapshots: bool) -> Vec<Draft> {
    let count = rng.between(1, 5);
    let moments = if rng.percent(25) { 2 } else { 1 };
    let mut places: Vec<(u64, u64)> = (0..count as u64).map(|at| (at, at)).collect();
    if on_snapshots {
        places = spans(count, rng);
    }
    let draft = |(at, (start, commit)): (usize, (u64, u64))| {
        let ops: Vec<_> = (0..rng.between(1, 3)).filter_map(|_| asked(rng).ok()).collect();
        let is_reading = !ops.iter().any(Asked::writes);
        Draft {
            session: if rng.percent(60) { at } else { rng.below(2) },
            outcome: match rng.below(12) {
                0 => Outcome::Aborted,
                1 => Outcome::Unknown,
                _ => Outcome::Committed,
            },
            has_place: !(rng.percent(3) || is_reading && rng.percent(40)),
            ops,
            start: start / moments,
            commit: commit / moments,
            times: ((start / moments) as i64 * 10, (commit / moments) as i64 * 10 + 5),
        }
    };
    places.into_iter().enumerate().map(draft).collect()
}

/// Puts conditional writes in place of other operations in some histories, and leaves more outcomes unknown.
fn with_swaps(drafts: &mut [Draft], rng: &mut Rng) {
    if !rng.percent(60) {
        return;
    }
    for draft in drafts {
        for op in draft.ops.iter_mut().filter(|op| !matches!(op, Asked::Aggregate(..))) {
            if rng.percent(35) {
                *op = Asked::Swap(rng.between(1, 3) as i64, rng.below(4) as i64);
            }
        }
        if draft.outcome == Outcome::Committed && rng.percent(15) {
            draft.outcome = Outcome::Unknown;
        }
    }
}

/// Makes clients forget whether conditional writes took effect: all those of a transaction or none.
fn forget_effects(draft: &Draft, ops: &mut [Done], rng: &mut Rng) {
    let share = if draft.outcome == Outcome::Unknown { 70 } else { 25 };
    if rng.percent(share) {
        ops.iter_mut().filter_map(|op| op.swap.as_mut()).for_each(|swap| swap.is_told = false);
    }
}

/// Lets clients have times of their own in some histories, which need not agree with the database's.
pub(super) fn other_times(drafts: &mut [Draft], rng: &mut Rng) {
    if !rng.percent(40) {
        return;
    }
    for draft in drafts {
        let start = rng.below(100) as i64;
        if rng.percent(60) {
            draft.times = (start, start + rng.below(25) as i64);
        }
    }
}

/// Where transactions start and commit, by start.
fn spans(count: usize, rng: &mut Rng) -> Vec<(u64, u64)> {
    let mut free: Vec<u64> = (0..2 * count as u64).collect();
    let mut spans = Vec::new();
    while !free.is_empty() {
        let start = free.remove(0);
        // Mostly short ones, so that not everything clashes.
        let commit = free.remove(rng.below(free.len()).min(rng.below(3)));
        spans.push((start, commit));
    }
    spans
}

fn coming_and_going(rng: &mut Rng) -> Result<Asked, ExprError> {
    let key = rng.between(1, 2) as i64;
    Ok(match rng.below(10) {
        0..=3 => Asked::Write(key, rng.below(4) as i64),
        4 | 5 => Asked::Delete(key),
        6 => Asked::Read(key),
        _ => Asked::Select(predicate(rng)?),
    })
}

fn asked(rng: &mut Rng) -> Result<Asked, ExprError> {
    let key = rng.between(1, 3) as i64;
    Ok(match rng.below(10) {
        0 | 1 => Asked::Read(key),
        2..=4 => Asked::Write(key, rng.below(4) as i64),
        5 => Asked::Delete(key),
        6 | 7 => Asked::Select(predicate(rng)?),
        8 => Asked::Update(predicate(rng)?, rng.percent(70).then(|| rng.below(4) as i64)),
        _ => {
            let function = match rng.below(4) {
                0 => Aggregate::Count,
                1 => Aggregate::Exists,
                2 => Aggregate::sum(Expr::column("v"))?,
                _ => Aggregate::Max(Expr::column("v")),
            };
            Asked::Aggregate(function, predicate(rng)?)
        }
    })
}

/// A condition on the one column that counts, of a table that is named or not.
pub(super) fn predicate(rng: &mut Rng) -> Result<Predicate, ExprError> {
    let number = |rng: &mut Rng| Expr::literal(Literal::Int(rng.below(4) as i64));
    let condition = match rng.below(4) {
        0 => Expr::column("v").between(number(rng), number(rng))?,
        1 => Expr::column("v").compare(Comparison::Less, number(rng))?,
        2 => Expr::column("v").compare(Comparison::Equal, number(rng))?,
        _ => Expr::column("v").compare(Comparison::NotEqual, number(rng))?,
    };
    Predicate::rows(if rng.percent(90) { "t" } else { "" }, condition)
}

impl Asked {
    fn writes(&self) -> bool {
        matches!(self, Asked::Write(..) | Asked::Delete(_) | Asked::Update(..) | Asked::Swap(..))
    }
}

/// What was asked, and what came back.
pub(super) struct Done {
    pub(super) asked: Asked,
    /// The rows that were read or written, each with what it held or holds from then on.
    pub(super) rows: Vec<(i64, Value)>,
    pub(super) result: Value,
    swap: Option<Swap>,
}

impl Done {
    /// An operation that is no conditional write.
    pub(super) fn new(asked: Asked, rows: Vec<(i64, Value)>, result: Value) -> Done {
        Done { asked, rows, result, swap: None }
    }
}

/// What came of a conditional write.
struct Swap {
    expected: Value,
    found: Value,
    /// Whether it took effect, as its client says where it says so.
    applied: bool,
    is_told: bool,
}

impl Done {
    /// Tells it, with what came back if that is seen.
    fn record(&self, batch: &mut Batch, is_seen: bool) -> Result<(), SinkError> {
        let keys: Vec<Value> = self.rows.iter().map(|(key, _)| row_key(*key)).collect();
        let rows: Vec<RowInput<'_>> = keys
            .iter()
            .zip(&self.rows)
            .map(|(key, (_, value))| PredicateRow {
                key: key.as_ref(),
                value: value.as_ref(),
                version: None,
            })
            .collect();
        let rows = is_seen.then_some(&rows[..]);
        let (written, result) = (self.result.as_ref(), is_seen.then_some(self.result.as_ref()));
        if let (Asked::Swap(key, _), Some(swap)) = (&self.asked, &self.swap) {
            return swap.record(batch, *key, written);
        }
        match &self.asked {
            Asked::Read(key) => batch.op(&Op::Read { key: row_key(*key).as_ref(), value: result }),
            Asked::Write(key, _) => {
                batch.op(&Op::Write { key: row_key(*key).as_ref(), value: written })
            }
            Asked::Delete(key) => batch.op(&Op::Delete { key: row_key(*key).as_ref() }),
            Asked::Select(predicate) => batch.op(&Op::PredicateRead { predicate, rows }),
            Asked::Update(predicate, _) => batch.op(&Op::PredicateWrite { predicate, rows }),
            Asked::Aggregate(function, predicate) => {
                batch.op(&Op::Aggregate { function, predicate, result })
            }
            Asked::Swap(..) => Ok(()),
        }
    }
}

impl Swap {
    fn record(&self, batch: &mut Batch, key: i64, new: ValueRef<'_>) -> Result<(), SinkError> {
        let (row, expected) = (row_key(key), self.expected.as_ref());
        let (key, applied) = (row.as_ref(), self.is_told.then_some(self.applied));
        let is_seen = self.is_told && !self.applied && self.found != self.expected;
        let seen = is_seen.then_some(self.found.as_ref());
        match expected {
            ValueRef::Nil => batch.op(&Op::InsertIfAbsent { key, value: new, applied, seen }),
            _ => batch.op(&Op::CompareAndSet { key, expected, new, applied, seen }),
        }
    }
}

pub(super) fn row_key(key: i64) -> Value {
    Value::Tuple(Box::new(Tuple::new("t", [("id", key)])))
}

/// The store, with a taste for mistakes.
pub(super) struct Store<'r> {
    rng: &'r mut Rng,
    rows: Rows,
    /// How many versions there have been: each has its number.
    versions: i64,
    /// How often a result is another one than it should be, of a hundred times.
    mistakes: usize,
}

impl<'r> Store<'r> {
    pub(super) fn new(rng: &'r mut Rng) -> Self {
        let mistakes = [0, 0, 5, 15][rng.below(4)];
        Store { rng, rows: Rows::new(), versions: 0, mistakes }
    }

    /// What each transaction saw and wrote.
    pub(super) fn run(mut self, drafts: &[Draft]) -> Vec<Vec<Done>> {
        let mut done: Vec<Vec<Done>> = drafts.iter().map(|_| Vec::new()).collect();
        let mut points: Vec<(u64, usize, bool)> = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            points.extend([(draft.start, at, false), (draft.commit, at, true)]);
        }
        points.sort_unstable();
        for (_, at, is_commit) in points {
            if !is_commit {
                let mut view = self.rows.clone();
                for asked in &drafts[at].ops {
                    let op = self.perform(asked, &mut view);
                    done[at].push(op);
                }
            } else if drafts[at].outcome != Outcome::Aborted {
                done[at].iter().for_each(|op| op.apply(&mut self.rows));
            }
        }
        done
    }

    fn perform(&mut self, asked: &Asked, view: &mut Rows) -> Done {
        let mut done =
            Done { asked: asked.clone(), rows: Vec::new(), result: Value::Nil, swap: None };
        match asked {
            Asked::Read(key) => done.result = view.get(key).cloned().unwrap_or(Value::Nil),
            Asked::Write(_, v) => done.result = self.version(*v),
            Asked::Delete(_) => {}
            Asked::Swap(key, v) => {
                done.result = self.version(*v);
                let found = view.get(key).cloned().unwrap_or(Value::Nil);
                // Mostly it asks for what is there, or for nothing.
                let expected = match self.rng.below(10) {
                    0..5 => found.clone(),
                    5..8 => Value::Nil,
                    _ => self.rows.values().next().cloned().unwrap_or(Value::Nil),
                };
                let applied = (found == expected) ^ self.rng.percent(self.mistakes / 3);
                done.swap = Some(Swap { expected, found, applied, is_told: true });
            }
            Asked::Select(predicate) => done.rows = matching(predicate, view),
            Asked::Update(predicate, v) => {
                for (key, _) in matching(predicate, view) {
                    let value = v.map_or(Value::Nil, |v| self.version(v));
                    done.rows.push((key, value));
                }
            }
            Asked::Aggregate(function, predicate) => {
                let rows = matching(predicate, view);
                let keys: Vec<Value> = rows.iter().map(|(key, _)| row_key(*key)).collect();
                let row = |(key, (_, value)): (&Value, &(i64, Value))| (key.clone(), value.clone());
                let rows: Vec<(Value, Value)> = keys.iter().zip(&rows).map(row).collect();
                let rows = rows
                    .iter()
                    .map(|(key, value)| RowRef { key: key.as_ref(), value: value.as_ref() });
                let result = function.over(rows, Dialect::Postgres);
                done.result = result.map_or(Value::Nil, Value::from);
            }
        }
        if !asked.writes() && self.rng.percent(self.mistakes) {
            self.spoil(&mut done);
        }
        done.apply(view);
        done
    }

    /// Makes something else of a result.
    fn spoil(&mut self, done: &mut Done) {
        match &done.asked {
            Asked::Select(_) if !done.rows.is_empty() => {
                let at = self.rng.below(done.rows.len());
                done.rows.remove(at);
            }
            Asked::Read(key) => {
                done.result = self.rows.get(key).cloned().unwrap_or(Value::Nil);
            }
            Asked::Aggregate(Aggregate::Count, _) => done.result = Value::Int(1),
            _ => {}
        }
    }

    fn version(&mut self, v: i64) -> Value {
        self.versions += 1;
        // Now and then two versions look alike.
        numbered(v, if self.rng.percent(90) { self.versions } else { 1 })
    }
}

/// What a row holds: the column that predicates are about, and a number.
pub(super) fn numbered(v: i64, number: i64) -> Value {
    Value::Tuple(Box::new(Tuple::new("", [("v", v), ("n", number)])))
}

impl Done {
    /// Does to the rows what it did.
    pub(super) fn apply(&self, rows: &mut Rows) {
        let mut put = |key: i64, value: &Value| match value {
            Value::Nil => rows.remove(&key),
            value => rows.insert(key, value.clone()),
        };
        match &self.asked {
            Asked::Write(key, _) | Asked::Delete(key) => {
                put(*key, &self.result);
            }
            Asked::Swap(key, _) if self.swap.as_ref().is_some_and(|swap| swap.applied) => {
                put(*key, &self.result);
            }
            Asked::Update(..) => {
                for (key, value) in &self.rows {
                    put(*key, value);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn matching(predicate: &Predicate, rows: &Rows) -> Vec<(i64, Value)> {
    let rows = rows.iter().filter(|(key, value)| is_match(predicate, **key, value));
    rows.map(|(key, value)| (*key, value.clone())).collect()
}

pub(super) fn is_match(predicate: &Predicate, key: i64, value: &Value) -> bool {
    let name = row_key(key);
    let row = RowRef { key: name.as_ref(), value: value.as_ref() };
    row.matches(predicate, Dialect::Postgres) == Ok(true)
}

/// What the database says that happened: that, or something else.
fn promise(history: &History, on_snapshots: bool, rng: &mut Rng) -> PromisedOrder {
    if on_snapshots || rng.percent(50) {
        return PromisedOrder::of_stamps(history);
    }
    let mut txns: Vec<TxnId> =
        history.txns().filter(|txn| history.db_commit(*txn).is_some()).collect();
    txns.sort_unstable_by_key(|txn| history.db_commit(*txn));
    if rng.percent(30) && txns.len() > 1 {
        let at = rng.below(txns.len() - 1);
        txns.swap(at, at + 1);
    }
    PromisedOrder::of_txns(history, &txns)
}
