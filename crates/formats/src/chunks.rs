//! Line-based files, cut at line ends and parsed on all cores.

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use crate::error::{Position, Problem};

/// What is wrong in a file, and where; the caller knows which file. In a box, so that the results
/// of the small functions of a parser stay in registers.
pub(crate) type Fault = Box<(Position, Problem)>;

/// Some whole lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub(crate) bytes: &'a [u8],
    /// The number of its first line, counted from 1.
    pub(crate) first_line: u64,
    /// How many lines it has; a last line without an end counts.
    pub(crate) lines: usize,
}

/// A size that keeps all threads busy to the end, without a table of names for every few lines.
pub(crate) fn good_size(bytes: &[u8]) -> usize {
    const SMALLEST: usize = 1 << 18;
    const LARGEST: usize = 1 << 26;
    const PER_THREAD: usize = 8;
    (bytes.len() / (rayon::current_num_threads() * PER_THREAD)).clamp(SMALLEST, LARGEST)
}

/// Parses chunks of about `size` bytes each, in parallel, and gives the results in file order, or
/// the fault that comes first in the file.
pub(crate) fn parse<'a, T: Send, F: Send>(
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
    let parts = split_at_line_ends(bytes, size);
    let newlines: Vec<usize> =
        parts.par_iter().map(|part| memchr_iter(b'\n', part).count()).collect();
    let mut first_line = 1;
    parts
        .iter()
        .zip(newlines)
        .map(|(part, newlines)| {
            let lines = newlines + usize::from(!part.ends_with(b"\n"));
            let chunk = Chunk { bytes: part, first_line, lines };
            first_line += newlines as u64;
            chunk
        })
        .collect()
}

/// Parts of at least `size` bytes but the last, each with the end of its last line.
fn split_at_line_ends(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let from = size.clamp(1, rest.len()) - 1;
        let end = memchr(b'\n', &rest[from..]).map_or(rest.len(), |newline| from + newline + 1);
        let (part, tail) = rest.split_at(end);
        parts.push(part);
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_lines_with_their_numbers() {
        let text = b"a\n\nbcd\ne\r\nf";
        for size in 0..=text.len() + 1 {
            let lines_of = |chunk: Chunk<'static>| {
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
        let fault = |chunk: Chunk<'_>| -> Result<(), Fault> {
            match chunk.bytes {
                b"good\n" => Ok(()),
                _ => Err(Box::new((Position::Line(chunk.first_line), Problem::Unrecognised))),
            }
        };
        let fault = parse(b"good\nbad\ngood\nbad\n", 1, fault).unwrap_err();
        assert_eq!(fault.0, Position::Line(2));
    }
}
