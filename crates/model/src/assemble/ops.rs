//! The operations, copied into the history's order on all cores.

use rayon::prelude::*;

use super::grouping::{Grouping, Piece};
use super::tables::{Maps, Tables};
use crate::batch::{Batch, OpColumns, TxnColumns};
use crate::lists::ListRef;
use crate::op::OpKind;
use crate::value::ValueId;
use crate::{KeyId, VersionId};

/// How many transactions one task copies.
const TXNS_PER_TASK: usize = 1 << 14;

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
    let mut all = Rows { kinds: &mut ops.kinds, keys: &mut ops.keys, words: &mut ops.words };

    let mut stretches = Vec::new();
    let mut done = 0;
    for first in (0..txns.op_ends.len()).step_by(TXNS_PER_TASK) {
        let last = (first + TXNS_PER_TASK).min(txns.op_ends.len());
        let end = txns.op_ends[last - 1] as usize;
        stretches.push((grouping.pieces_of_all(first..last), all.split_off(end - done)));
        done = end;
    }
    stretches.into_par_iter().for_each(|(pieces, mut rows)| {
        for piece in pieces {
            let len = piece.op_range(batches).len();
            copy_piece(*piece, rows.split_off(len), batches, tables, &offsets);
        }
    });
    gather_rare(&mut ops, batches, tables, grouping);
    ops
}

/// The same rows of the columns that every operation has.
struct Rows<'a> {
    kinds: &'a mut [OpKind],
    keys: &'a mut [KeyId],
    words: &'a mut [u64],
}

impl<'a> Rows<'a> {
    /// Takes the first rows away.
    #[inline]
    fn split_off(&mut self, len: usize) -> Rows<'a> {
        Rows {
            kinds: split_off(&mut self.kinds, len),
            keys: split_off(&mut self.keys, len),
            words: split_off(&mut self.words, len),
        }
    }
}

#[inline]
fn split_off<'a, T>(rows: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (head, rest) = std::mem::take(rows).split_at_mut(len);
    *rows = rest;
    head
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

#[inline]
fn copy_piece(piece: Piece, to: Rows<'_>, batches: &[Batch], tables: &Tables, offsets: &Offsets) {
    let Rows { kinds, keys, words } = to;
    let (batch, range) = (piece.batch as usize, piece.op_range(batches));
    let (source, maps) = (&batches[batch].ops, &tables.maps[batch]);
    kinds.copy_from_slice(&source.kinds[range.clone()]);
    for (key, source) in keys.iter_mut().zip(&source.keys[range.clone()]) {
        *key = maps.key(*source);
    }
    words.copy_from_slice(&source.words[range]);
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
fn gather_rare(ops: &mut OpColumns, batches: &[Batch], tables: &Tables, grouping: &Grouping) {
    let has_lists = batches.iter().any(|b| !b.ops.lists.is_empty());
    let has_notes = batches.iter().any(|b| !b.ops.versions.is_empty() || !b.ops.sql.is_empty());
    if !has_lists && !has_notes {
        return;
    }
    let mut elements = Vec::new();
    let mut at = 0;
    for piece in &grouping.pieces {
        let source = &batches[piece.batch as usize].ops;
        let maps = &tables.maps[piece.batch as usize];
        for op in piece.op_range(batches) {
            if source.kinds[op] == OpKind::ReadList {
                let list = ListRef::from_word(source.words[op]);
                elements.clear();
                elements.extend(
                    source.lists.get(source.keys[op].0, list).iter().map(|v| maps.value(*v)),
                );
                ops.words[at] = ops.lists.insert(ops.keys[at].0, &elements).word();
            }
            if let Some(version) = source.versions.get(op) {
                let name = source.version_names[version.index()];
                let id = VersionId::at(ops.version_names.insert_full(name).0);
                ops.versions.set(at, Some(id));
            }
            if let Ok(found) = source.sql.binary_search_by_key(&(op as u32), |(op, _)| *op) {
                ops.sql.push((at as u32, source.sql[found].1.clone()));
            }
            at += 1;
        }
    }
}
