//! What an operation on many rows asks for: which rows, and what of them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::eval::Columns;
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
    /// Such a condition, and somebody who knows which rows satisfy it.
    Asked(Asked),
}

/// Somebody who knows which rows satisfy a condition that this language has no form for, such as a
/// database: the *matches oracle* of Clark et al.
pub trait MatchesOracle: fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Whether a row of a table, which is empty where it is not known, satisfies the condition. None if
    /// there is no answer; the same row always has the same one.
    fn is_match(&self, table: &str, row: &dyn Columns<'_>) -> Option<bool>;
}

/// A condition that an oracle evaluates. It is what it says: two of the same text are equal.
#[derive(Clone, Debug)]
pub struct Asked {
    text: Box<str>,
    oracle: Arc<dyn MatchesOracle>,
}

impl Asked {
    /// Whether a row of a table satisfies the condition; none if that is not known.
    pub fn is_match(&self, table: &str, row: &dyn Columns<'_>) -> Option<bool> {
        self.oracle.is_match(table, row)
    }
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Asked {}

impl PartialOrd for Asked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Asked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Asked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
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

    /// A condition that this language has no form for, and who knows which rows satisfy it.
    pub fn asked(text: &str, oracle: Arc<dyn MatchesOracle>) -> Predicate {
        Predicate::Asked(Asked { text: text.into(), oracle })
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
            Predicate::Unparsed(_) | Predicate::Asked(_) => None,
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
            Predicate::Unparsed(text) | Predicate::Asked(Asked { text, .. }) => f.write_str(text),
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
