//! Logarithm and exponential from the four operations alone.
//!
//! Platforms' own `ln` and `exp` differ in the last bit, and so would the histories. Addition,
//! subtraction, multiplication and division are exact to the last bit everywhere (IEEE 754).

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// The natural logarithm of a positive, normal number.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh z with |z| < 0.172, where eleven terms reach the last bits.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..11).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * LN_2 + 2.0 * z * series
}

/// The exponential of a number that is not above 0.
pub(crate) fn exp(x: f64) -> f64 {
    let power = (x * LOG2_E + 0.5).floor();
    if power.is_nan() || power < -1022.0 {
        return 0.0;
    }
    // |rest| < 0.35: fifteen terms of the series are more than enough.
    let rest = x - power * LN_2;
    let series = (1..16).rev().fold(1.0, |sum, n| 1.0 + rest / f64::from(n) * sum);
    series * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_agree_with_the_platform_to_twelve_digits() {
        for i in 1..10_000 {
            let x = f64::from(i) * 1.37;
            assert!((ln(x) - x.ln()).abs() <= 1e-12 * x.ln().abs().max(1.0), "ln {x}");
            let y = -f64::from(i) * 0.07;
            assert!((exp(y) - y.exp()).abs() <= 1e-12 * y.exp(), "exp {y}");
        }
        assert_eq!((ln(1.0), exp(0.0), exp(-1e9)), (0.0, 1.0, 0.0));
    }

    /// Bits, not digits: this is what makes histories equal everywhere.
    #[test]
    fn results_are_pinned() {
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5515);
        assert_eq!(exp(-1.0).to_bits(), 0x3fd7_8b56_362c_ef38);
    }
}
