//! Random transactions on SQLite, which is serializable: whatever is found in their histories is a false
//! alarm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod client;
mod interleaved;
mod serial;
mod templates;

use std::collections::BTreeSet;

use isolario_check::{CheckOptions, Checker};
use isolario_model::{History, Level, Outcome};
use isolario_sql::{
    Certified, Instrument, Planned, Reading, Recorded, RecordedTxn, Round, Schema, Style,
    certified, history,
};

/// The usual style. Where all tables are read before each statement, more rows come and go, and there are no
/// savepoints: a round with one is not evaluated by predicate.
fn style(looks: bool) -> Style {
    let mut style = Style::default();
    if looks {
        let mix = "select:34,full-read:3,insert:20,insert-select:4,upsert:6,replace:3,update:12,delete:18";
        style.mix = mix.parse().unwrap();
    }
    style
}

/// A transaction that reads every table.
fn full_read(schema: &Schema) -> Planned {
    let statements = schema.tables.iter().map(Schema::full_read).collect();
    Planned { statements, autocommit: false, commits: true }
}

/// Marks a transaction that read every table after all others.
fn mark_final(txn: &mut RecordedTxn, schema: &Schema) {
    txn.is_final = true;
    for (table, statement) in schema.tables.iter().zip(&mut txn.statements) {
        statement.table = Some(table.name.clone());
    }
}

/// What the rounds of a test had in them.
#[derive(Debug, Default)]
struct Counts {
    rounds: usize,
    committed: usize,
    aborted: usize,
    /// Pairs of committed transactions of which neither ended before the other began.
    overlapping: usize,
    /// Rounds whose dependencies by predicate are known, and reads by predicate in these.
    certified: usize,
    sets: usize,
    /// Queries in these that come before an insert and a delete of the same row by their own transaction.
    before_own_insert: usize,
    /// Queries in these that come after a delete by their own transaction.
    after_own_delete: usize,
}

impl Counts {
    /// Asserts that a round is strictly serializable, and counts what is in it.
    fn check(&mut self, what: &str, round: &Round, schema: &Schema, instrument: &Instrument<'_>) {
        self.rounds += 1;
        let txns: Vec<&RecordedTxn> = round.transactions.iter().filter(|t| !t.is_final).collect();
        let committed: Vec<_> = txns.iter().filter(|t| t.outcome == Outcome::Committed).collect();
        self.committed += committed.len();
        self.aborted += txns.len() - committed.len();
        let overlaps = |a: &RecordedTxn, b: &RecordedTxn| {
            let ((a_start, a_end), (b_start, b_end)) = (a.times.unwrap(), b.times.unwrap());
            a_start < b_end && b_start < a_end
        };
        for (at, txn) in committed.iter().enumerate() {
            let later = committed[at + 1..].iter();
            self.overlapping += later.filter(|other| overlaps(txn, other)).count();
        }
        let rows = history(round, Reading::default()).unwrap();
        is_satisfied(what, &rows, CheckOptions::default());
        if round.first.is_none() {
            return;
        }
        let known = certified(round, schema, instrument.product, "serializable").unwrap();
        let Some(Certified { history, orders, sets, .. }) = known else { return };
        self.certified += 1;
        self.sets += sets.len();
        for txn in committed {
            let queries = txn.statements.iter().filter(|statement| statement.kind.is_read());
            for query in queries {
                self.before_own_insert += usize::from(is_before_own_insert(txn, query));
                self.after_own_delete += usize::from(is_after_own_delete(txn, query));
            }
        }
        let options = CheckOptions::default().with_version_order(orders);
        let options = options.with_trusted_version_order(true).with_version_sets(sets);
        is_satisfied(&format!("{what}, by predicate"), &history, options);
    }
}

fn is_satisfied(what: &str, history: &History, options: CheckOptions) {
    let result = Checker::new(history, options).check(Level::StrictSerializable);
    assert!(result.verdict.is_satisfied(), "{what}: {:?}", result.verdict);
}

/// Whether the transaction inserts a row of the query's table after the query, and deletes it.
fn is_before_own_insert(txn: &RecordedTxn, query: &Recorded) -> bool {
    let later = txn.statements.iter().filter(|statement| statement.number > query.number);
    let mut deleted = later.flat_map(|statement| &statement.deleted);
    deleted.any(|seen| {
        let table = seen.row.split('/').next().unwrap();
        let is_own = |element: &isolario_sql::Element| {
            element.txn == txn.id && element.statement > query.number
        };
        query.sql.contains(table) && seen.list.first().is_some_and(is_own)
    })
}

fn is_after_own_delete(txn: &RecordedTxn, query: &Recorded) -> bool {
    let earlier = txn.statements.iter().filter(|statement| statement.number < query.number);
    let tables: BTreeSet<&str> = (earlier.flat_map(|statement| &statement.deleted))
        .filter_map(|seen| seen.row.split('/').next())
        .collect();
    tables.iter().any(|table| query.sql.contains(table))
}
