//! Operations on a table as the history has them.

use isolario_model::{Op, OpInput, RowInput, SinkError, TupleParts, ValueRef};
use isolario_predicate::{Comparison, Expr, ExprError, Literal, Predicate};
use isolario_workload::{RowValues, TableOp};

use isolario_db::{TABLE, TableResult};

/// The columns that a row is called by, and those that it holds.
type Key = [(&'static str, ValueRef<'static>); 1];
type Columns = [(&'static str, ValueRef<'static>); 3];

fn key_columns(key: u32) -> Key {
    [("id", key.into())]
}

fn columns(held: RowValues) -> Columns {
    [("a", held.a.into()), ("b", held.b.into()), ("v", held.version.into())]
}

fn key_of(columns: &Key) -> TupleParts<'_> {
    TupleParts { table: TABLE, columns }
}

fn value_of(columns: &Columns) -> TupleParts<'_> {
    TupleParts { table: "", columns }
}

/// Tells what an operation did, as one or two operations of the history, and how many they are.
/// Without an answer, it may have been done or not.
///
/// An update by key that found no row is a read that found none. A read by key that found several rows is
/// one by a predicate: PostgreSQL's repeatable read may show a row of its snapshot beside the
/// transaction's own one of the same key. A function comes after a read of the rows that it was taken over.
pub fn record(
    op: &TableOp,
    found: Option<&TableResult>,
    mut tell: impl FnMut(&OpInput<'_>) -> Result<(), SinkError>,
) -> Result<usize, SinkError> {
    match *op {
        TableOp::Update { key, .. } if found.is_some_and(|found| found.rows.is_empty()) => {
            let (key, value) = (key_columns(key), Some(ValueRef::Nil));
            tell(&Op::Read { key: (&key_of(&key)).into(), value })?;
        }
        TableOp::Insert { key, held } | TableOp::Update { key, held } => {
            let (key, held) = (key_columns(key), columns(held));
            let (key, value) = (key_of(&key), value_of(&held));
            tell(&Op::Write { key: (&key).into(), value: (&value).into() })?;
        }
        TableOp::Read { key } if found.is_some_and(|found| found.rows.len() > 1) => {
            let predicate = &row(key)?;
            with_rows(found, |rows| tell(&Op::PredicateRead { predicate, rows }))?;
        }
        TableOp::Read { key } => {
            let key = key_columns(key);
            let held = found.and_then(|found| found.rows.first()).and_then(|(_, held)| *held);
            let held = held.map(columns);
            let value = held.as_ref().map(value_of);
            let value = value.as_ref().map_or(ValueRef::Nil, ValueRef::from);
            tell(&Op::Read { key: (&key_of(&key)).into(), value: found.map(|_| value) })?;
        }
        TableOp::Increment { key, .. } => {
            let predicate = row(key)?;
            tell(&Op::PredicateWrite { predicate: &predicate, rows: None })?;
        }
        TableOp::RangeRead { range } => {
            let predicate = &range.predicate(TABLE).map_err(refused)?;
            with_rows(found, |rows| tell(&Op::PredicateRead { predicate, rows }))?;
        }
        TableOp::RangeUpdate { range, .. } | TableOp::Delete { range, .. } => {
            let predicate = &range.predicate(TABLE).map_err(refused)?;
            with_rows(found, |rows| tell(&Op::PredicateWrite { predicate, rows }))?;
        }
        TableOp::Aggregate { function, range } => {
            let predicate = &range.predicate(TABLE).map_err(refused)?;
            with_rows(found, |rows| tell(&Op::PredicateRead { predicate, rows }))?;
            let function = &function.aggregate().map_err(refused)?;
            let result = found.map(|found| found.value.map_or(ValueRef::Nil, ValueRef::Int));
            tell(&Op::Aggregate { function, predicate, result })?;
            return Ok(2);
        }
    }
    Ok(1)
}

/// Gives the rows of an answer as the history has them.
fn with_rows<T>(found: Option<&TableResult>, give: impl FnOnce(Option<&[RowInput<'_>]>) -> T) -> T {
    let Some(found) = found else { return give(None) };
    let keys: Vec<Key> = found.rows.iter().map(|(key, _)| key_columns(*key)).collect();
    let held: Vec<Option<Columns>> = found.rows.iter().map(|(_, held)| held.map(columns)).collect();
    let keys: Vec<TupleParts<'_>> = keys.iter().map(key_of).collect();
    let values: Vec<Option<TupleParts<'_>>> =
        held.iter().map(|columns| columns.as_ref().map(value_of)).collect();
    let rows: Vec<RowInput<'_>> = (keys.iter().zip(&values))
        .map(|(key, value)| {
            RowInput::new(key, value.as_ref().map_or(ValueRef::Nil, ValueRef::from))
        })
        .collect();
    give(Some(&rows))
}

/// Gives what is intended, with what writes to a table are about to do. What an increment is going to
/// write, nobody knows before it has read.
pub(super) fn with_intents<T>(
    writes: impl Iterator<Item = TableOp>,
    others: &[OpInput<'_>],
    give: impl FnOnce(&[OpInput<'_>]) -> Result<T, SinkError>,
) -> Result<T, SinkError> {
    let writes: Vec<TableOp> = writes.collect();
    if writes.is_empty() {
        return give(others);
    }
    let mut items: Vec<(Key, Columns)> = Vec::new();
    let mut predicates: Vec<Predicate> = Vec::new();
    for op in &writes {
        match *op {
            TableOp::Insert { key, held } | TableOp::Update { key, held } => {
                items.push((key_columns(key), columns(held)));
            }
            TableOp::Increment { key, .. } => predicates.push(row(key)?),
            TableOp::RangeUpdate { range, .. } | TableOp::Delete { range, .. } => {
                predicates.push(range.predicate(TABLE).map_err(refused)?);
            }
            TableOp::Read { .. } | TableOp::RangeRead { .. } | TableOp::Aggregate { .. } => {}
        }
    }
    let items: Vec<_> = items.iter().map(|(key, held)| (key_of(key), value_of(held))).collect();
    let items = items.iter().map(|(key, held)| Op::Write { key: key.into(), value: held.into() });
    let by_predicate =
        predicates.iter().map(|predicate| Op::PredicateWrite { predicate, rows: None });
    let intended: Vec<OpInput<'_>> =
        others.iter().copied().chain(items).chain(by_predicate).collect();
    give(&intended)
}

/// `FROM isolario_row WHERE id = 3`.
fn row(key: u32) -> Result<Predicate, SinkError> {
    let equal =
        Expr::column("id").compare(Comparison::Equal, Expr::literal(Literal::Int(key.into())));
    equal.and_then(|condition| Predicate::rows(TABLE, condition)).map_err(refused)
}

/// Expressions as small as these are never refused.
fn refused(_: ExprError) -> SinkError {
    SinkError::Sequence("an expression that is none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_by_key_that_finds_two_rows_has_them_both() {
        let held = |version| Some(RowValues { a: 1, b: 2, version });
        let read = |rows: &[(u32, Option<RowValues>)]| {
            let mut found = TableResult::default();
            found.rows = rows.to_vec();
            let mut recorded = Vec::new();
            let record_op = |op: &OpInput<'_>| {
                recorded.push(match op {
                    Op::Read { value: Some(_), .. } => "one row".to_owned(),
                    Op::PredicateRead { predicate, rows: Some(rows) } => {
                        format!("{} rows {predicate}", rows.len())
                    }
                    _ => "another operation".to_owned(),
                });
                Ok(())
            };
            let count = record(&TableOp::Read { key: 7 }, Some(&found), record_op).unwrap();
            assert_eq!(count, 1);
            recorded
        };
        assert_eq!(read(&[(7, held(1))]), ["one row"]);
        assert_eq!(read(&[(7, held(1)), (7, held(2))]), ["2 rows FROM isolario_row WHERE id = 7"]);
    }
}
