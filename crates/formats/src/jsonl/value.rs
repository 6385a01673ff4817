//! Values in JSON: what JSON has itself, `{"keyword": …}` and `{"other": …}` for what it lacks, and
//! the canonical text of everything else.

use isolario_model::{SinkError, ValueRef};

use crate::error::Fault;
use crate::notation::{Form, Item, Shape, json};

/// Makes sure that [`value`] can give a single value for the node: fractions and collections become
/// their canonical text.
#[inline]
pub(crate) fn prepare(form: &mut Form<'_>, node: usize) -> Result<(), Fault> {
    if matches!(form.item(node), Item::Other(_) | Item::Open(..)) && tagged(form, node).is_none() {
        let mut text = String::new();
        push_canonical(form, node, &mut text)?;
        form.keep(node, &text);
    }
    Ok(())
}

/// The node as a value, once it is prepared.
#[inline]
pub(crate) fn value<'f>(form: &'f Form<'_>, node: usize) -> ValueRef<'f> {
    match form.item(node) {
        Item::Open(..) => tagged(form, node).unwrap_or_else(|| form.value(node)),
        _ => form.value(node),
    }
}

fn tagged<'f>(form: &'f Form<'_>, node: usize) -> Option<ValueRef<'f>> {
    if form.shape(node) != Some(Shape::Map) {
        return None;
    }
    let mut children = form.children(node);
    let (tag, text) = (form.word(children.next()?)?, form.word(children.next()?)?);
    match (tag, children.next()) {
        ("keyword", None) => Some(ValueRef::Keyword(text)),
        ("other", None) => Some(ValueRef::Other(text)),
        _ => None,
    }
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

/// Appends a value.
pub(super) fn push_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let tagged = |out: &mut Vec<u8>, tag: &str, text| {
        out.extend_from_slice(tag.as_bytes());
        json::push_text(out, text);
        out.push(b'}');
    };
    match value {
        ValueRef::Keyword(text) => tagged(out, "{\"keyword\":", text),
        ValueRef::Other(text) => tagged(out, "{\"other\":", text),
        ValueRef::Text(text) => json::push_text(out, text),
        ValueRef::Nil => out.extend_from_slice(b"null"),
        ValueRef::Bool(b) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        ValueRef::Int(i) => json::push_int(out, i),
        ValueRef::Uint(u) => crate::decimal::push_u64(out, u),
    }
}

/// Appends the values of a list.
pub(super) fn push_values(out: &mut Vec<u8>, values: &[ValueRef<'_>]) -> Result<(), SinkError> {
    json::push_array(out, values, |out, value| {
        push_value(out, *value);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use isolario_model::Value;
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
        ];
        for (text, value) in cases {
            assert_eq!(read(text).unwrap().as_ref(), value, "{text}");
        }
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for text in ["18446744073709551616", "-9223372036854775809", "1e300", r#"{"a":1,"a":1}"#] {
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
                    prop_assert_eq!(read(&spelled).unwrap(), Value::Other(spelled.into()));
                }
            }
        }
    }
}
