//! From batches in order of arrival to a history grouped by session.
//!
//! Everything is decided by order of arrival, so that the result is the same however the input
//! was cut into batches and however many threads copy the columns.

mod grouping;
mod in_place;
mod lists;
mod ops;
mod side_tables;
mod tables;
mod txns;

use crate::batch::Batch;
use crate::columns::MAX_ROWS;
use crate::history::History;
use crate::sink::SinkError;
use grouping::Grouping;
use tables::Tables;

pub use in_place::{PlainBuffer, PlainFacts, PlainOps, PlainOutline, PlainSize, PlainTxn};

/// What the entries of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEntries {
    /// Each is a whole transaction.
    Whole,
    /// Each is a run of operations: entries of one name are one transaction, and nameless ones
    /// that follow one another in their session are one, too.
    ByName,
}

impl History {
    /// Joins batches, in the order given, into one history. The first batch's meta holds.
    pub fn from_batches(batches: Vec<Batch>, pieces: BatchEntries) -> Result<History, SinkError> {
        let mut batches = batches;
        if batches.is_empty() {
            batches.push(Batch::new());
        }
        check_size(&batches)?;
        let tables = Tables::merge(&mut batches);
        let grouping = Grouping::new(&batches, &tables, pieces)?;
        let txns = txns::gather(&batches, &tables, &grouping);
        let ops = if grouping.in_place(&batches) {
            std::mem::take(&mut batches[0].ops)
        } else {
            ops::gather(&mut batches, &tables, &grouping, &txns)
        };
        let meta = batches[0].meta.clone();
        let session_ends = grouping.session_ends;
        let Tables { keys, sessions, values, .. } = tables;
        Ok(History { meta, ops, txns, session_ends, keys, sessions, values })
    }
}

fn check_size(batches: &[Batch]) -> Result<(), SinkError> {
    let limit = MAX_ROWS as u64;
    if batches.iter().map(Batch::len).sum::<usize>() > MAX_ROWS {
        return Err(SinkError::TooLarge { what: "transactions", limit });
    }
    if batches.iter().map(|b| b.ops.kinds.len()).sum::<usize>() > MAX_ROWS {
        return Err(SinkError::TooLarge { what: "operations", limit });
    }
    if batches.iter().any(|batch| batch.unclaimed > 0) {
        return Err(SinkError::Sequence("operations that belong to no transaction"));
    }
    Ok(())
}
