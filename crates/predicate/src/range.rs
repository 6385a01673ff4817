//! The values of a column outside of which a condition does not hold: what an index asks for.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::eval::Operand;
use crate::expr::{Comparison, Expr, Literal, Node};
use crate::number::{Buffer, Fixed};
use crate::operators::digits;

/// A range of numbers between whole bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lower bound.
    pub lower: Bound<i64>,
    /// The upper bound.
    pub upper: Bound<i64>,
}

impl Range {
    /// All numbers, and everything that is none.
    pub const ALL: Range = Range { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// Nothing.
    pub const NONE: Range = Range { lower: Bound::Excluded(0), upper: Bound::Excluded(0) };

    /// Whether nothing can be said.
    pub fn is_all(&self) -> bool {
        *self == Range::ALL
    }

    /// Whether no whole number lies in it.
    pub fn is_empty(&self) -> bool {
        self.first() > self.last()
    }

    /// The least and the greatest whole number in it; the least is greater where there is none.
    pub fn whole_numbers(&self) -> (i64, i64) {
        let clamp = |wide: i128| wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        match self.is_empty() {
            true => (1, 0),
            false => (clamp(self.first()), clamp(self.last())),
        }
    }

    /// Whether a value may be that of a column with this range: it is a number between the bounds,
    /// or nothing is known.
    pub fn contains(&self, value: Operand<'_>) -> bool {
        let value = match value {
            Operand::Bool(b) => Operand::Int(b.into()),
            value => value,
        };
        let is_number = matches!(value, Operand::Int(_) | Operand::Decimal(_) | Operand::Fixed(_));
        let order = |bound: i64| {
            let bound = Operand::Int(bound);
            digits(value, &mut Buffer::default()).cmp(digits(bound, &mut Buffer::default()))
        };
        let above = match self.lower {
            Bound::Included(lower) => order(lower) != Ordering::Less,
            Bound::Excluded(lower) => order(lower) == Ordering::Greater,
            Bound::Unbounded => true,
        };
        let below = match self.upper {
            Bound::Included(upper) => order(upper) != Ordering::Greater,
            Bound::Excluded(upper) => order(upper) == Ordering::Less,
            Bound::Unbounded => true,
        };
        self.is_all() || is_number && above && below
    }

    fn first(&self) -> i128 {
        match self.lower {
            Bound::Included(lower) => lower.into(),
            Bound::Excluded(lower) => i128::from(lower) + 1,
            Bound::Unbounded => i64::MIN.into(),
        }
    }

    fn last(&self) -> i128 {
        match self.upper {
            Bound::Included(upper) => upper.into(),
            Bound::Excluded(upper) => i128::from(upper) - 1,
            Bound::Unbounded => i64::MAX.into(),
        }
    }

    /// What is in both.
    fn and(self, other: Range) -> Range {
        let lower = if lower_key(self.lower) >= lower_key(other.lower) { self } else { other };
        let upper = if upper_key(self.upper) <= upper_key(other.upper) { self } else { other };
        Range { lower: lower.lower, upper: upper.upper }
    }

    /// What is in either, and what lies between the two.
    fn or(self, other: Range) -> Range {
        if self == Range::NONE {
            return other;
        }
        if other == Range::NONE {
            return self;
        }
        let lower = if lower_key(self.lower) <= lower_key(other.lower) { self } else { other };
        let upper = if upper_key(self.upper) >= upper_key(other.upper) { self } else { other };
        Range { lower: lower.lower, upper: upper.upper }
    }
}

/// Orders lower bounds: the larger key allows less.
fn lower_key(bound: Bound<i64>) -> (i128, bool) {
    match bound {
        Bound::Included(lower) => (lower.into(), false),
        Bound::Excluded(lower) => (lower.into(), true),
        Bound::Unbounded => (i128::MIN, false),
    }
}

/// Orders upper bounds: the smaller key allows less.
fn upper_key(bound: Bound<i64>) -> (i128, bool) {
    match bound {
        Bound::Included(upper) => (upper.into(), true),
        Bound::Excluded(upper) => (upper.into(), false),
        Bound::Unbounded => (i128::MAX, true),
    }
}

impl Expr {
    /// A range outside of which a value of this column makes the condition false, unknown or an
    /// error, in every dialect and whatever the other columns are. Where it is not
    /// [`Range::ALL`], only numbers can make it true, or booleans where they are numbers.
    ///
    /// It is exact for what databases answer with an index, comparisons of the column with
    /// constants and what `AND` makes of them; elsewhere it may be too large.
    ///
    /// Why it is never too small, by induction over the nodes: each operand on the stack has a range
    /// that contains the column's value on every row on which the operand is true. A comparison
    /// with a number, and an equality of the column with one of a list, is true only of numbers
    /// on the right side of it; one with null is never true. `AND` is true where both operands are,
    /// so the value is in both ranges; `OR` is true where one of them is, so it lies between the
    /// outermost bounds. (That an error on the other side may be passed over changes nothing: the
    /// operand that is true is enough.) Everything else gets all values.
    pub fn range_of(&self, column: &str) -> Range {
        let mut stack: Vec<Part<'_>> = Vec::new();
        for node in self.nodes() {
            let operands = stack.split_off(stack.len() - node.arity().min(stack.len()));
            stack.push(part(node, &operands, column));
        }
        stack.pop().map_or(Range::ALL, Part::range)
    }

    /// The first column that a condition bounds, with the least and the greatest whole number that
    /// it has on a row on which the condition is true: what an index on whole numbers asks for.
    pub fn bounded_column(&self) -> Option<(&str, i64, i64)> {
        self.columns().find_map(|column| {
            let range = self.range_of(column);
            let (low, high) = range.whole_numbers();
            (!range.is_all()).then_some((column, low, high))
        })
    }
}

/// What is known of an operand.
#[derive(Clone, Copy)]
enum Part<'e> {
    /// It is the column.
    Column,
    /// It is this constant.
    Literal(&'e Literal),
    /// Where it is true, the column is in this range.
    Range(Range),
}

impl Part<'_> {
    fn range(self) -> Range {
        match self {
            Part::Range(range) => range,
            Part::Column | Part::Literal(_) => Range::ALL,
        }
    }
}

fn part<'e>(node: &'e Node, operands: &[Part<'e>], column: &str) -> Part<'e> {
    let range = match (node, operands) {
        (Node::Column(name), _) if **name == *column => return Part::Column,
        (Node::Literal(literal), _) => return Part::Literal(literal),
        (Node::Compare(how), [Part::Column, Part::Literal(literal)]) => compared(*how, literal),
        (Node::Compare(how), [Part::Literal(literal), Part::Column]) => {
            compared(how.mirrored(), literal)
        }
        (Node::Between, [Part::Column, low, high]) => {
            let side = |bound: &Part<'_>, how| match bound {
                Part::Literal(literal) => compared(how, literal),
                _ => Range::ALL,
            };
            let low = side(low, Comparison::GreaterOrEqual);
            low.and(side(high, Comparison::LessOrEqual))
        }
        (Node::In(list), [Part::Column]) => {
            let items = list.iter().map(|literal| compared(Comparison::Equal, literal));
            items.fold(Range::NONE, Range::or)
        }
        (Node::And, [left, right]) => left.range().and(right.range()),
        (Node::Or, [left, right]) => left.range().or(right.range()),
        _ => Range::ALL,
    };
    Part::Range(range)
}

impl Comparison {
    /// The same comparison with its operands exchanged.
    fn mirrored(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }
}

/// Where a comparison with a constant can be true. `<>` has no range that says much.
fn compared(how: Comparison, literal: &Literal) -> Range {
    if let Literal::Null = literal {
        return Range::NONE;
    }
    let Some((floor, ceiling)) = whole_bounds(literal) else { return Range::ALL };
    // A bound that is not the number itself is inside: floor < number < ceiling.
    let exact = floor == ceiling;
    let clamp = |wide: i128| i64::try_from(wide).ok();
    let lower = |strict: bool| match clamp(floor) {
        Some(floor) if strict && exact => Bound::Excluded(floor),
        Some(floor) => Bound::Included(floor),
        None if floor > 0 => Bound::Excluded(i64::MAX),
        None => Bound::Unbounded,
    };
    let upper = |strict: bool| match clamp(ceiling) {
        Some(ceiling) if strict && exact => Bound::Excluded(ceiling),
        Some(ceiling) => Bound::Included(ceiling),
        None if ceiling < 0 => Bound::Excluded(i64::MIN),
        None => Bound::Unbounded,
    };
    let (lower, upper) = match how {
        Comparison::Equal => (lower(false), upper(false)),
        Comparison::NotEqual => (Bound::Unbounded, Bound::Unbounded),
        Comparison::Less => (Bound::Unbounded, upper(true)),
        Comparison::LessOrEqual => (Bound::Unbounded, upper(false)),
        Comparison::Greater => (lower(true), Bound::Unbounded),
        Comparison::GreaterOrEqual => (lower(false), Bound::Unbounded),
    };
    Range { lower, upper }
}

/// The whole numbers next to a number, below and above, or the number itself twice. Far beyond
/// 64 bits, any that are beyond 64 bits.
fn whole_bounds(literal: &Literal) -> Option<(i128, i128)> {
    match literal {
        Literal::Int(i) => Some(((*i).into(), (*i).into())),
        Literal::Decimal(decimal) => {
            let negative = decimal.as_str().starts_with('-');
            let Some(number) = Fixed::of_decimal(decimal.as_ref()) else {
                return long_bounds(decimal.as_str(), negative);
            };
            let whole = number.truncated();
            Some(match number.scale() {
                0 => (whole, whole),
                _ if negative => (whole - 1, whole),
                _ => (whole, whole + 1),
            })
        }
        _ => None,
    }
}

/// The same for a decimal of more digits than are computed with.
fn long_bounds(text: &str, negative: bool) -> Option<(i128, i128)> {
    let whole = text.split_once('.')?.0;
    let whole =
        whole.parse::<i128>().unwrap_or(if negative { i128::MIN + 1 } else { i128::MAX - 1 });
    Some((whole - 1, whole + 1))
}
