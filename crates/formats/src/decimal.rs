//! Decimal numbers in bytes, read and written fast: text histories are mostly digits.

/// Why a number could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotANumber {
    /// There is no digit.
    NoDigit,
    /// There are this many digits, which are more than 64 bits hold.
    TooLarge(usize),
}

/// The number that `bytes` begin with, and how many digits it has.
#[inline]
pub(crate) fn leading_u64(bytes: &[u8]) -> Result<(u64, usize), NotANumber> {
    match bytes.first_chunk() {
        Some(eight) => match leading_of_eight(u64::from_le_bytes(*eight)) {
            (_, 0) => Err(NotANumber::NoDigit),
            (value, 8) => more_digits(bytes, value, 8),
            found => Ok(found),
        },
        None => more_digits(bytes, 0, 0),
    }
}

/// The number in the leading digits of eight bytes, and how many of them are digits, all at once:
/// a loop over digits costs a mispredicted branch for nearly every number.
#[inline]
fn leading_of_eight(word: u64) -> (u64, usize) {
    // A digit becomes its value; everything else becomes 10 or more.
    let values = word ^ 0x3030_3030_3030_3030;
    // A high nibble is set in each byte of 10 or more, for adding 6 carries into it. It may carry
    // on into later bytes, but never out of a digit: the first byte that is marked is right.
    let others = (values | values.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0;
    let len = others.trailing_zeros() / 8;
    if len == 0 {
        return (0, 0);
    }
    // Zeros in front, where the little end is: the digits end in the last byte.
    let digits = values << (64 - 8 * len);
    // Tens and units in bytes 0, 2, 4, 6, each the larger digit first.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    // Pairs 0 and 2 weigh 10^6 and 100, pairs 1 and 3 weigh 10^4 and 1; the products meet in the
    // high half, the low half cannot carry into it.
    let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let odd = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    (even.wrapping_add(odd) >> 32, len as usize)
}

/// Goes on digit by digit from the first `done` digits, which are worth `value`.
fn more_digits(bytes: &[u8], value: u64, done: usize) -> Result<(u64, usize), NotANumber> {
    let more = bytes[done..].iter().take_while(|b| b.is_ascii_digit()).count();
    let len = done + more;
    if len == 0 {
        return Err(NotANumber::NoDigit);
    }
    bytes[done..len]
        .iter()
        .try_fold(value, |value, b| value.checked_mul(10)?.checked_add(u64::from(b - b'0')))
        .map(|value| (value, len))
        .ok_or(NotANumber::TooLarge(len))
}

/// Appends a number.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    const LONGEST: usize = 20;
    let mut digits = [0; LONGEST];
    let mut at = LONGEST;
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_every_length_come_back_whatever_follows() {
        let mut number = 0u64;
        for digit in 0..20 {
            number = number.wrapping_mul(10).wrapping_add(1 + digit % 9);
            let mut text = Vec::new();
            push_u64(&mut text, number);
            let len = text.len();
            for tail in ["", ",", ")\n", "/:a\u{e9}\u{ff}!!!!!!", "          "] {
                let bytes = [&text, tail.as_bytes()].concat();
                assert_eq!(leading_u64(&bytes), Ok((number, len)), "{number}{tail}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_told_apart() {
        for text in ["", "x", "-1", " 1", "/", ":", "x1234567", "\u{ff}\u{ff}\u{ff}\u{ff}"] {
            assert_eq!(leading_u64(text.as_bytes()), Err(NotANumber::NoDigit), "{text}");
        }
        assert_eq!(leading_u64(b"18446744073709551615"), Ok((u64::MAX, 20)));
        assert_eq!(leading_u64(b"18446744073709551616"), Err(NotANumber::TooLarge(20)));
        assert_eq!(leading_u64(b"0000000000000000000000007,"), Ok((7, 25)));
        assert_eq!(leading_u64(b"99999999999999999999999999 "), Err(NotANumber::TooLarge(26)));
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(bytes in "[0-9]{0,12}[ -~]{0,9}") {
            let digits = bytes.bytes().take_while(u8::is_ascii_digit).count();
            let expected = match digits {
                0 => Err(NotANumber::NoDigit),
                _ => bytes[..digits]
                    .parse::<u64>()
                    .map(|n| (n, digits))
                    .map_err(|_| NotANumber::TooLarge(digits)),
            };
            prop_assert_eq!(leading_u64(bytes.as_bytes()), expected);
        }
    }
}
