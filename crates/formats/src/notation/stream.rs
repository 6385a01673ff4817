//! The values of a text, one after the other, whether or not there is a bracket around them all.

use super::form::{Form, Notation};
use super::{edn, json};
use crate::error::Fault;

/// Whether a closing bracket is still due.
#[derive(Clone, Copy)]
enum Wrapping {
    None,
    Open { at: usize, close: char },
    Closed,
}

/// Walks the values of a text, so that a large one needs no tree of everything in it.
pub(crate) struct Values<'a> {
    input: &'a str,
    notation: Notation,
    at: usize,
    wrapping: Wrapping,
    is_first: bool,
}

impl<'a> Values<'a> {
    /// The values one after the other, or those of the sequence that they all are in.
    pub(crate) fn new(input: &'a str, notation: Notation) -> Self {
        let at = skip_blanks(input, 0, notation);
        let close = match (input.as_bytes().get(at), notation) {
            (Some(b'['), _) => Some(']'),
            (Some(b'('), Notation::Edn) => Some(')'),
            _ => None,
        };
        let (at, wrapping) = match close {
            Some(close) => (at + 1, Wrapping::Open { at, close }),
            None => (at, Wrapping::None),
        };
        Values { input, notation, at, wrapping, is_first: true }
    }

    /// The values from a byte on, none of which is a sequence of all others.
    pub(crate) fn from(input: &'a str, at: usize, notation: Notation) -> Self {
        Values { input, notation, at, wrapping: Wrapping::None, is_first: true }
    }

    /// The values of a sequence, which there must be.
    pub(crate) fn of_sequence(input: &'a str, notation: Notation) -> Result<Self, Fault> {
        let values = Values::new(input, notation);
        match values.wrapping {
            Wrapping::None => Err(Fault::here(input, values.at, "'[', the beginning of an array")),
            _ => Ok(values),
        }
    }

    /// Whether there is a bracket around them all.
    pub(crate) fn are_wrapped(&self) -> bool {
        !matches!(self.wrapping, Wrapping::None)
    }

    /// Reads the next value into the form; `false` after the last.
    pub(crate) fn next(&mut self, form: &mut Form<'a>) -> Result<bool, Fault> {
        if let Wrapping::Closed = self.wrapping {
            return self.expect_end();
        }
        if self.notation == Notation::Json
            && let Wrapping::Open { .. } = self.wrapping
            && !self.pass_comma()?
        {
            return self.end();
        }
        if !read(self.input, &mut self.at, form, self.notation)? {
            return self.end();
        }
        self.is_first = false;
        Ok(true)
    }

    /// Reads again the value that begins at a byte, into another form.
    pub(crate) fn reread(&self, at: usize, form: &mut Form<'a>) -> Result<bool, Fault> {
        read(self.input, &mut { at }, form, self.notation)
    }

    /// Within a JSON array: passes the comma before an element; `false` at the closing bracket.
    fn pass_comma(&mut self) -> Result<bool, Fault> {
        self.at = json::skip_blanks(self.input, self.at);
        match self.input.as_bytes().get(self.at) {
            None | Some(b']') => Ok(false),
            Some(_) if self.is_first => Ok(true),
            Some(b',') => {
                self.at = json::skip_blanks(self.input, self.at + 1);
                match self.input.as_bytes().get(self.at) {
                    Some(b']') => Err(Fault::here(self.input, self.at, "a value")),
                    _ => Ok(true),
                }
            }
            Some(_) => Err(Fault::here(self.input, self.at, "',' or ']'")),
        }
    }

    /// No value follows: passes the closing bracket if one is due.
    fn end(&mut self) -> Result<bool, Fault> {
        let rest = self.input[self.at..].chars().next();
        match (self.wrapping, rest) {
            (Wrapping::Open { at, close }, None) => {
                let expected = format!("a closing '{close}'");
                Err(Fault::malformed(at, expected, "the end of the input"))
            }
            (Wrapping::Open { close, .. }, Some(found)) if found == close => {
                self.at += 1;
                self.wrapping = Wrapping::Closed;
                self.expect_end()
            }
            (_, None) => Ok(false),
            (_, Some(_)) => Err(Fault::here(self.input, self.at, "a value")),
        }
    }

    fn expect_end(&mut self) -> Result<bool, Fault> {
        self.at = skip_blanks(self.input, self.at, self.notation);
        if self.at == self.input.len() {
            return Ok(false);
        }
        Err(Fault::here(self.input, self.at, "nothing after the closing bracket"))
    }
}

fn skip_blanks(input: &str, at: usize, notation: Notation) -> usize {
    match notation {
        Notation::Edn => edn::skip_blanks(input, at),
        Notation::Json => json::skip_blanks(input, at),
    }
}

fn read<'a>(
    input: &'a str,
    at: &mut usize,
    form: &mut Form<'a>,
    notation: Notation,
) -> Result<bool, Fault> {
    match notation {
        Notation::Edn => edn::read(input, at, form),
        Notation::Json => json::read(input, at, form),
    }
}
