//! Texts in double quotes: EDN and JSON write them alike, but for two rules.

use super::form::{Fault, Form, Item, Notation};

/// Reads the text whose opening quote stands at a byte, adds it to the form, and gives the byte
/// after it.
pub(super) fn read<'a>(input: &'a str, open: usize, form: &mut Form<'a>) -> Result<usize, Fault> {
    let bytes = input.as_bytes();
    let notation = form.notation();
    let start = open + 1;
    let unclosed = || Fault::new(open, "a closing quote", "the end of the input");
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
        Fault::new(at, "four hexadecimal digits of a character", found)
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

/// Writes a text in quotes, in a way that both notations read.
pub(super) fn write(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
