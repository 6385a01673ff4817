//! Plants anomalies: two transactions, on a table and in sessions of their own.
//!
//! Nothing else touches the table and the sessions, so the anomaly neither hides nor grows.

use isolario_model::{Outcome, SinkError, TxnEnd};
use isolario_workload::{Column, RowValues, ValueRange};

use super::config::TableAnomaly;
use super::report::RowReporter;
use super::{RowId, TableChronicle, VersionSet};

/// Where an anomaly goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planting {
    pub(super) first_session: u64,
    /// What its first transaction is called.
    pub(super) first_name: u64,
    pub(super) now: i64,
}

/// What was planted.
pub(super) struct PlantedTxns {
    /// How many transactions, each in a session of its own.
    pub(super) txns: u64,
    pub(super) operations: u64,
    /// When it was over.
    pub(super) end: i64,
}

/// A step of a planted transaction. Row `n` holds `a = n` and is written once at most.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Finds these rows, of those with `a` from 0 to 9, and their writers.
    Select(&'static [(u32, u64)]),
    Insert(u32),
}

/// The transactions, with the ticks at which they begin and end. Writers are counted from 0.
type Template = &'static [(&'static [Step], (i64, i64))];

/// All that is overwritten is a range that was empty: repeatable read has nothing to say. For the
/// first one, the row comes between two reads of the range, so the reader is before the writer and
/// after it. For the second one, each transaction is before the other, and each is concurrent to
/// the other, so that snapshot isolation allows it.
fn template(anomaly: TableAnomaly) -> Template {
    use Step::{Insert, Select};
    match anomaly {
        TableAnomaly::Phantom => {
            &[(&[Select(&[]), Select(&[(1, 1)])], (0, 30)), (&[Insert(1)], (10, 20))]
        }
        TableAnomaly::PredicateWriteSkew => {
            &[(&[Select(&[]), Insert(1)], (0, 20)), (&[Select(&[]), Insert(2)], (10, 30))]
        }
    }
}

/// Nanoseconds per tick.
const TICK: i64 = 1000;

const RANGE: ValueRange = ValueRange { column: Column::A, low: 0, high: 9 };

pub(super) fn plant(
    anomaly: TableAnomaly,
    planting: Planting,
    reporter: &mut RowReporter<'_>,
    chronicle: &mut dyn TableChronicle,
) -> Result<PlantedTxns, SinkError> {
    // Sessions of templates are never used twice, so they tell tables apart.
    let table = format!("planted{}", planting.first_session);
    let mut planted = PlantedTxns { txns: 0, operations: 0, end: planting.now };
    for (at, (steps, span)) in (0..).zip(template(anomaly)) {
        let name = planting.first_name + at;
        reporter.begin(planting.first_session + at, name)?;
        for (op, step) in steps.iter().enumerate() {
            match *step {
                Step::Insert(row) => {
                    reporter.write(RowId { table: &table, id: row.into() }, held(row))?;
                }
                Step::Select(found) => {
                    let rows = found.iter().map(|(row, _)| (*row, Some(held(*row)))).collect();
                    reporter.rows(&table, RANGE, Some(&rows), false)?;
                    let versions = found.iter().map(|(row, writer)| {
                        (RowId { table: &table, id: u64::from(*row) }, planting.first_name + writer)
                    });
                    let versions: Vec<_> = versions.collect();
                    chronicle.met(name, op, VersionSet::Versions(&versions))?;
                }
            }
        }
        let (start, finish) = (planting.now + 1 + span.0 * TICK, planting.now + 1 + span.1 * TICK);
        let end = TxnEnd::new(Outcome::Committed);
        reporter.sink.end(&TxnEnd { start: Some(start), finish: Some(finish), ..end })?;
        planted.txns += 1;
        planted.operations += steps.len() as u64;
        planted.end = planted.end.max(finish + 1);
    }
    Ok(planted)
}

fn held(row: u32) -> RowValues {
    RowValues { a: row.into(), b: 0, version: row.into() }
}
