//! Operations on registers and lists; those on rows are in `predicate`.

use isolario_model::{Op, OpInput, TxnSink, ValueRef};

use super::parser::{Datum, Parser};
use super::predicate::Send;
use super::token::Token;
use super::words::{OPERATIONS, RESULTS};
use crate::error::Fault;

/// How a conditional write ended: whether it took effect, and what it saw.
type Ending<'a> = (Option<bool>, Option<Datum<'a>>);

impl<'a> Parser<'a> {
    /// Parses one operation and passes it on.
    pub(super) fn operation(&mut self, sink: &mut dyn TxnSink) -> Result<(), Fault> {
        let at = self.at();
        let mut send = |op: &OpInput<'_>| sink.op(op).map_err(|error| Fault::new(at, error));
        match self.operation_word()? {
            "r" => {
                let key = self.value()?;
                self.read(key.as_ref(), &mut send)
            }
            "w" => {
                let (key, value) = (self.value()?, self.value()?);
                send(&Op::Write { key: key.as_ref(), value: value.as_ref() })
            }
            "delete" => send(&Op::Delete { key: self.value()?.as_ref() }),
            "append" => {
                let (key, element) = (self.value()?, self.value()?);
                send(&Op::Append { key: key.as_ref(), element: element.as_ref() })
            }
            "insert" => {
                let (key, value) = (self.value()?, self.value()?);
                let (applied, seen) = self.ending()?;
                let seen = seen.as_ref().map(Datum::as_ref);
                let (key, value) = (key.as_ref(), value.as_ref());
                send(&Op::InsertIfAbsent { key, value, applied, seen })
            }
            "cas" => {
                let (key, expected) = (self.value()?, self.value()?);
                self.expect_arrow()?;
                let new = self.value()?;
                let (applied, seen) = self.ending()?;
                let seen = seen.as_ref().map(Datum::as_ref);
                let (key, expected, new) = (key.as_ref(), expected.as_ref(), new.as_ref());
                send(&Op::CompareAndSet { key, expected, new, applied, seen })
            }
            "aggregate" => self.aggregate_operation(&mut send),
            word => self.rows_operation(word, &mut send),
        }
    }

    fn operation_word(&mut self) -> Result<&'static str, Fault> {
        let known = match *self.token() {
            Token::Word(word) => OPERATIONS.iter().find(|known| **known == word).copied(),
            _ => None,
        };
        let Some(word) = known else {
            let expected = format!("an operation ({})", OPERATIONS.join(", "));
            return Err(self.unknown_word(expected, OPERATIONS));
        };
        // What follows the others is SQL, and no token of ours.
        if !matches!(word, "select" | "update" | "aggregate") {
            self.advance()?;
        }
        Ok(word)
    }

    /// The answer of a read says what was read: `[…]` is a list, anything else a register.
    fn read(&mut self, key: ValueRef<'_>, send: Send<'_>) -> Result<(), Fault> {
        if !self.at_sign('[') {
            let value = self.observed(Self::value)?;
            return send(&Op::Read { key, value: value.as_ref().map(Datum::as_ref) });
        }
        let elements = self.list()?;
        let elements: Option<Vec<_>> =
            elements.as_ref().map(|elements| elements.iter().map(Datum::as_ref).collect());
        send(&Op::ReadList { key, elements: elements.as_deref() })
    }

    /// What a client saw, or `?` where it never got an answer.
    pub(super) fn observed<T>(
        &mut self,
        answer: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        if self.take_sign('?')? { Ok(None) } else { answer(self).map(Some) }
    }

    /// `[1 2 3]`, with or without commas; `[?]` where the client never got an answer.
    fn list(&mut self) -> Result<Option<Vec<Datum<'a>>>, Fault> {
        self.expect_sign('[')?;
        if self.take_sign('?')? {
            self.expect_sign(']')?;
            return Ok(None);
        }
        let mut elements = Vec::new();
        loop {
            self.skip_line_ends()?;
            if self.take_sign(']')? {
                return Ok(Some(elements));
            }
            elements.push(self.value()?);
            self.take_sign(',')?;
        }
    }

    fn expect_arrow(&mut self) -> Result<(), Fault> {
        let expected = "`->` and the new value";
        if self.take_arrow()? { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// `ok`, `failed` or `?`, then perhaps `saw` and a value.
    fn ending(&mut self) -> Result<Ending<'a>, Fault> {
        let applied = if self.take_word("ok")? {
            Some(true)
        } else if self.take_word("failed")? {
            Some(false)
        } else if self.take_sign('?')? {
            None
        } else {
            return Err(self.unknown_word("`ok`, `failed` or `?`", RESULTS));
        };
        let seen = if self.take_word("saw")? { Some(self.value()?) } else { None };
        Ok((applied, seen))
    }
}
