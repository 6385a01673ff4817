//! The operations, copied into the history's order on all cores.

use std::ops::Range;

use rayon::prelude::*;

use super::grouping::Grouping;
use super::side_tables::{self, Shift};
use super::tables::{Maps, Tables};
use crate::KeyId;
use crate::batch::Batch;
use crate::columns::{OpColumns, TxnColumns};
use crate::op::OpKind;

/// Joins the columns of all operations. Empties the side tables of the batches.
pub(super) fn gather(
    batches: &mut [Batch],
    tables: &Tables,
    grouping: &Grouping,
    txns: &TxnColumns,
) -> OpColumns {
    let mut ops = OpColumns::default();
    let shifts = side_tables::gather_side_tables(&mut ops, batches, tables);
    let total = txns.op_ends.last().map_or(0, |end| *end as usize);
    // Fresh memory is slow: all cores fetch it. Zeros come without being written.
    ops.kinds = rayon::iter::repeat_n(OpKind::Read, total).collect();
    ops.keys = rayon::iter::repeat_n(KeyId(0), total).collect();
    ops.encoded = vec![0; total];
    let rows = OpRows { kinds: &mut ops.kinds, keys: &mut ops.keys, encoded: &mut ops.encoded };
    // Every task goes through all arrivals and copies those of its own transactions.
    chunks(rows, &txns.op_ends).into_par_iter().for_each(|mut stretch| {
        let mut places = NextRows::new(&txns.op_ends, stretch.txns.clone());
        grouping.arrivals(batches).filter(|a| stretch.txns.contains(&a.txn)).for_each(|arrival| {
            let batch = arrival.batch;
            let from = arrival.op_range(batches);
            let to = stretch.rows.range(places.take(arrival.txn, from.len()));
            copy(&batches[batch].ops, from, to, &tables.maps[batch], &shifts[batch]);
        });
    });
    side_tables::gather_notes(&mut ops, batches, tables, grouping, &txns.op_ends);
    ops
}

/// Copies some operations of a batch.
#[inline]
fn copy(source: &OpColumns, from: Range<usize>, to: OpRows<'_>, maps: &Maps, shift: &Shift) {
    let OpRows { kinds, keys, encoded: words } = to;
    kinds.copy_from_slice(&source.kinds[from.clone()]);
    for (key, source) in keys.iter_mut().zip(&source.keys[from.clone()]) {
        *key = maps.key(*source);
    }
    words.copy_from_slice(&source.encoded[from]);
    if !shift.keeps_values {
        for (word, kind) in words.iter_mut().zip(kinds) {
            *word = shift.encoded(*kind, *word, maps);
        }
    }
}

/// The same rows of the columns that every operation has.
struct OpRows<'a> {
    kinds: &'a mut [OpKind],
    keys: &'a mut [KeyId],
    encoded: &'a mut [u64],
}

impl<'a> OpRows<'a> {
    fn split_at(self, row: usize) -> (OpRows<'a>, OpRows<'a>) {
        let (kinds, more_kinds) = self.kinds.split_at_mut(row);
        let (keys, more_keys) = self.keys.split_at_mut(row);
        let (words, more_words) = self.encoded.split_at_mut(row);
        let rest = OpRows { kinds: more_kinds, keys: more_keys, encoded: more_words };
        (OpRows { kinds, keys, encoded: words }, rest)
    }

    #[inline]
    fn range(&mut self, rows: Range<usize>) -> OpRows<'_> {
        OpRows {
            kinds: &mut self.kinds[rows.clone()],
            keys: &mut self.keys[rows.clone()],
            encoded: &mut self.encoded[rows],
        }
    }
}

/// Some transactions, and the rows of their operations.
struct TxnChunk<'a> {
    txns: Range<usize>,
    rows: OpRows<'a>,
}

/// One stretch of about the same number of operations for each thread.
fn chunks<'a>(rows: OpRows<'a>, op_ends: &[u32]) -> Vec<TxnChunk<'a>> {
    let threads = rayon::current_num_threads();
    let share = rows.kinds.len().div_ceil(threads).max(1);
    let mut stretches = Vec::new();
    let mut rest = rows;
    let (mut first, mut done) = (0, 0);
    while first < op_ends.len() {
        let beyond = first + op_ends[first..].partition_point(|end| (*end as usize) < done + share);
        let last = (beyond + 1).min(op_ends.len());
        let end = op_ends[last - 1] as usize;
        let (head, tail) = rest.split_at(end - done);
        stretches.push(TxnChunk { txns: first..last, rows: head });
        rest = tail;
        (first, done) = (last, end);
    }
    stretches
}

/// Where the next operations of each transaction of a stretch go, counted from its first row.
pub(super) struct NextRows {
    first_txn: usize,
    next: Vec<u32>,
}

impl NextRows {
    pub(super) fn new(op_ends: &[u32], txns: Range<usize>) -> NextRows {
        let first_row = if txns.start == 0 { 0 } else { op_ends[txns.start - 1] };
        let ends = op_ends[txns.clone()].iter().map(|end| end - first_row);
        let next = std::iter::once(0).chain(ends).take(txns.len()).collect();
        NextRows { first_txn: txns.start, next }
    }

    /// The places of so many more operations of a transaction.
    #[inline]
    pub(super) fn take(&mut self, txn: usize, len: usize) -> Range<usize> {
        let next = &mut self.next[txn - self.first_txn];
        let start = *next as usize;
        *next += len as u32;
        start..start + len
    }
}
