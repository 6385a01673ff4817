//! Text in XML: nothing in it is taken for markup, and nothing that XML forbids gets through.

use std::fmt::{self, Write};

/// A text as the content of an element or attribute. Values come from histories, which may hold
/// anything.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if is_allowed(c) => f.write_char(c)?,
                _ => f.write_char(char::REPLACEMENT_CHARACTER)?,
            }
        }
        Ok(())
    }
}

/// The characters of XML 1.0 (production 2), of which no escape could write the others.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_do_not_get_through() {
        assert_eq!(Escaped("<a b='1'>&\"").to_string(), "&lt;a b=&#39;1&#39;&gt;&amp;&quot;");
        assert_eq!(
            Escaped("\u{0}\u{1b}[31m\u{ffff}\n").to_string(),
            "\u{fffd}\u{fffd}[31m\u{fffd}\n"
        );
        assert_eq!(Escaped("é→😀").to_string(), "é→😀");
    }
}
