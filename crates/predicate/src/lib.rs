//! A typed predicate language over the columns of one row.
//!
//! Histories of relational databases say which rows an operation asked for. That is a
//! [`Predicate`]: a table and a condition. It is a structured value, so that it can be compared,
//! interned, printed, and evaluated on a row.
//!
//! With the feature `parse`, predicates are read from SQL:
//!
#![cfg_attr(feature = "parse", doc = "```")]
#![cfg_attr(not(feature = "parse"), doc = "```ignore")]
//! use isolario_predicate::{Aggregate, Predicate};
//!
//! let rich: Predicate = "FROM accounts WHERE balance >= 100 AND owner LIKE 'A%'".parse()?;
//! assert_eq!(rich.table(), Some("accounts"));
//! assert_eq!(rich.to_string(), "FROM accounts WHERE balance >= 100 AND owner LIKE 'A%'");
//!
//! let total: Aggregate = "sum(balance)".parse()?;
//! assert_eq!(total.to_string(), "sum(balance)");
//!
//! // There is one form for what is obviously the same.
//! let again: Predicate = "from accounts where (balance>=100) and owner like 'A%'".parse()?;
//! assert_eq!(rich, again);
//!
//! // What the language leaves out is refused, by name and place ...
//! let error = "balance > (SELECT 1)".parse::<Predicate>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "line 1, column 12: a subquery: not part of the predicate language",
//! );
//! // ... or kept as text, where it came from a file that should not be lost.
//! assert_eq!(Predicate::from_sql("balance > (SELECT 1)").condition(), None);
//! # Ok::<(), isolario_predicate::ParseError>(())
//! ```
//!
//! Without it, they are built:
//!
//! ```
//! use isolario_predicate::{Comparison, Expr, Literal, Node, Predicate};
//!
//! let hundred = Expr::literal(Literal::Int(100));
//! let rich = Expr::column("balance").compare(Comparison::GreaterOrEqual, hundred)?;
//! let named = Expr::column("owner").starts_with("A")?;
//! let condition = rich.and(named)?;
//! assert_eq!(condition.columns().collect::<Vec<_>>(), ["balance", "owner"]);
//! // Operands come before operators: nothing that walks an expression needs recursion.
//! assert_eq!(condition.nodes().last(), Some(&Node::And));
//!
//! let predicate = Predicate::rows("accounts", condition)?;
//! assert_eq!(predicate.to_string(), "FROM accounts WHERE balance >= 100 AND owner LIKE 'A%'");
//! # Ok::<(), isolario_predicate::ExprError>(())
//! ```
//!
//! A condition is true, false or unknown on a row, by the rules of a database's [`Dialect`]:
//!
//! ```
//! use isolario_predicate::{
//!     Aggregate, Arithmetic, Comparison, Dialect, Expr, Literal, Operand, Truth,
//! };
//!
//! let (two, three) = (Expr::literal(Literal::Int(2)), Expr::literal(Literal::Int(3)));
//! let half = Expr::column("n").arithmetic(Arithmetic::Divide, two)?;
//! let condition = half.compare(Comparison::Equal, three)?;
//! let seven = &[("n", Literal::Int(7))][..];
//! assert_eq!(condition.to_string(), "n / 2 = 3");
//! assert_eq!(condition.truth(&seven, Dialect::Postgres), Ok(Truth::True));
//! assert_eq!(condition.truth(&seven, Dialect::MySql), Ok(Truth::False));
//! assert_eq!(condition.truth(&&[("n", Literal::Null)][..], Dialect::Postgres), Ok(Truth::Unknown));
//!
//! let sum = Aggregate::sum(Expr::column("n"))?;
//! assert!(matches!(sum.over([seven, seven], Dialect::Postgres), Ok(Operand::Int(14))));
//! # Ok::<(), isolario_predicate::ExprError>(())
//! ```
//!
//! # What there is
//!
//! - Integers of 64 bits, exact decimals of any length, text, booleans, null; values of all other
//!   types (dates, UUIDs) as canonical text.
//! - Columns of the row, constants, `=`, `<>`, `<`, `<=`, `>`, `>=`, `BETWEEN`, `IN` a list of
//!   constants, `LIKE` with a text and then `%`, `IS NULL`, `+`, `-`, `*`, `/`, `%`, `AND`, `OR`,
//!   `NOT`.
//! - The aggregates `count(*)`, `exists(*)`, `sum`, `min` and `max` over the matching rows.
//!
//! Joins, subqueries, functions and other patterns are out: a predicate speaks of one row. Somebody else
//! may know which rows they match: see [`MatchesOracle`].
//!
//! Types are checked as far as the form of an expression tells them: `AND` takes conditions and
//! `+` takes numbers. What type a column has is known only on a row.

mod aggregate;
mod decimal;
mod dialect;
mod eval;
mod expr;
mod number;
mod operators;
#[cfg(feature = "parse")]
mod parse;
mod predicate;
mod print;
mod range;

pub use decimal::{Decimal, DecimalRef};
pub use dialect::Dialect;
pub use eval::{Columns, EvalError, Operand, Truth};
pub use expr::{
    Arithmetic, Comparison, Expr, ExprError, Literal, MAX_NESTING, MAX_NODES, Node, Type,
};
pub use number::Fixed;
#[cfg(feature = "parse")]
pub use parse::{ParseError, ParseErrorKind};
pub use predicate::{Aggregate, Asked, MatchesOracle, Predicate};
pub use range::Range;
