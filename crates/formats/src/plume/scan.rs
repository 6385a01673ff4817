//! The lines of Plume text.

use memchr::memchr;

use crate::decimal::{NotANumber, leading_u64, marks_of, two_numbers};
use crate::error::Fault;
use crate::lines::Chunk;

/// Whose an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) session: u64,
    /// None for -1, which stands for any aborted transaction.
    pub(super) txn: Option<u64>,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) is_write: bool,
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) owner: Owner,
    /// Whether the operation before it in its chunk, if any, has another owner.
    pub(super) begins_run: bool,
    /// The byte of the chunk it begins at, and the number of its line.
    pub(super) at: usize,
    pub(super) number: u64,
}

/// Goes through the operations of a chunk.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
    /// The end of the last operation's line, from the comma before the session on, and what it
    /// says. Operations come in runs of one transaction: where the same bytes stand again, they
    /// mean the same and need not be parsed.
    tail: Tail<'a>,
    owner: Option<Owner>,
}

/// The end of a line, made to be looked for.
#[derive(Clone, Copy)]
struct Tail<'a> {
    bytes: &'a [u8],
    /// Short ones as a number, and which bits of others to compare it with: to call a function that
    /// compares memory would take longer than all of the rest of a line.
    word: u128,
    mask: u128,
}

impl<'a> Tail<'a> {
    /// What is found nowhere.
    const NONE: Tail<'static> = Tail { bytes: &[], word: 1, mask: 0 };

    fn new(bytes: &'a [u8]) -> Self {
        let mut word = [0; 16];
        match word.get_mut(..bytes.len()) {
            None => Tail { bytes, ..Tail::NONE },
            Some(_) if bytes.is_empty() => Tail::NONE,
            Some(place) => {
                place.copy_from_slice(bytes);
                let mask = u128::MAX >> (8 * (word.len() - bytes.len()));
                Tail { bytes, word: u128::from_le_bytes(word), mask }
            }
        }
    }

    /// Whether it stands at the beginning of some bytes.
    #[inline(always)]
    fn begins(&self, bytes: &[u8]) -> bool {
        match bytes.first_chunk() {
            Some(first) if self.mask != 0 => u128::from_le_bytes(*first) & self.mask == self.word,
            _ => !self.bytes.is_empty() && bytes.starts_with(self.bytes),
        }
    }
}

/// The fewest bytes before the tail: `r(0,0`.
const SHORTEST_HEAD: usize = 5;

/// Where the first newline is. It is looked for at hand before others look for it at large.
#[inline(always)]
fn newline(bytes: &[u8]) -> Option<usize> {
    if let Some(first) = bytes.first_chunk() {
        let newlines = marks_of(u128::from_le_bytes(*first), b'\n');
        if newlines != 0 {
            return Some(newlines.trailing_zeros() as usize / 8);
        }
    }
    memchr(b'\n', bytes)
}

/// Whether the first line that is not blank is an operation.
pub(super) fn looks_like_operations(bytes: &[u8]) -> bool {
    // Far longer than any operation with some blank lines before it.
    const ENOUGH: usize = 4096;
    let head = &bytes[..bytes.len().min(ENOUGH)];
    matches!(
        Scanner::new(Chunk { bytes: head, start: 0, first_line: 1, lines: 1 }).next(),
        Ok(Some(_))
    )
}

impl<'a> Scanner<'a> {
    pub(super) fn new(chunk: Chunk<'a>) -> Self {
        Scanner { bytes: chunk.bytes, at: 0, line: chunk.first_line, tail: Tail::NONE, owner: None }
    }

    /// The next operation; none at the end.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<Line>, Fault> {
        let Some(first) = self.skip_blank_lines() else { return Ok(None) };
        let is_write = match first {
            b'w' => true,
            b'r' => false,
            _ => return Err(self.fault("r(key,value,session,txn) or w(key,value,session,txn)")),
        };
        let at = self.at;
        self.at += 1;
        self.expect(b'(', "an opening parenthesis")?;
        let key = self.number("a key: a number from 0 on")?;
        self.expect(b',', "a comma")?;
        let value = self.number("a value: a number from 0 on")?;
        let number = self.line;
        let last = self.owner;
        let (owner, begins_run) = match last {
            Some(owner) if self.repeats_tail() => (owner, false),
            _ => {
                let owner = self.parse_tail()?;
                (owner, last != Some(owner))
            }
        };
        Ok(Some(Line { is_write, key, value, owner, begins_run, at, number }))
    }

    /// The next operation if it is of the run of the one before and like most: with small numbers and
    /// without spaces. None for others, which [`Scanner::next`] reads.
    #[inline(always)]
    pub(super) fn next_of_run(&mut self) -> Option<(bool, u64, u64)> {
        let ([kind, b'('], rest) = self.bytes.get(self.at..)?.split_first_chunk()? else {
            return None;
        };
        let (is_write, is_read) = (*kind == b'w', *kind == b'r');
        let (key, value, len) = two_numbers(*rest.first_chunk()?)?;
        // Without a branch for each kind, of which nobody can guess the next one.
        if !(is_write | is_read) | !self.tail.begins(&rest[len..]) {
            return None;
        }
        self.at += 2 + len + self.tail.bytes.len() - 1;
        self.end_line();
        Some((is_write, key, value))
    }

    /// Goes on to what is not blank; none at the end.
    #[inline]
    fn skip_blank_lines(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => self.end_line(),
                other => return Some(other),
            }
        }
    }

    /// Steps over a tail that was parsed before, if it stands here again.
    #[inline(always)]
    fn repeats_tail(&mut self) -> bool {
        let repeats = self.tail.begins(&self.bytes[self.at..]);
        if repeats {
            self.at += self.tail.bytes.len() - 1;
            self.end_line();
        }
        repeats
    }

    /// Steps over the lines that end as the last one did, whatever else they say, and tells how many
    /// these are.
    pub(super) fn skip_run(&mut self) -> usize {
        let before = self.line;
        let tail = self.tail;
        // What begins as an operation has its newline no earlier, or is none. A blank line has.
        let shortest = SHORTEST_HEAD + tail.bytes.len().saturating_sub(1);
        while self.bytes.get(self.at + 1) == Some(&b'(')
            && let Some(rest) = self.bytes.get(self.at + shortest..)
            && let Some(more) = newline(rest)
            && tail.begins(&self.bytes[self.at + SHORTEST_HEAD + more..])
        {
            self.at += shortest + more;
            self.end_line();
        }
        (self.line - before) as usize
    }

    /// Where it is among the bytes of its chunk, and on which line.
    pub(super) fn place(&self) -> (usize, u64) {
        (self.at, self.line)
    }

    /// The session, the transaction and the end of the line.
    fn parse_tail(&mut self) -> Result<Owner, Fault> {
        let start = self.at;
        self.expect(b',', "a comma")?;
        let session = self.number("a session: a number from 0 on")?;
        self.expect(b',', "a comma")?;
        let txn = self.txn()?;
        self.expect(b')', "a closing parenthesis")?;
        let owner = Owner { session, txn };
        self.owner = Some(owner);
        self.finish_line()?;
        let tail = &self.bytes[start..self.at];
        // Only whole lines: the tail without its newline is also how a bad line may begin.
        self.tail = if tail.ends_with(b"\n") { Tail::new(tail) } else { Tail::NONE };
        Ok(owner)
    }

    /// The transaction; none for -1.
    fn txn(&mut self) -> Result<Option<u64>, Fault> {
        const EXPECTED: &str = "a transaction: a number from 0 on, or -1 for an aborted one";
        self.skip_spaces();
        if self.peek() != Some(b'-') {
            return self.number(EXPECTED).map(Some);
        }
        match leading_u64(&self.bytes[self.at + 1..]) {
            Ok((1, digits)) => self.at += 1 + digits,
            _ => return Err(self.fault(EXPECTED)),
        }
        Ok(None)
    }

    /// A number, after spaces, which are only looked for where there is no number.
    #[inline(always)]
    fn number(&mut self, expected: &str) -> Result<u64, Fault> {
        match leading_u64(&self.bytes[self.at..]) {
            Ok((number, digits)) => {
                self.at += digits;
                Ok(number)
            }
            Err(_) => self.number_after_spaces(expected),
        }
    }

    #[cold]
    fn number_after_spaces(&mut self, expected: &str) -> Result<u64, Fault> {
        self.skip_spaces();
        match leading_u64(&self.bytes[self.at..]) {
            Ok((number, digits)) => {
                self.at += digits;
                Ok(number)
            }
            Err(NotANumber::NoDigit) => Err(self.fault(expected)),
            Err(NotANumber::TooLarge(digits)) => Err(self.too_large(digits)),
        }
    }

    /// A mark, after spaces, which are only looked for where it does not stand at once.
    #[inline(always)]
    fn expect(&mut self, mark: u8, expected: &str) -> Result<(), Fault> {
        if self.peek() != Some(mark) {
            self.expect_after_spaces(mark, expected)?;
        }
        self.at += 1;
        Ok(())
    }

    #[cold]
    fn expect_after_spaces(&mut self, mark: u8, expected: &str) -> Result<(), Fault> {
        self.skip_spaces();
        if self.peek() == Some(mark) { Ok(()) } else { Err(self.fault(expected)) }
    }

    #[inline]
    fn finish_line(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\n') => {
                    self.end_line();
                    return Ok(());
                }
                None => return Ok(()),
                Some(_) => return Err(self.fault("the end of the line")),
            }
        }
    }

    /// Steps over the newline.
    #[inline]
    fn end_line(&mut self) {
        self.at += 1;
        self.line += 1;
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The rest of the line is not what was expected.
    #[cold]
    fn fault(&self, expected: &str) -> Fault {
        let rest = self.bytes[self.at..].split(|b| *b == b'\n').next().unwrap_or_default();
        match rest.trim_ascii_end() {
            [] => Fault::malformed(self.at, expected, "the end of the line"),
            rest => Fault::malformed(self.at, expected, String::from_utf8_lossy(rest)),
        }
    }

    #[cold]
    fn too_large(&self, digits: usize) -> Fault {
        let found = String::from_utf8_lossy(&self.bytes[self.at..self.at + digits]);
        let expected = format!("a number up to {}", u64::MAX);
        Fault::malformed(self.at, expected, found)
    }
}
