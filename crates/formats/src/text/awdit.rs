//! The form of AWDIT's tests: `r key value` and `w key value` lines, dashes between transactions,
//! equals signs between sessions, no initial state.

use isolario_model::{Clock, Initial, Meta, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};

use crate::Problem;
use crate::error::Fault;

#[derive(Clone, Copy)]
enum Line<'a> {
    Nothing,
    Operation { write: bool, key: ValueRef<'a>, value: ValueRef<'a> },
    EndOfTxn,
    EndOfSession,
}

/// Whether the first line that says anything is in this form.
pub(super) fn recognise(text: &str) -> bool {
    let first = text.lines().find(|line| !content(line).is_empty());
    first.is_some_and(|line| parse_line(line).is_ok())
}

/// Reads a whole text into a sink.
pub(super) fn parse(text: &str, sink: &mut dyn TxnSink) -> Result<(), Fault> {
    let meta = Meta { initial: Initial::None, clock: Clock::Nanoseconds };
    let mut reader = Reader { sink, session: 0, open: false };
    reader.sink.meta(&meta).map_err(|error| Fault::new(0, error))?;
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let parsed = parse_line(line).map_err(|fault| fault.shifted(at))?;
        reader.line(parsed, index as u64 + 1).map_err(|problem| Fault::new(at, problem))?;
        at += line.len();
    }
    reader.end("the end of the file").map_err(|problem| Fault::new(at, problem))
}

struct Reader<'s> {
    sink: &'s mut dyn TxnSink,
    session: i64,
    /// Whether a transaction has begun.
    open: bool,
}

impl Reader<'_> {
    fn line(&mut self, line: Line<'_>, number: u64) -> Result<(), Problem> {
        match line {
            Line::Nothing => Ok(()),
            Line::EndOfTxn => self.end("a line of dashes"),
            Line::EndOfSession => {
                self.end("a line of equals signs")?;
                self.session += 1;
                Ok(())
            }
            Line::Operation { write, key, value } => {
                if !self.open {
                    self.open = true;
                    let session = ValueRef::Int(self.session);
                    self.sink.begin(&TxnStart { session, id: None, line: Some(number) })?;
                }
                let op = if write {
                    Op::Write { key, value }
                } else {
                    Op::Read { key, value: Some(value) }
                };
                Ok(self.sink.op(&op)?)
            }
        }
    }

    fn end(&mut self, found: &str) -> Result<(), Problem> {
        if !self.open {
            return Err(Problem::malformed("an operation: `r key value` or `w key value`", found));
        }
        self.open = false;
        Ok(self.sink.end(&TxnEnd::new(Outcome::Committed))?)
    }
}

/// The line without its comment and the blanks around it.
fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim()
}

/// Slips are counted from the beginning of the line.
fn parse_line(line: &str) -> Result<Line<'_>, Fault> {
    let is_rule = |sign: char| {
        let content = content(line);
        content.len() >= 3 && content.chars().all(|c| c == sign)
    };
    match content(line) {
        "" => Ok(Line::Nothing),
        _ if is_rule('-') => Ok(Line::EndOfTxn),
        _ if is_rule('=') => Ok(Line::EndOfSession),
        _ => parse_operation(line),
    }
}

fn parse_operation(line: &str) -> Result<Line<'_>, Fault> {
    let mut words = Words { text: line.split('#').next().unwrap_or("").trim_end(), at: 0 };
    let write = words.next("`r`, `w`, a line of dashes or of equals signs", |word| match word {
        "r" => Some(false),
        "w" => Some(true),
        _ => None,
    })?;
    let key = words.next("a key, a whole number", number)?;
    let value = words.next("a value, a whole number", number)?;
    words.next("the end of the line", |word| word.is_empty().then_some(()))?;
    Ok(Line::Operation { write, key, value })
}

/// The words of a line, one after the other; empty ones at its end.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn next<T>(
        &mut self,
        expected: &str,
        decode: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, Fault> {
        let start = self.text.len() - self.text[self.at..].trim_start().len();
        let word = self.text[start..].split(char::is_whitespace).next().unwrap_or("");
        self.at = start + word.len();
        decode(word).ok_or_else(|| {
            let found = if word.is_empty() { "the end of the line" } else { word };
            Fault::malformed(start, expected, found)
        })
    }
}

fn number(word: &str) -> Option<ValueRef<'_>> {
    let signed = word.parse::<i64>().map(ValueRef::from);
    signed.or_else(|_| word.parse::<u64>().map(ValueRef::from)).ok()
}
