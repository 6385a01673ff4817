//! A JSON array of any size, one element at a time.

use serde::de::Deserialize;

use crate::error::Position;
use crate::fault::Fault;
use crate::json_text::{json_fault, show_byte};

/// The elements of an array, parsed one at a time, so that a large file needs no tree of
/// everything in it.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    /// The line of `at`, counted from 1, and where it begins.
    line: u64,
    line_start: usize,
    is_first: bool,
    is_done: bool,
}

impl<'a> Elements<'a> {
    /// The elements of a text that is one array.
    pub(crate) fn of_array(text: &'a [u8]) -> Result<Self, Fault> {
        let (is_first, is_done) = (true, false);
        let mut elements = Elements { text, at: 0, line: 1, line_start: 0, is_first, is_done };
        elements.skip_space();
        match elements.peek() {
            Some(b'[') => elements.advance(1),
            _ => return Err(elements.unexpected("`[`, the beginning of an array")),
        }
        Ok(elements)
    }

    /// The next element, its line and its place.
    pub(crate) fn next<T: Deserialize<'a>>(&mut self) -> Result<Option<(T, u64, Position)>, Fault> {
        if self.is_done || !self.find_element()? {
            return Ok(None);
        }
        let (line, position) = (self.line, self.position());
        let rest = &self.text[self.at..];
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<T>();
        match stream.next() {
            Some(Ok(element)) => {
                let len = stream.byte_offset();
                self.advance(len);
                Ok(Some((element, line, position)))
            }
            Some(Err(error)) => Err(json_fault(&error, line, self.column(), rest)),
            None => Err(self.unexpected("an element")),
        }
    }

    /// Goes to the beginning of the next element, or past the end of the array and of the file.
    fn find_element(&mut self) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b']') => {
                self.advance(1);
                self.skip_space();
                self.is_done = true;
                match self.peek() {
                    None => Ok(false),
                    Some(_) => Err(self.unexpected("the end of the file after the array")),
                }
            }
            Some(_) if self.is_first => {
                self.is_first = false;
                Ok(true)
            }
            Some(b',') => {
                self.advance(1);
                self.skip_space();
                Ok(true)
            }
            _ if self.is_first => Err(self.unexpected("an element or `]`")),
            _ => Err(self.unexpected("`,` or `]`")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|byte| !is_space(byte)).unwrap_or(rest.len());
        self.advance(len);
    }

    fn advance(&mut self, len: usize) {
        for newline in memchr::memchr_iter(b'\n', &self.text[self.at..self.at + len]) {
            self.line += 1;
            self.line_start = self.at + newline + 1;
        }
        self.at += len;
    }

    fn column(&self) -> u64 {
        (self.at - self.line_start) as u64 + 1
    }

    fn position(&self) -> Position {
        Position::Column(self.line, self.column())
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = self.peek().map_or("the end of the file".to_owned(), show_byte);
        Fault::malformed(self.position(), expected, found)
    }
}
