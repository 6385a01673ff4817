//! Numbers, texts and values written inline: what headers and row records are made of.

use isolario_model::{DecimalRef, Tuple, TupleRef, Value, ValueRef};

use crate::Problem;

/// How a value says what it is. The same numbers serve inline values and dictionaries.
pub(super) mod tag {
    pub(in super::super) const NIL: u8 = 0;
    pub(in super::super) const FALSE: u8 = 1;
    pub(in super::super) const TRUE: u8 = 2;
    pub(in super::super) const INT: u8 = 3;
    pub(in super::super) const UINT: u8 = 4;
    pub(in super::super) const TEXT: u8 = 5;
    pub(in super::super) const KEYWORD: u8 = 6;
    pub(in super::super) const OTHER: u8 = 7;
    pub(in super::super) const DECIMAL: u8 = 8;
    pub(in super::super) const TUPLE: u8 = 9;
}

/// A value that was read: borrowed from the file, unless it had to be put together.
#[derive(Debug)]
pub(super) enum Datum<'a> {
    Plain(ValueRef<'a>),
    Tuple(Tuple),
}

impl Datum<'_> {
    #[inline]
    pub(super) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Datum::Plain(value) => *value,
            Datum::Tuple(tuple) => ValueRef::Tuple(tuple.as_ref()),
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Datum::Plain(value) => value.to_owned(),
            Datum::Tuple(tuple) => tuple.into(),
        }
    }
}

/// What a value that is not a tuple consists of: its tag, and at most one of a number and a text.
#[derive(Clone, Copy)]
pub(super) struct ValueParts<'a> {
    pub(super) tag: u8,
    /// The bits of an integer.
    pub(super) int: Option<i64>,
    pub(super) text: Option<&'a str>,
}

impl<'a> ValueParts<'a> {
    /// The parts of a value, or the tuple that it is.
    #[inline]
    pub(super) fn of(value: ValueRef<'a>) -> Result<ValueParts<'a>, TupleRef<'a>> {
        let (tag, int, text) = match value {
            ValueRef::Nil => (tag::NIL, None, None),
            ValueRef::Bool(false) => (tag::FALSE, None, None),
            ValueRef::Bool(true) => (tag::TRUE, None, None),
            ValueRef::Int(i) => (tag::INT, Some(i), None),
            ValueRef::Uint(u) => (tag::UINT, Some(u as i64), None),
            ValueRef::Text(s) => (tag::TEXT, None, Some(s)),
            ValueRef::Keyword(s) => (tag::KEYWORD, None, Some(s)),
            ValueRef::Other(s) => (tag::OTHER, None, Some(s)),
            ValueRef::Decimal(d) => (tag::DECIMAL, None, Some(d.as_str())),
            ValueRef::Tuple(tuple) => return Err(tuple),
        };
        Ok(ValueParts { tag, int, text })
    }
}

/// What the parts of values are taken from.
pub(super) trait ValueSource<'a> {
    fn tag(&mut self) -> Result<u8, Problem>;
    fn int(&mut self) -> Result<i64, Problem>;
    fn text(&mut self) -> Result<&'a str, Problem>;
    /// A number of columns, which is no larger than what is left.
    fn columns(&mut self) -> Result<usize, Problem>;
}

/// Puts a value together; asks for numbers and texts only where its tag has them. A tuple is the
/// number of its columns, its table, and the name and the value of each column.
#[inline]
pub(super) fn get_value<'a>(source: &mut impl ValueSource<'a>) -> Result<Datum<'a>, Problem> {
    match source.tag()? {
        tag::TUPLE => get_tuple(source).map(Datum::Tuple),
        tag => get_scalar(source, tag).map(Datum::Plain),
    }
}

/// Puts a value together that is no tuple, given its tag.
#[inline]
pub(super) fn get_scalar<'a>(
    source: &mut impl ValueSource<'a>,
    tag: u8,
) -> Result<ValueRef<'a>, Problem> {
    Ok(match tag {
        tag::NIL => ValueRef::Nil,
        tag::FALSE => ValueRef::Bool(false),
        tag::TRUE => ValueRef::Bool(true),
        tag::INT => ValueRef::Int(source.int()?),
        tag::UINT => ValueRef::from(source.int()? as u64),
        tag::TEXT => ValueRef::Text(source.text()?),
        tag::KEYWORD => ValueRef::Keyword(source.text()?),
        tag::OTHER => ValueRef::Other(source.text()?),
        tag::DECIMAL => {
            let text = source.text()?;
            let decimal = DecimalRef::from_canonical(text)
                .ok_or_else(|| Problem::malformed("a decimal such as 1.5", text))?;
            ValueRef::Decimal(decimal)
        }
        other => return Err(Problem::malformed("the tag of a value, 0 to 9", other)),
    })
}

#[cold]
fn get_tuple<'a>(source: &mut impl ValueSource<'a>) -> Result<Tuple, Problem> {
    let mut columns = Vec::new();
    let table = get_columns(source, &mut columns)?;
    Ok(Tuple::new(table, columns))
}

/// Adds the columns of a tuple to others, and says which table it is of.
pub(super) fn get_columns<'a>(
    source: &mut impl ValueSource<'a>,
    columns: &mut Vec<(&'a str, ValueRef<'a>)>,
) -> Result<&'a str, Problem> {
    let (count, table) = (source.columns()?, source.text()?);
    columns.reserve(count);
    for _ in 0..count {
        let name = source.text()?;
        let tag = source.tag()?;
        columns.push((name, get_scalar(source, tag)?));
    }
    Ok(table)
}

/// Writes a number in groups of seven bits, the lowest first; the high bit says that more follow.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, number: u64) {
    match groups(number) {
        Some((word, len)) => put_word(out, word, len),
        None => put_long(out, number),
    }
}

/// Writes a byte, then a number.
#[inline]
fn put_tagged(out: &mut Vec<u8>, tag: u8, number: u64) {
    match groups(number) {
        Some((word, len)) if len < 8 => put_word(out, word << 8 | u64::from(tag), len + 1),
        _ => {
            out.push(tag);
            put_varint(out, number);
        }
    }
}

/// The bytes of a number of at most eight groups, the first one lowest, and how many they are.
///
/// A recorder writes a dozen numbers per transaction while clients wait. They differ in length, and
/// a processor that guesses wrong where a loop ends loses more time than all of this takes: groups
/// are moved apart by halves, the upper half of each part to where the next part begins.
#[inline]
fn groups(number: u64) -> Option<(u64, usize)> {
    if number >> 56 != 0 {
        return None;
    }
    let halves = (number & 0x0fff_ffff) | (number & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    let bytes = (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    let bits = u64::BITS - (number | 1).leading_zeros();
    let len = bits.div_ceil(7);
    let more_follow = 0x8080_8080_8080_8080 & ((1 << (8 * (len - 1))) - 1);
    Some((bytes | more_follow, len as usize))
}

#[inline]
fn put_word(out: &mut Vec<u8>, word: u64, len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

#[cold]
fn put_long(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a signed number so that small ones stay short on either side of zero.
#[inline]
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, unsign(number));
}

#[inline]
fn unsign(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Writes the length of a text, then the text.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Writes a value: its tag, then its number or its text, or the parts of a tuple.
#[inline]
pub(super) fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match ValueParts::of(value) {
        Ok(ValueParts { tag, int: Some(int), .. }) => put_tagged(out, tag, unsign(int)),
        Ok(ValueParts { tag, text: Some(text), .. }) => {
            put_tagged(out, tag, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        Ok(ValueParts { tag, .. }) => out.push(tag),
        Err(tuple) => put_tuple(out, tuple),
    }
}

#[cold]
fn put_tuple(out: &mut Vec<u8>, tuple: TupleRef<'_>) {
    put_tagged(out, tag::TUPLE, tuple.len() as u64);
    put_text(out, tuple.table());
    for (name, value) in tuple.columns() {
        put_text(out, name);
        put_value(out, value);
    }
}

/// Reads what the functions above write, never past the end.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    /// What is not yet read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next bytes; `what` they are is for the error.
    pub(super) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], Problem> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(Problem::malformed(
                format!("{len} bytes of {what}"),
                format_args!("only {} before the end", self.rest.len()),
            )),
        }
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, Problem> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Problem> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(super) fn varint(&mut self, what: &str) -> Result<u64, Problem> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let group = u64::from(byte & 0x7f);
            if group << shift >> shift != group {
                break;
            }
            number |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Problem::malformed(what, "a number of more than 64 bits"))
    }

    pub(super) fn signed(&mut self, what: &str) -> Result<i64, Problem> {
        let number = self.varint(what)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number that counts bytes or things of at least one byte each that follow.
    pub(super) fn count(&mut self, what: &str) -> Result<usize, Problem> {
        let count = self.varint(what)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(Problem::malformed(
                what,
                format_args!("{count}, with {} bytes before the end", self.rest.len()),
            )),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, Problem> {
        let len = self.count(what)?;
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map_err(|error| Problem::malformed("UTF-8 text", error))
    }

    #[inline]
    pub(super) fn value(&mut self) -> Result<Datum<'a>, Problem> {
        get_value(self)
    }
}

impl<'a> ValueSource<'a> for Cursor<'a> {
    fn tag(&mut self) -> Result<u8, Problem> {
        self.byte("a value")
    }

    fn int(&mut self) -> Result<i64, Problem> {
        self.signed("an integer")
    }

    fn text(&mut self) -> Result<&'a str, Problem> {
        Cursor::text(self, "a text")
    }

    fn columns(&mut self) -> Result<usize, Problem> {
        self.count("a number of columns")
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::TupleParts;

    use super::*;

    #[test]
    fn numbers_and_values_come_back() {
        let mut out = Vec::new();
        let numbers: Vec<u64> = (0..64).flat_map(|bits| [(1 << bits) - 1, 1 << bits]).collect();
        let signed = [0, -1, 1, 63, -65, i64::MIN, i64::MAX];
        let values = [
            ValueRef::Nil,
            ValueRef::Bool(true),
            ValueRef::Bool(false),
            ValueRef::Int(i64::MIN),
            ValueRef::Int((1 << 48) - 1),
            ValueRef::Int(1 << 48),
            ValueRef::from(u64::MAX),
            ValueRef::Text(""),
            ValueRef::Keyword("ü"),
            ValueRef::Other("1.5"),
            ValueRef::Decimal(DecimalRef::from_canonical("1.5").unwrap()),
            ValueRef::from(&TupleParts { table: "", columns: &[] }),
            ValueRef::from(&TupleParts {
                table: "accounts",
                columns: &[("id", ValueRef::Int(-7)), ("", ValueRef::Nil)],
            }),
        ];
        numbers.iter().for_each(|n| put_varint(&mut out, *n));
        signed.iter().for_each(|n| put_signed(&mut out, *n));
        values.iter().for_each(|v| put_value(&mut out, *v));
        let mut cursor = Cursor::new(&out);
        for number in numbers {
            assert_eq!(cursor.varint("n").unwrap(), number);
        }
        for number in signed {
            assert_eq!(cursor.signed("n").unwrap(), number);
        }
        for value in values {
            assert_eq!(cursor.value().unwrap().as_ref(), value);
        }
        assert!(cursor.is_empty());
    }

    #[test]
    fn a_number_of_more_than_64_bits_or_without_an_end_is_refused() {
        let too_long = [0xff; 9].iter().copied().chain([0x02]).collect::<Vec<u8>>();
        for bytes in [&too_long[..], &[0xff; 12], &[0x80], &[]] {
            assert!(Cursor::new(bytes).varint("n").is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_count_beyond_the_end_is_refused_before_anything_is_allocated() {
        let error = Cursor::new(&[0xff, 0xff, 0xff, 0x7f, b'x']).text("a name").unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a name, found 268435455, with 1 bytes before the end"
        );
    }
}
