//! The lines of a text format, with their numbers.

use memchr::memchr;

use crate::chunks::Chunk;

/// Lines without their ends (`\n` or `\r\n`), each with its number, counted from 1.
///
/// A byte order mark at the beginning, which some editors leave, belongs to no line.
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Lines::of(Chunk { bytes, first_line: 1, lines: 0 })
    }

    /// The lines of a part of a file.
    pub(crate) fn of(chunk: Chunk<'a>) -> Self {
        let mark = if chunk.first_line == 1 { &b"\xef\xbb\xbf"[..] } else { &[] };
        let rest = chunk.bytes.strip_prefix(mark).unwrap_or(chunk.bytes);
        Lines { rest, number: chunk.first_line - 1 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        self.number += 1;
        Some((self.number, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_and_a_byte_order_mark_belong_to_no_line() {
        let lines: Vec<_> = Lines::new(b"\xef\xbb\xbfa\r\n\nb").collect();
        assert_eq!(lines, [(1, &b"a"[..]), (2, b""), (3, b"b")]);
        assert_eq!(Lines::new(b"a\n").count(), 1);
        assert_eq!(Lines::new(b"").count(), 0);
    }
}
