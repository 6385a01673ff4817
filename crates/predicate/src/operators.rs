//! What the operators make of their operands.

use std::cmp::Ordering;

use crate::dialect::Dialect;
use crate::eval::{Failure, Item, Operand, Truth};
use crate::expr::{Arithmetic, Comparison};
use crate::number::{Buffer, Digits, Fixed};

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }

    /// Whether it asks for more than equality.
    fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

pub(crate) fn compare(
    left: Operand<'_>,
    right: Operand<'_>,
    comparison: Comparison,
    dialect: Dialect,
    operator: &'static str,
) -> Result<Truth, Failure> {
    let ordered = comparison.is_ordered();
    let order = match (left, right) {
        (Operand::Null, _) | (_, Operand::Null) => return Ok(Truth::Unknown),
        (Operand::Int(a), Operand::Int(b)) => a.cmp(&b),
        (Operand::Bool(a), Operand::Bool(b)) => a.cmp(&b),
        (Operand::Text(a), Operand::Text(b)) if ordered => {
            dialect.order_of_texts(a, b).ok_or(Failure::Collation)?
        }
        (Operand::Text(a), Operand::Text(b)) => {
            let equal = dialect.texts_equal(a, b).ok_or(Failure::Collation)?;
            if equal { Ordering::Equal } else { Ordering::Less }
        }
        (Operand::Other(a), Operand::Other(b)) if !ordered => a.cmp(b),
        _ => compare_numbers(left, right, dialect, operator)?,
    };
    Ok(comparison.holds(order).into())
}

fn compare_numbers(
    left: Operand<'_>,
    right: Operand<'_>,
    dialect: Dialect,
    operator: &'static str,
) -> Result<Ordering, Failure> {
    let types = Failure::Types { operator };
    let (left, right) = (number(left, dialect).ok_or(types)?, number(right, dialect).ok_or(types)?);
    if dialect == Dialect::Sqlite && !doubles_compare(left, right) {
        return Err(Failure::Inexact);
    }
    let (mut a, mut b) = (Buffer::default(), Buffer::default());
    Ok(digits(left, &mut a).cmp(digits(right, &mut b)))
}

/// A value as a number, which a boolean is in some dialects.
fn number(value: Operand<'_>, dialect: Dialect) -> Option<Operand<'_>> {
    match value {
        Operand::Int(_) | Operand::Decimal(_) | Operand::Fixed(_) => Some(value),
        Operand::Bool(b) if dialect.booleans_are_integers() => Some(Operand::Int(b.into())),
        _ => None,
    }
}

/// The digits of a number.
pub(crate) fn digits<'b>(number: Operand<'b>, buffer: &'b mut Buffer) -> Digits<'b> {
    match number {
        Operand::Decimal(decimal) => Digits::of_decimal(decimal),
        Operand::Fixed(number) => buffer.write(number),
        Operand::Int(i) => buffer.write(Fixed::new(i.into(), 0)),
        _ => buffer.write(Fixed::new(0, 0)),
    }
}

/// Whether two numbers compare in floating point as they do exactly. They do where both are
/// floating point numbers already, or integers, with which SQLite compares exactly. They also do
/// where neither has more than 15 digits: rounding keeps the order, and different decimals of so
/// few digits are different floating point numbers. (An integer of more digits is no exception. A
/// decimal of 15 digits that is about as large is whole, and below 2^63 such are exact.)
fn doubles_compare(left: Operand<'_>, right: Operand<'_>) -> bool {
    let short = |number: Operand<'_>| match number {
        Operand::Int(_) => true,
        number => digits(number, &mut Buffer::default()).significant() <= 15,
    };
    let exact = |number: Operand<'_>| match number {
        Operand::Int(_) => true,
        number => fixed(number).is_ok_and(Fixed::is_double),
    };
    short(left) && short(right) || exact(left) && exact(right)
}

/// A number to compute with.
fn fixed(number: Operand<'_>) -> Result<Fixed, Failure> {
    match number {
        Operand::Decimal(decimal) => Fixed::of_decimal(decimal).ok_or(Failure::Overflow),
        Operand::Fixed(number) => Ok(number),
        Operand::Int(i) => Ok(Fixed::new(i.into(), 0)),
        _ => Err(Failure::Overflow),
    }
}

pub(crate) fn negate<'e>(value: Operand<'e>, dialect: Dialect) -> Item<'e> {
    if let Operand::Null = value {
        return Ok(Operand::Null);
    }
    match number(value, dialect).ok_or(Failure::Types { operator: "-" })? {
        Operand::Int(i) => i.checked_neg().map(Operand::Int).ok_or(Failure::Overflow),
        number => fixed(number)?.negate().map(Operand::Fixed).ok_or(Failure::Overflow),
    }
}

/// Two numbers combined.
pub(crate) fn arithmetic<'e>(
    operator: Arithmetic,
    left: Operand<'e>,
    right: Operand<'e>,
    dialect: Dialect,
) -> Item<'e> {
    let types = Failure::Types { operator: operator.symbol() };
    let operand = |value| match value {
        Operand::Null => Ok(Operand::Null),
        value => number(value, dialect).ok_or(types),
    };
    match (operand(left)?, operand(right)?) {
        (Operand::Null, _) | (_, Operand::Null) => Ok(Operand::Null),
        (Operand::Int(a), Operand::Int(b))
            if operator != Arithmetic::Divide || dialect != Dialect::MySql =>
        {
            integers(operator, a, b, dialect)
        }
        (left, right) => decimals(operator, fixed(left)?, fixed(right)?, dialect),
    }
}

fn by_zero<'e>(dialect: Dialect) -> Item<'e> {
    match dialect {
        Dialect::Postgres => Err(Failure::DivisionByZero),
        Dialect::Sqlite | Dialect::MySql => Ok(Operand::Null),
    }
}

fn integers<'e>(operator: Arithmetic, a: i64, b: i64, dialect: Dialect) -> Item<'e> {
    let result = match operator {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide | Arithmetic::Modulo if b == 0 => return by_zero(dialect),
        Arithmetic::Divide => a.checked_div(b),
        // The remainder of a division by -1 is zero, also where the quotient overflows.
        Arithmetic::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
    };
    result.map(Operand::Int).ok_or(Failure::Overflow)
}

fn decimals<'e>(operator: Arithmetic, a: Fixed, b: Fixed, dialect: Dialect) -> Item<'e> {
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::Modulo);
    if divides && b.is_zero() {
        return by_zero(dialect);
    }
    if dialect == Dialect::Sqlite {
        return doubles(operator, a, b);
    }
    if operator == Arithmetic::Divide {
        return quotient(a, b, dialect).map(Operand::Fixed);
    }
    let result = exactly(operator, a, b).ok_or(Failure::Overflow)?;
    // MariaDB makes it a negative zero, which it then takes to be less than zero.
    let negative_zero = operator == Arithmetic::Modulo && result.is_zero() && a.is_negative();
    match dialect == Dialect::MySql && negative_zero {
        true => Err(Failure::Inexact),
        false => Ok(Operand::Fixed(result)),
    }
}

fn exactly(operator: Arithmetic, a: Fixed, b: Fixed) -> Option<Fixed> {
    match operator {
        Arithmetic::Add => a.add(b),
        Arithmetic::Subtract => a.subtract(b),
        Arithmetic::Multiply => a.multiply(b),
        Arithmetic::Divide => a.divide_exactly(b, u32::MAX),
        Arithmetic::Modulo => a.modulo(b),
    }
}

/// A quotient, where it has so few digits that no database rounds it. MySQL keeps four more digits
/// behind the point than the dividend has; PostgreSQL keeps 16 digits at least.
fn quotient(a: Fixed, b: Fixed, dialect: Dialect) -> Result<Fixed, Failure> {
    let quotient = match dialect {
        Dialect::MySql => a.divide_exactly(b, a.scale() + 4),
        _ => a.divide_exactly(b, 16).filter(|quotient| quotient.significant() <= 16),
    };
    quotient.ok_or(Failure::Inexact)
}

/// What floating point makes of two decimals, where that is exact. `%` takes their whole parts.
fn doubles<'e>(operator: Arithmetic, a: Fixed, b: Fixed) -> Item<'e> {
    if operator == Arithmetic::Modulo {
        let whole = |number: Fixed| i64::try_from(number.truncated()).ok();
        return match (whole(a), whole(b)) {
            (Some(_), Some(0)) => Ok(Operand::Null),
            (Some(a), Some(b)) => {
                let remainder = a.checked_rem(b).unwrap_or(0);
                let remainder = Fixed::new(remainder.into(), 0);
                remainder.is_double().then_some(Operand::Fixed(remainder)).ok_or(Failure::Inexact)
            }
            _ => Err(Failure::Overflow),
        };
    }
    let result = exactly(operator, a, b)
        .filter(|result| a.is_double() && b.is_double() && result.is_double());
    result.map(Operand::Fixed).ok_or(Failure::Inexact)
}
