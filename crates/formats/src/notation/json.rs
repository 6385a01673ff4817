//! A reader of JSON. It keeps its own stack, so that no input can exhaust the thread's.

use super::form::{Form, Item, Shape};
use super::{MAX_DEPTH, quoted};
use crate::decimal::{leading_u64, push_u64};
use crate::error::Fault;

/// Reads the value that begins at or after a byte. Gives `false` where the input ends first.
pub(crate) fn read<'a>(input: &'a str, at: &mut usize, form: &mut Form<'a>) -> Result<bool, Fault> {
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

/// Reads the one value between a byte and the end of the input.
pub(crate) fn read_only<'a>(input: &'a str, at: usize, form: &mut Form<'a>) -> Result<(), Fault> {
    let mut end = at;
    if !read(input, &mut end, form)? {
        return Err(Fault::here(input, end, "a value"));
    }
    match skip_blanks(input, end) {
        end if end == input.len() => Ok(()),
        more => Err(Fault::here(input, more, "nothing after the value")),
    }
}

/// The first byte from `at` on that is not white space.
#[inline]
pub(super) fn skip_blanks(input: &str, mut at: usize) -> usize {
    let bytes = input.as_bytes();
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = bytes.get(at) {
        at += 1;
    }
    at
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
            self.skip_blanks();
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

    #[inline]
    fn skip_blanks(&mut self) {
        self.at = skip_blanks(self.input, self.at);
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.input.as_bytes().get(self.at).copied()
    }

    /// Reads a scalar or an opening bracket; whether the value is complete.
    #[inline]
    fn begin_value(&mut self) -> Result<bool, Fault> {
        match self.peek() {
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
        match self.peek() {
            Some(b'"') => self.at = quoted::read(self.input, self.at, self.form)?,
            Some(_) => return Err(Fault::here(self.input, self.at, "a field's name in quotes")),
            None => return Err(self.unclosed()),
        }
        self.skip_blanks();
        match self.peek() {
            Some(b':') => self.at += 1,
            Some(_) => return Err(Fault::here(self.input, self.at, "':'")),
            None => return Err(self.unclosed()),
        }
        self.skip_blanks();
        Ok(())
    }

    /// After a complete value: a comma, or closing brackets. Whether the outermost value is
    /// complete.
    #[inline]
    fn finish_collections(&mut self) -> Result<bool, Fault> {
        loop {
            let Some((_, shape)) = self.stack.last() else { return Ok(true) };
            let close = shape.close();
            self.skip_blanks();
            if self.try_close() {
                continue;
            }
            return match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    Ok(false)
                }
                Some(_) => Err(Fault::here(self.input, self.at, format!("',' or '{close}'"))),
                None => Err(self.unclosed()),
            };
        }
    }

    #[inline]
    fn try_close(&mut self) -> bool {
        match (self.stack.last(), self.peek()) {
            (Some((node, shape)), Some(found)) if shape.close() == char::from(found) => {
                self.form.close(*node);
                self.stack.pop();
                self.at += 1;
                true
            }
            _ => false,
        }
    }

    fn unclosed(&self) -> Fault {
        match self.stack.last() {
            Some((node, shape)) => {
                let expected = format!("a closing '{}'", shape.close());
                Fault::malformed(self.form.at(*node), expected, "the end of the input")
            }
            None => Fault::here(self.input, self.at, "a value"),
        }
    }

    /// Nearly all scalars are whole numbers without a sign, which need no second look.
    #[inline]
    fn scalar(&mut self) -> Result<bool, Fault> {
        let rest = &self.input.as_bytes()[self.at..];
        match leading_u64(rest) {
            Ok((number, len))
                if (rest[0] != b'0' || len == 1)
                    && matches!(rest.get(len), None | Some(b',' | b']' | b'}' | b' ')) =>
            {
                let item = i64::try_from(number).map_or(Item::Uint(number), Item::Int);
                self.form.push(self.at, item);
                self.at += len;
                Ok(true)
            }
            _ => self.rarer_scalar(),
        }
    }

    fn rarer_scalar(&mut self) -> Result<bool, Fault> {
        let rest = &self.input[self.at..];
        let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        let token = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let item = match token {
            "null" => Item::Nil,
            "true" => Item::Bool(true),
            "false" => Item::Bool(false),
            "" => return Err(Fault::here(self.input, self.at, "a value")),
            _ => number(token).ok_or_else(|| Fault::malformed(self.at, "a value", token))?,
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
        return Some(super::whole_number(token).unwrap_or(Item::Other(token)));
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

/// Appends the elements of an array, with brackets around them and commas between.
pub(crate) fn push_array<T, E>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T) -> Result<(), E>,
) -> Result<(), E> {
    out.push(b'[');
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        push(out, item)?;
    }
    out.push(b']');
    Ok(())
}

/// Appends a text in quotes.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    quoted::write(text, |piece| out.extend_from_slice(piece.as_bytes()));
}

/// Appends a whole number.
#[inline]
pub(crate) fn push_int(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_u64(out, number.unsigned_abs());
}
