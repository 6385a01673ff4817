//! The operations, copied into the history's order on all cores.

use std::ops::Range;

use rayon::prelude::*;

use super::grouping::Grouping;
use super::tables::{Maps, Tables};
use crate::batch::{Batch, OpColumns, TxnColumns};
use crate::lists::ListRef;
use crate::op::OpKind;
use crate::value::ValueId;
use crate::{KeyId, VersionId};

/// Joins the columns of all operations. Empties the side tables of the batches.
pub(super) fn gather(
    batches: &mut [Batch],
    tables: &Tables,
    grouping: &Grouping,
    txns: &TxnColumns,
) -> OpColumns {
    let mut ops = OpColumns::default();
    let offsets = gather_side_tables(&mut ops, batches, tables);
    let total = txns.op_ends.last().map_or(0, |end| *end as usize);
    ops.kinds = vec![OpKind::Read; total];
    ops.keys = vec![KeyId(0); total];
    ops.words = vec![0; total];
    let rows = Rows { kinds: &mut ops.kinds, keys: &mut ops.keys, words: &mut ops.words };
    // Every task goes through all arrivals and copies those of its own transactions.
    stretches(rows, &txns.op_ends).into_par_iter().for_each(|mut stretch| {
        let mut places = Places::new(&txns.op_ends, stretch.txns.clone());
        grouping.arrivals(batches).filter(|a| stretch.txns.contains(&a.txn)).for_each(|arrival| {
            let from = arrival.op_range(batches);
            let rows = stretch.rows.range(places.take(arrival.txn, from.len()));
            copy(from, rows, &batches[arrival.batch].ops, tables, &offsets, arrival.batch);
        });
    });
    gather_rare(&mut ops, batches, tables, grouping, txns);
    ops
}

/// The same rows of the columns that every operation has.
struct Rows<'a> {
    kinds: &'a mut [OpKind],
    keys: &'a mut [KeyId],
    words: &'a mut [u64],
}

impl<'a> Rows<'a> {
    fn split_at(self, row: usize) -> (Rows<'a>, Rows<'a>) {
        let (kinds, more_kinds) = self.kinds.split_at_mut(row);
        let (keys, more_keys) = self.keys.split_at_mut(row);
        let (words, more_words) = self.words.split_at_mut(row);
        let rest = Rows { kinds: more_kinds, keys: more_keys, words: more_words };
        (Rows { kinds, keys, words }, rest)
    }

    #[inline]
    fn range(&mut self, rows: Range<usize>) -> Rows<'_> {
        Rows {
            kinds: &mut self.kinds[rows.clone()],
            keys: &mut self.keys[rows.clone()],
            words: &mut self.words[rows],
        }
    }
}

/// Some transactions, and the rows of their operations.
struct Stretch<'a> {
    txns: Range<usize>,
    rows: Rows<'a>,
}

/// One stretch of about the same number of operations for each thread.
fn stretches<'a>(rows: Rows<'a>, op_ends: &[u32]) -> Vec<Stretch<'a>> {
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
        stretches.push(Stretch { txns: first..last, rows: head });
        rest = tail;
        (first, done) = (last, end);
    }
    stretches
}

/// Where the next operations of each transaction of a stretch go, counted from its first row.
struct Places {
    first_txn: usize,
    next: Vec<u32>,
}

impl Places {
    fn new(op_ends: &[u32], txns: Range<usize>) -> Places {
        let first_row = if txns.start == 0 { 0 } else { op_ends[txns.start - 1] };
        let ends = op_ends[txns.clone()].iter().map(|end| end - first_row);
        let next = std::iter::once(0).chain(ends).take(txns.len()).collect();
        Places { first_txn: txns.start, next }
    }

    /// The places of so many more operations of a transaction.
    #[inline]
    fn take(&mut self, txn: usize, len: usize) -> Range<usize> {
        let next = &mut self.next[txn - self.first_txn];
        let start = *next as usize;
        *next += len as u32;
        start..start + len
    }
}

/// Where each batch's side tables begin in the joined ones.
#[derive(Default)]
struct Offsets {
    conditionals: Vec<u64>,
    relational: Vec<u64>,
    /// Whether the words of each batch are right as they are.
    keeps_words: Vec<bool>,
}

fn gather_side_tables(ops: &mut OpColumns, batches: &mut [Batch], tables: &Tables) -> Offsets {
    let mut offsets = Offsets::default();
    for (batch, maps) in batches.iter_mut().zip(&tables.maps) {
        let has_side_tables =
            !batch.ops.conditionals.is_empty() || !batch.ops.relational.is_empty();
        offsets.keeps_words.push(maps.values.is_empty() && !has_side_tables);
        offsets.conditionals.push(ops.conditionals.len() as u64);
        offsets.relational.push(ops.relational.len() as u64);
        let value = |v: ValueId| maps.value(v);
        ops.conditionals.extend(batch.ops.conditionals.drain(..).map(|mut c| {
            c.expected = c.expected.map(value);
            c.new = value(c.new);
            c.seen = c.seen.map(value);
            c
        }));
        ops.relational.extend(batch.ops.relational.drain(..).map(|mut r| {
            for (key, v) in r.rows.iter_mut().flatten() {
                (*key, *v) = (maps.key(*key), value(*v));
            }
            r.result = r.result.map(value);
            r
        }));
    }
    offsets
}

/// Copies some operations of a batch.
#[inline]
fn copy(
    from: Range<usize>,
    to: Rows<'_>,
    source: &OpColumns,
    tables: &Tables,
    offsets: &Offsets,
    batch: usize,
) {
    let Rows { kinds, keys, words } = to;
    let maps = &tables.maps[batch];
    kinds.copy_from_slice(&source.kinds[from.clone()]);
    for (key, source) in keys.iter_mut().zip(&source.keys[from.clone()]) {
        *key = maps.key(*source);
    }
    words.copy_from_slice(&source.words[from]);
    if !offsets.keeps_words[batch] {
        for (word, kind) in words.iter_mut().zip(kinds) {
            *word = renumber(*kind, *word, maps, batch, offsets);
        }
    }
}

/// The word of an operation in the joined tables. That of a list stays for now: lists share pools
/// per key across transactions, and are gathered afterwards.
fn renumber(kind: OpKind, word: u64, maps: &Maps, batch: usize, offsets: &Offsets) -> u64 {
    match kind {
        OpKind::Read | OpKind::Write | OpKind::Append | OpKind::Delete => {
            maps.value(ValueId::from_word(word)).word()
        }
        OpKind::InsertIfAbsent | OpKind::CompareAndSet => word + offsets.conditionals[batch],
        OpKind::PredicateRead | OpKind::PredicateWrite | OpKind::Aggregate => {
            word + offsets.relational[batch]
        }
        OpKind::ReadList | OpKind::ReadUnobserved | OpKind::ReadListUnobserved => word,
    }
}

/// Lists, versions and statements: skipped by histories that have none.
fn gather_rare(
    ops: &mut OpColumns,
    batches: &[Batch],
    tables: &Tables,
    grouping: &Grouping,
    txns: &TxnColumns,
) {
    let has_rare = |batch: &Batch| {
        let ops = &batch.ops;
        !ops.lists.is_empty() || !ops.versions.is_empty() || !ops.sql.is_empty()
    };
    if !batches.iter().any(has_rare) {
        return;
    }
    let mut places = Places::new(&txns.op_ends, 0..txns.op_ends.len());
    let mut elements = Vec::new();
    for arrival in grouping.arrivals(batches) {
        let from = arrival.op_range(batches);
        let to = places.take(arrival.txn, from.len());
        for (from, to) in from.zip(to) {
            copy_rare(
                ops,
                to,
                &batches[arrival.batch].ops,
                from,
                &tables.maps[arrival.batch],
                &mut elements,
            );
        }
    }
    ops.sql.sort_unstable_by_key(|(op, _)| *op);
}

/// Copies what few operations have; `elements` is reused.
fn copy_rare(
    ops: &mut OpColumns,
    to: usize,
    source: &OpColumns,
    from: usize,
    maps: &Maps,
    elements: &mut Vec<ValueId>,
) {
    let key = source.keys[from].0;
    if source.kinds[from] == OpKind::ReadList {
        let list = ListRef::from_word(source.words[from]);
        elements.clear();
        elements.extend(source.lists.get(key, list).iter().map(|v| maps.value(*v)));
        ops.words[to] = ops.lists.insert(ops.keys[to].0, elements).word();
    }
    if let Some(version) = source.versions.get(from) {
        let name = source.version_names[version.index()];
        let id = VersionId::at(ops.version_names.insert_full(name).0);
        ops.versions.set(to, Some(id));
    }
    if let Ok(found) = source.sql.binary_search_by_key(&(from as u32), |(op, _)| *op) {
        ops.sql.push((to as u32, source.sql[found].1.clone()));
    }
}
