//! Parts of a file that are read at the same time.
//!
//! A part begins where a line begins with a map or a tag. Whether an entry begins there, too, only those can
//! tell who have read all that is before. So each part is read as if one did. Where all parts can be
//! read to their ends, each of them begins where the one before it has ended, and the first one
//! begins with the file: then it was true. Where one cannot, the file is read in one piece, which
//! also says what is wrong with it.

use memchr::memchr_iter;
use rayon::prelude::*;

use super::stream::Syntax;
use crate::notation::Values;

/// A part of an input.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// The input up to the end of the part: places in it are places in the whole.
    pub(super) input: &'a str,
    /// Where the part begins.
    pub(super) start: usize,
    /// The line on which it does, counted from 1.
    pub(super) line: u64,
}

impl<'a> Part<'a> {
    pub(super) fn whole(input: &'a str) -> Part<'a> {
        Part { input, start: 0, line: 1 }
    }
}

/// The bytes of a part: enough that what two parts have to tell each other is little beside it.
pub(super) const PART_LEN: usize = 4 << 20;

/// The input in parts of about this length.
pub(super) fn cut(input: &str, syntax: Syntax, len: usize) -> Vec<Part<'_>> {
    let is_short = input.len() < 2 * len;
    if is_short || syntax == Syntax::Log || Values::new(input, syntax.notation()).are_wrapped() {
        return vec![Part::whole(input)];
    }
    let bytes = input.as_bytes();
    let mut starts = vec![0];
    let mut from = len;
    while from < bytes.len() {
        let mut begins = memchr_iter(b'\n', &bytes[from..]).map(|newline| from + newline + 1);
        let Some(start) = begins.find(|at| matches!(bytes.get(*at), Some(b'{' | b'#'))) else {
            break;
        };
        starts.push(start);
        from = start + len;
    }
    let ends = starts.iter().copied().skip(1).chain([input.len()]);
    let ranges: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    let newlines =
        |(start, end): &(usize, usize)| memchr_iter(b'\n', &bytes[*start..*end]).count() as u64;
    let counts: Vec<u64> = ranges.par_iter().map(newlines).collect();
    let mut line = 1;
    let part = |((start, end), count): ((usize, usize), u64)| {
        let part = Part { input: &input[..end], start, line };
        line += count;
        part
    };
    ranges.into_iter().zip(counts).map(part).collect()
}
