//! Text from outside, made fit for a terminal.
//!
//! Names, values, file names, statements and errors come from wherever the history came from. A
//! terminal would obey what is hidden in them: clear the screen, change its title, write from right
//! to left, begin a line that looks like one of ours.

use std::borrow::Cow;

/// The text with everything escaped that a terminal would obey instead of show.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_unprintable(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character does something to a terminal, or cannot be seen on it: controls, the marks
/// of bidirectional text, separators of lines, and what has no width. Joiners are left: scripts and
/// emoji need them.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_is_not() {
        for (text, shown) in [
            ("T1", "T1"),
            ("größe → 日本 é", "größe → 日本 é"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nerror: b", "a\\nerror: b"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}fed", "abc\\u{202e}fed"),
            ("T\u{200b}1\u{7f}", "T\\u{200b}1\\u{7f}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
