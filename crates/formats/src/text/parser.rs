//! The parser's hands: it looks at one token, takes it, and says what is wrong with it.
//!
//! What the tokens make up is in `parse` and `operation`.

use isolario_model::Value;

use super::suggest;
use super::token::{Lexer, Slip, Token};
use crate::Problem;

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token not yet taken, and where it begins.
    token: Token<'a>,
    at: usize,
    line: u64,
}

/// Tokens.
impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Slip> {
        let mut lexer = Lexer::new(text);
        let (token, at, line) = lexer.next()?;
        Ok(Parser { lexer, token, at, line })
    }

    /// Takes the token.
    pub(super) fn advance(&mut self) -> Result<Token<'a>, Slip> {
        let (next, at, line) = self.lexer.next()?;
        (self.at, self.line) = (at, line);
        Ok(std::mem::replace(&mut self.token, next))
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
        self.token == Token::Word(word)
    }

    pub(super) fn at_any_word(&self, words: &[&str]) -> bool {
        matches!(self.token, Token::Word(word) if words.contains(&word))
    }

    pub(super) fn at_sign(&self, sign: char) -> bool {
        self.token == Token::Sign(sign)
    }

    /// Takes the token if it is this one.
    pub(super) fn take(&mut self, token: &Token<'_>) -> Result<bool, Slip> {
        let there = self.token == *token;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    pub(super) fn take_sign(&mut self, sign: char) -> Result<bool, Slip> {
        self.take(&Token::Sign(sign))
    }

    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, Slip> {
        self.take(&Token::Word(word))
    }

    pub(super) fn expect_sign(&mut self, sign: char) -> Result<(), Slip> {
        if self.take_sign(sign)? { Ok(()) } else { Err(self.unexpected(format!("`{sign}`"))) }
    }

    pub(super) fn skip_line_ends(&mut self) -> Result<(), Slip> {
        while self.token == Token::EndOfLine {
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn expect_line_end(&mut self, instead_of: &str) -> Result<(), Slip> {
        match self.token {
            Token::EndOfLine => self.advance().map(drop),
            Token::EndOfFile => Ok(()),
            _ => Err(self.unexpected(format!("{instead_of}the end of the line"))),
        }
    }

    /// The token is not what should stand here.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> Slip {
        Slip::new(self.at, Problem::malformed(expected, &self.token))
    }

    /// The token is none of the words that may stand here.
    pub(super) fn unknown_word(&self, expected: impl Into<String>, known: &[&str]) -> Slip {
        match self.token {
            Token::Word(word) => match suggest::nearest(word, known) {
                Some(meant) => {
                    let found = format!("`{word}` (did you mean `{meant}`?)");
                    Slip::new(self.at, Problem::malformed(expected, found))
                }
                None => self.unexpected(expected),
            },
            _ => self.unexpected(expected),
        }
    }
}

/// Values.
impl Parser<'_> {
    pub(super) fn value(&mut self) -> Result<Value, Slip> {
        let value = match &self.token {
            Token::Word("nil") => Value::Nil,
            Token::Word("true") => Value::Bool(true),
            Token::Word("false") => Value::Bool(false),
            Token::Word("null") => {
                return Err(self.unexpected("a value: `nil`, or \"null\" for the text"));
            }
            Token::Word(word) if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                Value::Text((*word).into())
            }
            Token::Word(word) => match (word.parse(), word.parse()) {
                (Ok(int), _) => Value::Int(int),
                (_, Ok(uint)) => Value::Uint(uint),
                _ => {
                    let expected = "a whole number of 64 bits, or the value in \"quotes\"";
                    return Err(self.unexpected(expected));
                }
            },
            Token::Text(text) => Value::Text(text.as_ref().into()),
            Token::Keyword(text) => Value::Keyword(text.as_ref().into()),
            Token::Other(text) => Value::Other(text.as_ref().into()),
            _ => return Err(self.unexpected("a value")),
        };
        self.advance()?;
        Ok(value)
    }

    /// A text in quotes.
    pub(super) fn quoted(&mut self, what: &str) -> Result<String, Slip> {
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
    ) -> Result<(Option<T>, Option<T>), Slip> {
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
    ) -> Result<Option<T>, Slip> {
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
