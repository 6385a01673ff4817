//! Exact decimals, as text.

use std::fmt;

/// The largest exponent that is written out: as many digits as PostgreSQL's `numeric` has after
/// the point. Beyond it a short text such as `1e999999999` would stand for gigabytes of digits.
const MAX_EXPONENT: usize = 16_383;

/// An exact decimal number: its digits in canonical form, borrowed.
///
/// Canonical means: a point with at least one digit on each side, no other leading or trailing
/// zeros, no sign on zero. So `1`, `1.0` and `01.500e0` have one form per number, and equal numbers
/// are equal texts. A decimal without a fraction, such as `2.0`, is still a decimal and no integer:
/// SQL divides the two differently.
///
/// Text rather than a coefficient of fixed width: databases have decimals of any length, and
/// almost everything that is done with them here is to store and to compare for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecimalRef<'a>(&'a str);

/// An owned [`DecimalRef`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(Box<str>);

impl<'a> DecimalRef<'a> {
    /// Takes text that is in canonical form already; none otherwise.
    pub fn from_canonical(text: &'a str) -> Option<Self> {
        is_canonical(text).then_some(DecimalRef(text))
    }

    /// The canonical text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Copies the number.
    pub fn to_owned(self) -> Decimal {
        Decimal(self.0.into())
    }
}

impl Decimal {
    /// Reads a number as SQL writes it: an optional sign, digits with or without a point, and
    /// perhaps an exponent. None for anything else, and for exponents beyond a few thousand.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        if exponent.unsigned_abs() > MAX_EXPONENT as u64 {
            return None;
        }
        Some(Decimal::new(negative, &digits, whole.len() as i64 + exponent))
    }

    /// The number with these digits and its point after the `point`-th of them.
    fn new(negative: bool, digits: &str, point: i64) -> Decimal {
        let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
        let padded =
            [zeros(-point), digits.to_owned(), zeros(point - digits.len() as i64)].concat();
        let (whole, fraction) = padded.split_at(usize::try_from(point).unwrap_or(0));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let sign = if negative && !(whole.is_empty() && fraction.is_empty()) { "-" } else { "" };
        let or_zero = |part| if str::is_empty(part) { "0" } else { part };
        Decimal([sign, or_zero(whole), ".", or_zero(fraction)].concat().into())
    }

    /// Borrows the number.
    pub fn as_ref(&self) -> DecimalRef<'_> {
        DecimalRef(&self.0)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number with the other sign.
    pub fn negated(&self) -> Decimal {
        match self.0.strip_prefix('-') {
            Some(positive) => Decimal(positive.into()),
            None if &*self.0 == "0.0" => self.clone(),
            None => Decimal(["-", &self.0].concat().into()),
        }
    }
}

impl From<i128> for Decimal {
    fn from(i: i128) -> Self {
        Decimal(format!("{i}.0").into())
    }
}

impl From<u128> for Decimal {
    fn from(u: u128) -> Self {
        Decimal(format!("{u}.0").into())
    }
}

fn is_canonical(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, fraction)) = unsigned.split_once('.') else { return false };
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole)
        && all_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
        && (fraction == "0" || !fraction.ends_with('0'))
        && text != "-0.0"
}

impl fmt::Display for DecimalRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (text, canonical) in [
            ("1", "1.0"),
            ("+01.500", "1.5"),
            (".5", "0.5"),
            ("5.", "5.0"),
            ("-0.00", "0.0"),
            ("-12e-3", "-0.012"),
            ("1.25E2", "125.0"),
            ("1.25e1", "12.5"),
            ("0e5", "0.0"),
        ] {
            let parsed = Decimal::parse(text).unwrap();
            assert_eq!(parsed.as_str(), canonical, "{text}");
            assert_eq!(DecimalRef::from_canonical(canonical), Some(parsed.as_ref()));
        }
        assert_eq!(Decimal::from(i128::MIN).as_str(), format!("{}.0", i128::MIN));
    }

    #[test]
    fn what_is_no_number_is_refused_and_so_are_gigabytes_of_zeros() {
        for text in ["", "-", ".", "1.2.3", "1e", "e5", "0x1", "1 ", "NaN", "--1", "١", "1e99999"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        for text in ["1", "01.0", "1.50", "-0.0", ".5", "1.", "+1.0", "1.0e1"] {
            assert_eq!(DecimalRef::from_canonical(text), None, "{text}");
        }
    }

    #[test]
    fn a_sign_is_turned() {
        for (text, negated) in [("1.5", "-1.5"), ("-1.5", "1.5"), ("0", "0.0")] {
            assert_eq!(Decimal::parse(text).unwrap().negated().as_str(), negated);
        }
    }
}
