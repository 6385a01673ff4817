//! Every order of the points at which transactions start and commit, row by row: each operation is
//! evaluated on what the rows hold at its turn.

use std::collections::BTreeMap;

use isolario_model::{
    Aggregate, History, KeyId, Level, LevelNodes, Op, OpId, Outcome, Point, Predicate,
    PromisedOrder, RowRef, TxnId, Value, ValueRef, VisibilityRule,
};
use isolario_predicate::Dialect;

use crate::{Answer, Options};

/// Whether transactions have a start apart from their commit at a level: at those of snapshots, not at
/// those of serial orders. None for other levels.
pub(crate) fn has_starts(level: Level) -> Option<bool> {
    let shape = level.shape();
    match (shape.nodes, shape.visible) {
        _ if level.needs().version_order => None,
        (LevelNodes::One, VisibilityRule::Everything) => Some(false),
        (LevelNodes::StartAndCommit, VisibilityRule::Prefix) => Some(true),
        _ => None,
    }
}

/// A conditional write.
struct Swap<'h> {
    key: KeyId,
    expected: ValueRef<'h>,
    new: (u64, ValueRef<'h>),
    applied: bool,
    /// What it found, where it says so.
    seen: Option<ValueRef<'h>>,
}

/// What the rows hold; those that are not there hold nothing.
type Contents = BTreeMap<KeyId, (u64, Value)>;

/// All ways in which transactions may have taken effect.
pub(crate) struct Search<'a> {
    pub(crate) history: &'a History,
    pub(crate) level: Level,
    pub(crate) options: Options,
    /// The order that leaves only some orders of points open, if there is one.
    pub(crate) promised: Option<&'a PromisedOrder>,
    pub(crate) has_starts: bool,
    /// Whether a row of a table that is inserted after a delete is another row, as far as writers exclude
    /// each other.
    pub(crate) by_incarnation: bool,
    /// Who committed.
    pub(crate) txns: Vec<TxnId>,
    /// Of conditional writes whose effect is unknown, whether they took effect.
    pub(crate) effects: BTreeMap<OpId, bool>,
}

impl Search<'_> {
    /// Whether there is an order in which every operation returned what it had to.
    pub(crate) fn answer(&self) -> Answer {
        match self.some_order(&mut Vec::new(), &self.at_first()) {
            true => Answer::Satisfied,
            false => Answer::Violated,
        }
    }

    /// What the rows hold before anybody writes.
    fn at_first(&self) -> Contents {
        let initial = self.history.initial_value().filter(|value| **value != Value::Nil);
        let Some(initial) = initial else { return Contents::new() };
        // Of a value that nobody ever saw or wrote, no operation has the word.
        let word = self.history.encoded_initial_version().unwrap_or(u64::MAX);
        let keys = (0..self.history.key_count()).map(KeyId::at);
        keys.map(|key| (key, (word, initial.clone()))).collect()
    }

    /// Whether what is left can happen in some order after this.
    fn some_order(&self, past: &mut Vec<Point>, contents: &Contents) -> bool {
        let left: Vec<Point> = self.points().filter(|point| !past.contains(point)).collect();
        if left.is_empty() {
            return true;
        }
        left.iter().any(|point| {
            if !self.may_come_next(*point, &left) || self.clashes(*point, past) {
                return false;
            }
            let Some(after) = self.happen(*point, contents) else { return false };
            past.push(*point);
            let found = self.some_order(past, &after);
            past.pop();
            found
        })
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let starts = self.txns.iter().filter(|_| self.has_starts).map(|txn| Point::Start(*txn));
        starts.chain(self.txns.iter().map(|txn| Point::Commit(*txn)))
    }

    /// Whether a point may be the next one of those that are left.
    fn may_come_next(&self, point: Point, left: &[Point]) -> bool {
        left.iter().all(|other| *other == point || !self.must_precede(*other, point))
    }

    fn must_precede(&self, first: Point, second: Point) -> bool {
        if let (Some(a), Some(b)) = (self.moment(first), self.moment(second))
            && a < b
        {
            return true;
        }
        let is_first_of = |point: Point| !self.has_starts || matches!(point, Point::Start(_));
        match (first, second) {
            (Point::Start(a), Point::Commit(b)) if a == b => true,
            (Point::Commit(a), Point::Start(b) | Point::Commit(b)) if a != b => {
                is_first_of(second) && self.comes_before(a, b)
            }
            _ => false,
        }
    }

    /// When a point is, by the promise.
    fn moment(&self, point: Point) -> Option<u32> {
        let (Point::Start(txn) | Point::Commit(txn)) = point;
        let place = self.promised?.points(txn)?;
        let is_start = matches!(point, Point::Start(_));
        // Who wrote nothing leaves nothing behind: all of it happens at its start.
        let is_early = is_start || self.has_starts && self.written(txn).is_empty();
        Some(if is_early { place.start } else { place.commit })
    }

    /// By session order, or by real time where that counts.
    fn comes_before(&self, a: TxnId, b: TxnId) -> bool {
        let history = self.history;
        if history.outcome(a) != Outcome::Committed {
            return false;
        }
        let same_session = history.session_of(a) == history.session_of(b);
        let skew = i128::from(self.options.clock_skew);
        let in_real_time = match (history.finish(a), history.start(b)) {
            (Some(finish), Some(start)) => i128::from(finish) + skew < i128::from(start) - skew,
            _ => false,
        };
        (self.options.session_order && same_session && a < b)
            || (self.level.shape().real_time && in_real_time)
    }

    /// Whether a commit comes while another writer of one of its keys runs, at levels that exclude it.
    fn clashes(&self, point: Point, past: &[Point]) -> bool {
        let Point::Commit(txn) = point else { return false };
        let since = past.iter().position(|other| *other == Point::Start(txn)).unwrap_or(0);
        self.written(txn).iter().any(|key| {
            let mut later = past[since..].iter().rev();
            let overlapping = later.find_map(|other| match *other {
                Point::Commit(other) if self.written(other).contains(key) => Some(other),
                _ => None,
            });
            let is_other_row = |other| self.may_come_back(*key) && self.deletes(other, *key);
            let excludes = self.level.shape().exclusive_writers;
            // Who saw two rows of one key inserted its own after somebody deleted the other one.
            excludes && overlapping.is_some_and(|other| !is_other_row(other))
                || self.saw_both(txn, *key) && !overlapping.is_some_and(is_other_row)
        })
    }

    /// Whether a key names rows that come back after a delete as other ones.
    fn may_come_back(&self, key: KeyId) -> bool {
        self.by_incarnation && matches!(self.history.key_name(key), ValueRef::Tuple(_))
    }

    /// Whether a transaction saw a row beside its own of the same key.
    fn saw_both(&self, txn: TxnId, key: KeyId) -> bool {
        self.history.txn_ops(txn).any(|op| self.beside_own(op).contains(&key))
    }

    /// The rows of a result that are not as the transaction itself wrote them: where transactions have a
    /// start, these may be other rows of the same key. The transaction has inserted its own, and has not
    /// deleted the key since; deleted by a predicate, its own row alone is gone. A read by key finds the
    /// other row only if its own is gone.
    fn beside_own(&self, op: OpId) -> Vec<KeyId> {
        let history = self.history;
        let rows: Vec<(KeyId, u64)> = match history.op(op) {
            Op::PredicateRead { rows: Some(rows), .. } => {
                rows.iter().map(|row| (row.key, history.encoded_row_version(row))).collect()
            }
            Op::Read { key, value: Some(value) } if history.value(value) != ValueRef::Nil => {
                vec![(key, history.encoded_version(op))]
            }
            _ => return Vec::new(),
        };
        if !self.has_starts {
            return Vec::new();
        }
        // Per row that was written before, whether there may be another one, and what it holds.
        let mut own: BTreeMap<KeyId, (bool, Contents)> = BTreeMap::new();
        for before in history.txn_ops(history.op_txn(op)).take_while(|before| *before < op) {
            let is_by_key = matches!(history.op(before), Op::Write { .. } | Op::Delete { .. });
            for key in self.written_by(before) {
                let is_first = !own.contains_key(&key);
                let (may_be_another, left) = own.entry(key).or_default();
                self.write(before, left);
                let is_there = left.contains_key(&key);
                *may_be_another = match is_first {
                    true => is_by_key && is_there && self.may_come_back(key),
                    false => *may_be_another && (is_there || !is_by_key),
                };
            }
        }
        let is_by_key = matches!(history.op(op), Op::Read { .. });
        let is_beside = |(key, (may_be_another, left)): &(&KeyId, &(bool, Contents))| {
            let word = left.get(key).map(|(word, _)| *word);
            let of_key = rows.iter().filter(|row| row.0 == **key);
            let own = of_key.clone().filter(|row| Some(row.1) == word);
            let is_hidden = is_by_key && word.is_some();
            *may_be_another && !is_hidden && of_key.count() == own.count().min(1) + 1
        };
        own.iter().filter(is_beside).map(|(key, _)| *key).collect()
    }

    /// Whether a transaction leaves a row deleted.
    fn deletes(&self, txn: TxnId, key: KeyId) -> bool {
        let mut rows = Contents::from([(key, (0, Value::Nil))]);
        self.history.txn_ops(txn).for_each(|op| self.write(op, &mut rows));
        !rows.contains_key(&key)
    }

    fn written(&self, txn: TxnId) -> Vec<KeyId> {
        self.history.txn_ops(txn).flat_map(|op| self.written_by(op)).collect()
    }

    fn written_by(&self, op: OpId) -> Vec<KeyId> {
        match self.history.op(op) {
            Op::Write { key, .. } | Op::Delete { key } => vec![key],
            Op::PredicateWrite { rows, .. } => {
                rows.unwrap_or_default().iter().map(|row| row.key).collect()
            }
            _ => {
                let swap = self.swap(op).filter(|swap| swap.applied);
                swap.map(|swap| swap.key).into_iter().collect()
            }
        }
    }

    /// A conditional write, if the operation is one.
    fn swap(&self, op: OpId) -> Option<Swap<'_>> {
        let history = self.history;
        let (key, expected, new, applied, seen) = match history.op(op) {
            Op::InsertIfAbsent { key, value, applied, seen } => {
                (key, ValueRef::Nil, value, applied, seen)
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => {
                (key, history.value(expected), new, applied, seen)
            }
            _ => return None,
        };
        let applied = applied.or(self.effects.get(&op).copied())?;
        let seen = seen.map(|seen| history.value(seen));
        Some(Swap { key, expected, new: (new.to_bits(), history.value(new)), applied, seen })
    }

    /// What the rows hold after a point; none if a result is not what it had to be.
    fn happen(&self, point: Point, contents: &Contents) -> Option<Contents> {
        let (Point::Start(txn) | Point::Commit(txn)) = point;
        let is_reading = matches!(point, Point::Start(_)) || !self.has_starts;
        let mut now = contents.clone();
        for op in self.history.txn_ops(txn) {
            if is_reading && !self.is_right(op, &now, contents)? {
                return None;
            }
            self.write(op, &mut now);
        }
        Some(if matches!(point, Point::Start(_)) { contents.clone() } else { now })
    }

    fn write(&self, op: OpId, contents: &mut Contents) {
        let history = self.history;
        let mut put = |key, word, value: ValueRef<'_>| match value {
            ValueRef::Nil => contents.remove(&key),
            value => contents.insert(key, (word, value.to_owned())),
        };
        match history.op(op) {
            Op::Write { key, value } => {
                put(key, history.encoded_version(op), history.value(value));
            }
            Op::Delete { key } => {
                put(key, 0, ValueRef::Nil);
            }
            Op::PredicateWrite { rows, .. } => {
                for row in rows.unwrap_or_default() {
                    put(row.key, history.encoded_row_version(row), history.value(row.value));
                }
            }
            _ => {
                if let Some(Swap { key, new: (word, value), applied: true, .. }) = self.swap(op) {
                    put(key, word, value);
                }
            }
        }
    }

    /// Whether an operation returned what it had to; none where nobody can tell. `at_start` is what the
    /// rows held when its transaction began.
    fn is_right(&self, op: OpId, contents: &Contents, at_start: &Contents) -> Option<bool> {
        let history = self.history;
        Some(match history.op(op) {
            Op::Read { key, value: Some(value) } => {
                let is_other = self.beside_own(op).contains(&key);
                match if is_other { at_start } else { contents }.get(&key) {
                    Some((word, _)) => *word == history.encoded_version(op),
                    None => history.value(value) == ValueRef::Nil,
                }
            }
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let mut seen: Vec<_> =
                    rows.iter().map(|row| (row.key, history.encoded_row_version(row))).collect();
                seen.sort_unstable();
                let beside = self.beside_own(op);
                let mut others = self.matching(predicate, at_start)?;
                others.retain(|key, _| beside.contains(key));
                let own = self.matching(predicate, contents)?;
                let mut matching: Vec<_> =
                    own.iter().chain(&others).map(|(key, (word, _))| (*key, *word)).collect();
                matching.sort_unstable();
                matching == seen
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                let mut seen: Vec<_> = rows.iter().map(|row| row.key).collect();
                seen.sort_unstable();
                self.matching(predicate, contents)?.into_keys().eq(seen)
            }
            Op::Aggregate { function, predicate, result: Some(result) } => {
                let matching = self.matching(predicate, contents)?;
                let rows = matching.iter().map(|(key, (_, value))| self.row(*key, value));
                aggregate(function, rows)?.as_ref() == history.value(result)
            }
            _ => self.swap(op).is_none_or(|swap| {
                let held = contents.get(&swap.key).map_or(ValueRef::Nil, |(_, held)| held.as_ref());
                swap.applied == (held == swap.expected) && swap.seen.is_none_or(|seen| seen == held)
            }),
        })
    }
}

/// Predicates.
impl Search<'_> {
    fn row<'r>(&'r self, key: KeyId, value: &'r Value) -> RowRef<'r> {
        RowRef { key: self.history.key_name(key), value: value.as_ref() }
    }

    /// The rows that satisfy a predicate; none where it cannot be evaluated.
    fn matching(&self, predicate: &Predicate, contents: &Contents) -> Option<Contents> {
        let mut matching = Contents::new();
        for (key, (word, value)) in contents {
            if self.row(*key, value).matches(predicate, Dialect::Postgres).ok()? {
                matching.insert(*key, (*word, value.clone()));
            }
        }
        Some(matching)
    }
}

fn aggregate<'r>(function: &Aggregate, rows: impl Iterator<Item = RowRef<'r>>) -> Option<Value> {
    function.over(rows, Dialect::Postgres).ok().map(Value::from)
}
