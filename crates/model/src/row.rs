//! Rows of a history, as predicates see them.

use isolario_predicate::{Asked, Columns, Dialect, EvalError, Operand, Predicate, Truth};

use crate::value::{Value, ValueRef};

/// A version of a row: what it is called by, and what it holds.
///
/// Columns of the key and of the value are both columns of the row. A key or a value that is no
/// tuple, such as the number of a register, is a column called `key` or `value`.
///
/// ```
/// use isolario_model::{RowRef, TupleParts, ValueRef};
/// use isolario_predicate::{Comparison, Dialect, Expr, Literal, Predicate};
///
/// let key = TupleParts { table: "accounts", columns: &[("id", 1.into())] };
/// let held = TupleParts { table: "", columns: &[("balance", 5.into())] };
/// let row = RowRef { key: (&key).into(), value: (&held).into() };
///
/// let rich = Expr::column("balance").compare(Comparison::Greater, Expr::literal(Literal::Int(4)))?;
/// let rich = Predicate::rows("accounts", rich)?;
/// assert_eq!(row.matches(&rich, Dialect::Postgres), Ok(true));
/// // A row that is not there matches nothing.
/// let deleted = RowRef { value: ValueRef::Nil, ..row };
/// assert_eq!(deleted.matches(&rich, Dialect::Postgres), Ok(false));
/// # Ok::<(), isolario_predicate::ExprError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef<'a> {
    /// What the row is called by.
    pub key: ValueRef<'a>,
    /// What it holds; *nil* where the row is absent.
    pub value: ValueRef<'a>,
}

impl<'a> RowRef<'a> {
    /// The table; empty where the key does not say.
    pub fn table(self) -> &'a str {
        match self.key {
            ValueRef::Tuple(key) => key.table(),
            _ => "",
        }
    }

    /// Whether a predicate matches: the row is there, it is of the predicate's table where both
    /// name one, and the condition is true.
    pub fn matches(self, predicate: &Predicate, dialect: Dialect) -> Result<bool, EvalError> {
        if self.value == ValueRef::Nil || !self.is_of(predicate) {
            return Ok(false);
        }
        match predicate {
            Predicate::Asked(asked) => self.by_oracle(asked),
            _ => predicate.matches(&self, dialect),
        }
    }

    /// As [`RowRef::matches`], where all dialects give the same answer.
    pub fn matches_everywhere(self, predicate: &Predicate) -> Result<bool, EvalError> {
        if self.value == ValueRef::Nil || !self.is_of(predicate) {
            return Ok(false);
        }
        if let Predicate::Asked(asked) = predicate {
            return self.by_oracle(asked);
        }
        let condition = predicate.condition().ok_or(EvalError::Unparsed)?;
        Ok(condition.agreed_truth(&self)? == Truth::True)
    }

    /// What an oracle says. It speaks for one database, whatever others would say.
    fn by_oracle(self, asked: &Asked) -> Result<bool, EvalError> {
        asked.is_match(self.table(), &self).ok_or(EvalError::Unparsed)
    }

    /// Whether a predicate is about the table of this row, as far as both name one.
    pub fn is_of(self, predicate: &Predicate) -> bool {
        match (self.table(), predicate.table()) {
            ("", _) | (_, None) => true,
            (table, Some(asked)) => table == asked,
        }
    }
}

impl<'a> Columns<'a> for RowRef<'a> {
    fn column(&self, name: &str) -> Option<Operand<'a>> {
        column_of(self.value, "value", name).or_else(|| column_of(self.key, "key", name))
    }
}

/// A column of a tuple, or what is no tuple under a name of its own.
fn column_of<'a>(value: ValueRef<'a>, own_name: &str, name: &str) -> Option<Operand<'a>> {
    match value {
        ValueRef::Tuple(tuple) => tuple.get(name).and_then(ValueRef::operand),
        value if name == own_name => value.operand(),
        _ => None,
    }
}

impl<'a> ValueRef<'a> {
    /// The value as expressions take it; none for tuples, which are no values of columns.
    pub fn operand(self) -> Option<Operand<'a>> {
        Some(match self {
            ValueRef::Nil => Operand::Null,
            ValueRef::Bool(b) => Operand::Bool(b),
            ValueRef::Int(i) => Operand::Int(i),
            ValueRef::Uint(u) => Operand::from(u),
            ValueRef::Decimal(decimal) => Operand::Decimal(decimal),
            ValueRef::Text(text) => Operand::Text(text),
            ValueRef::Keyword(text) | ValueRef::Other(text) => Operand::Other(text),
            ValueRef::Tuple(_) => return None,
        })
    }
}

/// What an expression came to.
impl From<Operand<'_>> for Value {
    fn from(operand: Operand<'_>) -> Value {
        match operand {
            Operand::Bool(b) => Value::Bool(b),
            Operand::Int(i) => Value::Int(i),
            Operand::Decimal(decimal) => Value::Decimal(decimal.to_owned()),
            Operand::Fixed(number) => match number.to_int() {
                Some(whole) => Value::Int(whole),
                None => Value::Decimal(number.to_decimal()),
            },
            Operand::Text(text) => Value::Text(text.into()),
            Operand::Other(text) => Value::Other(text.into()),
            _ => Value::Nil,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TupleParts;

    fn int(row: RowRef<'_>, name: &str) -> Option<i64> {
        match row.column(name) {
            Some(Operand::Int(i)) => Some(i),
            _ => None,
        }
    }

    #[test]
    fn columns_of_key_and_value_are_columns_of_the_row() {
        let key = TupleParts { table: "t", columns: &[("id", 7.into())] };
        let held = TupleParts { table: "", columns: &[("a", 1.into()), ("b", ValueRef::Nil)] };
        let row = RowRef { key: (&key).into(), value: (&held).into() };
        assert_eq!((int(row, "id"), int(row, "a")), (Some(7), Some(1)));
        assert!(matches!(row.column("b"), Some(Operand::Null)));
        assert!(row.column("c").is_none() && row.column("value").is_none());
        assert_eq!(row.table(), "t");
    }

    #[test]
    fn what_is_no_tuple_has_a_name() {
        let row = RowRef { key: 7.into(), value: 1.into() };
        assert_eq!((int(row, "key"), int(row, "value"), row.table()), (Some(7), Some(1), ""));
    }
}
