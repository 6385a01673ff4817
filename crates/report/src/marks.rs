//! What names in a sentence are the names of.
//!
//! Sentences are made of names and words in many places, and only a page makes links of names. So
//! names may carry a mark, in characters that no text from outside keeps; a page finds the marks
//! and makes links of them. Whatever happens to a mark on the way, the text in it is still text.

use std::fmt;

#[cfg(feature = "html")]
use crate::xml::Escaped;

const OPEN: char = '\u{f0000}';
const MIDDLE: char = '\u{f0001}';
const CLOSE: char = '\u{f0002}';

/// What a name stands for.
pub(crate) enum Mark {
    /// A transaction, by its number.
    Txn(u32),
    /// A key, by its number.
    Key(u32),
    /// A text from outside, in full.
    Text(String),
}

/// Which history of a page names are from: the only one (0), or one of several, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) u32);

impl fmt::Display for Part {
    /// What addresses within the part begin with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            number => write!(f, "h{number}-"),
        }
    }
}

impl Mark {
    /// A name with its mark.
    pub(crate) fn around(&self, name: &str, part: Part) -> String {
        let clean = |text: &str| text.replace([OPEN, MIDDLE, CLOSE], "\u{fffd}");
        let name = clean(name);
        match self {
            Mark::Txn(number) => format!("{OPEN}{part}t{number}{MIDDLE}{name}{CLOSE}"),
            Mark::Key(number) => format!("{OPEN}{part}k{number}{MIDDLE}{name}{CLOSE}"),
            // Short texts from left to right need no care.
            Mark::Text(full) if full.is_ascii() && *full == name => name,
            Mark::Text(full) => format!("{OPEN}v{}{MIDDLE}{name}{CLOSE}", clean(full)),
        }
    }
}

/// A sentence with marks, as HTML: names are links, and long texts keep their full form at hand.
#[cfg(feature = "html")]
pub(crate) struct Linked<'a>(pub(crate) &'a str);

#[cfg(feature = "html")]
impl fmt::Display for Linked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, marked)) = rest.split_once(OPEN) {
            write!(f, "{}", Escaped(before))?;
            let (mark, after) = marked.split_once(CLOSE).unwrap_or((marked, ""));
            link(mark, f)?;
            rest = after;
        }
        write!(f, "{}", Escaped(rest))
    }
}

#[cfg(feature = "html")]
fn link(mark: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (what, name) = mark.split_once(MIDDLE).unwrap_or(("", mark));
    let shown = Escaped(name);
    // Texts from outside begin with another letter.
    let (part, plain) = match what.split_once('-') {
        Some((history, plain)) if history.starts_with('h') => (&what[..=history.len()], plain),
        _ => ("", what),
    };
    let number = |prefix: char| plain.strip_prefix(prefix)?.parse::<u32>().ok();
    let part = Escaped(part);
    if let Some(txn) = number('t') {
        write!(f, "<a class=\"txn\" href=\"#{part}t{txn}\" data-t=\"{txn}\"><bdi>{shown}</bdi></a>")
    } else if let Some(key) = number('k') {
        write!(f, "<a class=\"key\" href=\"#{part}k{key}\" data-k=\"{key}\"><bdi>{shown}</bdi></a>")
    } else {
        match what.strip_prefix('v').filter(|full| *full != name) {
            Some(full) => {
                let full = Escaped(full);
                write!(f, "<bdi class=\"long\" title=\"{full}\">{shown}</bdi>")
            }
            None => write!(f, "<bdi>{shown}</bdi>"),
        }
    }
}

#[cfg(all(test, feature = "html"))]
mod tests {
    use super::*;

    #[test]
    fn names_become_links_and_nothing_becomes_markup() {
        let text = format!(
            "{} read {}={}.",
            Mark::Txn(7).around("T7", Part(0)),
            Mark::Key(3).around("<x>", Part(2)),
            Mark::Text("a long\"one".to_owned()).around("a…e", Part(0))
        );
        assert_eq!(
            Linked(&text).to_string(),
            "<a class=\"txn\" href=\"#t7\" data-t=\"7\"><bdi>T7</bdi></a> read \
             <a class=\"key\" href=\"#h2-k3\" data-k=\"3\"><bdi>&lt;x&gt;</bdi></a>=\
             <bdi class=\"long\" title=\"a long&quot;one\">a…e</bdi>."
        );
    }

    #[test]
    fn marks_from_outside_mark_nothing() {
        let forged = format!("{OPEN}t1\" onclick=x{MIDDLE}T1{CLOSE}");
        assert_eq!(Mark::Key(0).around(&forged, Part(0)).matches([OPEN, MIDDLE, CLOSE]).count(), 3);
        assert_eq!(Linked(&forged).to_string(), "<bdi>T1</bdi>");
        assert_eq!(Linked(&format!("a{OPEN}<b")).to_string(), "a<bdi>&lt;b</bdi>");
    }
}
