//! The side tables: conditional writes, predicate operations, lists, versions, statements.

use super::grouping::Grouping;
use super::lists::Pools;
use super::ops::NextRows;
use super::tables::{Maps, Tables};
use crate::VersionId;
use crate::batch::Batch;
use crate::columns::OpColumns;
use crate::op::{OpKind, RowView};
use crate::predicate_ops::PredicateOpsStart;
use crate::table::ValueId;

/// How the words of a batch change.
pub(super) struct Shift {
    /// Not at all: so in almost every history.
    pub(super) keeps_values: bool,
    /// Where its conditional writes begin among the joined ones.
    conditionals: u64,
    /// Where its predicate operations do.
    predicates: PredicateOpsStart,
}

impl Shift {
    /// The word of an operation in the joined tables. That of a list stays: those for which that is
    /// wrong are gathered afterwards.
    pub(super) fn encoded(&self, kind: OpKind, word: u64, maps: &Maps) -> u64 {
        match kind {
            OpKind::Read | OpKind::Write | OpKind::Append | OpKind::Delete => {
                maps.value(ValueId::from_bits(word)).to_bits()
            }
            OpKind::InsertIfAbsent | OpKind::CompareAndSet => word + self.conditionals,
            OpKind::PredicateRead | OpKind::PredicateWrite => word + self.predicates.row_ops,
            OpKind::Aggregate => word + self.predicates.aggregate_ops,
            OpKind::ReadList | OpKind::ReadUnobserved | OpKind::ReadListUnobserved => word,
        }
    }
}

/// Joins conditional writes and predicate operations, which words refer to by position.
pub(super) fn gather_side_tables(
    ops: &mut OpColumns,
    batches: &mut [Batch],
    tables: &Tables,
) -> Vec<Shift> {
    let mut shifts = Vec::with_capacity(batches.len());
    for (batch, maps) in batches.iter_mut().zip(&tables.maps) {
        let has_side_tables =
            !batch.ops.conditionals.is_empty() || !batch.ops.predicates.is_empty();
        let value = |v: ValueId| maps.value(v);
        let conditionals = ops.conditionals.len() as u64;
        ops.conditionals.extend(batch.ops.conditionals.drain(..).map(|mut c| {
            c.expected = c.expected.map(value);
            c.new = value(c.new);
            c.seen = c.seen.map(value);
            c
        }));
        // The versions of rows are renumbered with those of operations, in order of arrival.
        let row = |row: RowView| RowView {
            key: maps.key(row.key),
            value: value(row.value),
            version: row.version,
        };
        let predicates =
            ops.predicates.append(std::mem::take(&mut batch.ops.predicates), row, value);
        let keeps_values = maps.values.is_empty() && !has_side_tables;
        shifts.push(Shift { keeps_values, conditionals, predicates });
    }
    shifts
}

/// Joins lists, versions and statements.
pub(super) fn gather_notes(
    ops: &mut OpColumns,
    batches: &[Batch],
    tables: &Tables,
    grouping: &Grouping,
    op_ends: &[u32],
) {
    let has_notes = |ops: &OpColumns| !ops.version_names.is_empty() || !ops.sql.is_empty();
    let mut pools = Pools::join(batches, tables);
    if pools.are_settled() && !batches.iter().any(|batch| has_notes(&batch.ops)) {
        ops.lists = pools.lists;
        return;
    }
    let mut places = NextRows::new(op_ends, 0..op_ends.len());
    for arrival in grouping.arrivals(batches) {
        let source = &batches[arrival.batch].ops;
        let from = arrival.op_range(batches);
        let to = places.take(arrival.txn, from.len());
        for (from, to) in from.zip(to) {
            if source.kinds[from] == OpKind::ReadList {
                let (key, maps) = (ops.keys[to].0, &tables.maps[arrival.batch]);
                ops.encoded[to] = pools.encoded(source, from, key, maps);
            }
            copy_notes(source, from, ops, to);
        }
    }
    ops.lists = pools.lists;
    ops.sql.sort_unstable_by_key(|(op, _)| *op);
}

fn copy_notes(source: &OpColumns, from: usize, ops: &mut OpColumns, to: usize) {
    let names = &mut ops.version_names;
    let mut rename = |version: VersionId| {
        VersionId::at(names.insert_full(source.version_names[version.index()]).0)
    };
    if matches!(source.kinds[from], OpKind::PredicateRead | OpKind::PredicateWrite) {
        for row in ops.predicates.rows_mut(ops.encoded[to]) {
            if row.version != VersionId::NONE {
                row.version = rename(row.version);
            }
        }
    }
    if let Some(version) = source.versions.get(from) {
        ops.versions.set(to, Some(rename(version)));
    }
    if let Ok(found) = source.sql.binary_search_by_key(&(from as u32), |(op, _)| *op) {
        ops.sql.push((to as u32, source.sql[found].1.clone()));
    }
}
