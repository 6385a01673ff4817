//! Random expressions on random rows: SQLite gives what the evaluator gives.

use isolario_predicate::{Aggregate, Dialect, EvalError, Expr, Literal, Operand, Truth};
use rusqlite::Connection;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::random::{Random, TestRow, volume};

const ROWS: usize = 50;
const EXPRESSIONS: usize = 40;

struct Cell<'a>(&'a Literal);

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Literal::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Literal::Bool(b) => ToSqlOutput::Borrowed(ValueRef::Integer((*b).into())),
            Literal::Int(i) => ToSqlOutput::Borrowed(ValueRef::Integer(*i)),
            Literal::Decimal(d) => {
                ToSqlOutput::Borrowed(ValueRef::Real(d.as_str().parse().unwrap()))
            }
            Literal::Text(text) | Literal::Other(text) => {
                ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
            }
        })
    }
}

fn table(rows: &[TestRow]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let create =
        "CREATE TABLE r (a INTEGER, b INTEGER, c INTEGER, d REAL, t TEXT, u TEXT, f INTEGER)";
    connection.execute_batch(create).unwrap();
    let mut insert = connection.prepare("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?)").unwrap();
    for row in rows {
        let cells: Vec<_> = row.iter().map(|(_, value)| Cell(value)).collect();
        insert.execute(rusqlite::params_from_iter(cells)).unwrap();
    }
    drop(insert);
    connection
}

/// Refuses what SQLite never answers with, and passes over what the evaluator leaves open.
fn decided<T>(ours: Result<T, EvalError>, what: &str) -> Option<T> {
    match ours {
        Ok(value) => Some(value),
        Err(EvalError::Inexact | EvalError::Overflow) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn same_truth(ours: Truth, theirs: ValueRef<'_>) -> bool {
    match theirs {
        ValueRef::Null => ours == Truth::Unknown,
        ValueRef::Integer(i) => ours == Truth::from(i != 0),
        _ => false,
    }
}

fn same_value(ours: Operand<'_>, theirs: ValueRef<'_>) -> bool {
    match (ours, theirs) {
        (Operand::Null, ValueRef::Null) => true,
        (Operand::Int(a), ValueRef::Integer(b)) => a == b,
        (Operand::Decimal(a), ValueRef::Real(b)) => a.as_str().parse() == Ok(b),
        (Operand::Fixed(a), ValueRef::Real(b)) => a.to_decimal().as_str().parse() == Ok(b),
        _ => false,
    }
}

#[test]
fn conditions_and_numbers() {
    let mut random = Random::new(1);
    let (mut evaluated, mut open) = (0, 0);
    while evaluated < volume() {
        let rows: Vec<_> = (0..ROWS).map(|_| random.row()).collect();
        let conditions: Vec<_> = (0..EXPRESSIONS).map(|_| random.condition(3)).collect();
        let numbers: Vec<_> = (0..EXPRESSIONS).map(|_| random.number(3)).collect();
        let connection = table(&rows);
        let columns: Vec<_> = conditions.iter().chain(&numbers).map(Expr::to_string).collect();
        let select = format!("SELECT {} FROM r ORDER BY rowid", columns.join(", "));
        let mut statement = connection.prepare(&select).unwrap();
        let mut results = statement.query([]).unwrap();
        for row in &rows {
            let result = results.next().unwrap().unwrap();
            for (column, expr) in conditions.iter().chain(&numbers).enumerate() {
                let theirs = result.get_ref(column).unwrap();
                let what = format!("{expr} on {row:?}: {theirs:?}");
                let agrees = if column < EXPRESSIONS {
                    let ours = expr.truth(&row.as_slice(), Dialect::Sqlite);
                    decided(ours, &what).map(|ours| same_truth(ours, theirs))
                } else {
                    let ours = expr.value(&row.as_slice(), Dialect::Sqlite);
                    decided(ours, &what).map(|ours| same_value(ours, theirs))
                };
                assert_ne!(agrees, Some(false), "{what}");
                evaluated += 1;
                open += usize::from(agrees.is_none());
            }
        }
    }
    assert!(open * 10 < evaluated, "{open} of {evaluated} were left open");
}

#[test]
fn aggregates() {
    let mut random = Random::new(2);
    let (mut evaluated, mut open) = (0, 0);
    while evaluated < volume() / 20 {
        let rows: Vec<_> = (0..ROWS).map(|_| random.row()).collect();
        let connection = table(&rows);
        for _ in 0..EXPRESSIONS {
            let (condition, of) = (random.condition(2), random.number(1));
            let functions =
                [Aggregate::Count, Aggregate::Min(of.clone()), Aggregate::Max(of.clone())];
            let functions = functions.into_iter().chain([Aggregate::sum(of).unwrap()]);
            for function in functions {
                evaluated += 1;
                let truth = |row: &&TestRow| condition.truth(&row.as_slice(), Dialect::Sqlite);
                if rows.iter().any(|row| truth(&row).is_err()) {
                    open += 1;
                    continue;
                }
                let matching = rows.iter().filter(|row| truth(row) == Ok(Truth::True));
                let ours = function.over(matching.map(Vec::as_slice), Dialect::Sqlite);
                let select = format!("SELECT {function} FROM r WHERE {condition}");
                let what = format!("{select} on {rows:?}");
                let Some(ours) = decided(ours, &what) else {
                    open += 1;
                    continue;
                };
                let query = |row: &rusqlite::Row<'_>| Ok(same_value(ours, row.get_ref(0)?));
                let same = match connection.query_row(&select, [], query) {
                    // On the way to the sum, in the order of the rows.
                    Err(error) if error.to_string() == "integer overflow" => continue,
                    same => same.unwrap(),
                };
                assert!(same, "{what}: {ours:?}");
            }
        }
    }
    assert!(open * 3 < evaluated, "{open} of {evaluated} were left open");
}
