//! The lines of a text format, with their numbers and places; and files of many lines, cut at line
//! ends and parsed on all cores.

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

/// Some whole lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it begins in the file.
    pub(crate) start: usize,
    /// The number of its first line, counted from 1.
    pub(crate) first_line: u64,
    /// How many lines it has; a last line without an end counts.
    pub(crate) lines: usize,
}

/// A size that keeps all threads busy to the end, without a table of names for every few lines.
pub(crate) fn good_chunk_size(bytes: &[u8]) -> usize {
    const SMALLEST: usize = 1 << 18;
    const LARGEST: usize = 1 << 26;
    const PER_THREAD: usize = 8;
    (bytes.len() / (rayon::current_num_threads() * PER_THREAD)).clamp(SMALLEST, LARGEST)
}

/// Parses chunks of about `size` bytes each, in parallel, and gives the results in file order, or
/// the fault that comes first in the file.
pub(crate) fn parse_chunks<'a, T: Send, F: Send>(
    bytes: &'a [u8],
    size: usize,
    parse: impl Fn(Chunk<'a>) -> Result<T, F> + Send + Sync,
) -> Result<Vec<T>, F> {
    // All are parsed before the first fault is picked: a thread must not decide which it is.
    let parsed: Vec<Result<T, F>> = cut(bytes, size).into_par_iter().map(parse).collect();
    parsed.into_iter().collect()
}

/// Chunks of about `size` bytes each.
///
/// Lines are counted before anything is parsed, so that every chunk knows its line numbers. That
/// reads the file twice, which costs little: counting runs at the speed of memory.
pub(crate) fn cut(bytes: &[u8], size: usize) -> Vec<Chunk<'_>> {
    let parts: Vec<&[u8]> = split_at_line_ends(bytes, size).collect();
    let newlines: Vec<usize> =
        parts.par_iter().map(|part| memchr_iter(b'\n', part).count()).collect();
    let (mut start, mut first_line) = (0, 1);
    parts
        .iter()
        .zip(newlines)
        .map(|(part, newlines)| {
            let lines = newlines + usize::from(!part.ends_with(b"\n"));
            let chunk = Chunk { bytes: part, start, first_line, lines };
            start += part.len();
            first_line += newlines as u64;
            chunk
        })
        .collect()
}

/// Parts of at least `size` bytes but the last, each with the end of its last line.
pub(crate) fn split_at_line_ends(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let from = size.clamp(1, rest.len().max(1)) - 1;
        let end = memchr(b'\n', rest.get(from..)?).map_or(rest.len(), |newline| from + newline + 1);
        rest.split_off(..end).filter(|part| !part.is_empty())
    })
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Where in its text it begins and ends.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Lines without their ends (`\n` or `\r\n`).
///
/// A byte order mark at the beginning, which some editors leave, belongs to no line.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    number: u64,
}

impl<'a> Lines<'a> {
    /// The lines of a text that begins with the line of this number.
    pub(crate) fn new(text: &'a [u8], first_line: u64) -> Self {
        let has_mark = first_line == 1 && text.starts_with("\u{feff}".as_bytes());
        Lines { text, at: if has_mark { 3 } else { 0 }, number: first_line - 1 }
    }

    /// The lines that are neither blank nor comments, which begin with `#` or `//`.
    pub(crate) fn significant(self) -> impl Iterator<Item = Line> + use<'a> {
        let text = self.text;
        self.filter(move |line| {
            let line = text[line.start..line.end].trim_ascii_start();
            !(line.is_empty() || line.starts_with(b"#") || line.starts_with(b"//"))
        })
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let len = memchr(b'\n', rest).unwrap_or(rest.len());
        let start = self.at;
        self.at += len + 1;
        self.number += 1;
        let end = start + rest[..len].strip_suffix(b"\r").map_or(len, <[u8]>::len);
        Some(Line { number: self.number, start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_and_a_byte_order_mark_belong_to_no_line() {
        let text = "\u{feff}a\r\n\nb";
        let lines: Vec<_> =
            Lines::new(text.as_bytes(), 1).map(|l| (l.number, &text[l.start..l.end])).collect();
        assert_eq!(lines, [(1, "a"), (2, ""), (3, "b")]);
        assert_eq!(Lines::new(b"a\n", 1).count(), 1);
        assert_eq!(Lines::new(b"", 1).count(), 0);
        assert_eq!(Lines::new(b" \n# x\n\t//\n y", 5).significant().next().unwrap().number, 8);
    }

    #[test]
    fn chunks_are_whole_lines_with_their_numbers() {
        let text = b"a\n\nbcd\ne\r\nf";
        for size in 0..=text.len() + 1 {
            let lines_of = |chunk: Chunk<'static>| {
                assert_eq!(text[chunk.start..][..chunk.bytes.len()], *chunk.bytes);
                let lines: Vec<_> = chunk.bytes.split_inclusive(|b| *b == b'\n').collect();
                assert_eq!(lines.len(), chunk.lines);
                lines.into_iter().zip(chunk.first_line..).collect::<Vec<_>>()
            };
            let lines = cut(text, size).into_iter().map(lines_of).collect::<Vec<_>>().concat();
            let expected: [(&[u8], u64); 5] =
                [(b"a\n", 1), (b"\n", 2), (b"bcd\n", 3), (b"e\r\n", 4), (b"f", 5)];
            assert_eq!(lines, expected, "size {size}");
        }
    }

    #[test]
    fn the_first_fault_of_the_file_wins() {
        let parse = |chunk: Chunk<'_>| match chunk.bytes {
            b"good\n" => Ok(()),
            _ => Err(chunk.first_line),
        };
        assert_eq!(parse_chunks(b"good\nbad\ngood\nbad\n", 1, parse), Err(2));
    }
}
