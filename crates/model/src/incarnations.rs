//! Results that show two rows of one key.
//!
//! A row that is inserted after a delete is another row of the same key. Some databases let a
//! transaction insert a key that a concurrent one deleted, and then show it both rows: the one that was
//! there when it began, and its own.

use isolario_predicate::{Comparison, Decimal, Expr, Literal, Predicate};

use crate::op::{Op, OpKind, Outcome, RowView};
use crate::row::RowRef;
use crate::value::ValueRef;
use crate::{History, KeyId, OpId, TxnId, ValueId, VersionId};

/// A history in which no transaction sees a row beside its own of the same key.
///
/// A result loses the former row and keeps what the transaction wrote itself. A read by key that found the
/// former row, after the transaction had deleted its own by a predicate, has found nothing. What these said
/// about the former row is said by the insert instead, which becomes a write by predicate: it found exactly
/// that row, and put its own in its place. All ids are those of the original.
///
/// That is done where somebody else may have deleted the former row meanwhile. Elsewhere a result that has it
/// is wrong, and is left as it is. Where versions have names, a condition on a row does not say which of them is
/// meant, and nothing is taken apart.
#[derive(Clone, Debug)]
pub struct IncarnationView {
    history: History,
    both: Vec<(TxnId, KeyId)>,
}

/// A row that a transaction saw beside its own of the same key.
#[derive(Clone, Copy)]
struct FormerRow {
    txn: TxnId,
    /// Where it inserted its own.
    insert: OpId,
    /// Where it saw the former one.
    read: OpId,
    row: RowView,
}

/// What a transaction has done to a row.
struct OwnRow {
    key: KeyId,
    /// Its insert, if it began with one and has not deleted the row by its key since. Without one, there is
    /// no row beside its own.
    insert: Option<OpId>,
    /// What it left, if it is there.
    word: Option<u64>,
}

impl IncarnationView {
    /// None if there is nothing to take apart. `ends_before` says whether one transaction has certainly ended
    /// before another one begins.
    pub fn new(
        history: &History,
        ends_before: impl Fn(TxnId, TxnId) -> bool,
    ) -> Option<IncarnationView> {
        if !history.has_predicates() || history.names_versions() {
            return None;
        }
        let mut formers: Vec<FormerRow> = Vec::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            formers.extend(formers_of(history, txn));
        }
        let deletes = deletes(history, &formers);
        formers.retain(|former| {
            let may_overlap = |txn: TxnId| {
                txn != former.txn && !ends_before(txn, former.txn) && !ends_before(former.txn, txn)
            };
            let mut of_row = deletes.iter().filter(|(_, key)| *key == former.row.key);
            of_row.any(|(txn, _)| may_overlap(*txn))
        });
        if formers.is_empty() {
            return None;
        }
        let mut apart = history.clone();
        let mut both = Vec::new();
        // By transaction. A snapshot has one row of a key.
        let by_txn = formers.chunk_by(|one, other| one.txn == other.txn);
        for (former, of_txn) in by_txn.flat_map(|chunk| chunk.iter().map(move |one| (one, chunk))) {
            let mut same = of_txn.iter().filter(|other| other.row.key == former.row.key);
            let word = |former: &FormerRow| history.encoded_row_version(&former.row);
            let Some(predicate) = exactly(history, &former.row) else { continue };
            if !same.all(|other| word(other) == word(former)) {
                continue;
            }
            apart.hide(former.read, &former.row);
            if !both.contains(&(former.txn, former.row.key)) {
                apart.insert_in_place(former.insert, &predicate);
                both.push((former.txn, former.row.key));
            }
        }
        (!both.is_empty()).then_some(IncarnationView { history: apart, both })
    }

    /// The history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Who saw two rows of which key.
    pub fn both(&self) -> &[(TxnId, KeyId)] {
        &self.both
    }
}

/// The rows that a transaction saw beside its own.
fn formers_of(history: &History, txn: TxnId) -> Vec<FormerRow> {
    let mut formers = Vec::new();
    let mut own = OwnRows::default();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::Read { key, value: Some(value) } if history.value(value) != ValueRef::Nil => {
                let rows = [RowView { key, value, version: VersionId::NONE }];
                // A row that is there is found by its key.
                let own = own.of(key).filter(|own| own.word.is_none());
                formers.extend(own.and_then(|own| former(history, (txn, op), &rows, own)));
            }
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let found = own.0.iter().filter_map(|own| former(history, (txn, op), rows, own));
                // A row that the predicate excludes is wrong in the result, whichever row it is.
                let is_excluded = |row: &RowView| {
                    let (key, value) = (history.key_name(row.key), history.value(row.value));
                    RowRef { key, value }.matches_everywhere(predicate) == Ok(false)
                };
                formers.extend(found.filter(|former| !is_excluded(&former.row)));
            }
            _ => {}
        }
        own.apply(history, op);
    }
    formers
}

/// The rows that a transaction has written so far.
#[derive(Default)]
struct OwnRows(Vec<OwnRow>);

impl OwnRows {
    fn apply(&mut self, history: &History, op: OpId) {
        let is_by_key = history.op_predicate(op).is_none();
        each_write(history, op, |key, word| match self.0.iter_mut().find(|own| own.key == key) {
            Some(own) => {
                own.word = word;
                own.insert = own.insert.filter(|_| word.is_some() || !is_by_key);
            }
            None if history.is_row(key) => {
                let insert = (word.is_some() && is_by_key).then_some(op);
                self.0.push(OwnRow { key, insert, word });
            }
            None => {}
        });
    }

    fn of(&self, key: KeyId) -> Option<&OwnRow> {
        self.0.iter().find(|own| own.key == key)
    }
}

/// The row of a result beside the transaction's own one of the same key, if there is just one.
fn former(
    history: &History,
    (txn, read): (TxnId, OpId),
    rows: &[RowView],
    own: &OwnRow,
) -> Option<FormerRow> {
    let insert = own.insert?;
    let mut of_key: Vec<RowView> = rows.iter().filter(|row| row.key == own.key).copied().collect();
    let is_own = |row: &RowView| Some(history.encoded_row_version(row)) == own.word;
    if let Some(at) = of_key.iter().position(is_own) {
        of_key.remove(at);
    }
    let [row] = of_key[..] else { return None };
    Some(FormerRow { txn, insert, read, row })
}

/// Who may have committed and left which of these rows deleted.
fn deletes(history: &History, formers: &[FormerRow]) -> Vec<(TxnId, KeyId)> {
    let mut keys: Vec<KeyId> = formers.iter().map(|former| former.row.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let may_count = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
    let txns = history.txns().filter(|txn| !keys.is_empty() && may_count(txn));
    let deleted = |txn: TxnId| {
        let left = history.rows_left(txn).into_iter();
        left.filter(|(key, is_there)| !is_there && keys.binary_search(key).is_ok())
    };
    txns.flat_map(|txn| deleted(txn).map(move |(key, _)| (txn, key)).collect::<Vec<_>>()).collect()
}

/// Calls a function with each key that an operation writes, and what reads of it show from then on: nothing
/// if the key is absent then.
fn each_write(history: &History, op: OpId, mut wrote: impl FnMut(KeyId, Option<u64>)) {
    let is_there = |value: ValueId| history.value(value) != ValueRef::Nil;
    match history.op(op) {
        Op::Write { key, value } => {
            wrote(key, is_there(value).then(|| history.encoded_version(op)));
        }
        Op::Delete { key } => wrote(key, None),
        Op::PredicateWrite { rows: Some(rows), .. } => {
            for row in rows {
                wrote(row.key, is_there(row.value).then(|| history.encoded_row_version(row)));
            }
        }
        _ => {}
    }
}

/// Rows that are deleted and inserted anew.
impl History {
    /// Whether a key is the name of a row of a table. A row that is inserted after a delete is another row of
    /// the same key; a register that was deleted is the same register afterwards.
    pub fn is_row(&self, key: KeyId) -> bool {
        matches!(self.key_name(key), ValueRef::Tuple(_))
    }

    /// Whether a transaction that may have committed leaves a row of a table deleted: the row may come back
    /// as another one.
    pub fn may_reuse_rows(&self) -> bool {
        let rows: Vec<bool> =
            (0..self.key_count()).map(|key| self.is_row(KeyId::at(key))).collect();
        let is_delete = |op: &OpId| {
            let mut is_delete = false;
            each_write(self, *op, |key, word| is_delete |= word.is_none() && rows[key.index()]);
            is_delete
        };
        let leaves_one_deleted = |txn: TxnId| {
            self.outcome(txn) != Outcome::Aborted
                && self.rows_left(txn).iter().any(|(_, is_there)| !is_there)
        };
        let mut ops = (0..self.op_count()).map(OpId::at);
        rows.contains(&true) && ops.any(|op| is_delete(&op) && leaves_one_deleted(self.op_txn(op)))
    }

    /// The rows of tables that a transaction writes, each once, and whether the row is there when the
    /// transaction has committed.
    pub fn rows_left(&self, txn: TxnId) -> Vec<(KeyId, bool)> {
        let mut left: Vec<(KeyId, bool)> = Vec::new();
        for op in self.txn_ops(txn) {
            each_write(self, op, |key, word| left.push((key, word.is_some())));
        }
        // The last write of a key comes first.
        left.retain(|(key, _)| self.is_row(*key));
        left.reverse();
        left.sort_by_key(|(key, _)| *key);
        left.dedup_by_key(|(key, _)| *key);
        left
    }

    /// Whether the transaction of an operation may see by it another row beside its own of the same key: it has
    /// inserted its own, and has not deleted the key since.
    pub fn may_see_former_row(&self, op: OpId, key: KeyId) -> bool {
        let mut own = OwnRows::default();
        let earlier = self.txn_ops(self.op_txn(op)).take_while(|earlier| *earlier < op);
        earlier.for_each(|earlier| own.apply(self, earlier));
        own.of(key).is_some_and(|own| own.insert.is_some())
    }
}

/// A predicate that this row satisfies and no other; none if it cannot be written down.
fn exactly(history: &History, row: &RowView) -> Option<Predicate> {
    let (key, value) = (history.key_name(row.key), history.value(row.value));
    let mut columns: Vec<(&str, ValueRef<'_>)> = Vec::new();
    for (part, own_name) in [(key, "key"), (value, "value")] {
        match part {
            ValueRef::Tuple(tuple) => columns.extend(tuple.columns()),
            part => columns.push((own_name, part)),
        }
    }
    let mut condition: Option<Expr> = None;
    for (name, value) in columns {
        let one = holds(Expr::column(name), value)?;
        condition = Some(match condition {
            Some(others) => others.and(one).ok()?,
            None => one,
        });
    }
    let table = RowRef { key, value }.table();
    Predicate::rows(table, condition?).ok()
}

/// That a column holds a value.
fn holds(column: Expr, value: ValueRef<'_>) -> Option<Expr> {
    let literal = match value {
        ValueRef::Nil => return column.is_null().ok(),
        ValueRef::Bool(value) => Literal::Bool(value),
        ValueRef::Int(value) => Literal::Int(value),
        ValueRef::Uint(value) => Literal::Decimal(Decimal::from(u128::from(value))),
        ValueRef::Decimal(value) => Literal::Decimal(value.to_owned()),
        ValueRef::Text(value) => Literal::Text(value.into()),
        ValueRef::Keyword(value) | ValueRef::Other(value) => Literal::Other(value.into()),
        ValueRef::Tuple(_) => return None,
    };
    column.compare(Comparison::Equal, Expr::literal(literal)).ok()
}

impl History {
    /// Takes a row out of a result. A read by key has found none then.
    fn hide(&mut self, read: OpId, row: &RowView) {
        if let Op::Read { .. } = self.op(read) {
            self.ops.encoded[read.index()] = self.intern_value(ValueRef::Nil).to_bits();
            return;
        }
        let (predicate, rows) = self.ops.predicates.row_op(self.ops.encoded[read.index()]);
        let predicate = self.ops.predicates.predicate(predicate).clone();
        let mut kept: Vec<RowView> = rows.unwrap_or_default().to_vec();
        if let Some(at) = kept.iter().rposition(|other| other == row) {
            kept.remove(at);
        }
        kept.into_iter().for_each(|row| self.ops.predicates.push_row(row));
        self.ops.encoded[read.index()] = self.ops.predicates.push_row_op(&predicate, true);
    }

    /// Makes an insert a write of the row that satisfies a predicate.
    fn insert_in_place(&mut self, insert: OpId, predicate: &Predicate) {
        let Op::Write { key, value } = self.op(insert) else { return };
        self.ops.predicates.push_row(RowView { key, value, version: VersionId::NONE });
        self.ops.kinds[insert.index()] = OpKind::PredicateWrite;
        self.ops.keys[insert.index()] = KeyId::NONE;
        self.ops.encoded[insert.index()] = self.ops.predicates.push_row_op(predicate, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{history, int, select, txn, update};
    use crate::{OpInput, RowInput, TupleParts};

    static KEY: TupleParts<'static> =
        TupleParts { table: "t", columns: &[("id", ValueRef::Int(1))] };

    fn key() -> ValueRef<'static> {
        (&KEY).into()
    }

    fn row(value: ValueRef<'static>) -> RowInput<'static> {
        RowInput { key: key(), value, version: None }
    }

    fn write(value: i64) -> OpInput<'static> {
        Op::Write { key: key(), value: int(value) }
    }

    fn read(value: i64) -> OpInput<'static> {
        Op::Read { key: key(), value: Some(int(value)) }
    }

    fn values(history: &History, op: u32) -> Vec<ValueRef<'_>> {
        match history.op(OpId(op)) {
            Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. } => {
                rows.unwrap_or_default().iter().map(|row| history.value(row.value)).collect()
            }
            Op::Read { value, .. } => value.map(|value| history.value(value)).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn nothing_is_taken_apart_where_nobody_deleted_a_row() {
        let both = [row(int(1)), row(int(2))];
        let seeing = [write(2), select(Some(&both))];
        let history = history(&[txn(&[write(1)]), txn(&seeing)]);
        assert!(IncarnationView::new(&history, |_, _| false).is_none());
        assert!(!history.may_reuse_rows());
    }

    #[test]
    fn the_insert_says_what_the_result_said_about_the_former_row() {
        let both = [row(int(1)), row(int(2))];
        let seeing = [write(2), select(Some(&both)), select(Some(&both[..1]))];
        let deleting = [Op::Delete { key: key() }];
        let original = history(&[txn(&[write(1)]), txn(&deleting), txn(&seeing)]);
        assert!(original.may_reuse_rows());
        let apart = IncarnationView::new(&original, |_, _| false).unwrap();
        assert_eq!(apart.both(), [(TxnId(2), KeyId(0))]);
        let found = [2, 3, 4].map(|op| values(apart.history(), op));
        assert_eq!(found, [vec![ValueRef::Int(2)], vec![ValueRef::Int(2)], vec![]]);
        assert_eq!(values(&original, 3).len(), 2);
        // The delete came before.
        let ends_before = |first: TxnId, second: TxnId| first < second;
        assert!(IncarnationView::new(&original, ends_before).is_none());
    }

    #[test]
    fn the_former_row_is_in_sight_until_the_transaction_deletes_the_key() {
        let gone = [row(ValueRef::Nil)];
        let apart = |ops: &[OpInput<'_>]| {
            let deleting = [Op::Delete { key: key() }];
            let original = history(&[txn(&[write(1)]), txn(&deleting), txn(ops)]);
            let last = original.txn_ops(TxnId(2)).next_back().unwrap();
            let may_see = original.may_see_former_row(last, KeyId(0));
            (may_see, IncarnationView::new(&original, |_, _| false))
        };
        // Its own row alone is gone, so a read by key has found the other one.
        let (may_see, found) = apart(&[write(2), update(Some(&gone)), read(1)]);
        assert_eq!(values(found.unwrap().history(), 4), [ValueRef::Nil]);
        assert!(may_see);
        let (may_see, found) = apart(&[write(2), read(1)]);
        assert!(may_see && found.is_none());
        // The predicate excludes the row.
        let above =
            Expr::column("value").compare(Comparison::Greater, Expr::literal(Literal::Int(1)));
        let predicate = &Predicate::rows("t", above.unwrap()).unwrap();
        let former = [row(int(1))];
        let wrong = Op::PredicateRead { predicate, rows: Some(&former) };
        assert!(apart(&[write(2), update(Some(&gone)), wrong]).1.is_none());
        let (may_see, found) = apart(&[write(2), Op::Delete { key: key() }, read(1)]);
        assert!(!may_see && found.is_none());
        let (may_see, found) = apart(&[update(Some(&gone)), read(1)]);
        assert!(!may_see && found.is_none());
    }

    #[test]
    fn a_row_that_its_own_transaction_inserts_again_cannot_come_back() {
        let ops = [write(1), Op::Delete { key: key() }, write(2)];
        assert!(!history(&[txn(&ops)]).may_reuse_rows());
        assert!(history(&[txn(&ops[..2])]).may_reuse_rows());
    }
}
