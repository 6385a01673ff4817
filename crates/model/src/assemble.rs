//! From batches in order of arrival to a history grouped by session.
//!
//! Everything is decided by order of arrival, so that the result is the same however the input
//! was cut into batches and however many threads copy the columns.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::batch::{Batch, MAX_ROWS, OpColumns, TxnColumns};
use crate::history::History;
use crate::lists::ListRef;
use crate::op::OpKind;
use crate::sink::SinkError;
use crate::value::{NameTable, ValueId, ValueTable};
use crate::{KeyId, VersionId};

/// What the entries of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Each is a whole transaction.
    Whole,
    /// Each is a run of operations: entries of one name are one transaction, and nameless ones
    /// that follow one another in their session are one, too.
    ByName,
}

impl History {
    /// Joins batches, in the order given, into one history. The first batch's meta holds.
    pub fn from_batches(batches: Vec<Batch>, pieces: Pieces) -> Result<History, SinkError> {
        let mut batches = batches;
        if batches.is_empty() {
            batches.push(Batch::new());
        }
        check_size(&batches)?;
        let tables = Tables::merge(&mut batches);
        let grouping = Grouping::new(&batches, &tables, pieces)?;
        let txns = grouping.gather_txns(&batches, &tables);
        let ops = if grouping.in_place(&batches) {
            std::mem::take(&mut batches[0].ops)
        } else {
            gather_ops(&mut batches, &tables, &grouping, &txns)
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
    Ok(())
}

/// The joined name tables, and per batch how its own numbers map into them.
struct Tables {
    keys: NameTable,
    sessions: NameTable,
    values: ValueTable,
    maps: Vec<Maps>,
}

#[derive(Default)]
struct Maps {
    keys: Vec<u32>,
    sessions: Vec<u32>,
    values: Vec<ValueId>,
}

impl Maps {
    #[inline]
    fn key(&self, key: KeyId) -> KeyId {
        self.keys.get(key.index()).map_or(key, |k| KeyId(*k))
    }

    #[inline]
    fn value(&self, value: ValueId) -> ValueId {
        value.table_index().and_then(|i| self.values.get(i).copied()).unwrap_or(value)
    }
}

impl Tables {
    /// Takes the first batch's tables and adds the others' names in order. The first batch's
    /// numbers stay: its maps are empty, which means identity.
    fn merge(batches: &mut [Batch]) -> Tables {
        let (first, rest) = batches.split_at_mut(1);
        let mut keys = std::mem::take(&mut first[0].keys);
        let mut sessions = std::mem::take(&mut first[0].sessions);
        let mut values = std::mem::take(&mut first[0].values);
        let mut maps = vec![Maps::default()];
        maps.extend(rest.iter().map(|batch| Maps {
            keys: batch.keys.iter().map(|name| keys.intern(name)).collect(),
            sessions: batch.sessions.iter().map(|name| sessions.intern(name)).collect(),
            values: batch.values.interned().map(|value| values.intern(value)).collect(),
        }));
        Tables { keys, sessions, values, maps }
    }

    fn session(&self, batch: usize, session: u32) -> u32 {
        self.maps[batch].sessions.get(session as usize).copied().unwrap_or(session)
    }
}

/// A run of operations of one batch.
#[derive(Clone, Copy)]
struct Piece {
    batch: u32,
    /// Its row among the batch's transactions.
    row: u32,
}

/// Which pieces make up which transaction, in the history's order.
struct Grouping {
    pieces: Vec<Piece>,
    /// One past the last piece of each transaction.
    piece_ends: Vec<u32>,
    /// One past the last transaction of each session.
    session_ends: Vec<u32>,
}

impl Grouping {
    fn new(batches: &[Batch], tables: &Tables, pieces: Pieces) -> Result<Grouping, SinkError> {
        let arrivals: Vec<Piece> = (0..batches.len())
            .flat_map(|b| {
                (0..batches[b].len()).map(move |row| Piece { batch: b as u32, row: row as u32 })
            })
            .collect();
        let session_of = |piece: &Piece| {
            let batch = &batches[piece.batch as usize];
            tables.session(piece.batch as usize, batch.txns.sessions[piece.row as usize])
        };
        let sessions: Vec<u32> = arrivals.iter().map(session_of).collect();
        let (txn_of, txn_sessions) = match pieces {
            Pieces::Whole => ((0..arrivals.len() as u32).collect(), sessions),
            Pieces::ByName => name_pieces(batches, tables, &arrivals, &sessions)?,
        };
        // Transactions in order of session, each session's in order of first arrival.
        let (order, session_ends) = counting_sort(&txn_sessions, tables.sessions.len());
        let mut rank = vec![0u32; order.len()];
        for (position, txn) in order.iter().enumerate() {
            rank[*txn as usize] = position as u32;
        }
        let ranks: Vec<u32> = txn_of.iter().map(|txn| rank[*txn as usize]).collect();
        let (piece_order, piece_ends) = counting_sort(&ranks, order.len());
        let pieces = piece_order.iter().map(|i| arrivals[*i as usize]).collect();
        Ok(Grouping { pieces, piece_ends, session_ends })
    }

    fn pieces_of(&self, txn: usize) -> &[Piece] {
        let start = if txn == 0 { 0 } else { self.piece_ends[txn - 1] as usize };
        &self.pieces[start..self.piece_ends[txn] as usize]
    }

    /// Whether the one batch's operations are already in the history's order.
    fn in_place(&self, batches: &[Batch]) -> bool {
        batches.len() == 1 && self.pieces.iter().enumerate().all(|(i, p)| p.row as usize == i)
    }

    fn gather_txns(&self, batches: &[Batch], tables: &Tables) -> TxnColumns {
        let mut txns = TxnColumns::default();
        let mut ops = 0u32;
        for txn in 0..self.piece_ends.len() {
            let pieces = self.pieces_of(txn);
            let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { continue };
            let columns = |piece: &Piece| (&batches[piece.batch as usize].txns, piece.row as usize);
            let (head, row) = columns(first);
            let (tail, last_row) = columns(last);
            let maps = &tables.maps[first.batch as usize];
            ops += pieces.iter().map(|p| op_range(batches, p).len() as u32).sum::<u32>();
            txns.op_ends.push(ops);
            txns.sessions.push(tables.session(first.batch as usize, head.sessions[row]));
            txns.outcomes.push(tail.outcomes[last_row]);
            txns.names.set(txn, head.names.get(row).map(|name| maps.value(name)));
            txns.lines.set(txn, head.lines.get(row));
            txns.starts.set(txn, head.starts.get(row));
            txns.finishes.set(txn, tail.finishes.get(last_row));
            txns.db_starts.set(txn, head.db_starts.get(row));
            txns.db_commits.set(txn, tail.db_commits.get(last_row));
            if let Ok(at) = tail.texts.binary_search_by_key(&last.row, |(row, _)| *row) {
                txns.texts.push((txn as u32, tail.texts[at].1.clone()));
            }
        }
        txns
    }
}

/// The transaction of each piece, numbered by first arrival, and the session of each transaction.
fn name_pieces(
    batches: &[Batch],
    tables: &Tables,
    arrivals: &[Piece],
    sessions: &[u32],
) -> Result<(Vec<u32>, Vec<u32>), SinkError> {
    let mut by_name: FxHashMap<ValueId, u32> = FxHashMap::default();
    by_name.reserve(arrivals.len());
    // Per session, the nameless transaction that its last piece belongs to.
    let mut nameless: Vec<Option<u32>> = vec![None; tables.sessions.len()];
    let mut txn_of = Vec::with_capacity(arrivals.len());
    let mut txn_sessions: Vec<u32> = Vec::new();
    for (piece, session) in arrivals.iter().zip(sessions) {
        let name = batches[piece.batch as usize].txns.names.get(piece.row as usize);
        let fresh = txn_sessions.len() as u32;
        let open = &mut nameless[*session as usize];
        let txn = match name.map(|name| tables.maps[piece.batch as usize].value(name)) {
            Some(name) => {
                *open = None;
                let txn = *by_name.entry(name).or_insert(fresh);
                if txn != fresh && txn_sessions[txn as usize] != *session {
                    return Err(SinkError::TwoSessions {
                        txn: tables.values.get(name).to_owned(),
                        first: tables.sessions.get(txn_sessions[txn as usize]).to_owned(),
                        second: tables.sessions.get(*session).to_owned(),
                    });
                }
                txn
            }
            None => *open.get_or_insert(fresh),
        };
        if txn == fresh {
            txn_sessions.push(*session);
        }
        txn_of.push(txn);
    }
    Ok((txn_of, txn_sessions))
}

/// The rows in order of their group, stably, and one past the last row of each group.
fn counting_sort(groups: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut next = vec![0u32; count];
    for group in groups {
        next[*group as usize] += 1;
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    let mut order = vec![0u32; groups.len()];
    for (row, group) in groups.iter().enumerate() {
        let slot = &mut next[*group as usize];
        order[*slot as usize] = row as u32;
        *slot += 1;
    }
    (order, next)
}

fn op_range(batches: &[Batch], piece: &Piece) -> std::ops::Range<usize> {
    let txns = &batches[piece.batch as usize].txns;
    let row = piece.row as usize;
    let start = if row == 0 { 0 } else { txns.op_ends[row - 1] };
    start as usize..txns.op_ends[row] as usize
}

/// How many transactions one task copies.
const TXNS_PER_TASK: usize = 1 << 14;

/// A stretch of transactions and the part of each column that belongs to it.
struct Stretch<'a> {
    txns: std::ops::Range<usize>,
    kinds: &'a mut [OpKind],
    keys: &'a mut [KeyId],
    words: &'a mut [u64],
}

fn gather_ops(
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

    let mut stretches = Vec::new();
    let (mut kinds, mut keys, mut words) =
        (&mut ops.kinds[..], &mut ops.keys[..], &mut ops.words[..]);
    let mut done = 0;
    for first in (0..txns.op_ends.len()).step_by(TXNS_PER_TASK) {
        let last = (first + TXNS_PER_TASK).min(txns.op_ends.len());
        let end = txns.op_ends[last - 1] as usize;
        let (head, rest) = std::mem::take(&mut kinds).split_at_mut(end - done);
        kinds = rest;
        let (key_head, rest) = std::mem::take(&mut keys).split_at_mut(end - done);
        keys = rest;
        let (word_head, rest) = std::mem::take(&mut words).split_at_mut(end - done);
        words = rest;
        stretches.push(Stretch {
            txns: first..last,
            kinds: head,
            keys: key_head,
            words: word_head,
        });
        done = end;
    }
    stretches
        .into_par_iter()
        .for_each(|stretch| copy_stretch(stretch, batches, tables, grouping, &offsets));
    gather_rare(&mut ops, batches, tables, grouping);
    ops
}

/// Where each batch's side tables begin in the joined ones.
struct Offsets {
    conditionals: Vec<u64>,
    relational: Vec<u64>,
}

fn gather_side_tables(ops: &mut OpColumns, batches: &mut [Batch], tables: &Tables) -> Offsets {
    let mut offsets = Offsets { conditionals: Vec::new(), relational: Vec::new() };
    for (batch, maps) in batches.iter_mut().zip(&tables.maps) {
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

fn copy_stretch(
    stretch: Stretch<'_>,
    batches: &[Batch],
    tables: &Tables,
    grouping: &Grouping,
    offsets: &Offsets,
) {
    let mut at = 0;
    for piece in stretch.txns.flat_map(|txn| grouping.pieces_of(txn)) {
        let batch = piece.batch as usize;
        let source = &batches[batch].ops;
        let maps = &tables.maps[batch];
        for op in op_range(batches, piece) {
            let kind = source.kinds[op];
            stretch.kinds[at] = kind;
            stretch.keys[at] = maps.key(source.keys[op]);
            stretch.words[at] = match kind {
                OpKind::Read | OpKind::Write | OpKind::Append | OpKind::Delete => {
                    maps.value(ValueId::from_word(source.words[op])).word()
                }
                OpKind::InsertIfAbsent | OpKind::CompareAndSet => {
                    source.words[op] + offsets.conditionals[batch]
                }
                OpKind::PredicateRead | OpKind::PredicateWrite | OpKind::Aggregate => {
                    source.words[op] + offsets.relational[batch]
                }
                // Filled in afterwards: lists share pools per key across transactions.
                OpKind::ReadList | OpKind::ReadUnobserved | OpKind::ReadListUnobserved => 0,
            };
            at += 1;
        }
    }
}

/// Lists, versions and statements: skipped by histories that have none.
fn gather_rare(ops: &mut OpColumns, batches: &[Batch], tables: &Tables, grouping: &Grouping) {
    let has_lists = ops.kinds.contains(&OpKind::ReadList);
    let has_notes = batches.iter().any(|b| !b.ops.versions.is_empty() || !b.ops.sql.is_empty());
    if !has_lists && !has_notes {
        return;
    }
    let mut elements = Vec::new();
    let mut at = 0;
    for piece in &grouping.pieces {
        let source = &batches[piece.batch as usize].ops;
        let maps = &tables.maps[piece.batch as usize];
        for op in op_range(batches, piece) {
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
