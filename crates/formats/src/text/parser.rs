//! The parser's hands: it looks at one token, takes it, and says what is wrong with it.
//!
//! What the tokens make up is in `parse` and `operation`.

use std::borrow::Cow;

use isolario_model::{Decimal, Tuple, Value, ValueRef};

use super::token::{Lexer, Token};
use super::words;
use crate::error::Fault;
use crate::predicates::Predicates;

/// A place to go back to.
pub(super) struct Mark<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    at: usize,
    line: u64,
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token not yet taken, and where it begins.
    token: Token<'a>,
    at: usize,
    line: u64,
    predicates: Predicates,
}

/// Tokens.
impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Fault> {
        Parser::from(text, 0, 1)
    }

    /// From the beginning of a line on, with its number.
    pub(super) fn from(text: &'a str, at: usize, line: u64) -> Result<Self, Fault> {
        let mut lexer = Lexer::from(text, at, line);
        let (token, at, line) = lexer.next()?;
        Ok(Parser { lexer, token, at, line, predicates: Predicates::default() })
    }

    /// Takes the token.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<(), Fault> {
        (self.token, self.at, self.line) = self.lexer.next()?;
        Ok(())
    }

    /// Where the text goes on behind the token.
    pub(super) fn mark(&self) -> Mark<'a> {
        Mark { lexer: self.lexer, token: self.token.clone(), at: self.at, line: self.line }
    }

    /// Goes back to where a mark was made.
    pub(super) fn reset(&mut self, mark: Mark<'a>) {
        (self.lexer, self.token, self.at, self.line) = (mark.lexer, mark.token, mark.at, mark.line);
    }

    /// Whether a text in quotes follows the token.
    pub(super) fn quote_follows(&self) -> bool {
        self.lexer.quote_follows()
    }

    /// What stands between the token and the next arrow on its line, and where it begins. The
    /// arrow is the next token.
    pub(super) fn raw_to_arrow(&mut self) -> Result<(usize, &'a str), Fault> {
        self.lexer.raw_to_arrow()
    }

    /// What is known of the predicates met so far.
    pub(super) fn predicates(&mut self) -> &mut Predicates {
        &mut self.predicates
    }

    /// The token not yet taken.
    pub(super) fn token(&self) -> &Token<'a> {
        &self.token
    }

    /// The byte at which the token begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The line on which the token begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found == word)
    }

    pub(super) fn at_any_word(&self, words: &[&str]) -> bool {
        matches!(self.token, Token::Word(word) if words.contains(&word))
    }

    pub(super) fn at_sign(&self, sign: char) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    #[inline]
    pub(super) fn take_sign(&mut self, sign: char) -> Result<bool, Fault> {
        let there = self.at_sign(sign);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    #[inline]
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, Fault> {
        let there = self.at_word(word);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    pub(super) fn take_arrow(&mut self) -> Result<bool, Fault> {
        let there = matches!(self.token, Token::Arrow);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Takes the token if it is a word, of whatever meaning.
    pub(super) fn take_any_word(&mut self, expected: &str) -> Result<&'a str, Fault> {
        let Token::Word(word) = self.token else { return Err(self.unexpected(expected)) };
        self.advance()?;
        Ok(word)
    }

    pub(super) fn expect_sign(&mut self, sign: char) -> Result<(), Fault> {
        if self.take_sign(sign)? { Ok(()) } else { Err(self.unexpected(format!("`{sign}`"))) }
    }

    pub(super) fn skip_line_ends(&mut self) -> Result<(), Fault> {
        while matches!(self.token, Token::EndOfLine) {
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn expect_line_end(&mut self, instead_of: &str) -> Result<(), Fault> {
        match self.token {
            Token::EndOfLine => self.advance(),
            Token::EndOfFile => Ok(()),
            _ => Err(self.unexpected(format!("{instead_of}the end of the line"))),
        }
    }

    /// The token is not what should stand here.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> Fault {
        Fault::malformed(self.at, expected, &self.token)
    }

    /// The token is none of the words that may stand here.
    pub(super) fn unknown_word(&self, expected: impl Into<String>, known: &[&str]) -> Fault {
        match self.token {
            Token::Word(word) => match words::nearest(word, known) {
                Some(meant) => {
                    let found = format!("`{word}` (did you mean `{meant}`?)");
                    Fault::malformed(self.at, expected, found)
                }
                None => self.unexpected(expected),
            },
            _ => self.unexpected(expected),
        }
    }
}

/// A value, borrowed from the text unless there were escapes to undo.
pub(super) enum Datum<'a> {
    Plain(ValueRef<'a>),
    Text(Cow<'a, str>),
    Keyword(Cow<'a, str>),
    Other(Cow<'a, str>),
    Decimal(Decimal),
    Tuple(Tuple),
}

impl Datum<'_> {
    #[inline]
    pub(super) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Datum::Plain(value) => *value,
            Datum::Text(text) => ValueRef::Text(text),
            Datum::Keyword(text) => ValueRef::Keyword(text),
            Datum::Other(text) => ValueRef::Other(text),
            Datum::Decimal(decimal) => ValueRef::Decimal(decimal.as_ref()),
            Datum::Tuple(tuple) => ValueRef::Tuple(tuple.as_ref()),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        self.as_ref().to_owned()
    }
}

/// The value that a word stands for, or what it should have been.
#[inline]
fn value_of_word(word: &str) -> Result<Datum<'_>, &'static str> {
    if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let int = word.parse().map(ValueRef::Int);
        let number = int.or_else(|_| word.parse().map(ValueRef::Uint)).map(Datum::Plain);
        return number.or_else(|_| decimal_of_word(word).ok_or(NO_NUMBER));
    }
    Ok(Datum::Plain(match word {
        "nil" => ValueRef::Nil,
        "true" => ValueRef::Bool(true),
        "false" => ValueRef::Bool(false),
        "null" => return Err("a value: `nil`, or \"null\" for the text"),
        _ if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => ValueRef::Text(word),
        _ => return Err(NO_NUMBER),
    }))
}

/// `1.5`: digits on both sides of a point.
fn decimal_of_word(word: &str) -> Option<Datum<'_>> {
    let (whole, fraction) = word.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_decimal = digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(fraction);
    Decimal::parse(word).filter(|_| is_decimal).map(Datum::Decimal)
}

const NO_NUMBER: &str = "a whole number of 64 bits, a decimal, or the value in \"quotes\"";

/// Values.
impl<'a> Parser<'a> {
    pub(super) fn value(&mut self) -> Result<Datum<'a>, Fault> {
        let value = match &mut self.token {
            Token::Word(word) => match value_of_word(word) {
                Ok(value) => value,
                Err(expected) => return Err(self.unexpected(expected)),
            },
            Token::Text(text) => Datum::Text(std::mem::take(text)),
            Token::Keyword(text) => Datum::Keyword(std::mem::take(text)),
            Token::Other(text) => Datum::Other(std::mem::take(text)),
            Token::Table(table) => {
                let table = std::mem::take(table);
                return self.tuple(&table);
            }
            Token::Sign('(') => return self.tuple(""),
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        Ok(value)
    }

    /// The columns of a tuple, `id=1, open=true)`, behind its opening parenthesis.
    fn tuple(&mut self, table: &str) -> Result<Datum<'a>, Fault> {
        self.advance()?;
        let mut columns: Vec<(String, Value)> = Vec::new();
        loop {
            self.skip_line_ends()?;
            if self.take_sign(')')? {
                return Ok(Datum::Tuple(Tuple::new(table, columns)));
            }
            if !columns.is_empty() {
                self.expect_sign(',')?;
                self.skip_line_ends()?;
            }
            let name = match &self.token {
                Token::Word(word) => (*word).to_owned(),
                Token::Text(text) => text.to_string(),
                _ => return Err(self.unexpected("a column and its value, or `)`")),
            };
            self.advance()?;
            self.expect_sign('=')?;
            if matches!(self.token, Token::Table(_) | Token::Sign('(')) {
                return Err(self.unexpected("a value that is no row itself"));
            }
            columns.push((name, self.value()?.to_value()));
        }
    }

    /// A text in quotes.
    pub(super) fn quoted(&mut self, what: &str) -> Result<String, Fault> {
        match &self.token {
            Token::Text(text) => {
                let text = text.to_string();
                self.advance()?;
                Ok(text)
            }
            _ => Err(self.unexpected(format!("{what} in \"quotes\""))),
        }
    }

    /// `[a, b]`, where `?` stands for what is not known.
    pub(super) fn interval<T>(
        &mut self,
        what: &str,
        decode: fn(&str) -> Option<T>,
    ) -> Result<(Option<T>, Option<T>), Fault> {
        self.expect_sign('[')?;
        let first = self.interval_end(what, decode)?;
        self.expect_sign(',')?;
        let second = self.interval_end(what, decode)?;
        self.expect_sign(']')?;
        Ok((first, second))
    }

    fn interval_end<T>(
        &mut self,
        what: &str,
        decode: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        if self.take_sign('?')? {
            return Ok(None);
        }
        let decoded = match self.token {
            Token::Word(word) => decode(word),
            _ => None,
        };
        let Some(decoded) = decoded else {
            return Err(self.unexpected(format!("{what}, or `?`")));
        };
        self.advance()?;
        Ok(Some(decoded))
    }
}
