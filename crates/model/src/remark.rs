//! What validation finds, and how to say it in the user's own names.

use crate::op::{Op, Outcome};
use crate::tally::Tally;
use crate::{History, KeyId, OpId, TxnId, ValueRef};

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
pub enum Problem {
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
    /// A transaction that finished before it started.
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
    /// A transaction without operations.
    Empty {
        /// The transaction.
        txn: TxnId,
    },
}

impl Problem {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            Problem::TwoSessions { .. } => Severity::Fatal,
            Problem::RepeatedName { .. }
            | Problem::DuplicateValue { .. }
            | Problem::InitialValueWritten { .. }
            | Problem::MixedKey { .. }
            | Problem::FinishBeforeStart { .. }
            | Problem::BackInTime { .. } => Severity::Warning,
            Problem::Empty { .. } => Severity::Note,
        }
    }

    /// A stable name of the kind of problem, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Problem::TwoSessions { .. } => "two-sessions",
            Problem::RepeatedName { .. } => "repeated-name",
            Problem::DuplicateValue { .. } => "duplicate-value",
            Problem::InitialValueWritten { .. } => "initial-value-written",
            Problem::MixedKey { .. } => "mixed-key",
            Problem::FinishBeforeStart { .. } => "finish-before-start",
            Problem::BackInTime { .. } => "back-in-time",
            Problem::Empty { .. } => "empty-transaction",
        }
    }

    /// The problem as a sentence, without a full stop. `history` is the one it was found in.
    pub fn describe(&self, history: &History) -> String {
        let txn = |id| transaction(history, id);
        let session = |id| history.session_name(history.session_of(id));
        match *self {
            Problem::TwoSessions { first, second } => {
                let (a, b) = (session(first), session(second));
                format!("{} is in session {a}, {} in session {b}", txn(first), txn(second))
            }
            Problem::RepeatedName { first, second } => {
                let both = format!("{} and {}", txn(first), txn(second));
                format!("{both} of session {} have the same name", session(first))
            }
            Problem::DuplicateValue { first, second, key } => {
                describe_duplicate(history, first, second, key)
            }
            Problem::InitialValueWritten { op, key } => {
                let (value, name) = (written_value(history, op, key), history.key_name(key));
                let writer = txn(history.op_txn(op));
                format!("{writer} writes {value} to key {name}, which is its initial value")
            }
            Problem::MixedKey { key, register, list } => {
                let [register, list] = [register, list].map(|op| txn(history.op_txn(op)));
                let name = history.key_name(key);
                format!("key {name} is a register in {register} and a list in {list}")
            }
            Problem::FinishBeforeStart { txn: id } => {
                let (start, finish) = (shown(history.start(id)), shown(history.finish(id)));
                format!("{} finishes at {finish}, before its start at {start}", txn(id))
            }
            Problem::BackInTime { previous, txn: id } => {
                let (begins, from) = beginning(history, id).unwrap_or(("starts", 0));
                let (ended, until) = over(history, previous).unwrap_or(("finished", 0));
                let before = format!("{}, before it in session {}", txn(previous), session(id));
                format!("{} {begins} at {from}, although {before}, {ended} at {until}", txn(id))
            }
            Problem::Empty { txn: id } => format!("{} has no operations", txn(id)),
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

/// All problems of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The first of them.
    pub problem: Problem,
    /// The next few, in the history's order.
    pub more: Vec<Problem>,
    /// How many there are in all: at least as many as are listed here.
    pub count: usize,
}

impl Remark {
    pub(crate) fn new(tally: Tally<Problem>) -> Option<Remark> {
        let mut first = tally.first.into_iter();
        let problem = first.next()?;
        Some(Remark { problem, more: first.collect(), count: tally.count })
    }

    /// The problems that are listed, in the history's order.
    pub fn examples(&self) -> impl Iterator<Item = &Problem> {
        std::iter::once(&self.problem).chain(&self.more)
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.problem.severity()
    }

    /// A stable name of the kind of problem, for programs.
    pub fn name(&self) -> &'static str {
        self.problem.name()
    }

    /// The remark as a sentence, without a full stop: its first problem, and how many there
    /// are. `history` is the one it was found in.
    pub fn describe(&self, history: &History) -> String {
        let sentence = self.problem.describe(history);
        match self.count {
            0 | 1 => sentence,
            count => format!("{sentence} (the first of {count} cases)"),
        }
    }
}
