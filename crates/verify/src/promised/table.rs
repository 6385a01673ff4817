//! What every key holds while a promised order is replayed: registers, rows and lists.

use std::collections::BTreeMap;

use isolario_model::{
    ExpectedVersion, History, Initial, KeyId, Op, OpId, Predicate, RowRef, Value, ValueId,
    ValueRef, VersionRef,
};
use isolario_predicate::Dialect;

use super::index::Index;

/// What an operation had to return and did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) op: OpId,
    /// The keys that differ, with who wrote what was there; all rows that count for an aggregate.
    pub(crate) versions: Vec<ExpectedVersion>,
    /// What an aggregate had to return.
    pub(crate) result: Option<Value>,
}

/// The contents of all keys. What is written can be taken back.
pub(crate) struct Table<'h> {
    history: &'h History,
    /// What was seen of keys before anybody wrote them, where the history does not state it.
    at_first: BTreeMap<KeyId, ValueId>,
    cells: Vec<Option<Cell>>,
    index: Index<'h>,
    lists: Vec<Vec<ValueId>>,
    log: Vec<(KeyId, Logged)>,
    /// Per conditional write of unknown effect whose transaction has read, whether it takes effect.
    effects: BTreeMap<OpId, bool>,
    /// The first operation of which nobody can tell what it had to return.
    unknown: Option<OpId>,
}

/// That a predicate or a function cannot be evaluated.
struct Unevaluable;

#[derive(Clone, Copy)]
struct Cell {
    word: u64,
    value: ValueId,
    write: OpId,
}

enum Logged {
    Cell(Option<Cell>),
    Appended,
}

impl<'h> Table<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        let mut table = Table {
            history,
            at_first: seen_at_first(history),
            cells: vec![None; history.key_count()],
            index: Index::new(history),
            lists: vec![Vec::new(); history.key_count()],
            log: Vec::new(),
            effects: BTreeMap::new(),
            unknown: None,
        };
        if !table.index.is_empty() {
            for key in (0..history.key_count()).map(KeyId::at) {
                let at_first = table.row(key);
                table.index.moved(key, RowRef { value: ValueRef::Nil, ..at_first }, at_first);
            }
        }
        table
    }

    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn take_back(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some((key, Logged::Cell(before))) => {
                    self.replace(key, before);
                }
                Some((key, Logged::Appended)) => {
                    self.lists[key.index()].pop();
                }
                None => {}
            }
        }
    }

    /// What the key holds; *nil* where it holds nothing, or nobody knows.
    fn value(&self, key: KeyId) -> ValueRef<'h> {
        match self.cells[key.index()] {
            Some(cell) => self.history.value(cell.value),
            None => match (self.at_first.get(&key), self.history.initial_value()) {
                (Some(value), _) => self.history.value(*value),
                (None, Some(value)) if !self.is_replaced_by_writes(key) => value.as_ref(),
                _ => ValueRef::Nil,
            },
        }
    }

    /// Whether somebody writes the initial value to a key of which it is the initial value only
    /// where nobody does.
    fn is_replaced_by_writes(&self, key: KeyId) -> bool {
        let history = self.history;
        let Initial::UnlessWritten(initial) = history.initial() else { return false };
        (0..history.op_count()).map(OpId::at).any(|op| {
            matches!(history.op(op), Op::Write { key: written, value }
                if written == key && history.value(value) == initial.as_ref())
        })
    }

    /// Whether what was seen of a key is what it holds.
    fn holds(&self, key: KeyId, word: u64, seen: ValueId) -> bool {
        let history = self.history;
        match (self.cells[key.index()], history.initial()) {
            (Some(cell), _) => cell.word == word,
            (None, Initial::Value(value)) => history.value(seen) == value.as_ref(),
            (None, Initial::UnlessWritten(value)) => {
                history.value(seen) == value.as_ref() && !self.is_replaced_by_writes(key)
            }
            (None, Initial::Unwritten) => self.at_first.get(&key) == Some(&seen),
            (None, Initial::Marked) => history.encoded_initial_version() == Some(word),
            _ => false,
        }
    }

    fn expected(&self, key: KeyId) -> ExpectedVersion {
        ExpectedVersion { key, write: self.cells[key.index()].map(|cell| cell.write) }
    }

    /// Leaves behind what an operation wrote.
    pub(crate) fn write(&mut self, op: OpId) {
        let history = self.history;
        match history.op(op) {
            Op::Write { key, value } => self.put(op, key, history.encoded_version(op), value),
            Op::Delete { key } => {
                if let Some(nil) = history.find_value(ValueRef::Nil) {
                    self.put(op, key, history.encoded_version(op), nil);
                }
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                for row in rows {
                    self.put(op, row.key, history.encoded_row_version(row), row.value);
                }
            }
            Op::Append { key, element } => {
                self.lists[key.index()].push(element);
                self.log.push((key, Logged::Appended));
            }
            Op::InsertIfAbsent { key, value, applied, .. }
            | Op::CompareAndSet { key, new: value, applied, .. }
                if applied.or(self.effects.get(&op).copied()) == Some(true) =>
            {
                self.put(op, key, value.to_bits(), value);
            }
            _ => {}
        }
    }

    fn put(&mut self, write: OpId, key: KeyId, word: u64, value: ValueId) {
        let cell = Some(Cell { word, value, write });
        let before = self.replace(key, cell);
        self.log.push((key, Logged::Cell(before)));
    }

    fn replace(&mut self, key: KeyId, cell: Option<Cell>) -> Option<Cell> {
        if self.index.is_empty() {
            return std::mem::replace(&mut self.cells[key.index()], cell);
        }
        let row = self.row(key);
        let before = std::mem::replace(&mut self.cells[key.index()], cell);
        let after = self.row(key);
        self.index.moved(key, row, after);
        before
    }

    /// Decides a conditional write of unknown effect by what is there now: for good, also where its transaction
    /// commits only later.
    pub(crate) fn decide(&mut self, op: OpId) {
        if is_open(self.history, op) {
            self.effects.insert(op, self.takes_effect(op));
        }
    }

    /// Whether it is known that a conditional write of unknown effect takes none.
    pub(crate) fn has_no_effect(&self, op: OpId) -> bool {
        self.effects.get(&op) == Some(&false)
    }

    fn takes_effect(&self, op: OpId) -> bool {
        match self.history.op(op) {
            Op::InsertIfAbsent { key, .. } => self.value(key) == ValueRef::Nil,
            Op::CompareAndSet { key, expected, .. } => {
                self.value(key) == self.history.value(expected)
            }
            _ => false,
        }
    }

    /// How the result of an operation differs from what is there; none where it does not, or where
    /// nobody can tell.
    pub(crate) fn difference(&mut self, op: OpId) -> Option<Difference> {
        self.compare(op).unwrap_or_else(|Unevaluable| {
            self.unknown.get_or_insert(op);
            None
        })
    }

    /// The first operation so far of which nobody can tell what it had to return.
    pub(crate) fn unknown(&self) -> Option<OpId> {
        self.unknown
    }

    fn compare(&self, op: OpId) -> Result<Option<Difference>, Unevaluable> {
        let history = self.history;
        let of_key = |key, is_right: bool| {
            let versions = vec![self.expected(key)];
            Ok((!is_right).then_some(Difference { op, versions, result: None }))
        };
        match history.op(op) {
            Op::Read { key, value: Some(value) } => {
                of_key(key, self.holds(key, history.encoded_version(op), value))
            }
            Op::ReadList { key, elements: Some(elements) } => {
                of_key(key, self.lists[key.index()] == elements)
            }
            Op::InsertIfAbsent { key, applied, seen, .. }
            | Op::CompareAndSet { key, applied, seen, .. } => {
                let took = applied.is_none_or(|applied| applied == self.takes_effect(op));
                let saw = seen.is_none_or(|seen| history.value(seen) == self.value(key));
                of_key(key, took && saw)
            }
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let is_right = |key: KeyId| {
                    rows.iter()
                        .filter(|row| row.key == key)
                        .all(|row| self.holds(key, history.encoded_row_version(row), row.value))
                };
                self.of_rows(op, predicate, rows.iter().map(|row| row.key).collect(), is_right)
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                self.of_rows(op, predicate, rows.iter().map(|row| row.key).collect(), |_| true)
            }
            Op::Aggregate { function, predicate, result: Some(result) } => {
                let matching = self.matching(predicate)?;
                let rows = matching.iter().map(|key| self.row(*key));
                let due = function.over(rows, Dialect::Postgres).map_err(|_| Unevaluable)?;
                let due = Value::from(due);
                let versions = matching.iter().map(|key| self.expected(*key)).collect();
                let differs = due.as_ref() != history.value(result);
                Ok(differs.then_some(Difference { op, versions, result: Some(due) }))
            }
            _ => Ok(None),
        }
    }

    /// The rows by which a result differs from those that satisfy the predicate.
    fn of_rows(
        &self,
        op: OpId,
        predicate: &Predicate,
        seen: Vec<KeyId>,
        is_right: impl Fn(KeyId) -> bool,
    ) -> Result<Option<Difference>, Unevaluable> {
        let matching = self.matching(predicate)?;
        let mut times: BTreeMap<KeyId, (bool, usize)> =
            matching.into_iter().map(|key| (key, (true, 0))).collect();
        seen.into_iter().for_each(|key| times.entry(key).or_default().1 += 1);
        let differs = |(key, (matches, times)): &(KeyId, (bool, usize))| {
            !(*matches && *times == 1 && is_right(*key))
        };
        let versions: Vec<_> =
            times.into_iter().filter(differs).map(|(key, _)| self.expected(key)).collect();
        Ok((!versions.is_empty()).then_some(Difference { op, versions, result: None }))
    }

    fn row(&self, key: KeyId) -> RowRef<'h> {
        RowRef { key: self.history.key_name(key), value: self.value(key) }
    }

    /// The rows that satisfy a predicate.
    fn matching(&self, predicate: &Predicate) -> Result<Vec<KeyId>, Unevaluable> {
        let mut matching = Vec::new();
        let all = || (0..self.history.key_count()).map(KeyId::at).collect();
        for key in self.index.may_match(predicate).unwrap_or_else(all) {
            if self.row(key).matches_everywhere(predicate).map_err(|_| Unevaluable)? {
                matching.push(key);
            }
        }
        Ok(matching)
    }
}

/// Whether an operation is a conditional write of which the client does not know whether it took effect.
pub(super) fn is_open(history: &History, op: OpId) -> bool {
    matches!(
        history.op(op),
        Op::InsertIfAbsent { applied: None, .. } | Op::CompareAndSet { applied: None, .. }
    )
}

/// The values of reads that saw a key before anybody wrote it, where only the reads tell.
fn seen_at_first(history: &History) -> BTreeMap<KeyId, ValueId> {
    let by_marks = match history.initial() {
        Initial::Marked => true,
        Initial::Unwritten => false,
        _ => return BTreeMap::new(),
    };
    let ops = || (0..history.op_count()).map(OpId::at);
    let mut written = std::collections::BTreeSet::new();
    for op in ops() {
        match history.op(op) {
            Op::Write { key, value } => {
                written.insert((key, value.to_bits()));
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                written.extend(rows.iter().map(|row| (row.key, row.value.to_bits())));
            }
            Op::InsertIfAbsent { key, value, .. } | Op::CompareAndSet { key, new: value, .. } => {
                written.insert((key, value.to_bits()));
            }
            _ => {}
        }
    }
    let mut first = BTreeMap::new();
    for op in ops() {
        let is_initial = |key: KeyId, value: ValueId, version: Option<VersionRef>| match by_marks {
            true => version == Some(VersionRef::Initial),
            false => !written.contains(&(key, value.to_bits())),
        };
        match history.op(op) {
            Op::Read { key, value: Some(value) }
                if is_initial(key, value, history.op_version(op)) =>
            {
                first.entry(key).or_insert(value);
            }
            Op::PredicateRead { rows: Some(rows), .. } => {
                for row in rows {
                    if is_initial(row.key, row.value, history.row_version(row)) {
                        first.entry(row.key).or_insert(row.value);
                    }
                }
            }
            _ => {}
        }
    }
    first
}
