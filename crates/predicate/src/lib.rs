//! A typed predicate language over the columns of one row.

mod decimal;
mod expr;
#[cfg(feature = "parse")]
mod parse;
mod predicate;
mod print;

pub use decimal::{Decimal, DecimalRef};
pub use expr::{
    Arithmetic, Comparison, Expr, ExprError, Literal, MAX_NESTING, MAX_NODES, Node, Type,
};
#[cfg(feature = "parse")]
pub use parse::{ParseError, ParseErrorKind};
pub use predicate::{Aggregate, Predicate};
