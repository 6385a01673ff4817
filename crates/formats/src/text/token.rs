//! Tokens: the words and signs of the language.

use std::borrow::Cow;
use std::fmt;

use crate::error::Fault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a number: letters, digits, `_`, `-`, `.` and `/`.
    Word(&'a str),
    /// `"…"`
    Text(Cow<'a, str>),
    /// `:word` or `:"…"`
    Keyword(Cow<'a, str>),
    /// `` `…` ``
    Other(Cow<'a, str>),
    /// A name and the parenthesis that touches it: the key of a row begins.
    Table(Cow<'a, str>),
    /// One of `:`, `,`, `[`, `]`, `{`, `}`, `(`, `)`, `=`, `@`, `?`.
    Sign(char),
    /// `->`
    Arrow,
    EndOfLine,
    EndOfFile,
}

/// As error messages show it.
impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Keyword(text) => write!(f, "the keyword `:{text}`"),
            Token::Other(text) => write!(f, "`{text}` in backquotes"),
            Token::Table(table) => write!(f, "`{table}(`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::Arrow => f.write_str("`->`"),
            Token::EndOfLine => f.write_str("the end of the line"),
            Token::EndOfFile => f.write_str("the end of the file"),
        }
    }
}

pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// Cuts a text into tokens.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl<'a> Lexer<'a> {
    /// From the beginning of a line on, with its number.
    pub(super) fn from(text: &'a str, at: usize, line: u64) -> Self {
        Lexer { text, at, line }
    }

    /// The next token, the byte and the line it begins at.
    #[inline]
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize, u64), Fault> {
        self.skip_blanks();
        let (start, line) = (self.at, self.line);
        let token = match self.text.as_bytes().get(start) {
            None => Token::EndOfFile,
            Some(b'\n') => {
                self.line += 1;
                self.sign(Token::EndOfLine, 1)
            }
            Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.word_or_table(),
            Some(b',') => self.sign(Token::Sign(','), 1),
            Some(_) => self.rarer_token()?,
        };
        Ok((token, start, line))
    }

    /// A token that begins with another character.
    fn rarer_token(&mut self) -> Result<Token<'a>, Fault> {
        let mut chars = self.text[self.at..].chars();
        Ok(match (chars.next(), chars.next()) {
            (None, _) => Token::EndOfFile,
            (Some('-'), Some('>')) => self.sign(Token::Arrow, 2),
            (Some('"'), _) => {
                let text = self.quoted('"')?;
                if self.take_parenthesis() { Token::Table(text) } else { Token::Text(text) }
            }
            (Some('`'), _) => Token::Other(self.quoted('`')?),
            (Some(':'), Some(next)) if self.keyword_may_begin() && is_word_char(next) => {
                self.at += 1;
                Token::Keyword(self.word().into())
            }
            (Some(':'), Some('"')) if self.keyword_may_begin() => {
                self.at += 1;
                Token::Keyword(self.quoted('"')?)
            }
            (Some(sign @ (':' | ',' | '[' | ']' | '{' | '}' | '(' | ')' | '=' | '@' | '?')), _) => {
                self.sign(Token::Sign(sign), 1)
            }
            (Some(c), _) if is_word_char(c) => self.word_or_table(),
            (Some(c), _) => {
                let expected = "a word, a number or a sign";
                return Err(Fault::malformed(self.at, expected, format_args!("{c:?}")));
            }
        })
    }

    #[inline]
    fn word_or_table(&mut self) -> Token<'a> {
        let word = self.word();
        if self.take_parenthesis() { Token::Table(word.into()) } else { Token::Word(word) }
    }

    #[inline]
    fn take_parenthesis(&mut self) -> bool {
        let is_there = self.text.as_bytes().get(self.at) == Some(&b'(');
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn quote_follows(&self) -> bool {
        self.text[self.at..].trim_start_matches([' ', '\t']).starts_with('"')
    }

    /// What stands before the next arrow on the line that is in no quotes, and where it begins.
    pub(super) fn raw_to_arrow(&mut self) -> Result<(usize, &'a str), Fault> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let mut quote = None;
        for (at, byte) in rest.bytes().enumerate() {
            match (byte, quote) {
                (b'\n', _) => break,
                (b'\'' | b'"', None) => quote = Some(byte),
                (_, Some(open)) if byte == open => quote = None,
                (b'-', None) if rest[at..].starts_with("->") => {
                    self.at = start + at;
                    return Ok((start, rest[..at].trim_end()));
                }
                _ => {}
            }
        }
        let expected = "a predicate, `->` and what came back, on one line";
        let line = rest.lines().next().unwrap_or("");
        Err(Fault::malformed(start, expected, if line.is_empty() { "nothing" } else { line }))
    }

    fn sign(&mut self, token: Token<'a>, len: usize) -> Token<'a> {
        self.at += len;
        token
    }

    #[inline]
    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        if bytes.get(self.at) == Some(&b'#') {
            self.at += memchr::memchr(b'\n', &bytes[self.at..]).unwrap_or(bytes.len() - self.at);
        }
    }

    /// A colon makes a keyword where a value may begin, and never where it touches what stands
    /// before it: `T1:r x 0` and `{k:1}` read as people mean them.
    fn keyword_may_begin(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '[' | '{' | '(' | '=' | ':'))
    }

    #[inline]
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        // Almost all words are of these; the first other byte may still be part of one.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut len = rest.bytes().take_while(|byte| plain(byte)).count();
        if !matches!(rest.as_bytes().get(len), None | Some(b' ' | b',' | b'\n' | b':' | b']')) {
            len += rest_of_word(&rest[len..]);
        }
        self.at += len;
        &rest[..len]
    }

    /// What stands between two quotes on one line. Borrows unless there are escapes.
    fn quoted(&mut self, quote: char) -> Result<Cow<'a, str>, Fault> {
        let open = self.at;
        let start = open + quote.len_utf8();
        let mut unescaped: Option<String> = None;
        let mut chars = self.text[start..].char_indices();
        while let Some((at, c)) = chars.next() {
            let at = start + at;
            match c {
                '\n' => break,
                '\\' => {
                    let so_far = unescaped.get_or_insert_with(|| self.text[start..at].to_owned());
                    let (c, len) = unescape(&self.text[at..]).ok_or_else(|| bad_escape(at))?;
                    so_far.push(c);
                    // The backslash itself is already taken.
                    chars.by_ref().take(len - 1).for_each(drop);
                }
                c if c == quote => {
                    self.at = at + quote.len_utf8();
                    return Ok(match unescaped {
                        Some(text) => text.into(),
                        None => self.text[start..at].into(),
                    });
                }
                c => {
                    if let Some(so_far) = &mut unescaped {
                        so_far.push(c);
                    }
                }
            }
        }
        let expected = format!("a closing {quote} on the same line");
        Err(Fault::malformed(open, expected, "none"))
    }
}

/// How far a word goes on that may hold any characters of words.
fn rest_of_word(rest: &str) -> usize {
    let ends = |(at, c): (usize, char)| !is_word_char(c) || rest[at..].starts_with("->");
    rest.char_indices().find(|c| ends(*c)).map_or(rest.len(), |(at, _)| at)
}

fn bad_escape(at: usize) -> Fault {
    let forms = r#"one of \\, \", \`, \n, \r, \t and \u{hexadecimal} after a backslash"#;
    Fault::malformed(at, forms, "something else")
}

/// The character an escape stands for, and the number of characters of the escape.
fn unescape(text: &str) -> Option<(char, usize)> {
    let c = match text.chars().nth(1)? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        c @ ('\\' | '"' | '`') => c,
        'u' => {
            let (digits, _) = text.strip_prefix("\\u{")?.split_once('}')?;
            let well_formed = (1..=6).contains(&digits.len())
                && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).ok().filter(|_| well_formed)?;
            return Some((char::from_u32(code)?, digits.len() + "\\u{}".len()));
        }
        _ => return None,
    };
    Some((c, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::from(text, 0, 1);
        let next = || match lexer.next().unwrap() {
            (Token::EndOfFile, ..) => None,
            (token, ..) => Some(token),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn colons_and_arrows_need_no_spaces() {
        use Token::{Arrow, Keyword, Sign, Word};
        assert_eq!(tokens("T1:r"), [Word("T1"), Sign(':'), Word("r")]);
        assert_eq!(tokens(":a :b"), [Keyword("a".into()), Keyword("b".into())]);
        assert_eq!(tokens(":a: r"), [Keyword("a".into()), Sign(':'), Word("r")]);
        assert_eq!(tokens("k::v"), [Word("k"), Sign(':'), Keyword("v".into())]);
        assert_eq!(tokens("1->-2"), [Word("1"), Arrow, Word("-2")]);
        assert_eq!(tokens("a-b->c"), [Word("a-b"), Arrow, Word("c")]);
    }

    #[test]
    fn quotes_hold_anything() {
        let text = r#""a # b" "\"\\\n\u{1F600}" `[1 "x"]` :"k 1" "#;
        assert_eq!(
            tokens(text),
            [
                Token::Text("a # b".into()),
                Token::Text("\"\\\n😀".into()),
                Token::Other("[1 \"x\"]".into()),
                Token::Keyword("k 1".into()),
            ]
        );
    }

    #[test]
    fn bad_quotes_are_faults_where_they_stand() {
        for (text, at) in
            [("x \"a\nb\"", 2), ("\"a\\x\"", 2), ("\"\\u{110000}\"", 1), ("`\\u{}`", 1), ("x ;", 2)]
        {
            let mut lexer = Lexer::from(text, 0, 1);
            let fault = std::iter::repeat_with(|| lexer.next()).find_map(Result::err).unwrap();
            assert_eq!(fault.at, at, "{text}");
        }
    }
}
