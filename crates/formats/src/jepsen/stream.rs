//! The entries of a file, one after the other, whatever they are written in.

use super::event::Event;
use super::form::{Fault, Form, Notation};
use super::{edn, json, log};

/// What a file of entries is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Maps in EDN.
    Edn,
    /// Objects in JSON.
    Json,
    /// Lines of a log.
    Log,
}

impl Syntax {
    pub(super) fn notation(self) -> Notation {
        match self {
            Syntax::Edn | Syntax::Log => Notation::Edn,
            Syntax::Json => Notation::Json,
        }
    }

    /// Reads the entry that begins at a byte, or the next one after it.
    fn read<'a>(
        self,
        input: &'a str,
        at: &mut usize,
        form: &mut Form<'a>,
    ) -> Result<Option<Event>, Fault> {
        let found = match self {
            Syntax::Edn => edn::read(input, at, form)?,
            Syntax::Json => json::read(input, at, form)?,
            Syntax::Log => return log::read(input, at, form),
        };
        if found { Event::from_map(form).map(Some) } else { Ok(None) }
    }

    /// The bracket that opens at the start of the input around all entries, and the one that
    /// closes it.
    fn brackets(self, input: &str, at: usize) -> Option<(usize, char)> {
        let (at, closing) = match self {
            Syntax::Edn => (edn::skip_blanks(input, at), &[(b'[', ']'), (b'(', ')')][..]),
            Syntax::Json => (json::skip_blanks(input, at), &[(b'[', ']')][..]),
            Syntax::Log => return None,
        };
        let opening = input.as_bytes().get(at)?;
        closing.iter().find(|(open, _)| open == opening).map(|(_, close)| (at, *close))
    }
}

/// Whether a closing bracket is still due.
#[derive(Clone, Copy)]
enum Wrapping {
    None,
    Open { at: usize, close: char },
    Closed,
}

/// Walks the entries of an input.
pub(super) struct Events<'a> {
    pub(super) input: &'a str,
    pub(super) syntax: Syntax,
    at: usize,
    wrapping: Wrapping,
    /// The line of a byte that was passed already: lines are counted once.
    counted: (usize, u64),
    entries: u64,
}

impl<'a> Events<'a> {
    pub(super) fn new(input: &'a str, syntax: Syntax) -> Self {
        let (at, wrapping) = match syntax.brackets(input, 0) {
            Some((at, close)) => (at + 1, Wrapping::Open { at, close }),
            None => (0, Wrapping::None),
        };
        Events { input, syntax, at, wrapping, counted: (0, 1), entries: 0 }
    }

    /// The next entry; its parts are in the form.
    pub(super) fn next(&mut self, form: &mut Form<'a>) -> Result<Option<Event>, Fault> {
        if let Wrapping::Closed = self.wrapping {
            return self.expect_end();
        }
        if self.syntax == Syntax::Json
            && let Wrapping::Open { .. } = self.wrapping
            && !self.json_separator()?
        {
            return self.end(form);
        }
        let Some(mut event) = self.syntax.read(self.input, &mut self.at, form)? else {
            return self.end(form);
        };
        event.line = self.line_of(event.at);
        self.entries += 1;
        Ok(Some(event))
    }

    /// Reads again the entry that begins at a byte, into another form.
    pub(super) fn reread(&self, at: usize, form: &mut Form<'a>) -> Result<Event, Fault> {
        let mut from = at;
        let entry = self.syntax.read(self.input, &mut from, form)?;
        entry.ok_or_else(|| Fault::here(self.input, at, "an operation"))
    }

    /// Within a JSON array: passes the comma before an element; `false` at the closing bracket.
    fn json_separator(&mut self) -> Result<bool, Fault> {
        self.at = json::skip_blanks(self.input, self.at);
        match self.input.as_bytes().get(self.at) {
            None | Some(b']') => Ok(false),
            Some(b',') if self.entries > 0 => {
                self.at = json::skip_blanks(self.input, self.at + 1);
                match self.input.as_bytes().get(self.at) {
                    Some(b']') => Err(Fault::here(self.input, self.at, "an operation")),
                    _ => Ok(true),
                }
            }
            Some(_) if self.entries == 0 => Ok(true),
            Some(_) => Err(Fault::here(self.input, self.at, "',' or ']'")),
        }
    }

    /// No entry follows: passes the closing bracket if one is due.
    fn end(&mut self, form: &mut Form<'a>) -> Result<Option<Event>, Fault> {
        let rest = self.input[self.at..].chars().next();
        match (self.wrapping, rest) {
            (Wrapping::Open { at, close }, None) => {
                Err(Fault::new(at, format!("a closing '{close}'"), "the end of the input"))
            }
            (Wrapping::Open { close, .. }, Some(found)) if found == close => {
                self.at += 1;
                self.wrapping = Wrapping::Closed;
                self.next(form)
            }
            (_, None) => Ok(None),
            (_, Some(_)) => Err(Fault::here(self.input, self.at, "an operation")),
        }
    }

    fn expect_end(&mut self) -> Result<Option<Event>, Fault> {
        self.at = match self.syntax {
            Syntax::Json => json::skip_blanks(self.input, self.at),
            Syntax::Edn | Syntax::Log => edn::skip_blanks(self.input, self.at),
        };
        if self.at == self.input.len() {
            return Ok(None);
        }
        Err(Fault::here(self.input, self.at, "nothing after the closing bracket"))
    }

    fn line_of(&mut self, at: usize) -> u64 {
        let (from, line) = self.counted;
        let passed = &self.input.as_bytes()[from..at];
        let line = line + memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = (at, line);
        line
    }
}
