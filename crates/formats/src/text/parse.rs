//! The language itself: header, sessions and transactions.

use std::collections::HashMap;

use isolario_model::{Clock, Initial, Meta, Outcome, Stamp, TxnEnd, TxnSink, TxnStart, Value};

use super::parser::{Datum, Parser};
use super::token::Token;
use super::words::{DIRECTIVES, FACTS, OPERATIONS};
use crate::error::Fault;

/// What stands before the colon of a transaction.
#[derive(Default)]
struct Facts<'a> {
    name: Option<Datum<'a>>,
    outcome: Option<Outcome>,
    times: Option<(Option<i64>, Option<i64>)>,
    stamps: Option<(Option<Stamp>, Option<Stamp>)>,
    snapshot: Option<String>,
    error: Option<String>,
}

/// The lines of the transactions that have names.
pub(super) type LinesOfNames = HashMap<Value, u64>;

/// Reads a whole text into a sink, from its first line to its last.
pub(super) fn parse(text: &str, sink: &mut dyn TxnSink) -> Result<(), Fault> {
    let mut parser = Parser::new(text)?;
    sink.meta(&parser.header()?).map_err(|error| Fault::new(0, error))?;
    parser.statements(usize::MAX, &mut None, Some(&mut LinesOfNames::new()), sink)
}

/// Whether a text begins as one in this language: with a header line, or with a session whose
/// first transaction begins with an operation. Prose does neither.
pub(super) fn recognise(text: &str) -> bool {
    let begins_well = || -> Result<bool, Fault> {
        let mut parser = Parser::new(text)?;
        parser.skip_line_ends()?;
        if parser.at_word("session") {
            while parser.at_word("session") {
                parser.session()?;
                parser.skip_line_ends()?;
            }
            parser.facts()?;
            return Ok(parser.at_any_word(OPERATIONS));
        }
        let header = parser.at_any_word(DIRECTIVES);
        parser.header()?;
        Ok(header)
    };
    begins_well().unwrap_or(false)
}

/// Structure.
impl<'a> Parser<'a> {
    /// Reads sessions and transactions up to the first that begins at `until` or later. That a
    /// name comes twice is noticed only with the lines of the names.
    pub(super) fn statements(
        &mut self,
        until: usize,
        session: &mut Option<Value>,
        mut lines_of_names: Option<&mut LinesOfNames>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), Fault> {
        while !matches!(self.token(), Token::EndOfFile) && self.at() < until {
            if self.at_word("session") {
                *session = Some(self.session()?);
            } else if self.at_any_word(DIRECTIVES) {
                return Err(self.unexpected("`initial` and `clock` before the first session, once"));
            } else {
                let Some(session) = session else {
                    return Err(self.unexpected("`session` and its name"));
                };
                self.txn(session, lines_of_names.as_deref_mut(), sink)?;
            }
            self.skip_line_ends()?;
        }
        Ok(())
    }

    pub(super) fn header(&mut self) -> Result<Meta, Fault> {
        let (mut initial, mut clock) = (None, None);
        self.skip_line_ends()?;
        loop {
            if initial.is_none() && self.take_word("initial")? {
                initial = Some(self.initial()?);
            } else if clock.is_none() && self.take_word("clock")? {
                clock = Some(self.clock()?);
            } else {
                break;
            }
            self.expect_line_end("")?;
            self.skip_line_ends()?;
        }
        let defaults = Meta::default();
        Ok(Meta {
            initial: initial.unwrap_or(defaults.initial),
            clock: clock.unwrap_or(defaults.clock),
        })
    }

    fn initial(&mut self) -> Result<Initial, Fault> {
        match *self.token() {
            Token::Word("unwritten") => self.advance().map(|()| Initial::Unwritten),
            Token::Word("none") => self.advance().map(|()| Initial::None),
            // A bare word here is more likely a fault than a text that every key holds.
            Token::Word(word)
                if word.starts_with(char::is_alphabetic)
                    && !["nil", "true", "false"].contains(&word) =>
            {
                let expected = "a value (texts in \"quotes\"), `unwritten` or `none`";
                Err(self.unknown_word(expected, &["unwritten", "none"]))
            }
            _ => {
                let value = self.value()?.to_value();
                if !self.take_word("unless")? {
                    return Ok(Initial::Value(value));
                }
                if !self.take_word("written")? {
                    return Err(self.unexpected("`unless written`"));
                }
                Ok(Initial::UnlessWritten(value))
            }
        }
    }

    fn clock(&mut self) -> Result<Clock, Fault> {
        let clock = match *self.token() {
            Token::Word("ns") => Clock::Nanoseconds,
            Token::Word("order") => Clock::EventOrder,
            _ => return Err(self.unknown_word("`ns` or `order`", &["ns", "order"])),
        };
        self.advance()?;
        Ok(clock)
    }

    pub(super) fn session(&mut self) -> Result<Value, Fault> {
        self.advance()?;
        let name = self.value()?.to_value();
        self.expect_line_end("")?;
        Ok(name)
    }

    fn txn(
        &mut self,
        session: &Value,
        lines_of_names: Option<&mut LinesOfNames>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), Fault> {
        let (at, line) = (self.at(), self.line());
        let facts = self.facts()?;
        if let Some(name) = &facts.name
            && let Some(lines) = lines_of_names
            && let Some(earlier) = lines.insert(name.to_value(), line)
        {
            let found = format!("`{}`, as on line {earlier}", name.as_ref());
            return Err(Fault::malformed(at, "a name of its own, or `_`", found));
        }
        let id = facts.name.as_ref().map(Datum::as_ref);
        let refused = |error| Fault::new(at, error);
        let start = TxnStart { session: session.as_ref(), id, line: Some(line) };
        sink.begin(&start).map_err(refused)?;
        if !matches!(self.token(), Token::EndOfLine | Token::EndOfFile) {
            self.operation(sink)?;
            while self.take_sign(',')? {
                self.skip_line_ends()?;
                self.operation(sink)?;
            }
        }
        self.expect_line_end("`,` or ")?;
        sink.end(&facts.end()).map_err(refused)
    }

    /// What stands before the colon, and the colon.
    fn facts(&mut self) -> Result<Facts<'a>, Fault> {
        let mut facts = Facts::default();
        if !self.take_word("_")? {
            facts.name = Some(self.value()?);
        }
        while !self.take_sign(':')? {
            self.fact(&mut facts)?;
        }
        Ok(facts)
    }

    fn fact(&mut self, facts: &mut Facts<'_>) -> Result<(), Fault> {
        let outcome = match *self.token() {
            Token::Word("committed") => Some(Outcome::Committed),
            Token::Word("aborted") => Some(Outcome::Aborted),
            Token::Word("unknown") => Some(Outcome::Unknown),
            _ => None,
        };
        if outcome.is_some() && facts.outcome.is_none() {
            facts.outcome = outcome;
            self.advance()
        } else if facts.times.is_none() && self.at_sign('[') {
            facts.times = Some(self.interval("a time", |word| word.parse().ok())?);
            Ok(())
        } else if facts.stamps.is_none() && self.take_word("db")? {
            facts.stamps = Some(self.interval("a timestamp", decode_stamp)?);
            Ok(())
        } else if facts.snapshot.is_none() && self.take_word("snapshot")? {
            facts.snapshot = Some(self.quoted("the snapshot")?);
            Ok(())
        } else if facts.error.is_none() && self.take_word("error")? {
            facts.error = Some(self.quoted("the error")?);
            Ok(())
        } else {
            let expected = "`:`, an outcome, [start, finish], `db`, `snapshot` or `error`, once";
            Err(self.unknown_word(expected, FACTS))
        }
    }
}

fn decode_stamp(word: &str) -> Option<Stamp> {
    let (physical, logical) = word.split_once('.').unwrap_or((word, "0"));
    Some(Stamp { physical: physical.parse().ok()?, logical: logical.parse().ok()? })
}

impl Facts<'_> {
    fn end(&self) -> TxnEnd<'_> {
        let (start, finish) = self.times.unwrap_or_default();
        let (db_start, db_commit) = self.stamps.unwrap_or_default();
        TxnEnd {
            outcome: self.outcome.unwrap_or(Outcome::Committed),
            start,
            finish,
            db_start,
            db_commit,
            snapshot: self.snapshot.as_deref(),
            error: self.error.as_deref(),
        }
    }
}
