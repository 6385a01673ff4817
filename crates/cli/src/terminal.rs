//! The last guard before a terminal. Reports escape the names that they print; what slips through
//! anyway, in whatever form a result has, is escaped here.

use std::io::{self, Write};

use isolario::report::is_unprintable;

/// A writer that lets through text and the sequences that set colours or link to a file, and nothing
/// else that a terminal obeys.
pub(crate) struct Guarded<W> {
    inner: W,
    /// The beginning of a character or of a sequence, until the rest comes.
    held: Vec<u8>,
}

/// Longer sequences that set colours do not exist.
const LONGEST_SEQUENCE: usize = 24;

impl<W: Write> Guarded<W> {
    pub(crate) fn new(inner: W) -> Self {
        Guarded { inner, held: Vec::new() }
    }

    pub(crate) fn inner(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Passes on all that is complete, and gives back the rest.
    fn pass<'t>(&mut self, mut text: &'t str) -> io::Result<&'t str> {
        while let Some(at) = text.find(|c| is_unprintable(c) && c != '\n' && c != '\t') {
            let (plain, rest) = text.split_at(at);
            self.inner.write_all(plain.as_bytes())?;
            match sequence(rest) {
                Sequence::Whole(length) => {
                    self.inner.write_all(&rest.as_bytes()[..length])?;
                    text = &rest[length..];
                }
                Sequence::Begun => return Ok(rest),
                Sequence::Other => {
                    let mut chars = rest.chars();
                    for c in chars.by_ref().take(1) {
                        // The form of JSON, which says the same in a string of JSON.
                        for unit in c.encode_utf16(&mut [0; 2]) {
                            write!(self.inner, "\\u{unit:04x}")?;
                        }
                    }
                    text = chars.as_str();
                }
            }
        }
        self.inner.write_all(text.as_bytes())?;
        Ok("")
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (text, broken) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let text =
                        std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
                    (text, Some(error.error_len()))
                }
            };
            let left = self.pass(text)?.len();
            match broken {
                // Nothing that we write is broken; repairing the rest is not our job.
                Some(Some(length)) if left == 0 => {
                    self.inner.write_all(&rest[text.len()..text.len() + length])?;
                    rest = &rest[text.len() + length..];
                }
                _ => {
                    self.held = rest[text.len() - left..].to_vec();
                    rest = &[];
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What a text begins with.
enum Sequence {
    /// A whole sequence that is let through, so many bytes long.
    Whole(usize),
    /// The beginning of one.
    Begun,
    Other,
}

/// A link is never longer than the longest path, each byte of which takes three.
const LONGEST_LINK: usize = 3 * 4096 + 16;

fn sequence(text: &str) -> Sequence {
    match text.strip_prefix("\u{1b}]") {
        Some(rest) => link(rest),
        None => colour(text),
    }
}

/// The start or the end of a link to a file of this machine: what follows `ESC ]`.
fn link(rest: &str) -> Sequence {
    const START: &str = "8;;";
    if rest.len() < START.len() && START.starts_with(rest) {
        return Sequence::Begun;
    }
    let Some(url) = rest.strip_prefix(START) else { return Sequence::Other };
    let end = url.find(|c: char| !c.is_ascii_alphanumeric() && !"/:-_.~%".contains(c));
    let (url, tail) = url.split_at(end.unwrap_or(url.len()));
    let is_ours = url.is_empty() || url.starts_with("file:///") || "file:///".starts_with(url);
    match tail {
        _ if !is_ours || url.len() > LONGEST_LINK => Sequence::Other,
        "" | "\u{1b}" => Sequence::Begun,
        tail if tail.starts_with("\u{1b}\\") => Sequence::Whole(2 + START.len() + url.len() + 2),
        _ => Sequence::Other,
    }
}

fn colour(text: &str) -> Sequence {
    let Some(rest) = text.strip_prefix('\u{1b}') else { return Sequence::Other };
    let Some(parameters) = rest.strip_prefix('[') else {
        return if rest.is_empty() { Sequence::Begun } else { Sequence::Other };
    };
    match parameters.find(|c: char| !c.is_ascii_digit() && c != ';') {
        Some(end) if end < LONGEST_SEQUENCE && parameters[end..].starts_with('m') => {
            Sequence::Whole(end + 3)
        }
        None if parameters.len() < LONGEST_SEQUENCE => Sequence::Begun,
        _ => Sequence::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out, however the text is cut.
    fn guarded(text: &str) -> String {
        let whole = written(text, text.len().max(1));
        for size in 1..5 {
            assert_eq!(written(text, size), whole, "{text:?} in parts of {size}");
        }
        whole
    }

    fn written(text: &str, size: usize) -> String {
        let mut out = Guarded::new(Vec::new());
        for part in text.as_bytes().chunks(size) {
            out.write_all(part).unwrap();
        }
        String::from_utf8(out.inner).unwrap()
    }

    #[test]
    fn colours_pass_and_whatever_else_a_terminal_obeys_does_not() {
        for (text, shown) in [
            ("plain → 日本\n\tand on\n", "plain → 日本\n\tand on\n"),
            ("\u{1b}[1;31mred\u{1b}[0m\n", "\u{1b}[1;31mred\u{1b}[0m\n"),
            ("\u{1b}[2Jgone\n", "\\u001b[2Jgone\n"),
            (
                "\u{1b}]8;;file:///a%20b\u{1b}\\a b\u{1b}]8;;\u{1b}\\\n",
                "\u{1b}]8;;file:///a%20b\u{1b}\\a b\u{1b}]8;;\u{1b}\\\n",
            ),
            ("\u{1b}]8;;http://e\u{1b}\\x\n", "\\u001b]8;;http://e\\u001b\\x\n"),
            ("\u{1b}]0;title\u{7}\n", "\\u001b]0;title\\u0007\n"),
            ("\u{9b}31m \u{202e}fed\u{7f}\r\n", "\\u009b31m \\u202efed\\u007f\\u000d\n"),
            ("\u{e0041}\n", "\\udb40\\udc41\n"),
        ] {
            assert_eq!(guarded(text), shown);
        }
    }
}
