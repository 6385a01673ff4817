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
    let values = word ^ ZEROS;
    let len = no_digits(values).trailing_zeros() / 8;
    if len == 0 {
        return (0, 0);
    }
    // Zeros in front, where the little end is: the digits end in the last byte.
    (worth(values << (64 - 8 * len)), len as usize)
}

/// Two numbers of at most eight digits, each with a comma after it, and how many bytes come before the
/// second comma. None for anything else.
///
/// Both commas are looked for at once: where the second number begins need not be waited for until the
/// first one is read.
#[inline]
pub(crate) fn two_numbers(bytes: [u8; 16]) -> Option<(u64, u64, usize)> {
    let word = u128::from_le_bytes(bytes);
    let commas = marks_of(word, b',');
    let first = commas.trailing_zeros() / 8;
    let second = (commas & commas.wrapping_sub(1)).trailing_zeros() / 8;
    let len = second.wrapping_sub(first + 1);
    if !(1..=8).contains(&first) || !(1..=8).contains(&len) || second == 16 {
        return None;
    }
    let number = |word: u128, len: u32| {
        let digits = (word as u64 ^ ZEROS) << (64 - 8 * len);
        (no_digits(digits) == 0).then(|| worth(digits))
    };
    Some((number(word, first)?, number(word >> (8 * (first + 1)), len)?, second as usize))
}

/// Marks the bytes that are `wanted` by their highest bits. The lowest mark is right. One above it may be
/// wrong: what is found there has to be looked at.
#[inline]
pub(crate) fn marks_of(word: u128, wanted: u8) -> u128 {
    const ONES: u128 = u128::MAX / 0xff;
    // What is wanted becomes zero, from which nothing can be taken without borrowing from above.
    let others = word ^ (ONES * u128::from(wanted));
    others.wrapping_sub(ONES) & !others & (ONES << 7)
}

/// Eight digits of zero: a digit without them is its value, and everything else is 10 or more.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Marks the values that are 10 or more in their high nibbles, where adding 6 carries into them. It may
/// carry on into later bytes, but never out of a digit: the first byte that is marked is right.
#[inline]
const fn no_digits(values: u64) -> u64 {
    (values | values.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0
}

/// What the values of eight digits are worth, the first one in the lowest byte.
#[inline]
const fn worth(digits: u64) -> u64 {
    // Tens and units in bytes 0, 2, 4, 6, each the larger digit first.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    // Pairs 0 and 2 weigh 10^6 and 100, pairs 1 and 3 weigh 10^4 and 1; the products meet in the
    // high half, the low half cannot carry into it.
    let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let odd = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    even.wrapping_add(odd) >> 32
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
        fn two_numbers_are_those_before_two_commas(bytes in "[0-9]{0,9}[,x-][0-9]{0,9}[,+:-][ -~]{16}") {
            let parts: Vec<_> = bytes[..16].splitn(3, ',').collect();
            let number = |text: &str| match text.len() {
                1..=8 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<u64>().ok(),
                _ => None,
            };
            let expected = match parts[..] {
                [one, two, _] => number(one).zip(number(two)).map(|(a, b)| (a, b, one.len() + 1 + two.len())),
                _ => None,
            };
            prop_assert_eq!(two_numbers(*bytes.as_bytes().first_chunk().unwrap()), expected);
        }

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
