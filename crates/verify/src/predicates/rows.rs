//! What predicate operations say about the rows that they met, worked out from the history alone.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    History, KeyId, MatchedRow, MatchedValue, Op, OpId, Outcome, Predicate, RowRef, TxnId, ValueId,
    ValueRef,
};

use crate::Refusal;

/// What the rows of a history may have held.
pub(super) struct Rows<'h> {
    history: &'h History,
    /// Per row, what each transaction left behind that may have committed.
    left: BTreeMap<KeyId, Vec<(TxnId, Left)>>,
}

/// What a transaction left behind of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Left {
    value: Option<ValueId>,
    word: u64,
}

/// A row that a transaction met, and who may have written what it met.
pub(super) struct Met {
    /// From the first operation that says something about it.
    pub(super) row: MatchedRow,
    pub(super) writers: Vec<TxnId>,
    /// All operations that say something about it.
    pub(super) ops: Vec<OpId>,
}

/// What an operation says about a row: whether it satisfies the predicate.
type Says<'h> = (OpId, &'h Predicate, bool);

impl<'h> Rows<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        let mut rows = Rows { history, left: BTreeMap::new() };
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            for (key, left) in last_writes(history, txn) {
                rows.left.entry(key).or_default().push((txn, left));
            }
        }
        let mut suspects: Vec<TxnId> =
            history.txns().filter(|txn| history.outcome(*txn) == Outcome::Unknown).collect();
        while let Some(at) = suspects.iter().position(|txn| rows.cannot_be(*txn)) {
            let txn = suspects.remove(at);
            rows.left.values_mut().for_each(|left| left.retain(|(writer, _)| *writer != txn));
        }
        rows
    }

    /// Whether a transaction of unknown outcome cannot have committed: it contradicts itself, or it saw
    /// what nobody can have left behind.
    fn cannot_be(&self, txn: TxnId) -> bool {
        let history = self.history;
        let mut own: BTreeMap<KeyId, u64> = BTreeMap::new();
        history.txn_ops(txn).any(|op| {
            let mut is_wrong = false;
            each_read(history, op, |key, word, value| {
                is_wrong |= match own.get(&key) {
                    Some(last) => *last != word,
                    None => !self.explains(txn, key, word, value),
                };
            });
            each_write(history, op, |key, left| {
                own.insert(key, left.word);
            });
            is_wrong || self.contradicts_itself(op).unwrap_or(false)
        })
    }

    fn explains(&self, reader: TxnId, key: KeyId, word: u64, value: ValueId) -> bool {
        let by_others = self.left.get(&key).into_iter().flatten();
        self.history.value(value) == self.initial() || { by_others }
            .any(|(writer, left)| *writer != reader && left.word == word)
    }

    /// Whether an operation says something about a row that its transaction knows to be otherwise.
    pub(super) fn contradicts_itself(&self, op: OpId) -> Result<bool, Refusal> {
        let mut found = false;
        for key in self.known_keys(op) {
            found |= self.contradicts_row(op, key)?;
        }
        Ok(found)
    }

    /// The rows that the transaction of an operation reads or writes.
    fn known_keys(&self, op: OpId) -> Vec<KeyId> {
        let mut keys = Vec::new();
        for op in self.history.txn_ops(self.history.op_txn(op)) {
            each_read(self.history, op, |key, _, _| keys.push(key));
            each_write(self.history, op, |key, _| keys.push(key));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The same about one row.
    fn contradicts_row(&self, op: OpId, key: KeyId) -> Result<bool, Refusal> {
        Ok(self.told_without_match(op, key)?
            || self.contradicts_own(op, key)?.is_some()
            || self.contradicts_seen(op, key)?)
    }

    /// Whether a read returned a row that does not satisfy its predicate, or returned it twice.
    pub(super) fn told_without_match(&self, op: OpId, key: KeyId) -> Result<bool, Refusal> {
        let Op::PredicateRead { predicate, rows: Some(rows) } = self.history.op(op) else {
            return Ok(false);
        };
        let of_key: Vec<_> = rows.iter().filter(|row| row.key == key).collect();
        for row in &of_key {
            if !self.matches(predicate, key, self.history.value(row.value))? {
                return Ok(true);
            }
        }
        Ok(of_key.iter().enumerate().any(|(at, row)| of_key[..at].contains(row)))
    }

    /// The write of a row by the transaction itself that an operation of it contradicts.
    pub(super) fn contradicts_own(&self, op: OpId, key: KeyId) -> Result<Option<OpId>, Refusal> {
        let history = self.history;
        let Some((predicate, rows)) = result(history, op) else { return Ok(None) };
        let is_told = rows.iter().any(|row| row.key == key);
        let mut own = None;
        for before in history.txn_ops(history.op_txn(op)).take_while(|before| *before < op) {
            if is_unobserved_write(history, before) {
                return Ok(None);
            }
            each_write(history, before, |written, left| {
                if written == key {
                    let value = left.value.map_or(ValueRef::Nil, |value| history.value(value));
                    own = Some((before, value));
                }
            });
        }
        match own {
            Some((write, value)) if self.matches(predicate, key, value)? != is_told => {
                Ok(Some(write))
            }
            _ => Ok(None),
        }
    }

    /// Whether an operation says otherwise about a row than what its transaction saw of it, before it
    /// wrote it.
    pub(super) fn contradicts_seen(&self, op: OpId, key: KeyId) -> Result<bool, Refusal> {
        let history = self.history;
        let Some((predicate, rows)) = result(history, op) else { return Ok(false) };
        let is_told = rows.iter().any(|row| row.key == key);
        let txn = history.op_txn(op);
        for before in history.txn_ops(txn).take_while(|before| *before < op) {
            let mut is_written = is_unobserved_write(history, before);
            each_write(history, before, |written, _| is_written |= written == key);
            if is_written {
                return Ok(false);
            }
        }
        match self.seen(txn, key) {
            Some(value) => Ok(self.matches(predicate, key, value)? != is_told),
            None => Ok(false),
        }
    }

    /// What a transaction saw of a row before it wrote it.
    fn seen(&self, txn: TxnId, key: KeyId) -> Option<ValueRef<'h>> {
        let history = self.history;
        let (mut seen, mut is_written) = (None, false);
        for op in history.txn_ops(txn).take_while(|op| !is_unobserved_write(history, *op)) {
            each_read(history, op, |read, _, value| {
                if read == key && !is_written && seen.is_none() {
                    seen = Some(history.value(value));
                }
            });
            each_write(history, op, |written, _| is_written |= written == key);
        }
        seen
    }

    /// The row that a transaction met, from the first of its operations that says something about it. None
    /// if none does before the transaction itself writes it.
    pub(super) fn met(&self, txn: TxnId, key: KeyId) -> Result<Option<Met>, Refusal> {
        self.met_by(txn, key, |_| true)
    }

    /// The same from some of its operations alone.
    pub(super) fn met_by(
        &self,
        txn: TxnId,
        key: KeyId,
        counts: impl Fn(OpId) -> bool,
    ) -> Result<Option<Met>, Refusal> {
        let history = self.history;
        let mut says: Vec<Says<'_>> = Vec::new();
        for op in history.txn_ops(txn) {
            if is_unobserved_write(history, op) {
                break;
            }
            if let Some((predicate, rows)) = result(history, op) {
                let is_told = rows.iter().any(|row| row.key == key);
                let is_read = matches!(history.op(op), Op::PredicateRead { .. });
                if !(is_read && is_told) {
                    says.push((op, predicate, is_told));
                }
            }
            let mut is_written = false;
            each_write(history, op, |written, _| is_written |= written == key);
            if is_written {
                break;
            }
        }
        says.retain(|(op, ..)| counts(*op));
        let Some((op, ..)) = says.first().copied() else { return Ok(None) };
        let agrees = |value: ValueRef<'_>| -> Result<bool, Refusal> {
            for (_, predicate, is_told) in &says {
                if self.matches(predicate, key, value)? != *is_told {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let mut writers = Vec::new();
        let mut held: Vec<Option<ValueId>> = Vec::new();
        if agrees(self.initial())? {
            writers.push(TxnId::INIT);
            held.push(history.find_value(self.initial()));
        }
        for (writer, left) in self.left.get(&key).into_iter().flatten() {
            let value = left.value.map_or(ValueRef::Nil, |value| history.value(value));
            if *writer != txn && agrees(value)? {
                writers.push(*writer);
                held.push(left.value);
            }
        }
        let is_one = held.windows(2).all(|pair| pair[0] == pair[1]) && !history.names_versions();
        let held = held.first().filter(|_| is_one).map(|value| match value {
            Some(value) => MatchedValue::Value(*value),
            None => MatchedValue::Initial,
        });
        let ops = says.iter().map(|(op, ..)| *op).collect();
        Ok(Some(Met { row: MatchedRow { op, key, held }, writers, ops }))
    }

    /// Who may have left a version of a row.
    pub(super) fn writers(&self, key: KeyId) -> impl Iterator<Item = TxnId> {
        self.left.get(&key).into_iter().flatten().map(|(writer, _)| *writer)
    }

    /// Who may have read what a transaction left behind, by key or in a result.
    pub(super) fn readers(&self, writer: TxnId) -> impl Iterator<Item = TxnId> {
        let (history, left) = (self.history, last_writes(self.history, writer));
        history.txns().filter(move |txn| {
            history.txn_ops(*txn).any(|op| {
                let mut is_read = false;
                each_read(history, op, |key, word, _| {
                    is_read |= left.get(&key).is_some_and(|left| left.word == word);
                });
                is_read
            })
        })
    }

    /// The rows that a transaction read, by key or in a result.
    pub(super) fn read_keys(&self, txn: TxnId) -> BTreeSet<KeyId> {
        let mut keys = BTreeSet::new();
        for op in self.history.txn_ops(txn) {
            each_read(self.history, op, |key, _, _| {
                keys.insert(key);
            });
        }
        keys
    }

    /// The rows that others met and that only this transaction can have left so.
    pub(super) fn met_alone(&self, writer: TxnId) -> Result<Vec<Met>, Refusal> {
        let history = self.history;
        let counts = |txn: &TxnId| *txn != writer && history.outcome(*txn) != Outcome::Aborted;
        let mut alone = Vec::new();
        for key in last_writes(history, writer).into_keys() {
            for txn in history.txns().filter(counts) {
                alone.extend(self.met(txn, key)?.filter(|met| met.writers == [writer]));
            }
        }
        Ok(alone)
    }

    /// All rows that a transaction met.
    pub(super) fn all_met(&self, txn: TxnId) -> Result<Vec<Met>, Refusal> {
        let met = |key| self.met(txn, KeyId::at(key)).transpose();
        (0..self.history.key_count()).filter_map(met).collect()
    }

    /// Whether what a write of another transaction left of a row is not what an operation says about it.
    pub(super) fn is_otherwise(&self, op: OpId, key: KeyId, write: OpId) -> Result<bool, Refusal> {
        let history = self.history;
        let Some((predicate, rows)) = result(history, op) else { return Ok(false) };
        let is_told = rows.iter().any(|row| row.key == key);
        let mut last = None;
        for op in history.txn_ops(history.op_txn(write)) {
            each_write(history, op, |written, left| {
                last = if written == key { Some((op, left)) } else { last };
            });
        }
        match last {
            Some((op, left)) if op == write => {
                let value = left.value.map_or(ValueRef::Nil, |value| history.value(value));
                Ok(self.matches(predicate, key, value)? != is_told)
            }
            _ => Ok(false),
        }
    }

    /// Whether there is such an operation, and it is one of a transaction.
    pub(super) fn is_of(&self, op: OpId, txn: TxnId) -> bool {
        op.index() < self.history.op_count() && self.txn_of(op) == txn
    }

    pub(super) fn has(&self, key: KeyId) -> bool {
        key.index() < self.history.key_count()
    }

    pub(super) fn txn_of(&self, op: OpId) -> TxnId {
        self.history.op_txn(op)
    }

    fn matches(
        &self,
        predicate: &Predicate,
        key: KeyId,
        value: ValueRef<'_>,
    ) -> Result<bool, Refusal> {
        let row = RowRef { key: self.history.key_name(key), value };
        row.matches_everywhere(predicate)
            .map_err(|_| Refusal::Unsupported("a predicate that cannot be evaluated"))
    }

    fn initial(&self) -> ValueRef<'h> {
        self.history.initial_value().map_or(ValueRef::Nil, |value| value.as_ref())
    }
}

/// The predicate and the rows of an operation that tells its rows.
fn result(history: &History, op: OpId) -> Option<(&Predicate, &[isolario_model::RowView])> {
    match history.op(op) {
        Op::PredicateRead { predicate, rows: Some(rows) }
        | Op::PredicateWrite { predicate, rows: Some(rows) } => Some((predicate, rows)),
        _ => None,
    }
}

/// Whether an operation wrote rows that nobody observed.
pub(super) fn is_unobserved_write(history: &History, op: OpId) -> bool {
    matches!(history.op(op), Op::PredicateWrite { rows: None, .. })
}

fn each_read(history: &History, op: OpId, mut tell: impl FnMut(KeyId, u64, ValueId)) {
    match history.op(op) {
        Op::Read { key, value: Some(value) } => tell(key, history.encoded_version(op), value),
        Op::PredicateRead { rows: Some(rows), .. } => {
            rows.iter().for_each(|row| tell(row.key, history.encoded_row_version(row), row.value));
        }
        _ => {}
    }
}

fn each_write(history: &History, op: OpId, mut tell: impl FnMut(KeyId, Left)) {
    match history.op(op) {
        Op::Write { key, value } => {
            tell(key, Left { value: Some(value), word: history.encoded_version(op) });
        }
        Op::Delete { key } => {
            let value = history.find_value(ValueRef::Nil);
            tell(key, Left { value, word: history.encoded_version(op) });
        }
        Op::PredicateWrite { rows: Some(rows), .. } => {
            for row in rows {
                let word = history.encoded_row_version(row);
                tell(row.key, Left { value: Some(row.value), word });
            }
        }
        _ => {}
    }
}

fn last_writes(history: &History, txn: TxnId) -> BTreeMap<KeyId, Left> {
    let mut last = BTreeMap::new();
    for op in history.txn_ops(txn) {
        each_write(history, op, |key, left| {
            last.insert(key, left);
        });
    }
    last
}

/// Whether a transaction writes a row.
pub(super) fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    last_writes(history, txn).contains_key(&key)
}

/// Whether a transaction leaves a row of a table deleted.
pub(crate) fn deletes(history: &History, txn: TxnId, key: KeyId) -> bool {
    if !history.is_row(key) {
        return false;
    }
    let left = last_writes(history, txn).get(&key).copied();
    left.is_some_and(|left| left.value.is_none_or(|v| history.value(v) == ValueRef::Nil))
}

/// Who deletes which row of a table, of those that may have committed.
///
/// A row that is inserted after a delete is another row of the same name: its writers do not exclude
/// those of the former one.
#[derive(Debug)]
pub(crate) struct Incarnations(BTreeMap<KeyId, Vec<TxnId>>);

impl Incarnations {
    pub(crate) fn new(history: &History) -> Self {
        let mut deleters: BTreeMap<KeyId, Vec<TxnId>> = BTreeMap::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            let left =
                last_writes(history, txn).into_iter().filter(|(key, _)| history.is_row(*key));
            for (key, left) in left {
                if left.value.is_none_or(|value| history.value(value) == ValueRef::Nil) {
                    deleters.entry(key).or_default().push(txn);
                }
            }
        }
        Incarnations(deleters)
    }

    /// Whether a row is deleted at all.
    pub(super) fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the later of two writers of a row has to start after the commit of the earlier one: no
    /// delete can lie between their versions, and the first is none.
    pub(crate) fn exclude(&self, key: KeyId, first: TxnId, second: TxnId) -> bool {
        first.is_init() || !self.may_part(key, first, second)
    }

    /// Whether a delete may lie between a version of a row and a later one, or is the first of them.
    pub(crate) fn may_part(&self, key: KeyId, first: TxnId, second: TxnId) -> bool {
        let mut deleters = self.0.get(&key).into_iter().flatten();
        deleters.any(|deleter| *deleter != second || *deleter == first)
    }
}
