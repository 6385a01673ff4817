//! A JSON document that borrows its strings from the line it was read from.
//!
//! Unlike `serde_json::Value` it refuses what would be lost silently: a field given twice, and
//! whole numbers too large for 64 bits, which would be rounded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use isolario_model::ValueRef;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};

/// The fields of a JSON object, by name.
pub(crate) type Fields<'a> = BTreeMap<Cow<'a, str>, Json<'a>>;

#[derive(Debug)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Only what `Int` cannot hold.
    Uint(u64),
    Float(f64),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Fields<'a>),
    /// `{"keyword": …}`, once folded.
    Keyword(Cow<'a, str>),
    /// `{"other": …}` or anything that is no scalar, once folded.
    Other(Cow<'a, str>),
}

impl Json<'_> {
    /// Makes a value of whatever stands there: `{"keyword": …}` and `{"other": …}` are what they
    /// say; other objects, arrays and fractions become their canonical text.
    pub(crate) fn fold(&mut self) {
        let folded = match self {
            Json::Object(fields) => fold_tagged(fields),
            Json::Float(_) | Json::Array(_) => None,
            _ => return,
        };
        *self = folded.unwrap_or_else(|| Json::Other(self.to_string().into()));
    }

    /// The value; none for what is not folded.
    pub(crate) fn value(&self) -> Option<ValueRef<'_>> {
        match self {
            Json::Null => Some(ValueRef::Nil),
            Json::Bool(b) => Some(ValueRef::Bool(*b)),
            Json::Int(i) => Some(ValueRef::Int(*i)),
            Json::Uint(u) => Some(ValueRef::Uint(*u)),
            Json::Text(text) => Some(ValueRef::Text(text)),
            Json::Keyword(text) => Some(ValueRef::Keyword(text)),
            Json::Other(text) => Some(ValueRef::Other(text)),
            Json::Float(_) | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// The string, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one that counts or numbers something.
    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Json::Int(i) => u64::try_from(*i).ok(),
            Json::Uint(u) => Some(*u),
            _ => None,
        }
    }
}

fn fold_tagged<'a>(fields: &mut Fields<'a>) -> Option<Json<'a>> {
    if fields.len() != 1 {
        return None;
    }
    let mut entry = fields.first_entry()?;
    let Json::Text(text) = entry.get_mut() else { return None };
    let text = std::mem::take(text);
    match &**entry.key() {
        "keyword" => Some(Json::Keyword(text)),
        "other" => Some(Json::Other(text)),
        _ => {
            *entry.get_mut() = Json::Text(text);
            None
        }
    }
}

/// The canonical text: no spaces, fields in order of their names.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_serde().fmt(f)
    }
}

impl Json<'_> {
    fn to_serde(&self) -> serde_json::Value {
        let tagged = |tag: &str, text: &str| serde_json::json!({ tag: text });
        match self {
            Json::Null => serde_json::Value::Null,
            Json::Bool(b) => (*b).into(),
            Json::Int(i) => (*i).into(),
            Json::Uint(u) => (*u).into(),
            Json::Float(f) => (*f).into(),
            Json::Text(text) => (&**text).into(),
            Json::Array(items) => items.iter().map(Json::to_serde).collect(),
            Json::Object(fields) => {
                fields.iter().map(|(name, field)| (name.to_string(), field.to_serde())).collect()
            }
            Json::Keyword(text) => tagged("keyword", text),
            Json::Other(text) => tagged("other", text),
        }
    }
}

/// Recursion is bounded: `serde_json` refuses more than 128 levels.
impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(b))
    }

    fn visit_i64<E>(self, i: i64) -> Result<Self::Value, E> {
        Ok(Json::Int(i))
    }

    fn visit_u64<E>(self, u: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(u).map_or(Json::Uint(u), Json::Int))
    }

    fn visit_f64<E: de::Error>(self, f: f64) -> Result<Self::Value, E> {
        // A whole number beyond 64 bits arrives here, already rounded: two different ones could
        // have become equal.
        const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
        if f.abs() >= TWO_TO_THE_63 {
            let found = Unexpected::Other("a number beyond 64 bits");
            return Err(E::invalid_value(found, &"a smaller one, or a string"));
        }
        Ok(Json::Float(f))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::new();
        while let Some(name) = map.next_key()? {
            let Json::Text(name) = name else {
                return Err(de::Error::custom("a field without a name"));
            };
            if fields.contains_key(&name) {
                return Err(de::Error::custom(format_args!("duplicate field {name:?}")));
            }
            fields.insert(name, map.next_value()?);
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> isolario_model::Value {
        let mut json: Json<'_> = serde_json::from_str(text).unwrap();
        json.fold();
        json.value().unwrap().to_owned()
    }

    #[test]
    fn every_document_folds_into_a_value() {
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
            (r#"[1, [null]]"#, ValueRef::Other("[1,[null]]")),
            (r#"{"b": 1, "a": "x"}"#, ValueRef::Other(r#"{"a":"x","b":1}"#)),
            (r#"{"keyword": 1}"#, ValueRef::Other(r#"{"keyword":1}"#)),
            (r#"{"key": "x"}"#, ValueRef::Other(r#"{"key":"x"}"#)),
        ];
        for (text, value) in cases {
            assert_eq!(folded(text).as_ref(), value, "{text}");
        }
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for text in ["18446744073709551616", "-9223372036854775809", "1e300", r#"{"a":1,"a":1}"#] {
            assert!(serde_json::from_str::<Json<'_>>(text).is_err(), "{text}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(serde_json::from_str::<Json<'_>>(&deep).is_err());
    }
}
