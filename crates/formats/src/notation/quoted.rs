//! Texts in double quotes: EDN and JSON write them alike, but for two rules.

use super::form::{Form, Item, Notation};
use crate::error::Fault;

/// Reads the text whose opening quote stands at a byte, adds it to the form, and gives the byte
/// after it.
pub(super) fn read<'a>(input: &'a str, open: usize, form: &mut Form<'a>) -> Result<usize, Fault> {
    let bytes = input.as_bytes();
    let notation = form.notation();
    let start = open + 1;
    let unclosed = || Fault::malformed(open, "a closing quote", "the end of the input");
    let mut at = start;
    let mut escaped_from = None;
    loop {
        let stop = memchr::memchr2(b'"', b'\\', &bytes[at..]).ok_or_else(unclosed)? + at;
        if notation == Notation::Json
            && let Some(control) = bytes[at..stop].iter().position(|b| *b < 0x20)
        {
            return Err(Fault::here(input, at + control, "an escape for a control character"));
        }
        if let Some(from) = escaped_from
            && bytes[stop] == b'"'
        {
            form.scratch().push_str(&input[at..stop]);
            let end = form.scratch().len();
            form.push(open, Item::Unescaped(from, end));
            return Ok(stop + 1);
        }
        if bytes[stop] == b'"' {
            form.push(open, Item::Text(&input[start..stop]));
            return Ok(stop + 1);
        }
        let scratch = form.scratch();
        escaped_from.get_or_insert(scratch.len());
        scratch.push_str(&input[at..stop]);
        at = read_escape(input, stop, notation, scratch)?;
    }
}

/// Reads the escape whose backslash stands at a byte, and gives the byte after it.
fn read_escape(
    input: &str,
    at: usize,
    notation: Notation,
    out: &mut String,
) -> Result<usize, Fault> {
    let plain = match input.as_bytes().get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') if notation == Notation::Json => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return read_unicode(input, at, out),
        _ => return Err(Fault::here(input, at + 1, "an escape: \\n, \\t, \\\", \\\\ or \\u")),
    };
    out.push(plain);
    Ok(at + 2)
}

/// `\uXXXX`, or two of them where a character takes a surrogate pair.
fn read_unicode(input: &str, at: usize, out: &mut String) -> Result<usize, Fault> {
    let malformed = || {
        let found: String = input[at..].chars().take(12).collect();
        Fault::malformed(at, "four hexadecimal digits of a character", found)
    };
    let unit = |at: usize| {
        let digits = input.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(at).ok_or_else(malformed)?;
    let (units, len) = match unit(at + 6) {
        Some(second) if (0xd800..0xdc00).contains(&first) => (vec![first, second], 12),
        _ => (vec![first], 6),
    };
    for decoded in char::decode_utf16(units) {
        out.push(decoded.map_err(|_| malformed())?);
    }
    Ok(at + len)
}

/// Writes a text in quotes, in a way that both notations read, piece by piece.
pub(crate) fn write(text: &str, mut push: impl FnMut(&str)) {
    push("\"");
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b < b' ' || b == b'"' || b == b'\\') {
        push(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => push("\\\""),
            b'\\' => push("\\\\"),
            b'\n' => push("\\n"),
            b'\r' => push("\\r"),
            b'\t' => push("\\t"),
            0x08 => push("\\b"),
            0x0c => push("\\f"),
            control => push(&format!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    push(rest);
    push("\"");
}
