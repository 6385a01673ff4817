//! A reader of EDN, the notation of Clojure's data, as far as histories use it.
//!
//! It keeps its own stack, so that no input can exhaust the thread's.

use super::form::{Form, Item, Shape};
use super::{MAX_DEPTH, quoted, whole_number};
use crate::error::Fault;

/// Which bytes end a token. Most bytes of a history are looked up here.
static ENDS_TOKEN: [bool; 256] = {
    let ends = b" \t\r\n,\x0c;\"()[]{}";
    let mut table = [false; 256];
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = true;
        at += 1;
    }
    table
};

/// What waits for a value.
enum Frame {
    /// A collection: its node, its shape and how many values it has.
    Open(usize, Shape, usize),
    /// A tag, by its byte.
    Tag(usize),
    /// `#_`, which drops the next value: its byte, and the length of the form before it.
    Discard(usize, usize),
}

/// Reads the next value from a byte on. Gives `false`, and leaves `at` there, where the input ends
/// or a bracket closes that was not opened here.
pub(crate) fn read<'a>(input: &'a str, at: &mut usize, form: &mut Form<'a>) -> Result<bool, Fault> {
    form.clear();
    let mut reader = Reader { input, at: *at, form, stack: Vec::new() };
    let found = reader.value();
    *at = reader.at;
    found
}

/// Reads all values from a byte on to the end of the input, as one vector.
pub(crate) fn read_sequence<'a>(
    input: &'a str,
    at: usize,
    form: &mut Form<'a>,
) -> Result<(), Fault> {
    form.clear();
    form.push(at, Item::Open(Shape::Vector, 0));
    let mut reader = Reader { input, at, form, stack: Vec::new() };
    while reader.value()? {}
    if reader.at < input.len() {
        return Err(Fault::here(input, reader.at, "a value"));
    }
    form.close(0);
    Ok(())
}

/// The first byte from `at` on that is neither white space nor in a comment.
pub(super) fn skip_blanks(input: &str, mut at: usize) -> usize {
    let bytes = input.as_bytes();
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b'\x0c') => at += 1,
            Some(b';') => {
                at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
            }
            _ => return at,
        }
    }
}

struct Reader<'a, 'f> {
    input: &'a str,
    at: usize,
    form: &'f mut Form<'a>,
    stack: Vec<Frame>,
}

impl<'a> Reader<'a, '_> {
    fn value(&mut self) -> Result<bool, Fault> {
        loop {
            self.at = skip_blanks(self.input, self.at);
            let at = self.at;
            let complete = match self.input.as_bytes().get(at) {
                None | Some(b')' | b']' | b'}') if self.stack.is_empty() => return Ok(false),
                None => return Err(self.unclosed()),
                Some(b'(') => self.open(Shape::List, 1)?,
                Some(b'[') => match self.numbers() {
                    true => true,
                    false => self.open(Shape::Vector, 1)?,
                },
                Some(b'{') => self.open(Shape::Map, 1)?,
                Some(close @ (b')' | b']' | b'}')) => self.close(char::from(*close))?,
                Some(b'"') => {
                    self.at = quoted::read(self.input, at, self.form)?;
                    true
                }
                Some(b'#') => self.dispatch()?,
                Some(b'\\') => self.character()?,
                Some(b'0'..=b'9')
                    if let Some((number, end)) = natural(self.input.as_bytes(), at) =>
                {
                    self.form.push(at, Item::Int(number));
                    self.at = end;
                    true
                }
                Some(_) => self.atom()?,
            };
            if complete && self.hand_over() {
                return Ok(true);
            }
        }
    }

    /// Hands a complete value to what waits for it; whether it was the value asked for.
    fn hand_over(&mut self) -> bool {
        loop {
            match self.stack.last_mut() {
                None => return true,
                Some(Frame::Open(_, _, count)) => {
                    *count += 1;
                    return false;
                }
                Some(Frame::Tag(_)) => {
                    self.stack.pop();
                }
                Some(Frame::Discard(_, len)) => {
                    self.form.truncate(*len);
                    self.stack.pop();
                    return false;
                }
            }
        }
    }

    fn push(&mut self, frame: Frame) -> Result<(), Fault> {
        if self.stack.len() >= MAX_DEPTH {
            let expected = format!("values nested at most {MAX_DEPTH} deep");
            return Err(Fault::here(self.input, self.at, expected));
        }
        self.stack.push(frame);
        Ok(())
    }

    fn open(&mut self, shape: Shape, bracket_len: usize) -> Result<bool, Fault> {
        self.push(Frame::Open(self.form.len(), shape, 0))?;
        self.form.push(self.at, Item::Open(shape, 0));
        self.at += bracket_len;
        Ok(false)
    }

    /// Reads a vector of natural numbers, what most bytes of a history of lists are. False, and
    /// nothing is read, if it is anything else.
    fn numbers(&mut self) -> bool {
        let (node, begin) = (self.form.len(), self.at);
        // Operations are [function key value]; only there a list need not be looked into.
        let is_value = matches!(self.stack.last(), Some(Frame::Open(_, Shape::Vector, 2)));
        let skims = self.form.skims && is_value;
        self.form.push(begin, Item::Open(Shape::Vector, 0));
        let bytes = self.input.as_bytes();
        let (mut at, mut count) = (begin + 1, 0);
        loop {
            match bytes.get(at) {
                Some(b' ' | b',') => at += 1,
                Some(b'0'..=b'9') => {
                    let Some((number, end)) = natural(bytes, at) else { break };
                    if !skims || count < SKIMMED {
                        self.form.push(at, Item::Int(number));
                    }
                    count += 1;
                    at = end;
                }
                Some(b']') => {
                    if skims && count >= SKIMMED {
                        self.form.truncate(node + 1);
                    }
                    self.form.close(node);
                    self.at = at + 1;
                    return true;
                }
                _ => break,
            }
        }
        self.form.truncate(node);
        false
    }

    fn close(&mut self, bracket: char) -> Result<bool, Fault> {
        match self.stack.last() {
            Some(Frame::Open(node, shape, count)) if shape.close() == bracket => {
                if *shape == Shape::Map && count % 2 == 1 {
                    return Err(Fault::here(self.input, self.at, "a value for the last key"));
                }
                self.form.close(*node);
                self.stack.pop();
                self.at += 1;
                Ok(true)
            }
            Some(Frame::Open(_, shape, _)) => {
                Err(Fault::here(self.input, self.at, format!("a value or '{}'", shape.close())))
            }
            _ => Err(Fault::here(self.input, self.at, "a value")),
        }
    }

    /// The input ended too early: says what was open, and where.
    fn unclosed(&self) -> Fault {
        let (at, expected) = match self.stack.last() {
            Some(Frame::Open(node, shape, _)) => {
                (self.form.at(*node), format!("a closing '{}'", shape.close()))
            }
            Some(Frame::Tag(at) | Frame::Discard(at, _)) => (*at, "a value after it".to_owned()),
            None => (self.at, "a value".to_owned()),
        };
        Fault::malformed(at, expected, "the end of the input")
    }

    /// What begins with `#`: sets, tags, discarded values, and `##Inf`.
    fn dispatch(&mut self) -> Result<bool, Fault> {
        let at = self.at;
        match self.input.as_bytes().get(at + 1) {
            Some(b'{') => self.open(Shape::Set, 2),
            Some(b'_') => {
                self.push(Frame::Discard(at, self.form.len()))?;
                self.at += 2;
                Ok(false)
            }
            Some(b'#') => {
                let token = self.token(at + 2);
                self.form.push(at, Item::Other(&self.input[at..at + 2 + token.len()]));
                self.at = at + 2 + token.len();
                Ok(true)
            }
            Some(b) if b.is_ascii_alphabetic() => {
                self.push(Frame::Tag(at))?;
                let tag = self.token(at + 1);
                self.form.push(at, Item::Tag(tag));
                self.at += 1 + tag.len();
                Ok(false)
            }
            _ => Err(Fault::here(self.input, at + 1, "a tag, a set or a discarded value after #")),
        }
    }

    /// `\a`, `\newline`, `\{`.
    fn character(&mut self) -> Result<bool, Fault> {
        let at = self.at;
        let first = self.input[at + 1..].chars().next();
        let Some(first) = first.filter(|c| !c.is_whitespace()) else {
            return Err(Fault::here(self.input, at + 1, "a character"));
        };
        let after = at + 1 + first.len_utf8();
        let end = if first.is_alphanumeric() { after + self.token(after).len() } else { after };
        self.form.push(at, Item::Other(&self.input[at..end]));
        self.at = end;
        Ok(true)
    }

    /// The bytes from `at` up to the next white space or bracket.
    #[inline]
    fn token(&self, at: usize) -> &'a str {
        let rest = &self.input.as_bytes()[at..];
        let len = rest.iter().position(|b| ENDS_TOKEN[usize::from(*b)]).unwrap_or(rest.len());
        &self.input[at..at + len]
    }

    /// Keywords, numbers and symbols.
    fn atom(&mut self) -> Result<bool, Fault> {
        let token = self.token(self.at);
        let item = match token.strip_prefix(':') {
            Some("") => return Err(Fault::here(self.input, self.at + 1, "a keyword's name")),
            Some(name) => Item::Keyword(name),
            None if looks_numeric(token) => {
                number(token).ok_or_else(|| Fault::malformed(self.at, "a number", token))?
            }
            None => match token {
                "nil" => Item::Nil,
                "true" => Item::Bool(true),
                "false" => Item::Bool(false),
                _ => Item::Other(token),
            },
        };
        self.form.push(self.at, item);
        self.at += token.len();
        Ok(true)
    }
}

/// So many numbers make a vector long enough to be skimmed: no operation has values of so many
/// parts.
const SKIMMED: usize = 4;

/// The natural number at a byte, and where it ends. None if it may have more than 64 bits, is not
/// written as EDN wants it, or is part of something else.
#[inline]
fn natural(bytes: &[u8], begin: usize) -> Option<(i64, usize)> {
    let (mut at, mut number) = (begin, 0i64);
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        at += 1;
    }
    let is_short = at - begin <= 18 && (bytes[begin] != b'0' || at == begin + 1);
    let ends = bytes.get(at).is_none_or(|end| ENDS_TOKEN[usize::from(*end)]);
    (is_short && ends).then_some((number, at))
}

fn looks_numeric(token: &str) -> bool {
    match token.as_bytes() {
        [b'+' | b'-', first, ..] | [first, ..] => first.is_ascii_digit(),
        [] => false,
    }
}

/// Whole numbers of 64 bits; other numbers are kept as their text.
fn number(token: &str) -> Option<Item<'_>> {
    let unsigned = token.strip_prefix(['+', '-']).unwrap_or(token);
    let whole = unsigned.strip_suffix('N').unwrap_or(unsigned);
    if whole.bytes().all(|b| b.is_ascii_digit()) {
        if whole.len() > 1 && whole.starts_with('0') {
            return None;
        }
        let signed = token.strip_suffix('N').unwrap_or(token);
        return Some(whole_number(signed).unwrap_or(Item::Other(token)));
    }
    let ratio = unsigned.split_once('/');
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let real = ratio.is_some_and(|(n, d)| digits(n) && digits(d))
        || unsigned.strip_suffix('M').unwrap_or(unsigned).parse::<f64>().is_ok();
    real.then_some(Item::Other(token))
}
