//! A reader of JSON into the same flat form as EDN, with the byte of every value.
//!
//! It keeps its own stack, so that no input can exhaust the thread's.

use super::edn::MAX_DEPTH;
use super::form::{Fault, Form, Item, Shape};
use super::quoted;

/// Reads the value that begins at or after a byte. Gives `false` where the input ends first.
pub(super) fn read<'a>(input: &'a str, at: &mut usize, form: &mut Form<'a>) -> Result<bool, Fault> {
    form.clear();
    *at = skip_blanks(input, *at);
    if *at == input.len() {
        return Ok(false);
    }
    let mut reader = Reader { input, at: *at, form, stack: Vec::new() };
    let found = reader.value();
    *at = reader.at;
    found.map(|()| true)
}

pub(super) fn skip_blanks(input: &str, at: usize) -> usize {
    let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let rest = &input.as_bytes()[at..];
    at + rest.iter().position(|b| !blank(b)).unwrap_or(rest.len())
}

struct Reader<'a, 'f> {
    input: &'a str,
    at: usize,
    form: &'f mut Form<'a>,
    /// The nodes of the open arrays and objects.
    stack: Vec<(usize, Shape)>,
}

impl<'a> Reader<'a, '_> {
    fn value(&mut self) -> Result<(), Fault> {
        let mut just_opened = false;
        loop {
            self.at = skip_blanks(self.input, self.at);
            let complete = if just_opened && self.try_close() {
                true
            } else {
                if let Some((_, Shape::Map)) = self.stack.last() {
                    self.key()?;
                }
                self.begin_value()?
            };
            just_opened = !complete;
            if complete && self.finish_collections()? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar or an opening bracket; whether the value is complete.
    fn begin_value(&mut self) -> Result<bool, Fault> {
        match self.input.as_bytes().get(self.at) {
            Some(b'[') => self.open(Shape::Vector),
            Some(b'{') => self.open(Shape::Map),
            Some(b'"') => {
                self.at = quoted::read(self.input, self.at, self.form)?;
                Ok(true)
            }
            Some(_) => self.scalar(),
            None => Err(self.unclosed()),
        }
    }

    fn open(&mut self, shape: Shape) -> Result<bool, Fault> {
        if self.stack.len() >= MAX_DEPTH {
            let expected = format!("values nested at most {MAX_DEPTH} deep");
            return Err(Fault::here(self.input, self.at, expected));
        }
        self.stack.push((self.form.len(), shape));
        self.form.push(self.at, Item::Open(shape, 0));
        self.at += 1;
        Ok(false)
    }

    /// A key of an object and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        match self.input.as_bytes().get(self.at) {
            Some(b'"') => self.at = quoted::read(self.input, self.at, self.form)?,
            Some(_) => return Err(Fault::here(self.input, self.at, "a field's name in quotes")),
            None => return Err(self.unclosed()),
        }
        self.at = skip_blanks(self.input, self.at);
        match self.input.as_bytes().get(self.at) {
            Some(b':') => self.at = skip_blanks(self.input, self.at + 1),
            Some(_) => return Err(Fault::here(self.input, self.at, "':'")),
            None => return Err(self.unclosed()),
        }
        Ok(())
    }

    /// After a complete value: a comma, or closing brackets. Whether the outermost value is
    /// complete.
    fn finish_collections(&mut self) -> Result<bool, Fault> {
        loop {
            let Some((_, shape)) = self.stack.last() else { return Ok(true) };
            let close = shape.close();
            self.at = skip_blanks(self.input, self.at);
            if self.try_close() {
                continue;
            }
            return match self.input.as_bytes().get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    Ok(false)
                }
                Some(_) => Err(Fault::here(self.input, self.at, format!("',' or '{close}'"))),
                None => Err(self.unclosed()),
            };
        }
    }

    fn try_close(&mut self) -> bool {
        match (self.stack.last(), self.input[self.at..].chars().next()) {
            (Some((node, shape)), Some(found)) if shape.close() == found => {
                self.form.close(*node);
                self.stack.pop();
                self.at += 1;
                true
            }
            _ => false,
        }
    }

    fn unclosed(&self) -> Fault {
        let (at, close) = match self.stack.last() {
            Some((node, shape)) => (self.form.at(*node), format!("a closing '{}'", shape.close())),
            None => (self.at, "a value".to_owned()),
        };
        Fault::new(at, close, "the end of the input")
    }

    fn scalar(&mut self) -> Result<bool, Fault> {
        let rest = &self.input[self.at..];
        let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        let token = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let item = match token {
            "null" => Item::Nil,
            "true" => Item::Bool(true),
            "false" => Item::Bool(false),
            "" => return Err(Fault::here(self.input, self.at, "a value")),
            _ => number(token).ok_or_else(|| Fault::new(self.at, "a value", token))?,
        };
        self.form.push(self.at, item);
        self.at += token.len();
        Ok(true)
    }
}

/// Whole numbers of 64 bits; other numbers are kept as their text.
fn number(token: &str) -> Option<Item<'_>> {
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let whole_len = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(whole_len);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    if rest.is_empty() {
        let small = token.parse().map(Item::Int).ok();
        return Some(
            small.or_else(|| token.parse().map(Item::Uint).ok()).unwrap_or(Item::Other(token)),
        );
    }
    is_fraction_and_exponent(rest).then_some(Item::Other(token))
}

/// `.5`, `e10`, `.5E-3`.
fn is_fraction_and_exponent(rest: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (fraction, exponent) = match rest.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (rest, None),
    };
    (fraction.is_empty() || fraction.strip_prefix('.').is_some_and(digits))
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}
