//! Markdown, from text that may hold anything.
//!
//! Names, values, statements and errors come from wherever the history came from. In Markdown they
//! could begin a heading, break a table, end a block of code or bring HTML along. What is not a
//! sentence of ours goes through one of these.

use std::fmt::Write;

use crate::printable::printable;

/// Text within a paragraph, a heading or a cell of a table: nothing in it is markup.
pub(crate) fn text(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A backslash before punctuation takes its meaning away, in every dialect. Without brackets
            // there are no links; the rest is markup at the beginning of a line alone.
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => escaped.extend(['\\', c]),
            '_' if !is_within_word(&text, at) => escaped.extend(['\\', c]),
            '#' | '-' | '+' | '=' if at == 0 => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether there are letters on both sides: within a word, an underscore is one.
fn is_within_word(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().nth(1);
    before.zip(after).is_some_and(|(a, b)| a.is_alphanumeric() && b.is_alphanumeric())
}

/// Code within a line, fenced by more backticks than it has.
pub(crate) fn code(code: &str) -> String {
    let code = printable(code);
    let fence = "`".repeat(longest_run(&code) + 1);
    // Within a table, a bar ends the cell even in code.
    let code = code.replace('|', "\\|");
    match code.starts_with('`') || code.ends_with('`') || code.trim().is_empty() {
        true => format!("{fence} {code} {fence}"),
        false => format!("{fence}{code}{fence}"),
    }
}

/// A block of code, fenced by more backticks than it has.
pub(crate) fn block(language: &str, code: &str) -> String {
    let lines: Vec<_> = code.lines().map(printable).collect();
    let code = lines.join("\n");
    let fence = "`".repeat((longest_run(&code) + 1).max(3));
    format!("{fence}{language}\n{code}\n{fence}\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A table whose cells are Markdown already.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    table_of(&head, rows)
}

/// The same, as wide as its head.
pub(crate) fn table_of<R: AsRef<[String]>>(head: &[String], rows: &[R]) -> String {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} |", row.as_ref().join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(text("a|b <b>`x`</b> *y*"), "a\\|b &lt;b&gt;\\`x\\`&lt;/b&gt; \\*y\\*");
        assert_eq!(text("# a\n- [x](http://e)"), "\\# a\\\\n- \\[x\\](http://e)");
        assert_eq!(text("T1 read x_y=1 (#3), _z_"), "T1 read x_y=1 (#3), \\_z\\_");
        assert_eq!(code("r x=1"), "`r x=1`");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(block("sql", "SELECT 1\n```\nDROP"), "````sql\nSELECT 1\n```\nDROP\n````\n");
    }

    #[test]
    fn a_table_is_what_it_looks_like() {
        let rows = [[code("a|b"), text("x|y")]];
        assert_eq!(table(["A", "B"], &rows), "| A | B |\n|---|---|\n| `a\\|b` | x\\|y |\n");
    }
}
