//! What was recorded of a round: the transactions that clients sent, and what came back.

use isolario_model::{Outcome, Value};

use crate::instrument::{Instrumented, Shown, StatementKind};

/// An element of the list of a row: the statement that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element {
    /// The transaction, counted from 1; 0 where the list has something that nobody wrote.
    pub txn: u32,
    /// The statement of the transaction, counted from 1.
    pub statement: u32,
}

impl std::str::FromStr for Element {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Element, Self::Err> {
        let (txn, statement) = text.split_once('.').unwrap_or((text, ""));
        Ok(Element { txn: txn.parse()?, statement: statement.parse()? })
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.txn, self.statement)
    }
}

/// A row that a statement showed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Whether the statement locked it.
    pub locked: bool,
    /// What it is called by.
    pub row: String,
    /// Who wrote it, one after the other.
    pub list: Vec<Element>,
}

/// Takes the columns that instrumentation added off an answer, and tells the rows that they show:
/// those that were read from the statement's snapshot first, each row with each list once.
pub fn take_seen(shows: &[Shown], rows: &mut [Vec<Value>]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for row in rows {
        let Some(first) = row.len().checked_sub(shows.len()) else { continue };
        for (shown, text) in shows.iter().zip(row.drain(first..)) {
            if let Value::Text(text) = &text {
                seen.extend(text.split(';').filter_map(|part| one_seen(part, shown.locked)));
            }
        }
    }
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// Takes off what [`Instrument::with_all_rows`](crate::Instrument::with_all_rows) added.
fn take_all_rows(rows: &mut Vec<Vec<Value>>) -> Vec<Seen> {
    let mut all = Vec::new();
    rows.retain_mut(|row| {
        if let Some(Value::Text(text)) = row.pop() {
            all = text.split(';').filter_map(|part| one_seen(part, false)).collect();
        }
        row.pop() == Some(Value::Bool(true))
    });
    all
}

/// A row and its list, as [`Instrument`](crate::Instrument) has them written: `t0/1=7.3,8.1`.
fn one_seen(text: &str, locked: bool) -> Option<Seen> {
    let (row, list) = text.split_once('=')?;
    let elements = list.split(',').filter(|element| !element.is_empty());
    let nobody = Element { txn: 0, statement: 0 };
    let list = elements.map(|element| element.parse().unwrap_or(nobody)).collect();
    Some(Seen { locked, row: row.to_owned(), list })
}

/// All rows of all tables, each with what it holds.
pub type Snapshot = Vec<(Seen, Vec<Value>)>;

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The database's own code.
    pub code: Option<String>,
    /// The database's own words.
    pub message: String,
}

/// A statement that was sent, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its position in the transaction, counted from 1.
    pub number: u32,
    /// The statement, as it would be without instrumentation.
    pub sql: String,
    /// What kind of statement it is.
    pub kind: StatementKind,
    /// The table that it writes to; of a full read, the table.
    pub table: Option<String>,
    /// When it was sent, and when it was answered, among all such events of the round.
    pub turn: (u64, u64),
    /// What was there, as the transaction saw it right before.
    pub looked: Option<Snapshot>,
    /// The rows that it was held against, as it met them itself: at least all of the table that it asks.
    pub met: Option<Vec<Seen>>,
    /// The rows that it read.
    pub reads: Vec<Seen>,
    /// The rows that it deleted, as they were before.
    pub deleted: Vec<Seen>,
    /// Whether these are all that it deleted.
    pub deletes_known: bool,
    /// The rows that it certainly inserted.
    pub inserted: Vec<String>,
    /// Its answer, without the columns that are ours.
    pub rows: Vec<Vec<Value>>,
    /// How many rows it changed.
    pub changed: u64,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The statement that rolled it back, if one did before the transaction ended.
    pub undone_by: Option<u32>,
    /// Why it was sent as it is, if it could not be instrumented.
    pub refusal: Option<String>,
    /// Whether it reads rows that it does not show.
    pub is_partial: bool,
}

impl Recorded {
    /// A statement that is about to be sent.
    pub fn new(number: u32, sql: &str, sent: &Instrumented) -> Recorded {
        Recorded {
            number,
            sql: sql.to_owned(),
            kind: sent.kind,
            table: sent.target.clone(),
            turn: (0, 0),
            looked: None,
            met: None,
            reads: Vec::new(),
            deleted: Vec::new(),
            deletes_known: false,
            inserted: Vec::new(),
            rows: Vec::new(),
            changed: 0,
            failure: None,
            undone_by: None,
            refusal: sent.refusal.as_ref().map(ToString::to_string),
            is_partial: sent.is_partial,
        }
    }

    /// What came back: of the read that goes before it, and of the statement itself.
    pub fn answered(
        &mut self,
        sent: &Instrumented,
        before: Option<Vec<Vec<Value>>>,
        mut rows: Vec<Vec<Value>>,
        changed: u64,
    ) {
        self.changed = changed;
        if sent.tells_all_rows {
            self.met = Some(take_all_rows(&mut rows));
            self.changed = rows.len() as u64;
        }
        let seen = take_seen(&sent.shows, &mut rows);
        self.rows = rows;
        match sent.deletes {
            false => self.reads = seen,
            true => {
                let mut earlier = before.unwrap_or_default();
                self.deleted = take_seen(&[Shown { locked: true }], &mut earlier);
                self.deleted.extend(seen);
                // Where rows were read before they were deleted, the two must have met the same ones.
                self.deletes_known = sent.kind == StatementKind::Delete
                    && (sent.before.is_none() || self.deleted.len() as u64 == changed);
                if sent.before.is_some()
                    && sent.kind == StatementKind::Delete
                    && !self.deletes_known
                {
                    self.deleted.clear();
                }
                // Their columns are not part of what the statement itself answers.
                self.rows.clear();
            }
        }
        self.inserted.clone_from(&sent.inserts);
    }

    /// Whether it may have deleted rows that it does not show.
    pub(crate) fn may_delete_unseen(&self) -> bool {
        match self.kind {
            StatementKind::Replace => true,
            StatementKind::Delete => !self.deletes_known,
            StatementKind::Other => self.table.is_some(),
            _ => false,
        }
    }

    /// Whether it took effect, as far as the transaction did.
    pub fn holds(&self) -> bool {
        self.failure.is_none() && self.undone_by.is_none()
    }
}

/// A transaction that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedTxn {
    /// Its number, counted from 1. Later transactions of a session have larger ones.
    pub id: u32,
    /// Its session.
    pub session: u32,
    /// Its statements.
    pub statements: Vec<Recorded>,
    /// What was there, as it saw it right before it committed.
    pub left: Option<Snapshot>,
    /// Whether it is a single statement outside of any transaction.
    pub autocommit: bool,
    /// Whether it reads all tables when everything else is over.
    pub is_final: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began and ended, in nanoseconds.
    pub times: Option<(i64, i64)>,
    /// When its end was asked for, and when that was answered, among all such events of the round.
    pub end_turn: (u64, u64),
    /// The error that ended it.
    pub error: Option<String>,
}

impl RecordedTxn {
    /// A transaction that begins.
    pub fn new(id: u32, session: u32) -> RecordedTxn {
        RecordedTxn {
            id,
            session,
            statements: Vec::new(),
            left: None,
            autocommit: false,
            is_final: false,
            outcome: Outcome::Aborted,
            times: None,
            end_turn: (0, 0),
            error: None,
        }
    }

    /// Marks what a `ROLLBACK TO SAVEPOINT` undid: everything since that savepoint.
    pub fn undo_to(&mut self, savepoint: &str, by: u32) {
        let made = |statement: &Recorded| {
            statement.holds() && savepoint_of(&statement.sql, "SAVEPOINT ") == Some(savepoint)
        };
        let since = self.statements.iter().rposition(made).map_or(0, |at| at + 1);
        for statement in &mut self.statements[since..] {
            if statement.number < by && statement.undone_by.is_none() {
                statement.undone_by = Some(by);
            }
        }
    }
}

/// The savepoint that a statement names after these words.
pub fn savepoint_of<'a>(sql: &'a str, words: &str) -> Option<&'a str> {
    sql.strip_prefix(words).map(str::trim)
}

/// Everything that was recorded of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The transactions, by number.
    pub transactions: Vec<RecordedTxn>,
    /// What was there before any of them.
    pub first: Option<Snapshot>,
    /// Whether statements were sent in turn, each when the one before was answered or had to wait.
    pub is_in_turn: bool,
}

impl Round {
    /// The transaction of a number.
    pub fn txn(&self, id: u32) -> Option<&RecordedTxn> {
        let at = self.transactions.binary_search_by_key(&id, |txn| txn.id).ok()?;
        self.transactions.get(at)
    }

    /// Whether somebody else's turn came before a statement was answered.
    pub(crate) fn waited(&self, of: &RecordedTxn, statement: &Recorded) -> bool {
        let (sent, answered) = statement.turn;
        let others = self.transactions.iter().filter(|txn| txn.session != of.session);
        let mut turns = others.flat_map(|txn| {
            txn.statements.iter().map(|other| other.turn.0).chain([txn.end_turn.0])
        });
        turns.any(|turn| sent < turn && turn < answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn lists_are_read_element_by_element() {
        let shows = [Shown { locked: true }, Shown { locked: false }];
        let mut rows = vec![
            vec![Value::Int(5), text("t0/1=,1.2,10.1"), text("t1/1=;t1/2=3.1")],
            vec![Value::Int(6), Value::Nil, text("t1/1=;t1/2=3.1")],
        ];
        let seen = take_seen(&shows, &mut rows);
        assert_eq!(rows, [[Value::Int(5)], [Value::Int(6)]]);
        let told: Vec<String> = seen
            .iter()
            .map(|seen| {
                let list: Vec<String> = seen.list.iter().map(ToString::to_string).collect();
                format!("{} {} {}", seen.row, list.join("+"), seen.locked)
            })
            .collect();
        assert_eq!(told, ["t1/1  false", "t1/2 3.1 false", "t0/1 1.2+10.1 true"]);
    }

    #[test]
    fn all_rows_come_with_what_was_found_and_without() {
        let all = text("t0/1=;t0/2=3.1");
        let mut rows = vec![vec![Value::Int(5), Value::Bool(true), all.clone()]];
        assert_eq!(take_all_rows(&mut rows).len(), 2);
        assert_eq!(rows, [[Value::Int(5)]]);
        let mut rows = vec![vec![Value::Nil, Value::Nil, all]];
        assert_eq!(take_all_rows(&mut rows).len(), 2);
        assert!(rows.is_empty());
    }

    #[test]
    fn what_nobody_wrote_is_nobody_s() {
        let seen = one_seen("t0/1=1.2,junk", false).unwrap();
        assert_eq!(seen.list[1], Element { txn: 0, statement: 0 });
        assert_eq!(one_seen("nonsense", false), None);
    }
}
