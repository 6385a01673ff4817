//! What lets an anomaly happen: why no lock kept its transactions apart.
//!
//! The classes are those of the IsoRel paper (Section 5.2), with one more for anomalies that take a
//! single writer. They are about scripts that were simplified: there, every write has its part in the anomaly.

use std::fmt;

use isolario_model::Outcome;
use isolario_sql::{Element, Product, RecordedTxn, Round, Seen};
use serde::{Deserialize, Serialize};

/// Why no lock kept the transactions of an anomaly apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// Two wrote the same row, the second when the first had committed, and with that given up its lock.
    CommitTiming,
    /// Two wrote different rows of a table whose gaps are locked, the second when the first had
    /// committed.
    CommitTimingOfGaps,
    /// They wrote different rows of one table, and no lock covers more than a row.
    SameTable,
    /// They wrote to different tables.
    DifferentTables,
    /// Only one of them wrote: the reads of the others lock nothing.
    UnlockedRead,
    /// Two wrote the same row, and the second did not wait for the first to end.
    NoLock,
    /// It has nothing to do with locks.
    Other,
}

impl Cause {
    /// The cause in words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::CommitTiming => "timing of COMMIT",
            Cause::CommitTimingOfGaps => "timing of COMMIT, gap locks",
            Cause::SameTable => "different rows of one table, no gap locks",
            Cause::DifferentTables => "rows of different tables",
            Cause::UnlockedRead => "reads that lock nothing",
            Cause::NoLock => "the same row written without waiting",
            Cause::Other => "other",
        }
    }

    /// What let an anomaly happen, by a round that has nothing but its transactions.
    pub(super) fn of(round: &Round, product: &Product, isolation: &str) -> Cause {
        let is_committed = |txn: &&RecordedTxn| !txn.is_final && txn.outcome == Outcome::Committed;
        let writers: Vec<Writer<'_>> = (round.transactions.iter().filter(is_committed))
            .map(|txn| Writer { txn, writes: writes(round, txn) })
            .filter(|writer| !writer.writes.is_empty())
            .collect();
        let mut pairs = Vec::new();
        for (at, first) in writers.iter().enumerate() {
            pairs.extend(writers[at + 1..].iter().map(|second| (first, second)));
        }
        if pairs.is_empty() {
            return Cause::UnlockedRead;
        }
        let has_gap_locks = product.locks_gaps(isolation);
        let met = pairs.iter().filter_map(|(a, b)| a.met(b, |row| row));
        // The conflict that is nearest to being one decides.
        if let Some(was_over) = met.reduce(|first, second| first && second) {
            return if was_over { Cause::CommitTiming } else { Cause::NoLock };
        }
        let met = pairs.iter().filter_map(|(a, b)| a.met(b, table));
        match met.reduce(|first, second| first && second) {
            Some(true) if has_gap_locks => Cause::CommitTimingOfGaps,
            Some(_) => Cause::SameTable,
            None => Cause::DifferentTables,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The table that a row belongs to, by its name.
fn table(row: &str) -> &str {
    row.split_once('/').map_or(row, |(table, _)| table)
}

/// A row that a transaction wrote, and when: sent and answered.
struct Write<'r> {
    row: &'r str,
    turn: (u64, u64),
}

struct Writer<'r> {
    txn: &'r RecordedTxn,
    writes: Vec<Write<'r>>,
}

impl<'r> Writer<'r> {
    /// Whether the second of two writes of the same thing was only done when the transaction of the
    /// first was asked to commit, for all such pairs; none if there is no such pair.
    fn met(&self, other: &Writer<'r>, thing: impl Fn(&'r str) -> &'r str) -> Option<bool> {
        let mut met = None;
        for mine in &self.writes {
            for theirs in other.writes.iter().filter(|theirs| thing(theirs.row) == thing(mine.row))
            {
                // Whoever had to wait was answered later.
                let was_over = match mine.turn.1 < theirs.turn.1 {
                    true => self.txn.end_turn.0 < theirs.turn.1,
                    false => other.txn.end_turn.0 < mine.turn.1,
                };
                met = Some(met.unwrap_or(true) && was_over);
            }
        }
        met
    }
}

/// The rows that a transaction wrote: those that somebody saw its elements in, and those it deleted.
fn writes<'r>(round: &'r Round, txn: &'r RecordedTxn) -> Vec<Write<'r>> {
    let all = round.transactions.iter().flat_map(|txn| &txn.statements);
    let seen: Vec<&Seen> = all.flat_map(|s| s.reads.iter().chain(&s.deleted)).collect();
    let mut writes = Vec::new();
    for statement in txn.statements.iter().filter(|statement| statement.holds()) {
        let element = Element { txn: txn.id, statement: statement.number };
        let shows = |seen: &&&Seen| seen.list.contains(&element);
        let rows = seen.iter().filter(shows).map(|seen| seen.row.as_str());
        let deleted = statement.deleted.iter().map(|seen| seen.row.as_str());
        let mut rows: Vec<&str> = rows.chain(deleted).collect();
        rows.sort_unstable();
        rows.dedup();
        writes.extend(rows.into_iter().map(|row| Write { row, turn: statement.turn }));
    }
    writes
}
