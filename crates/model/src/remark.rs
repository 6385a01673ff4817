//! What validation finds, and how to say it in the user's own names.

use crate::op::{Op, Outcome};
use crate::{History, KeyId, OpId, PredicateId, RowView, TxnId, ValueRef};

/// How much a remark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; changes no verdict.
    Note,
    /// Some levels may not apply, or may say less.
    Warning,
    /// The history contradicts itself: no verdict about it would mean anything.
    Fatal,
}

/// Something odd about a history, with where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// Transactions of one name in two sessions.
    TwoSessions {
        /// The first of that name.
        first: TxnId,
        /// The first in another session.
        second: TxnId,
    },
    /// Transactions of one name in one session.
    RepeatedName {
        /// The earlier one.
        first: TxnId,
        /// The next of that name.
        second: TxnId,
    },
    /// One value (or one named version) written to a key more than once: a read of it is
    /// ambiguous.
    DuplicateValue {
        /// The first write of it.
        first: OpId,
        /// The second one.
        second: OpId,
        /// The key.
        key: KeyId,
    },
    /// A client writes the value that the key held at first: a read of it is ambiguous.
    InitialValueWritten {
        /// The write.
        op: OpId,
        /// The key.
        key: KeyId,
    },
    /// A key that is used both as a register and as a list.
    MixedKey {
        /// The key.
        key: KeyId,
        /// The first use as a register.
        register: OpId,
        /// The first use as a list.
        list: OpId,
    },
    /// A transaction that finished before it started: the history has neither time.
    FinishBeforeStart {
        /// The transaction.
        txn: TxnId,
    },
    /// A transaction that began before its predecessor in the session was over.
    BackInTime {
        /// The last transaction before it that has a time.
        previous: TxnId,
        /// The transaction.
        txn: TxnId,
    },
    /// A row that a predicate operation has twice.
    RepeatedRow {
        /// The operation.
        op: OpId,
        /// What the row is called by.
        key: KeyId,
    },
    /// A row without a column that the predicate speaks of, neither in its key nor in its value:
    /// nobody can tell whether it satisfies the predicate.
    MissingColumn {
        /// The operation.
        op: OpId,
        /// What the row is called by.
        key: KeyId,
    },
    /// A predicate that was kept as text: nobody can tell which rows satisfy it.
    UnparsedPredicate {
        /// The first operation that has it.
        op: OpId,
        /// The predicate.
        predicate: PredicateId,
    },
    /// A transaction without operations.
    Empty {
        /// The transaction.
        txn: TxnId,
    },
}

impl Oddity {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            Oddity::TwoSessions { .. } => Severity::Fatal,
            Oddity::RepeatedName { .. }
            | Oddity::DuplicateValue { .. }
            | Oddity::InitialValueWritten { .. }
            | Oddity::MixedKey { .. }
            | Oddity::RepeatedRow { .. }
            | Oddity::MissingColumn { .. }
            | Oddity::UnparsedPredicate { .. }
            | Oddity::FinishBeforeStart { .. }
            | Oddity::BackInTime { .. } => Severity::Warning,
            Oddity::Empty { .. } => Severity::Note,
        }
    }

    /// A stable name of its kind, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Oddity::TwoSessions { .. } => "two-sessions",
            Oddity::RepeatedName { .. } => "repeated-name",
            Oddity::DuplicateValue { .. } => "duplicate-value",
            Oddity::InitialValueWritten { .. } => "initial-value-written",
            Oddity::MixedKey { .. } => "mixed-key",
            Oddity::FinishBeforeStart { .. } => "finish-before-start",
            Oddity::BackInTime { .. } => "back-in-time",
            Oddity::RepeatedRow { .. } => "repeated-row",
            Oddity::MissingColumn { .. } => "missing-column",
            Oddity::UnparsedPredicate { .. } => "unparsed-predicate",
            Oddity::Empty { .. } => "empty-transaction",
        }
    }

    /// It as a sentence, without a full stop. `history` is the one it was found in.
    pub fn describe(&self, history: &History) -> String {
        let txn = |id| transaction(history, id);
        let session = |id| history.session_name(history.session_of(id));
        match *self {
            Oddity::TwoSessions { first, second } => {
                let (a, b) = (session(first), session(second));
                format!("{} is in session {a}, {} in session {b}", txn(first), txn(second))
            }
            Oddity::RepeatedName { first, second } => {
                let both = format!("{} and {}", txn(first), txn(second));
                format!("{both} of session {} have the same name", session(first))
            }
            Oddity::DuplicateValue { first, second, key } => {
                describe_duplicate(history, first, second, key)
            }
            Oddity::InitialValueWritten { op, key } => {
                let (value, name) = (written_value(history, op, key), history.key_name(key));
                let writer = txn(history.op_txn(op));
                format!("{writer} writes {value} to key {name}, which is its initial value")
            }
            Oddity::MixedKey { key, register, list } => {
                let [register, list] = [register, list].map(|op| txn(history.op_txn(op)));
                let name = history.key_name(key);
                format!("key {name} is a register in {register} and a list in {list}")
            }
            Oddity::FinishBeforeStart { txn: id } => {
                let bad = history.contradictory_times_of(id);
                let [start, finish] =
                    [bad.map(|bad| bad.start), bad.map(|bad| bad.finish)].map(shown);
                format!(
                    "{} finishes at {finish}, before its start at {start}: both times are left out",
                    txn(id)
                )
            }
            Oddity::BackInTime { previous, txn: id } => {
                let (begins, from) = beginning(history, id).unwrap_or(("starts", 0));
                let (ended, until) = over(history, previous).unwrap_or(("finished", 0));
                let before = format!("{}, before it in session {}", txn(previous), session(id));
                format!("{} {begins} at {from}, although {before}, {ended} at {until}", txn(id))
            }
            Oddity::RepeatedRow { op, key } => {
                let (name, of) = (history.key_name(key), txn(history.op_txn(op)));
                format!("a predicate operation of {of} has row {name} twice")
            }
            Oddity::MissingColumn { op, key } => {
                let (name, of) = (history.key_name(key), txn(history.op_txn(op)));
                let column = missing_column_of(history, op, key).unwrap_or("a column");
                format!("row {name} of {of} lacks column {column}, which the predicate refers to")
            }
            Oddity::UnparsedPredicate { op, predicate } => {
                let (text, of) = (history.predicate(predicate), txn(history.op_txn(op)));
                format!("predicate `{text}` of {of} cannot be parsed, and is kept as text")
            }
            Oddity::Empty { txn: id } => format!("{} has no operations", txn(id)),
        }
    }
}

/// The earliest that is known of a transaction: what happened, and when.
pub(crate) fn beginning(history: &History, txn: TxnId) -> Option<(&'static str, i64)> {
    let start = history.start(txn).map(|time| ("starts", time));
    start.or_else(|| history.finish(txn).map(|time| ("finishes", time)))
}

/// The latest that is known of a transaction before its session went on.
///
/// A client that gave up on a transaction may hear of its end at any later time, so one of
/// unknown outcome counts with its start alone.
pub(crate) fn over(history: &History, txn: TxnId) -> Option<(&'static str, i64)> {
    let finish = history.finish(txn).filter(|_| history.outcome(txn) != Outcome::Unknown);
    let finish = finish.map(|time| ("finished", time));
    finish.or_else(|| history.start(txn).map(|time| ("started", time)))
}

fn transaction(history: &History, txn: TxnId) -> String {
    let label = history.txn_label(txn);
    match history.line(txn) {
        Some(line) => format!("transaction {label} (line {line})"),
        None => format!("transaction {label}"),
    }
}

fn shown(time: Option<i64>) -> String {
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
}

fn describe_duplicate(history: &History, first: OpId, second: OpId, key: KeyId) -> String {
    let [one, other] = [first, second].map(|op| history.op_txn(op));
    let what = match history.op_version(first) {
        Some(_) => "the same version".to_owned(),
        None => written_value(history, first, key).to_string(),
    };
    let (name, writer) = (history.key_name(key), transaction(history, one));
    if one == other {
        format!("{writer} writes {what} to key {name} twice")
    } else {
        format!("{writer} and {} both write {what} to key {name}", transaction(history, other))
    }
}

/// The value an operation writes to one of its keys; nil for a delete.
fn written_value(history: &History, op: OpId, of: KeyId) -> ValueRef<'_> {
    let id = match history.op(op) {
        Op::Write { value, .. } | Op::InsertIfAbsent { value, .. } => Some(value),
        Op::Append { element, .. } => Some(element),
        Op::CompareAndSet { new, .. } => Some(new),
        Op::PredicateWrite { rows: Some(rows), .. } => {
            rows.iter().find(|row| row.key == of).map(|row| row.value)
        }
        _ => None,
    };
    id.map_or(ValueRef::Nil, |id| history.value(id))
}

fn missing_column_of(history: &History, op: OpId, key: KeyId) -> Option<&str> {
    let (Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. }) = history.op(op) else {
        return None;
    };
    let rows = rows.unwrap_or_default().iter().filter(|row| row.key == key);
    rows.into_iter().find_map(|row| missing_column(history, op, row))
}

/// A column that the predicate of an operation speaks of, and that a row of it has neither in its
/// key nor in its value. What is no tuple has no columns to miss.
pub(crate) fn missing_column<'h>(history: &'h History, op: OpId, row: &RowView) -> Option<&'h str> {
    let condition = history.predicate(history.op_predicate(op)?).condition()?;
    let ValueRef::Tuple(held) = history.value(row.value) else { return None };
    let called = match history.key_name(row.key) {
        ValueRef::Tuple(called) => Some(called),
        _ => None,
    };
    let has = |name: &&str| {
        held.get(name).is_some() || called.is_some_and(|called| called.get(name).is_some())
    };
    condition.columns().find(|name| !has(name))
}

/// All oddities of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The first of them.
    pub first: Oddity,
    /// The next few, in the history's order.
    pub more: Vec<Oddity>,
    /// How many there are in all: at least as many as are listed here.
    pub count: usize,
}

impl Remark {
    pub(crate) fn new(tally: Tally<Oddity>) -> Option<Remark> {
        let mut first = tally.first.into_iter();
        let oddity = first.next()?;
        Some(Remark { first: oddity, more: first.collect(), count: tally.count })
    }

    /// The ones that are listed, in the history's order.
    pub fn examples(&self) -> impl Iterator<Item = &Oddity> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.first.severity()
    }

    /// A stable name of its kind, for programs.
    pub fn name(&self) -> &'static str {
        self.first.name()
    }

    /// The remark as a sentence, without a full stop: its first case, and how many there
    /// are. `history` is the one it was found in.
    pub fn describe(&self, history: &History) -> String {
        let sentence = self.first.describe(history);
        match self.count {
            0 | 1 => sentence,
            count => format!("{sentence} (the first of {count} cases)"),
        }
    }
}

/// How many examples a tally keeps.
const EXAMPLES: usize = 10;

/// A count, and the first few of what was counted.
///
/// *First* is by the items' own order, not by the order they came in, so that tallies of parts
/// can be merged in any order: the result is the same for any number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally<T> {
    pub(crate) count: usize,
    /// At most [`EXAMPLES`], in order.
    pub(crate) first: Vec<T>,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Tally { count: 0, first: Vec::new() }
    }
}

impl<T: Ord> Tally<T> {
    /// Counts an item.
    pub(crate) fn add(&mut self, item: T) {
        self.count += 1;
        self.keep(item);
    }

    /// The tally of what each item stands for. `to` keeps the order.
    pub(crate) fn map<U: Ord>(self, to: impl FnMut(T) -> U) -> Tally<U> {
        Tally { count: self.count, first: self.first.into_iter().map(to).collect() }
    }

    /// Adds what another tally counted.
    pub(crate) fn merge(mut self, other: Tally<T>) -> Tally<T> {
        self.count += other.count;
        other.first.into_iter().for_each(|item| self.keep(item));
        self
    }

    fn keep(&mut self, item: T) {
        if self.first.len() == EXAMPLES {
            if self.first.last().is_some_and(|last| *last <= item) {
                return;
            }
            self.first.pop();
        }
        let at = self.first.partition_point(|kept| *kept < item);
        self.first.insert(at, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_kept_however_the_items_are_split() {
        let items: Vec<u32> = (0..100).map(|i| i * 37 % 101).collect();
        let tally = |items: &[u32]| {
            let mut tally = Tally::default();
            items.iter().for_each(|i| tally.add(*i));
            tally
        };
        let whole = tally(&items);
        assert_eq!(whole.count, 100);
        let mut sorted = items.clone();
        sorted.sort_unstable();
        assert_eq!(whole.first, sorted[..EXAMPLES]);
        for cut in [0, 1, 50, 99, 100] {
            let (head, tail) = items.split_at(cut);
            assert_eq!(tally(tail).merge(tally(head)), whole);
        }
    }
}
