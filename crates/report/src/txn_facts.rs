//! What is known of a transaction besides what it read and wrote.

use isolario_model::{History, OpId, Outcome, Stamp, TxnId};

use crate::names::Names;
use crate::printable::printable;
use crate::sentences::TxnTimes;

/// What is known of a transaction besides its operations. Every renderer shows all of it: whoever
/// mends a database asks for it first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TxnFacts<'h> {
    /// Its session, its line and how it ended, where it did not commit: `session 3, line 7, aborted`.
    pub origin: String,
    /// When it ran: `at 1.204 s, for 3 ms`, since the history began.
    pub time: Option<String>,
    /// The error that ended it, as the database gave it.
    pub error: Option<&'h str>,
    /// The snapshot that it read, as the database names it.
    pub snapshot: Option<&'h str>,
    /// When it began, by the database's own stamp.
    pub db_start: Option<Stamp>,
    /// When it committed, by the database's own stamp.
    pub db_commit: Option<Stamp>,
    /// Its statements, where they were recorded, each with its first operation.
    pub sql: Vec<(OpId, &'h str)>,
}

impl<'h> TxnFacts<'h> {
    /// Those of a transaction; `first` is when the history [`began`](crate::sentences::began).
    pub fn of(names: Names<'h>, txn: TxnId, first: i64) -> TxnFacts<'h> {
        let history = names.history();
        TxnFacts {
            origin: origin(names, txn),
            time: TxnTimes::of(history, txn, first).describe(),
            error: history.error(txn),
            snapshot: history.snapshot(txn),
            db_start: history.db_start(txn),
            db_commit: history.db_commit(txn),
            sql: statements(history, txn),
        }
    }

    /// Everything but the place and the statements, each with a label, fit to be shown to people.
    pub fn notes(&self) -> Vec<(&'static str, String)> {
        let mut notes = Vec::new();
        notes.extend(self.time.clone().map(|time| ("time", time)));
        notes.extend(self.error.map(|error| ("error", printable(error).into_owned())));
        notes.extend(self.snapshot.map(|name| ("snapshot", printable(name).into_owned())));
        let stamps = [("began", self.db_start), ("committed", self.db_commit)];
        let known =
            stamps.iter().filter_map(|(what, at)| Some(format!("{what} {}", stamp((*at)?))));
        let stamps: Vec<String> = known.collect();
        if !stamps.is_empty() {
            notes.push(("database", stamps.join(", ")));
        }
        notes
    }
}

fn origin(names: Names<'_>, txn: TxnId) -> String {
    let history = names.history();
    let line = history.line(txn).map_or(String::new(), |line| format!(", line {line}"));
    let outcome = match history.outcome(txn) {
        Outcome::Committed => "",
        Outcome::Aborted => ", aborted",
        Outcome::Unknown => ", outcome unknown",
    };
    format!("session {}{line}{outcome}", names.session(txn))
}

/// A stamp as people write it: its logical part only where it has one.
pub(crate) fn stamp(Stamp { physical, logical }: Stamp) -> String {
    match logical {
        0 => physical.to_string(),
        logical => format!("{physical}.{logical}"),
    }
}

/// One statement may be several operations.
fn statements(history: &History, txn: TxnId) -> Vec<(OpId, &str)> {
    let known = history.txn_ops(txn).filter_map(|op| Some((op, history.op_sql(op)?)));
    let mut statements: Vec<(OpId, &str)> = known.collect();
    statements.dedup_by_key(|(_, sql)| *sql);
    statements
}
