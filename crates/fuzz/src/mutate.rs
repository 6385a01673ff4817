//! Damage that follows from a seed: the same at every run.

use isolario_oracle::random::Rng;

/// Inputs do not grow beyond this.
const LARGEST: usize = 1 << 14;

/// Numbers that programs get wrong.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "255",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "00000000000000000000000000000000000000007",
];

/// One of the seeds with a few changes.
pub fn mutate(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = one_of(rng, seeds);
    for _ in 0..rng.between(1, 4) {
        change(rng, &mut bytes, seeds);
        bytes.truncate(LARGEST);
    }
    bytes
}

fn one_of(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    seeds.get(rng.below(seeds.len())).cloned().unwrap_or_default()
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    match rng.below(9) {
        0 => flip_a_bit(rng, bytes),
        1 => set_a_byte(rng, bytes),
        2 => bytes.truncate(rng.below(bytes.len())),
        3 => {
            bytes.drain(range(rng, bytes.len()));
        }
        4 => repeat(rng, bytes),
        5 => splice(rng, bytes, seeds),
        6 => edit_a_number(rng, bytes),
        7 => repeat_a_token(rng, bytes),
        _ => overwrite_a_word(rng, bytes),
    }
}

fn range(rng: &mut Rng, len: usize) -> std::ops::Range<usize> {
    let start = rng.below(len);
    start..rng.between(start, len.min(start + 64))
}

fn flip_a_bit(rng: &mut Rng, bytes: &mut [u8]) {
    let (at, bit) = (rng.below(bytes.len()), rng.below(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn set_a_byte(rng: &mut Rng, bytes: &mut [u8]) {
    const BYTES: &[u8] = b"\0\n\r\t \"'()[]{},:;#\\-+.eE09\x7f\x80\xff";
    let (at, new) = (rng.below(bytes.len()), BYTES[rng.below(BYTES.len())]);
    if let Some(byte) = bytes.get_mut(at) {
        *byte = new;
    }
}

fn insert(rng: &mut Rng, bytes: &mut Vec<u8>, piece: &[u8]) {
    let at = rng.below(bytes.len() + 1);
    bytes.splice(at..at, piece.iter().copied());
}

/// A piece once more, somewhere; at times very often in a row, for nesting and counters.
fn repeat(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let range = range(rng, bytes.len());
    let times = if rng.percent(10) { 500 } else { 1 };
    let piece = bytes[range].repeat(times);
    insert(rng, bytes, &piece);
}

/// The beginning of this and the end of another one.
fn splice(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let other = one_of(rng, seeds);
    bytes.truncate(rng.below(bytes.len() + 1));
    bytes.extend_from_slice(&other[rng.below(other.len())..]);
}

/// The piece around a place of which all bytes are alike.
fn around(bytes: &[u8], at: usize, is_part: impl Fn(&u8) -> bool) -> std::ops::Range<usize> {
    let before = bytes[..at].iter().rev().take_while(|byte| is_part(byte)).count();
    let after = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
    at - before..at + after
}

fn edit_a_number(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let from = rng.below(bytes.len());
    let Some(digit) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let number = around(bytes, from + digit, u8::is_ascii_digit);
    let new = NUMBERS[rng.below(NUMBERS.len())];
    bytes.splice(number, new.bytes());
}

fn repeat_a_token(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len());
    let token = bytes[around(bytes, at, u8::is_ascii_alphanumeric)].to_vec();
    insert(rng, bytes, &token);
}

/// A whole number of binary formats: lengths, above all.
fn overwrite_a_word(rng: &mut Rng, bytes: &mut [u8]) {
    const WORDS: [u64; 7] = [0, 1, 255, u32::MAX as u64, 1 << 40, i64::MAX as u64, u64::MAX];
    let word = WORDS[rng.below(WORDS.len())];
    let word = if rng.percent(50) { word.to_le_bytes() } else { word.to_be_bytes() };
    let at = rng.below(bytes.len());
    for (byte, new) in bytes[at..].iter_mut().zip(word) {
        *byte = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_damage() {
        let seeds = [b"r(1,2,3,4)\nw(5,6,7,8)\n".to_vec(), b"x".to_vec(), Vec::new()];
        let run = || {
            let mut rng = Rng::new(1);
            (0..1000).map(|_| mutate(&mut rng, &seeds)).collect::<Vec<_>>()
        };
        let inputs = run();
        assert_eq!(inputs, run());
        assert!(inputs.iter().all(|input| input.len() <= LARGEST));
        let different: std::collections::BTreeSet<_> = inputs.iter().collect();
        assert!(different.len() > 300, "{} of 1000", different.len());
    }
}
