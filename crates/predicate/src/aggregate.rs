//! Functions over the rows that match.

use crate::dialect::Dialect;
use crate::eval::{Columns, EvalError, Operand, Truth};
use crate::expr::{Arithmetic, Comparison, Expr};
use crate::number::Fixed;
use crate::operators::{arithmetic, compare};
use crate::predicate::Aggregate;

impl Aggregate {
    /// Its value over rows: those that match its predicate. Rows on which the expression is null do
    /// not count for `sum`, `min` and `max`, which are null over no rows.
    pub fn over<'e, 'r: 'e, R: Columns<'r>>(
        &'e self,
        rows: impl IntoIterator<Item = R>,
        dialect: Dialect,
    ) -> Result<Operand<'e>, EvalError> {
        let mut rows = rows.into_iter();
        match self {
            Aggregate::Count => {
                let count = i64::try_from(rows.count()).map_err(|_| EvalError::Overflow);
                count.map(Operand::Int)
            }
            Aggregate::Exists => Ok(Operand::Bool(rows.next().is_some())),
            Aggregate::Sum(of) => sum(values(of, rows, dialect), dialect),
            Aggregate::Min(of) => extreme(values(of, rows, dialect), Comparison::Less, dialect),
            Aggregate::Max(of) => extreme(values(of, rows, dialect), Comparison::Greater, dialect),
            Aggregate::Unparsed(_) => Err(EvalError::Unparsed),
        }
    }
}

/// The values of an expression on rows, nulls aside.
fn values<'e, 'r: 'e, R: Columns<'r>>(
    of: &'e Expr,
    rows: impl Iterator<Item = R>,
    dialect: Dialect,
) -> impl Iterator<Item = Result<Operand<'e>, EvalError>> {
    let values = rows.map(move |row| of.value(&row, dialect));
    values.filter(|value| !matches!(value, Ok(Operand::Null)))
}

/// Integers are added in 128 bits: PostgreSQL and MySQL give a decimal where the sum needs one.
/// SQLite fails, also where only the sum of some rows does: which ones depends on their order.
fn sum<'e>(
    mut values: impl Iterator<Item = Result<Operand<'e>, EvalError>>,
    dialect: Dialect,
) -> Result<Operand<'e>, EvalError> {
    let (mut whole, mut rest): (i128, Operand<'e>) = (0, Operand::Null);
    let mut any = false;
    values.try_for_each(|value| {
        any = true;
        match value? {
            Operand::Int(i) => whole = whole.checked_add(i.into()).ok_or(EvalError::Overflow)?,
            value if matches!(rest, Operand::Null) => {
                // Added to zero, so that booleans and texts are what they are to an addition.
                rest = add(Operand::Int(0), value, dialect)?;
            }
            value => rest = add(rest, value, dialect)?,
        }
        Ok::<(), EvalError>(())
    })?;
    let integers = match i64::try_from(whole) {
        Ok(small) => Operand::Int(small),
        Err(_) if dialect == Dialect::Sqlite => return Err(EvalError::Overflow),
        Err(_) => Operand::Fixed(Fixed::new(whole, 0)),
    };
    match rest {
        Operand::Null if any => Ok(integers),
        Operand::Null => Ok(Operand::Null),
        rest => add(integers, rest, dialect),
    }
}

fn add<'e>(a: Operand<'e>, b: Operand<'e>, dialect: Dialect) -> Result<Operand<'e>, EvalError> {
    arithmetic(Arithmetic::Add, a, b, dialect).map_err(|failure| failure.explain(&[]))
}

/// The value that compares so with all others.
fn extreme<'e>(
    mut values: impl Iterator<Item = Result<Operand<'e>, EvalError>>,
    comparison: Comparison,
    dialect: Dialect,
) -> Result<Operand<'e>, EvalError> {
    let operator = if comparison == Comparison::Less { "min" } else { "max" };
    values.try_fold(Operand::Null, |best, value| {
        let value = value?;
        let better = compare(value, best, comparison, dialect, operator);
        match better.map_err(|failure| failure.explain(&[]))? {
            Truth::False => Ok(best),
            // Nothing compares with null: this is the first value.
            Truth::True | Truth::Unknown => Ok(value),
        }
    })
}
