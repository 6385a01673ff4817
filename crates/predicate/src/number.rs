//! Exact numbers: decimals that were computed, and how numbers of any length compare.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use crate::decimal::{Decimal, DecimalRef};

/// An exact decimal of at most 38 digits: what arithmetic works with, and gives.
///
/// Decimals in rows and in predicates are texts of any length. Arithmetic on them is rare, and on
/// more than 38 digits rarer still, so it is left to 128 bits, and what does not fit is refused.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// The coefficient, in bytes: as a number it would be aligned to 16 of them, and every
    /// [`Operand`](crate::Operand) half as large again.
    coefficient: [u8; 16],
    /// How many of its digits are behind the point.
    scale: u32,
}

/// The most digits behind the point; 10 to this power fits 128 bits.
const MAX_SCALE: u32 = 38;

impl Fixed {
    pub(crate) fn new(coefficient: i128, scale: u32) -> Fixed {
        Fixed { coefficient: coefficient.to_ne_bytes(), scale }
    }

    fn coefficient(self) -> i128 {
        i128::from_ne_bytes(self.coefficient)
    }

    /// The same number; none beyond 38 digits.
    pub(crate) fn of_decimal(decimal: DecimalRef<'_>) -> Option<Fixed> {
        let digits = Digits::of_decimal(decimal);
        let mut coefficient: i128 = 0;
        for digit in digits.whole.bytes().chain(digits.fraction.bytes()) {
            coefficient = coefficient.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        let scale =
            u32::try_from(digits.fraction.len()).ok().filter(|scale| *scale <= MAX_SCALE)?;
        Some(Fixed::new(if digits.negative { -coefficient } else { coefficient }, scale))
    }

    /// The number, where it is a whole one of 64 bits.
    pub fn to_int(self) -> Option<i64> {
        let whole = self.trimmed();
        if whole.scale == 0 { i64::try_from(whole.coefficient()).ok() } else { None }
    }

    /// The number as text of any length.
    pub fn to_decimal(self) -> Decimal {
        let sign = if self.is_negative() { "-" } else { "" };
        let mut buffer = Buffer::default();
        let digits = buffer.write(self);
        let or_zero = |part| if str::is_empty(part) { "0" } else { part };
        let text = [sign, or_zero(digits.whole), ".", or_zero(digits.fraction)].concat();
        Decimal::parse(&text).unwrap_or_else(|| Decimal::from(self.coefficient()))
    }

    /// The same number without zeros at the end of its fraction.
    fn trimmed(self) -> Fixed {
        let (mut coefficient, mut scale) = (self.coefficient(), self.scale);
        while scale > 0 && coefficient % 10 == 0 {
            coefficient /= 10;
            scale -= 1;
        }
        Fixed::new(coefficient, scale)
    }

    /// Two coefficients under the larger scale of both.
    fn aligned(self, other: Fixed) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let at = |n: Fixed| n.coefficient().checked_mul(power_of_ten(scale - n.scale)?);
        Some((at(self)?, at(other)?, scale))
    }

    pub(crate) fn negate(self) -> Option<Fixed> {
        Some(Fixed::new(self.coefficient().checked_neg()?, self.scale))
    }

    pub(crate) fn add(self, other: Fixed) -> Option<Fixed> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Fixed::new(a.checked_add(b)?, scale))
    }

    pub(crate) fn subtract(self, other: Fixed) -> Option<Fixed> {
        self.add(other.negate()?)
    }

    pub(crate) fn multiply(self, other: Fixed) -> Option<Fixed> {
        let (a, b) = (self.trimmed(), other.trimmed());
        let coefficient = a.coefficient().checked_mul(b.coefficient())?;
        let product = Fixed::new(coefficient, a.scale + b.scale).trimmed();
        (product.scale <= MAX_SCALE).then_some(product)
    }

    /// The remainder, with the sign of the dividend. None for a divisor of zero, too.
    pub(crate) fn modulo(self, other: Fixed) -> Option<Fixed> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Fixed::new(a.checked_rem(b)?, scale))
    }

    /// The quotient where it is exact and has no more than this many digits behind the point.
    pub(crate) fn divide_exactly(self, other: Fixed, max_scale: u32) -> Option<Fixed> {
        let (mut a, b, _) = self.aligned(other)?;
        for scale in 0..=max_scale.min(MAX_SCALE) {
            if a.checked_rem(b)? == 0 {
                return Some(Fixed::new(a / b, scale));
            }
            a = a.checked_mul(10)?;
        }
        None
    }

    /// How many digits are behind the point, zeros at the end aside.
    pub(crate) fn scale(self) -> u32 {
        self.trimmed().scale
    }

    /// How many digits there are between the first and the last that is not zero.
    pub(crate) fn significant(self) -> usize {
        Buffer::default().write(self).significant()
    }

    pub(crate) fn is_zero(self) -> bool {
        self.coefficient() == 0
    }

    pub(crate) fn is_negative(self) -> bool {
        self.coefficient() < 0
    }

    /// The number without its fraction.
    pub(crate) fn truncated(self) -> i128 {
        power_of_ten(self.scale).map_or(0, |power| self.coefficient() / power)
    }

    /// Whether binary floating point of 64 bits has this very number: it is an integer of 53 bits
    /// times a power of two. A fraction of `n` decimals is a multiple of a power of two only where
    /// its coefficient makes up for the fives in 10^n.
    pub(crate) fn is_double(self) -> bool {
        let trimmed = self.trimmed();
        let coefficient = trimmed.coefficient();
        let fives = 5_i128.checked_pow(trimmed.scale);
        fives.is_some_and(|fives| {
            coefficient % fives == 0 && {
                let odd = (coefficient / fives).unsigned_abs();
                odd >> odd.trailing_zeros().min(127) < 1 << 53
            }
        })
    }
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_decimal().fmt(f)
    }
}

/// The digits of a number, without zeros on the outside: all that is needed to compare numbers of
/// any length. The digits of zero are empty.
#[derive(Clone, Copy)]
pub(crate) struct Digits<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Digits<'a> {
    pub(crate) fn of_decimal(decimal: DecimalRef<'a>) -> Digits<'a> {
        let text = decimal.as_str();
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        Digits::new(negative, whole, fraction)
    }

    fn new(negative: bool, whole: &'a str, fraction: &'a str) -> Digits<'a> {
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        Digits { negative: negative && !(whole.is_empty() && fraction.is_empty()), whole, fraction }
    }

    pub(crate) fn significant(self) -> usize {
        match (self.whole, self.fraction) {
            ("", fraction) => fraction.trim_start_matches('0').len(),
            (whole, "") => whole.trim_end_matches('0').len(),
            (whole, fraction) => whole.len() + fraction.len(),
        }
    }

    pub(crate) fn cmp(self, other: Digits<'_>) -> Ordering {
        let size = |a: Digits<'_>, b: Digits<'_>| {
            let whole = a.whole.len().cmp(&b.whole.len()).then_with(|| a.whole.cmp(b.whole));
            whole.then_with(|| a.fraction.cmp(b.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// Room for the digits of a [`Fixed`]: 39 of a coefficient of 128 bits, or as many as its scale and
/// one before the point.
pub(crate) struct Buffer {
    bytes: [u8; 48],
    len: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer { bytes: [0; 48], len: 0 }
    }
}

impl Buffer {
    /// The digits of a number, written down here.
    pub(crate) fn write(&mut self, number: Fixed) -> Digits<'_> {
        let (behind, size) = (number.scale as usize, number.coefficient().unsigned_abs());
        self.len = 0;
        // It fits: see the size of the buffer.
        let _ = write!(self, "{size:0>width$}", width = behind + 1);
        let text = str::from_utf8(&self.bytes[..self.len]).unwrap_or_default();
        let (whole, fraction) = text.split_at(text.len().saturating_sub(behind));
        Digits::new(number.is_negative(), whole, fraction)
    }
}

impl Write for Buffer {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.len..self.len + s.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> Fixed {
        Fixed::of_decimal(Decimal::parse(text).unwrap().as_ref()).unwrap()
    }

    fn text(number: Option<Fixed>) -> String {
        number.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }

    #[test]
    fn arithmetic_is_exact_or_refused() {
        assert_eq!(text(fixed("0.1").add(fixed("0.2"))), "0.3");
        assert_eq!(text(fixed("1").subtract(fixed("1.50"))), "-0.5");
        assert_eq!(text(fixed("-0.25").multiply(fixed("4"))), "-1.0");
        assert_eq!(text(fixed("-5.5").modulo(fixed("2"))), "-1.5");
        assert_eq!(text(fixed("1").modulo(fixed("0"))), "none");
        assert_eq!(text(fixed("1").divide_exactly(fixed("8"), 4)), "0.125");
        assert_eq!(text(fixed("1").divide_exactly(fixed("0.8"), 4)), "1.25");
        assert_eq!(text(fixed("1").divide_exactly(fixed("3"), 38)), "none");
        let large = fixed("99999999999999999999999999999999999999");
        assert_eq!(text(large.add(large)), "none");
        assert_eq!(text(large.multiply(large)), "none");
        let long = Decimal::parse("0.1234567890123456789012345678901234567890").unwrap();
        assert!(Fixed::of_decimal(long.as_ref()).is_none());
    }

    #[test]
    fn numbers_of_any_length_compare() {
        let ascending = [
            "-1e30", "-12", "-2.5", "-2.25", "-0.1", "0", "0.0001", "0.1", "0.11", "2", "12",
            "1e30",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                let (a, b) = (Decimal::parse(a).unwrap(), Decimal::parse(b).unwrap());
                let (a, b) = (Digits::of_decimal(a.as_ref()), Digits::of_decimal(b.as_ref()));
                assert_eq!(a.cmp(b), i.cmp(&j));
            }
        }
    }

    #[test]
    fn some_decimals_are_binary_fractions() {
        for text in ["0", "0.5", "-0.375", "9007199254740992", "1e22", "-1e15"] {
            assert!(fixed(text).is_double(), "{text}");
        }
        for text in ["0.1", "0.3", "9007199254740993", "1.000000000000000001"] {
            assert!(!fixed(text).is_double(), "{text}");
        }
    }

    #[test]
    fn digits_between_the_first_and_the_last() {
        for (text, count) in [("0", 0), ("1200", 2), ("0.00120", 2), ("10.01", 4), ("-7", 1)] {
            assert_eq!(fixed(text).significant(), count, "{text}");
        }
    }
}
