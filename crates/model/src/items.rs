//! Predicate operations as operations on single rows, and conditional writes as reads and writes.

use crate::columns::{Column, MAX_ROWS, OpColumns, TxnColumns};
use crate::conditional::{ConditionalOutcome, ConditionalWrite};
use crate::op::{Op, OpKind, Outcome, RowView};
use crate::predicate_ops::PredicateOps;
use crate::sink::SinkError;
use crate::value::ValueRef;
use crate::{History, KeyId, OpId, TxnId, ValueId, VersionId};

/// What a history with predicate operations or conditional writes says about single rows, as a history
/// of its own.
///
/// Each row that a predicate read returned is a read of that row, and each row that a predicate write
/// wrote is a write of it (of one that was deleted: a delete). A count tells nothing about single rows,
/// and neither does any other function over rows, since the history does not say which rows it
/// was taken over. Operations whose rows nobody observed leave nothing behind; a transaction may have
/// written more than is seen here then ([`ItemView::unobserved_write`]).
///
/// A conditional write that took effect is a read of what it asked for and a write. One that failed is a
/// read of what it found; an unobserved one, if it does not tell. Of one whose client cannot tell, see
/// [`ItemView::unsure_conditional`].
///
/// Transactions, sessions, keys, values and named versions have the same ids in both. Operations do
/// not: [`ItemView::origin`] leads back.
///
/// What the view violates, the history violates, at levels that a read of a row by its predicate
/// counts for as much as one by its key. The other way round, predicates say more: which rows they
/// did *not* match.
#[derive(Clone, Debug)]
pub struct ItemView {
    history: History,
    /// Per operation of the original, its first one here; and how many there are.
    first: Vec<u32>,
    unobserved_write: Option<OpId>,
    unsure_conditional: Option<OpId>,
}

/// A row that a predicate operation met. It is told neither in what the operation returned nor
/// elsewhere which version that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedRow {
    /// The operation.
    pub op: OpId,
    /// The row.
    pub key: KeyId,
    /// What the row held, where all versions that it may have met hold the same.
    pub held: Option<MatchedValue>,
}

/// What a row held that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedValue {
    /// What it held at first, whether or not an operation of the history has that value.
    Initial,
    /// A value of the history.
    Value(ValueId),
}

impl ItemView {
    /// The view of a history. It fails if there are more rows in results than a history can have
    /// operations.
    pub fn new(history: &History) -> Result<ItemView, SinkError> {
        ItemView::with_matched(history, &[])
    }

    /// The same with a read of each of these rows, by operation: with a value where there is but one,
    /// else an unobserved one. It comes before the rows that the operation returned or wrote.
    pub fn with_matched(history: &History, met: &[MatchedRow]) -> Result<ItemView, SinkError> {
        let ops = &history.ops;
        let mut items = OpColumns {
            predicates: PredicateOps::default(),
            lists: ops.lists.clone(),
            version_names: ops.version_names.clone(),
            ..OpColumns::default()
        };
        let mut first = Vec::with_capacity(history.op_count() + 1);
        let mut op_ends = Vec::with_capacity(history.txn_count());
        let (mut unobserved_write, mut unsure_conditional) = (None, None);
        let mut values = history.values.clone();
        let absent = history.has_conditionals().then(|| values.intern(ValueRef::Nil));
        let initial = history.initial_value().filter(|_| !met.is_empty());
        let initial = initial.map(|value| values.intern(value.as_ref()));
        let held = |row: &MatchedRow| match row.held? {
            MatchedValue::Initial => initial,
            MatchedValue::Value(value) => Some(value),
        };
        let mut met = met.iter().peekable();
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                first.push(items.kinds.len() as u32);
                while let Some(row) = met.next_if(|row| row.op <= op) {
                    add_read(&mut items, row.key, held(row));
                }
                match history.op(op) {
                    Op::PredicateRead { rows, .. } => {
                        add(&mut items, rows.unwrap_or_default(), |_| OpKind::Read);
                    }
                    Op::PredicateWrite { rows: Some(rows), .. } => {
                        let is_delete = |row: &RowView| history.value(row.value) == ValueRef::Nil;
                        add(&mut items, rows, |row| match is_delete(row) {
                            true => OpKind::Delete,
                            false => OpKind::Write,
                        });
                    }
                    Op::PredicateWrite { rows: None, .. } => {
                        let may_count = history.outcome(txn) != Outcome::Aborted;
                        unobserved_write = unobserved_write.or(may_count.then_some(op));
                    }
                    Op::Aggregate { .. } => {}
                    _ => match history.conditional(op) {
                        Some(conditional) => add_conditional(&mut items, &conditional, absent),
                        None => copy(&mut items, history, op),
                    },
                }
            }
            unsure_conditional = unsure_conditional.or_else(|| unsure_in(history, txn));
            if items.kinds.len() > MAX_ROWS {
                let limit = MAX_ROWS as u64;
                return Err(SinkError::TooLarge { what: "rows in results", limit });
            }
            op_ends.push(items.kinds.len() as u32);
        }
        first.push(items.kinds.len() as u32);
        let history = History {
            meta: history.meta.clone(),
            ops: items,
            txns: TxnColumns { op_ends, ..history.txns.clone() },
            session_ends: history.session_ends.clone(),
            keys: history.keys.clone(),
            sessions: history.sessions.clone(),
            values,
        };
        Ok(ItemView { history, first, unobserved_write, unsure_conditional })
    }

    /// The same as if the transactions of unknown outcome had aborted of which nobody knows all that they
    /// wrote.
    #[must_use]
    pub fn without_unobserved(mut self, original: &History) -> ItemView {
        let is_unobserved = |op| matches!(original.op(op), Op::PredicateWrite { rows: None, .. });
        for txn in original.txns().filter(|_| self.unobserved_write.is_some()) {
            let outcome = &mut self.history.txns.outcomes[txn.index()];
            if *outcome == Outcome::Unknown && original.txn_ops(txn).any(is_unobserved) {
                *outcome = Outcome::Aborted;
            }
        }
        self
    }

    /// The view itself.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The operation of the original that an operation comes from.
    pub fn origin(&self, item: OpId) -> OpId {
        // Of operations that begin at the same place, all but the last left nothing behind.
        OpId::at(self.first.partition_point(|first| *first <= item.0).saturating_sub(1))
    }

    /// The operations that an operation of the original has become: one per row, in the order of the
    /// rows. Of a conditional write, the read comes first.
    pub fn items(&self, op: OpId) -> impl ExactSizeIterator<Item = OpId> + use<> {
        let span = self.first[op.index()] as usize..self.first[op.index() + 1] as usize;
        span.map(OpId::at)
    }

    /// The read of a row that an operation met, where the view has one.
    pub fn read_of_matched(&self, op: OpId, key: KeyId) -> Option<OpId> {
        let (kinds, keys) = (&self.history.ops.kinds, &self.history.ops.keys);
        let is_read = |kind: OpKind| matches!(kind, OpKind::Read | OpKind::ReadUnobserved);
        self.items(op).find(|item| keys[item.index()] == key && is_read(kinds[item.index()]))
    }

    /// The first predicate write whose rows nobody observed, of a transaction that may have committed.
    /// With one, the view does not have all writes.
    pub fn unobserved_write(&self) -> Option<OpId> {
        self.unobserved_write
    }

    /// The first conditional write of which it matters that nobody knows whether it took effect. With
    /// one, the view says more than the history.
    ///
    /// In the view such writes took effect. Of a transaction of unknown outcome that may have written
    /// nothing else, that is all there is to know: had it not taken effect, the transaction might as well
    /// have aborted.
    pub fn unsure_conditional(&self) -> Option<OpId> {
        self.unsure_conditional
    }
}

/// A conditional write of a transaction that may have committed, and it is open what else the transaction
/// did if this one did not take effect.
fn unsure_in(history: &History, txn: TxnId) -> Option<OpId> {
    if !history.has_conditionals() || history.outcome(txn) == Outcome::Aborted {
        return None;
    }
    let ended = |op: &OpId| history.conditional(*op).map(|conditional| conditional.ended);
    let unsure = history.txn_ops(txn).find(|op| ended(op) == Some(ConditionalOutcome::Unknown))?;
    let may_write = |op: &OpId| match history.op(*op) {
        Op::Write { .. } | Op::Delete { .. } | Op::Append { .. } | Op::PredicateWrite { .. } => {
            true
        }
        _ => matches!(ended(op), Some(ConditionalOutcome::Applied | ConditionalOutcome::Unknown)),
    };
    let is_alone = history.txn_ops(txn).filter(may_write).count() == 1;
    (history.outcome(txn) == Outcome::Committed || !is_alone).then_some(unsure)
}

/// Adds what a conditional write saw, and what it wrote.
fn add_conditional(items: &mut OpColumns, conditional: &ConditionalWrite, absent: Option<ValueId>) {
    let ConditionalWrite { key, expected, new, ended } = *conditional;
    match ended {
        ConditionalOutcome::Applied | ConditionalOutcome::Unknown => {
            add_read(items, key, expected.or(absent));
            items.kinds.push(OpKind::Write);
            items.keys.push(key);
            items.encoded.push(new.to_bits());
        }
        ConditionalOutcome::Found(value) => add_read(items, key, Some(value)),
        ConditionalOutcome::FoundAnother | ConditionalOutcome::Contradiction => {
            add_read(items, key, None);
        }
    }
}

/// Adds the read of a row, with a value if it is known.
fn add_read(items: &mut OpColumns, key: KeyId, held: Option<ValueId>) {
    items.kinds.push(held.map_or(OpKind::ReadUnobserved, |_| OpKind::Read));
    items.keys.push(key);
    items.encoded.push(held.map_or(0, ValueId::to_bits));
}

/// Adds an operation per row.
fn add(items: &mut OpColumns, rows: &[RowView], kind: impl Fn(&RowView) -> OpKind) {
    for row in rows {
        if row.version != VersionId::NONE {
            items.versions.set(items.kinds.len(), Some(row.version));
        }
        items.kinds.push(kind(row));
        items.keys.push(row.key);
        items.encoded.push(row.value.to_bits());
    }
}

/// Adds an operation as it is.
fn copy(items: &mut OpColumns, history: &History, op: OpId) {
    let versions: &mut Column<VersionId> = &mut items.versions;
    versions.set(items.kinds.len(), history.op_version_id(op));
    items.kinds.push(history.ops.kinds[op.index()]);
    items.keys.push(history.ops.keys[op.index()]);
    items.encoded.push(history.ops.encoded[op.index()]);
}

impl History {
    /// Whether any operation has a predicate.
    pub fn has_predicates(&self) -> bool {
        !self.ops.predicates.is_empty()
    }

    /// The rows that a predicate operation has more than once, each time but the first. PostgreSQL's
    /// repeatable read returns two rows of one key to whoever inserts one that another transaction deleted
    /// since its snapshot.
    pub fn repeated_rows(&self) -> impl Iterator<Item = (OpId, KeyId)> {
        // Per key, the last operation that had it as a row.
        let mut last_seen = vec![None; if self.has_predicates() { self.key_count() } else { 0 }];
        (0..self.op_count()).map(OpId::at).flat_map(move |op| {
            let rows = match self.op(op) {
                Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. } => rows,
                _ => None,
            };
            let keys = rows.unwrap_or_default().iter().map(|row| row.key);
            let mut is_repeated = |key: &KeyId| last_seen[key.index()].replace(op) == Some(op);
            keys.filter(&mut is_repeated).map(|key| (op, key)).collect::<Vec<_>>()
        })
    }

    /// The row of a key in what a predicate operation returned or wrote: the first, if there are
    /// several.
    pub fn row_of(&self, op: OpId, key: KeyId) -> Option<&RowView> {
        match self.op(op) {
            Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. } => {
                rows.unwrap_or_default().iter().find(|row| row.key == key)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, count, history, read, select, txn, update, write};
    use crate::{RowInput, TxnId, VersionRef};

    fn kinds(view: &ItemView, txn: u32) -> Vec<OpKind> {
        let ops = view.history().op_range(TxnId(txn));
        view.history().op_kinds()[ops].to_vec()
    }

    #[test]
    fn rows_of_results_are_reads_and_rows_that_were_written_are_writes() {
        let rows = [RowInput::new(1, 10), RowInput::new(2, 20)];
        let gone = [RowInput::new(1, 11), RowInput::new(2, ValueRef::Nil)];
        let first = [write(7, 1), select(Some(&rows)), count(Some(2)), read(7, 1)];
        let second = [select(None), update(Some(&gone))];
        let original = history(&[txn(&first), txn(&second)]);
        let view = ItemView::new(&original).unwrap();
        use OpKind::{Delete, Read, Write};
        assert_eq!(kinds(&view, 0), [Write, Read, Read, Read]);
        assert_eq!(kinds(&view, 1), [Write, Delete]);
        let origins: Vec<u32> = (0..6).map(|item| view.origin(OpId(item)).0).collect();
        assert_eq!(origins, [0, 1, 1, 3, 5, 5]);
        let items = |op| view.items(OpId(op)).map(|item| item.0).collect::<Vec<_>>();
        assert_eq!(
            [items(1), items(2), items(4), items(5)],
            [vec![1, 2], vec![], vec![], vec![4, 5]]
        );
        assert_eq!(view.unobserved_write(), None);
        assert!(original.has_predicates() && !view.history().has_predicates());
        // Names are the same ones.
        let key = original.find_key(2.into()).unwrap();
        assert_eq!(view.history().op_keys()[2], key);
        assert_eq!(view.history().value(original.row_of(OpId(1), key).unwrap().value), 20.into());
        assert_eq!(original.row_of(OpId(0), key), None);
    }

    #[test]
    fn rows_that_were_met_are_reads_before_the_rows_of_a_result() {
        let rows = [RowInput::new(1, 10)];
        let ops = [write(7, 1), write(8, 2), write(9, 3), select(Some(&rows))];
        let original = history(&[txn(&ops)]);
        let key = |name: i64| original.find_key(name.into()).unwrap();
        let value = original.find_value(2.into()).unwrap();
        let row = |name, held| MatchedRow { op: OpId(3), key: key(name), held };
        let met = [
            row(7, None),
            row(8, Some(MatchedValue::Value(value))),
            row(9, Some(MatchedValue::Initial)),
        ];
        let view = ItemView::with_matched(&original, &met).unwrap();
        use OpKind::{Read, ReadUnobserved, Write};
        assert_eq!(kinds(&view, 0), [Write, Write, Write, ReadUnobserved, Read, Read, Read]);
        let met = |name| view.read_of_matched(OpId(3), key(name)).map(|op| op.0);
        assert_eq!([met(7), met(8), met(9), met(1)], [Some(3), Some(4), Some(5), Some(6)]);
        let items = view.history();
        assert_eq!(items.op(OpId(4)), Op::Read { key: key(8), value: Some(value) });
        // Nobody wrote or read nothing.
        assert_eq!(
            (original.encoded_initial_version(), items.encoded_initial_version().is_some()),
            (None, true)
        );
        assert_eq!(items.encoded_version(OpId(5)), items.encoded_initial_version().unwrap());
        assert!((3..7).all(|item| view.origin(OpId(item)) == OpId(3)));
    }

    #[test]
    fn without_predicates_the_view_is_the_history() {
        let original = history(&[txn(&[write(1, 1), read(2, 3)]), txn(&[read(1, 1)])]);
        let view = ItemView::new(&original).unwrap();
        assert!(*view.history() == original);
        assert_eq!(view.origin(OpId(2)), OpId(2));
    }

    #[test]
    fn named_versions_of_rows_are_those_of_the_reads() {
        let version = Some(VersionRef::ByWriter { txn: 3, write: 4 });
        let rows = [RowInput::new(1, 10), RowInput { version, ..RowInput::new(2, 20) }];
        let view = ItemView::new(&history(&[txn(&[select(Some(&rows))])])).unwrap();
        assert_eq!(view.history().op_version(OpId(0)), None);
        assert_eq!(view.history().op_version(OpId(1)), version);
    }

    #[test]
    fn a_write_that_nobody_observed_is_told_unless_it_certainly_failed() {
        let unobserved = [write(1, 1), update(None)];
        let aborted = Txn { outcome: Outcome::Aborted, ..txn(&unobserved) };
        let unknown = Txn { outcome: Outcome::Unknown, ..aborted };
        let told = |txns: &[Txn<'_>]| ItemView::new(&history(txns)).unwrap().unobserved_write();
        assert_eq!(told(&[aborted]), None);
        assert_eq!(told(&[aborted, unknown]), Some(OpId(3)));
        let observed = Txn { outcome: Outcome::Unknown, ..txn(&[]) };
        let original = history(&[txn(&unobserved), unknown, observed]);
        let without = ItemView::new(&original).unwrap().without_unobserved(&original);
        let outcomes: Vec<Outcome> =
            original.txns().map(|txn| without.history().outcome(txn)).collect();
        assert_eq!(outcomes, [Outcome::Committed, Outcome::Aborted, Outcome::Unknown]);
        assert!(without.unobserved_write().is_some());
    }
}
