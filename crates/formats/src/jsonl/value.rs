//! Values in JSON: what JSON has itself, objects with a tag for what it lacks, and the canonical text
//! of everything else.
//!
//! | object | is |
//! |---|---|
//! | `{"keyword": "x"}` | an EDN keyword |
//! | `{"decimal": "1.5"}` | an exact decimal |
//! | `{"row": {"balance": 5}}` | what a row holds: a tuple of columns |
//! | `{"table": "accounts", "row": {"id": 1}}` | what a row is called by |
//! | `{"other": "…"}` | text of another format |

use isolario_model::{Decimal, SinkError, Stamp, Tuple, TupleRef, Value, ValueRef, VersionRef};

use crate::error::Fault;
use crate::narrow::inexpressible;
use crate::notation::{Form, Item, Shape, json};

/// Makes sure that [`value`] can give a single value for the node.
#[inline]
pub(crate) fn prepare(form: &mut Form<'_>, node: usize) -> Result<(), Fault> {
    match form.item(node) {
        Item::Other(_) | Item::Open(..) => prepare_object(form, node),
        _ => Ok(()),
    }
}

fn prepare_object(form: &mut Form<'_>, node: usize) -> Result<(), Fault> {
    let value = match tag(form, node) {
        Some(Tag::Text(_)) => return Ok(()),
        Some(Tag::Decimal(text)) => read_decimal(form, text)?,
        Some(Tag::Row { table, row }) => read_row(form, table, row)?,
        None => {
            let mut text = String::new();
            push_canonical(form, node, &mut text)?;
            Value::Other(text.into())
        }
    };
    form.keep(node, value);
    Ok(())
}

/// The node as a value, once it is prepared.
#[inline]
pub(crate) fn value<'f>(form: &'f Form<'_>, node: usize) -> ValueRef<'f> {
    match form.item(node) {
        Item::Open(..) => match tag(form, node) {
            Some(Tag::Text(value)) => value,
            _ => form.value(node),
        },
        _ => form.value(node),
    }
}

/// What an object stands for, with the nodes of its parts.
enum Tag<'f> {
    /// A keyword or another text.
    Text(ValueRef<'f>),
    Decimal(usize),
    Row {
        table: Option<usize>,
        row: usize,
    },
}

fn tag<'f>(form: &'f Form<'_>, node: usize) -> Option<Tag<'f>> {
    if form.shape(node) != Some(Shape::Map) {
        return None;
    }
    let mut children = form.children(node);
    let (name, content) = (form.word(children.next()?)?, children.next()?);
    let second = children.next().zip(children.next());
    let is_last = children.next().is_none();
    match (name, second) {
        ("keyword", None) => form.text(content).map(ValueRef::Keyword).map(Tag::Text),
        ("other", None) => form.text(content).map(ValueRef::Other).map(Tag::Text),
        _ if !form.has_rows => None,
        ("decimal", None) if form.text(content).is_some() => Some(Tag::Decimal(content)),
        ("row", None) if is_map(form, content) => Some(Tag::Row { table: None, row: content }),
        ("table", Some((name, row)))
            if is_last
                && form.text(content).is_some()
                && form.word(name) == Some("row")
                && is_map(form, row) =>
        {
            Some(Tag::Row { table: Some(content), row })
        }
        _ => None,
    }
}

fn is_map(form: &Form<'_>, node: usize) -> bool {
    form.shape(node) == Some(Shape::Map)
}

fn read_decimal(form: &Form<'_>, node: usize) -> Result<Value, Fault> {
    let decimal = form.text(node).and_then(Decimal::parse).map(Value::Decimal);
    decimal.ok_or_else(|| {
        Fault::malformed(form.at(node), "a decimal such as \"1.5\"", form.render(node))
    })
}

fn read_row(form: &mut Form<'_>, table: Option<usize>, row: usize) -> Result<Value, Fault> {
    let nodes: Vec<usize> = form.children(row).collect();
    let mut columns: Vec<(String, Value)> = Vec::with_capacity(nodes.len() / 2);
    for pair in nodes.chunks_exact(2) {
        let name = form.word(pair[0]).unwrap_or("").to_owned();
        if columns.iter().any(|(known, _)| *known == name) {
            return Err(Fault::malformed(form.at(pair[0]), "each column once", name));
        }
        if let Some(Tag::Row { .. }) = tag(form, pair[1]) {
            let expected = "a column that is no row itself";
            return Err(Fault::malformed(form.at(pair[1]), expected, form.render(pair[1])));
        }
        prepare(form, pair[1])?;
        columns.push((name, value(form, pair[1]).to_owned()));
    }
    let table = table.and_then(|table| form.text(table)).unwrap_or("");
    Ok(Tuple::new(table, columns).into())
}

/// The name of a version, apart from its value.
pub(super) fn version(form: &Form<'_>, node: usize) -> Option<VersionRef> {
    if form.text(node) == Some("initial") {
        return Some(VersionRef::Initial);
    }
    if !is_map(form, node) {
        return None;
    }
    let (fields, 0) = form.fields(node, &["txn", "write", "value"]).ok()? else { return None };
    let [txn, write, value] = fields.map(|node| node.and_then(|node| unsigned(form, node)));
    match (fields, txn, write?, value) {
        ([_, _, None], Some(txn), write, _) => Some(VersionRef::ByWriter { txn, write }),
        ([None, ..], _, write, Some(value)) => Some(VersionRef::ByWrite { write, value }),
        _ => None,
    }
}

/// A number that counts or numbers something.
pub(crate) fn unsigned(form: &Form<'_>, node: usize) -> Option<u64> {
    match form.item(node) {
        Item::Int(number) => u64::try_from(number).ok(),
        Item::Uint(number) => Some(number),
        _ => None,
    }
}

/// A moment of a database's clock: a whole number or `[physical, logical]`.
pub(crate) fn stamp(form: &Form<'_>, node: usize) -> Option<Stamp> {
    let (physical, logical) = match form.exactly(node) {
        Some([physical, logical]) => (physical, unsigned(form, logical)?),
        None => (node, 0),
    };
    Some(Stamp { physical: unsigned(form, physical)?, logical })
}

/// No spaces, fields in the order of their names, numbers in one spelling: equal texts for equal
/// values. As deep as the reader lets values be nested, and no deeper.
fn push_canonical(form: &Form<'_>, node: usize, out: &mut String) -> Result<(), Fault> {
    match form.item(node) {
        Item::Open(Shape::Map, _) => push_canonical_object(form, node, out),
        Item::Open(..) => {
            for (position, child) in form.children(node).enumerate() {
                out.push(if position == 0 { '[' } else { ',' });
                push_canonical(form, child, out)?;
            }
            out.push_str(if form.children(node).next().is_none() { "[]" } else { "]" });
            Ok(())
        }
        Item::Other(token) => {
            out.push_str(&canonical_number(form.at(node), token)?);
            Ok(())
        }
        _ => {
            out.push_str(&form.render(node));
            Ok(())
        }
    }
}

fn push_canonical_object(form: &Form<'_>, node: usize, out: &mut String) -> Result<(), Fault> {
    let mut fields = Vec::new();
    let mut children = form.children(node);
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        fields.push((form.word(key).unwrap_or(""), key, value));
    }
    fields.sort_unstable();
    if let Some(pair) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let key = pair[1].1;
        return Err(Fault::malformed(form.at(key), "each field once", form.render(key)));
    }
    out.push('{');
    for (position, (_, key, value)) in fields.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        out.push_str(&form.render(key));
        out.push(':');
        push_canonical(form, value, out)?;
    }
    out.push('}');
    Ok(())
}

/// A fraction, or a number with an exponent. One beyond 64 bits would be rounded, so that two
/// different ones could become equal: it is refused.
fn canonical_number(at: usize, token: &str) -> Result<String, Fault> {
    const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
    let is_whole = token.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let number = token.parse().unwrap_or(f64::INFINITY);
    if is_whole || number.abs() >= TWO_TO_THE_63 {
        let found = format!("{token}, which is beyond 64 bits");
        return Err(Fault::malformed(at, "a smaller number, or a string", found));
    }
    // The spelling of JSON libraries; the standard library turns to exponents a little earlier.
    let is_plain = (1e-5..1e-4).contains(&number.abs());
    Ok(if is_plain { number.to_string() } else { format!("{number:?}") })
}

/// Appends a value. One that cannot be written is a row with two columns of one name.
pub(super) fn push_value(out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<(), SinkError> {
    let tagged = |out: &mut Vec<u8>, tag: &str, text| {
        out.extend_from_slice(tag.as_bytes());
        json::push_text(out, text);
        out.push(b'}');
    };
    match value {
        ValueRef::Keyword(text) => tagged(out, "{\"keyword\":", text),
        ValueRef::Other(text) => tagged(out, "{\"other\":", text),
        ValueRef::Decimal(decimal) => tagged(out, "{\"decimal\":", decimal.as_str()),
        ValueRef::Text(text) => json::push_text(out, text),
        ValueRef::Nil => out.extend_from_slice(b"null"),
        ValueRef::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        ValueRef::Int(i) => json::push_int(out, i),
        ValueRef::Uint(u) => crate::decimal::push_u64(out, u),
        ValueRef::Tuple(tuple) => return push_row(out, tuple),
    }
    Ok(())
}

fn push_row(out: &mut Vec<u8>, tuple: TupleRef<'_>) -> Result<(), SinkError> {
    out.push(b'{');
    if !tuple.table().is_empty() {
        out.extend_from_slice(b"\"table\":");
        json::push_text(out, tuple.table());
        out.push(b',');
    }
    out.extend_from_slice(b"\"row\":{");
    for (position, (name, value)) in tuple.columns().enumerate() {
        if tuple.columns().take(position).any(|(other, _)| other == name) {
            return Err(inexpressible("jsonl", format!("two columns of one name, {name}")));
        }
        if position > 0 {
            out.push(b',');
        }
        json::push_text(out, name);
        out.push(b':');
        push_value(out, value)?;
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Appends the values of a list.
pub(super) fn push_values(out: &mut Vec<u8>, values: &[ValueRef<'_>]) -> Result<(), SinkError> {
    json::push_array(out, values, |out, value| push_value(out, *value))
}

/// Appends the name of a version.
pub(super) fn push_version(out: &mut Vec<u8>, version: VersionRef) {
    let text = match version {
        VersionRef::Initial => "\"initial\"".to_owned(),
        VersionRef::ByWriter { txn, write } => format!("{{\"txn\":{txn},\"write\":{write}}}"),
        VersionRef::ByWrite { write, value } => format!("{{\"write\":{write},\"value\":{value}}}"),
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use isolario_model::TupleParts;
    use proptest::prelude::*;

    use super::*;
    use crate::notation::Notation;

    fn read(text: &str) -> Result<Value, Fault> {
        let mut form = Form::new(Notation::Json);
        json::read_only(text, 0, &mut form)?;
        prepare(&mut form, 0)?;
        Ok(value(&form, 0).to_owned())
    }

    #[test]
    fn every_document_is_a_value() {
        let decimal = Decimal::parse("1.5").unwrap();
        let decimal = ValueRef::Decimal(decimal.as_ref());
        let columns = [("a", ValueRef::Nil), ("b", decimal)];
        let held = TupleParts { table: "", columns: &columns };
        let cases = [
            ("null", ValueRef::Nil),
            ("true", ValueRef::Bool(true)),
            ("-1", ValueRef::Int(-1)),
            ("9007199254740993", ValueRef::Int(9_007_199_254_740_993)),
            ("18446744073709551615", ValueRef::Uint(u64::MAX)),
            (r#""a\nb""#, ValueRef::Text("a\nb")),
            (r#"{"keyword":"x"}"#, ValueRef::Keyword("x")),
            (r#"{"other":"[1 2]"}"#, ValueRef::Other("[1 2]")),
            ("1.50", ValueRef::Other("1.5")),
            ("[]", ValueRef::Other("[]")),
            (r#"[1, [null]]"#, ValueRef::Other("[1,[null]]")),
            (r#"{"b": 1, "a": "x"}"#, ValueRef::Other(r#"{"a":"x","b":1}"#)),
            (r#"{"keyword": 1}"#, ValueRef::Other(r#"{"keyword":1}"#)),
            (r#"{"key": "x"}"#, ValueRef::Other(r#"{"key":"x"}"#)),
            (r#"{"row": 1}"#, ValueRef::Other(r#"{"row":1}"#)),
            (r#"{"row": {"a": 1}, "x": 2}"#, ValueRef::Other(r#"{"row":{"a":1},"x":2}"#)),
            (r#"{"decimal": "01.50"}"#, decimal),
            (r#"{"row": {"a": null, "b": {"decimal": "1.5"}}}"#, ValueRef::from(&held)),
            (
                r#"{"table": "t", "row": {"id": 1}}"#,
                ValueRef::from(&TupleParts { table: "t", columns: &[("id", ValueRef::Int(1))] }),
            ),
        ];
        for (text, value) in cases {
            assert_eq!(read(text).unwrap().as_ref(), value, "{text}");
        }
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "1e300",
            r#"{"a":1,"a":1}"#,
            r#"{"decimal":"1.5x"}"#,
            r#"{"row":{"a":1,"a":2}}"#,
            r#"{"row":{"a":{"row":{}}}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(read(&deep).is_err());
    }

    proptest! {
        #[test]
        fn fractions_are_spelled_as_json_libraries_do(number in any::<f64>(), small in -1e-3..1e-3) {
            for number in [number, small] {
                let spelled = serde_json::Value::from(number).to_string();
                if number.abs() < 1e15 && spelled != "null" {
                    let Value::Other(ours) = read(&spelled).unwrap() else { panic!("{spelled}") };
                    // Two shortest spellings may be equally near: -927861481484986.25 is one such.
                    prop_assert_eq!(ours.parse(), Ok(number));
                    prop_assert_eq!(ours.len(), spelled.len());
                }
            }
        }
    }
}
