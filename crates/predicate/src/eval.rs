//! The value of an expression on a row.

use crate::decimal::DecimalRef;
use crate::dialect::Dialect;
use crate::expr::{Comparison, Expr, Literal, MAX_NESTING, Node};
use crate::number::Fixed;
use crate::operators::{arithmetic, compare, negate};
use crate::predicate::Predicate;

/// A row, as expressions see it: values by the names of their columns.
///
/// The lifetime is that of what the values borrow from, which may outlive the row: a row is
/// often just a pair of pointers.
pub trait Columns<'a> {
    /// The value of a column; none where the row has no such column.
    fn column(&self, name: &str) -> Option<Operand<'a>>;
}

impl<'a> Columns<'a> for &'a [(&str, Literal)] {
    fn column(&self, name: &str) -> Option<Operand<'a>> {
        self.iter().find(|column| column.0 == name).map(|column| (&column.1).into())
    }
}

/// A value that an operator takes or gives.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// SQL's null.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// An exact decimal, as text.
    Decimal(DecimalRef<'a>),
    /// An exact decimal that was computed.
    Fixed(Fixed),
    /// A string.
    Text(&'a str),
    /// A value of any other type, as canonical text.
    Other(&'a str),
}

/// SQL's three truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It depends on what a null stands for.
    Unknown,
}

/// Why an expression has no value on a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The row has no such column.
    #[error("no column {0}")]
    UnknownColumn(Box<str>),
    /// Operands of types that the operator does not take, or not together.
    #[error("{operator} does not take values of these types")]
    Types {
        /// The operator.
        operator: &'static str,
    },
    /// A divisor of zero, where that is an error.
    #[error("a division by zero")]
    DivisionByZero,
    /// An integer beyond 64 bits, or arithmetic on a decimal of more than 38 digits.
    #[error("a number beyond the range")]
    Overflow,
    /// A number that databases round, in ways that depend on declared types.
    #[error("a number that is not exact")]
    Inexact,
    /// Texts that compare as a collation has it.
    #[error("texts whose comparison depends on a collation")]
    Collation,
    /// A condition or a function that this language has no form for.
    #[error("not part of the predicate language")]
    Unparsed,
    /// Dialects give different results, or only some of them an error.
    #[error("a condition on which databases differ")]
    DialectsDiffer,
}

impl Truth {
    /// `AND`.
    pub fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::False, _) | (_, Truth::False) => Truth::False,
            (Truth::True, Truth::True) => Truth::True,
            _ => Truth::Unknown,
        }
    }

    /// `OR`.
    pub fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }

    /// `NOT`.
    #[expect(clippy::should_implement_trait, reason = "`and` and `or` are no operators, either")]
    pub fn not(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Unknown => Truth::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Truth::True } else { Truth::False }
    }
}

impl<'a> From<&'a Literal> for Operand<'a> {
    fn from(literal: &'a Literal) -> Self {
        match literal {
            Literal::Null => Operand::Null,
            Literal::Bool(b) => Operand::Bool(*b),
            Literal::Int(i) => Operand::Int(*i),
            Literal::Decimal(d) => Operand::Decimal(d.as_ref()),
            Literal::Text(text) => Operand::Text(text),
            Literal::Other(text) => Operand::Other(text),
        }
    }
}

impl From<u64> for Operand<'_> {
    fn from(u: u64) -> Self {
        i64::try_from(u).map_or(Operand::Fixed(Fixed::new(u.into(), 0)), Operand::Int)
    }
}

impl From<Truth> for Operand<'_> {
    fn from(truth: Truth) -> Self {
        match truth {
            Truth::True => Operand::Bool(true),
            Truth::False => Operand::Bool(false),
            Truth::Unknown => Operand::Null,
        }
    }
}

/// Comparing.
impl Operand<'_> {
    /// Whether it is the same value: both null, or equal.
    pub fn is(self, other: Operand<'_>, dialect: Dialect) -> Result<bool, EvalError> {
        match (self, other) {
            (Operand::Null, Operand::Null) => Ok(true),
            _ => {
                let equal = compare(self, other, Comparison::Equal, dialect, "=");
                equal.map(|truth| truth == Truth::True).map_err(|failure| failure.explain(&[]))
            }
        }
    }
}

/// Evaluating.
impl Expr {
    /// The value of the expression on a row.
    ///
    /// What a database need not look at, it may not fail on: `FALSE AND 1 / 0 = 1` is false, on
    /// whichever side the error is, and `1 / 0 = NULL` is unknown. Whether databases raise it there depends on their plans. But
    /// results are compared with those of statements that succeeded, and where they did,
    /// nothing but this value is possible.
    pub fn value<'e, 'r: 'e>(
        &'e self,
        row: &impl Columns<'r>,
        dialect: Dialect,
    ) -> Result<Operand<'e>, EvalError> {
        self.item(row, dialect).map_err(|failure| failure.explain(self.nodes()))
    }

    /// The truth of a condition on a row.
    pub fn truth<'r>(&self, row: &impl Columns<'r>, dialect: Dialect) -> Result<Truth, EvalError> {
        let truth = self.item(row, dialect).and_then(|value| truth_of(value, dialect, "WHERE"));
        truth.map_err(|failure| failure.explain(self.nodes()))
    }

    /// The truth of a condition on a row, where all dialects give the same.
    pub fn agreed_truth<'r>(&self, row: &impl Columns<'r>) -> Result<Truth, EvalError> {
        let [first, others @ ..] = Dialect::ALL;
        let truth = self.truth(row, first);
        match others.iter().all(|dialect| self.truth(row, *dialect) == truth) {
            true => truth,
            false => Err(EvalError::DialectsDiffer),
        }
    }

    fn item<'e, 'r: 'e>(&'e self, row: &impl Columns<'r>, dialect: Dialect) -> Item<'e> {
        // To clear a large stack costs more than most expressions.
        match self.stack() {
            ..=SMALL_STACK => run::<SMALL_STACK>(self.nodes(), row, dialect),
            _ => run::<STACK>(self.nodes(), row, dialect),
        }
    }
}

impl Predicate {
    /// Whether it matches a row: the condition is true, neither false nor unknown.
    pub fn matches<'r>(&self, row: &impl Columns<'r>, dialect: Dialect) -> Result<bool, EvalError> {
        let condition = self.condition().ok_or(EvalError::Unparsed)?;
        condition.truth(row, dialect).map(|truth| truth == Truth::True)
    }
}

/// Why an operator has no value, before anyone asks for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    UnknownColumn { node: usize },
    Types { operator: &'static str },
    DivisionByZero,
    Overflow,
    Inexact,
    Collation,
}

impl Failure {
    pub(crate) fn explain(self, nodes: &[Node]) -> EvalError {
        match self {
            Failure::UnknownColumn { node } => EvalError::UnknownColumn(match nodes.get(node) {
                Some(Node::Column(name)) => name.clone(),
                _ => "".into(),
            }),
            Failure::Types { operator } => EvalError::Types { operator },
            Failure::DivisionByZero => EvalError::DivisionByZero,
            Failure::Overflow => EvalError::Overflow,
            Failure::Inexact => EvalError::Inexact,
            Failure::Collation => EvalError::Collation,
        }
    }
}

/// What stands on the stack: failures, too, since an operator may not need what failed.
pub(crate) type Item<'a> = Result<Operand<'a>, Failure>;

/// Enough for comparisons of columns with constants, and for chains of them.
const SMALL_STACK: usize = 4;

/// Enough for every expression. An operand that is not the first of its operator is one level
/// deeper than the operator, and at most two operands wait below it.
const STACK: usize = 2 * MAX_NESTING + 2;

/// Evaluates nodes from front to back, on a stack that is deep enough. Each operator finds its
/// operands, since an expression is only built from whole ones. Were it otherwise, the result would
/// be null.
fn run<'e, 'r: 'e, const N: usize>(
    nodes: &'e [Node],
    row: &impl Columns<'r>,
    dialect: Dialect,
) -> Item<'e> {
    let mut stack: [Item<'e>; N] = [Ok(Operand::Null); N];
    let mut top = 0_usize;
    for (position, node) in nodes.iter().enumerate() {
        top = top.saturating_sub(node.arity());
        let operands = stack.get(top..top + node.arity()).unwrap_or_default();
        let value = match (node, operands) {
            (Node::Column(name), _) => {
                row.column(name).ok_or(Failure::UnknownColumn { node: position })
            }
            (Node::Literal(literal), _) => Ok(literal.into()),
            (_, [operand]) => operand.and_then(|operand| unary(node, operand, dialect)),
            (_, [left, right]) => binary(node, *left, *right, dialect),
            (_, [value, low, high]) => between(*value, *low, *high, dialect),
            _ => Ok(Operand::Null),
        };
        if let Some(place) = stack.get_mut(top) {
            *place = value;
            top += 1;
        }
    }
    stack[0]
}

fn unary<'e>(node: &'e Node, operand: Operand<'e>, dialect: Dialect) -> Item<'e> {
    match node {
        Node::Negate => negate(operand, dialect),
        Node::In(list) => is_in(operand, list, dialect).map(Into::into),
        Node::StartsWith(prefix) => match operand {
            Operand::Null => Ok(Operand::Null),
            Operand::Text(text) => {
                dialect.starts_with(text, prefix).map(Operand::Bool).ok_or(Failure::Collation)
            }
            _ => Err(Failure::Types { operator: "LIKE" }),
        },
        Node::IsNull => Ok(Operand::Bool(matches!(operand, Operand::Null))),
        _ => truth_of(operand, dialect, "NOT").map(|truth| truth.not().into()),
    }
}

fn binary<'e>(node: &Node, left: Item<'e>, right: Item<'e>, dialect: Dialect) -> Item<'e> {
    match node {
        Node::Arithmetic(_) | Node::Compare(_) if is_null(left) || is_null(right) => {
            Ok(Operand::Null)
        }
        Node::Arithmetic(operator) => arithmetic(*operator, left?, right?, dialect),
        Node::Compare(comparison) => {
            let symbol = comparison.symbol();
            compare(left?, right?, *comparison, dialect, symbol).map(Into::into)
        }
        Node::And => {
            let operand = |item: Item<'_>| item.and_then(|value| truth_of(value, dialect, "AND"));
            all([operand(left), operand(right)]).map(Into::into)
        }
        _ => {
            let operand = |item: Item<'_>| item.and_then(|value| truth_of(value, dialect, "OR"));
            any([operand(left), operand(right)]).map(Into::into)
        }
    }
}

/// What is computed of null, or compared with it, is null, whatever the other operand is or fails
/// with.
fn is_null(item: Item<'_>) -> bool {
    matches!(item, Ok(Operand::Null))
}

fn between<'e>(value: Item<'e>, low: Item<'e>, high: Item<'e>, dialect: Dialect) -> Item<'e> {
    let side = |bound: Item<'e>, comparison| match is_null(value) || is_null(bound) {
        true => Ok(Truth::Unknown),
        false => compare(value?, bound?, comparison, dialect, "BETWEEN"),
    };
    let sides = [side(low, Comparison::GreaterOrEqual), side(high, Comparison::LessOrEqual)];
    all(sides).map(Into::into)
}

fn is_in(value: Operand<'_>, list: &[Literal], dialect: Dialect) -> Result<Truth, Failure> {
    let equal = |item: &Literal| compare(value, item.into(), Comparison::Equal, dialect, "IN");
    any(list.iter().map(equal))
}

/// Whether all hold. One that is certainly false settles it, whatever fails.
fn all(conditions: [Result<Truth, Failure>; 2]) -> Result<Truth, Failure> {
    any(conditions.map(|condition| condition.map(Truth::not))).map(Truth::not)
}

/// Whether any holds. One that certainly does settles it, whatever fails.
fn any(conditions: impl IntoIterator<Item = Result<Truth, Failure>>) -> Result<Truth, Failure> {
    let mut result = Ok(Truth::False);
    for condition in conditions {
        result = match (result, condition) {
            (Ok(Truth::True), _) | (_, Ok(Truth::True)) => return Ok(Truth::True),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(a), Ok(b)) => Ok(a.or(b)),
        };
    }
    result
}

fn truth_of(
    value: Operand<'_>,
    dialect: Dialect,
    operator: &'static str,
) -> Result<Truth, Failure> {
    match value {
        Operand::Null => Ok(Truth::Unknown),
        Operand::Bool(holds) => Ok(holds.into()),
        _ if !dialect.booleans_are_integers() => Err(Failure::Types { operator }),
        Operand::Int(i) => Ok((i != 0).into()),
        Operand::Decimal(decimal) => Ok((decimal.as_str() != "0.0").into()),
        Operand::Fixed(number) => Ok((!number.is_zero()).into()),
        Operand::Text(_) | Operand::Other(_) => Err(Failure::Types { operator }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each level keeps two operands waiting, which is the most that an operator can.
    #[test]
    fn the_stack_is_deep_enough_for_the_deepest_expression() {
        let number = |i| Expr::literal(Literal::Int(i));
        let mut deepest = Expr::column("n");
        while let Ok(deeper) = number(1).between(number(0), deepest.clone()) {
            deepest = deeper;
        }
        assert!((SMALL_STACK + 1..=STACK).contains(&deepest.stack()), "{}", deepest.stack());
        let row = &[("n", Literal::Int(1))][..];
        assert_eq!(deepest.truth(&row, Dialect::Sqlite), Ok(Truth::True));
        let row = &[("n", Literal::Int(0))][..];
        assert_eq!(deepest.truth(&row, Dialect::Sqlite), Ok(Truth::False));
        assert!(deepest.truth(&row, Dialect::Postgres).is_err());
    }
}
