//! Bytes that a page can hold: small numbers are short, and the whole is compressed.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Integers up to here are exact in JavaScript.
const LARGEST_INT: i64 = 1 << 53;

/// A growing row of numbers and texts.
#[derive(Default)]
pub(super) struct Pack {
    bytes: Vec<u8>,
}

impl Pack {
    /// A number, in seven bits per byte, lowest first; the last byte has its highest bit clear.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number of either sign: small ones of both signs are short.
    pub(super) fn signed(&mut self, number: i64) {
        self.number(zigzag(number));
    }

    /// A text: its length in bytes, and the bytes.
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// An integer (even: its zigzag, doubled) or a text (odd: its length, doubled, plus one).
    pub(super) fn either(&mut self, int: Option<i64>, text: impl FnOnce() -> String) {
        match int.filter(|int| int.unsigned_abs() < LARGEST_INT as u64) {
            Some(int) => self.number(zigzag(int) << 1),
            None => {
                let text = text();
                self.number((text.len() as u64) << 1 | 1);
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Compressed, as letters that mean nothing to HTML.
    pub(super) fn letters(&self) -> io::Result<String> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(7));
        encoder.write_all(&self.bytes)?;
        Ok(base64(&encoder.finish()?))
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Bytes as letters, by RFC 4648.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_standard() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, letters) in cases {
            assert_eq!(base64(bytes.as_bytes()), letters);
        }
    }

    #[test]
    fn small_numbers_of_both_signs_are_short() {
        let mut pack = Pack::default();
        pack.number(300);
        pack.signed(-1);
        pack.signed(2);
        assert_eq!(pack.bytes, [0xac, 2, 1, 4]);
        assert_eq!((zigzag(i64::MIN), zigzag(i64::MAX)), (u64::MAX, u64::MAX - 1));
    }

    #[test]
    fn integers_that_scripts_cannot_hold_are_texts() {
        let mut pack = Pack::default();
        pack.either(Some(3), String::new);
        pack.either(Some(i64::MAX), || "9".to_owned());
        pack.either(None, || "ab".to_owned());
        assert_eq!(pack.bytes, [12, 3, b'9', 5, b'a', b'b']);
    }
}
