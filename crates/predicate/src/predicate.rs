//! What an operation on many rows asks for: which rows, and what of them.

use std::fmt;

use crate::expr::{Expr, ExprError, Type};
use crate::print::Name;

/// Which rows an operation is about.
///
/// Displayed, it is SQL: `FROM accounts WHERE balance > 0`, or the condition alone where the table
/// is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Predicate {
    /// The rows of a table that satisfy a condition.
    Rows {
        /// The table; empty where it is not known.
        table: Box<str>,
        /// The condition on a row's columns.
        condition: Expr,
    },
    /// A condition that this language has no form for, as written. Nothing is known of it except
    /// that equal texts are the same condition.
    Unparsed(Box<str>),
}

impl Predicate {
    /// The rows of a table that satisfy a condition.
    pub fn rows(table: &str, condition: Expr) -> Result<Predicate, ExprError> {
        condition.expect("WHERE", Type::Condition)?;
        Ok(Predicate::Rows { table: table.into(), condition })
    }

    /// A condition that this language has no form for.
    pub fn unparsed(text: &str) -> Predicate {
        Predicate::Unparsed(text.into())
    }

    /// The table, where it is known.
    pub fn table(&self) -> Option<&str> {
        match self {
            Predicate::Rows { table, .. } if !table.is_empty() => Some(table),
            _ => None,
        }
    }

    /// The condition, where this language has a form for it.
    pub fn condition(&self) -> Option<&Expr> {
        match self {
            Predicate::Rows { condition, .. } => Some(condition),
            Predicate::Unparsed(_) => None,
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Rows { table, condition } if table.is_empty() => write!(f, "{condition}"),
            Predicate::Rows { table, condition } => {
                write!(f, "FROM {} WHERE {condition}", Name(table))
            }
            Predicate::Unparsed(text) => f.write_str(text),
        }
    }
}

/// What is computed over the rows that satisfy a predicate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Aggregate {
    /// How many rows there are: `count(*)`.
    Count,
    /// Whether there is any: `exists(*)`.
    Exists,
    /// The sum of an expression over the rows; null where there is none.
    Sum(Expr),
    /// Its least value; null where there is none.
    Min(Expr),
    /// Its greatest value; null where there is none.
    Max(Expr),
    /// Another function, as written.
    Unparsed(Box<str>),
}

impl Aggregate {
    /// The sum of a number over the rows.
    pub fn sum(of: Expr) -> Result<Aggregate, ExprError> {
        of.expect("sum", Type::Number)?;
        Ok(Aggregate::Sum(of))
    }

    /// Another function, as written.
    pub fn unparsed(text: &str) -> Aggregate {
        Aggregate::Unparsed(text.into())
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aggregate::Count => f.write_str("count(*)"),
            Aggregate::Exists => f.write_str("exists(*)"),
            Aggregate::Sum(of) => write!(f, "sum({of})"),
            Aggregate::Min(of) => write!(f, "min({of})"),
            Aggregate::Max(of) => write!(f, "max({of})"),
            Aggregate::Unparsed(text) => f.write_str(text),
        }
    }
}
