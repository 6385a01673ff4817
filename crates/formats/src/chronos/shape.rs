//! The JSON of a transaction.

use std::fmt;

use isolario_model::Stamp;
use serde::de::{self, Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::json_text::{Payload, Scalar};

/// A transaction, and how many fields it has that mean nothing here.
#[derive(Debug)]
pub(super) struct Txn<'a> {
    pub(super) session: Scalar<'a>,
    pub(super) id: Scalar<'a>,
    pub(super) start: Stamp,
    pub(super) commit: Stamp,
    pub(super) ops: Vec<Access<'a>>,
    pub(super) unknown_fields: u64,
}

/// An operation.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Access<'a> {
    pub(super) t: Kind,
    #[serde(borrow)]
    pub(super) k: Scalar<'a>,
    #[serde(borrow)]
    pub(super) v: Payload<'a>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub(super) enum Kind {
    #[serde(rename = "r")]
    Read,
    #[serde(rename = "w")]
    Write,
    #[serde(rename = "a")]
    Append,
}

/// A hybrid timestamp, as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStamp {
    p: Number,
    l: Number,
}

/// A number, which may be written as a string of decimal digits.
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 2^64-1, bare or as a string")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                // `parse` takes a plus sign, which no timestamp has.
                let digits = Some(text).filter(|text| !text.starts_with('+'));
                digits
                    .and_then(|digits| digits.parse().ok())
                    .map(Number)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Txn<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TxnVisitor)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Sid,
    Tid,
    Sts,
    Cts,
    Ops,
    #[serde(other)]
    Unknown,
}

struct TxnVisitor;

impl<'de> Visitor<'de> for TxnVisitor {
    type Value = Txn<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields `sid`, `tid`, `sts`, `cts` and `ops`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Txn<'de>, A::Error> {
        let (mut session, mut id, mut ops) = (None, None, None);
        let (mut start, mut commit) = (None::<RawStamp>, None::<RawStamp>);
        let mut unknown_fields = 0;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Sid => set(&mut session, "sid", &mut map)?,
                Field::Tid => set(&mut id, "tid", &mut map)?,
                Field::Sts => set(&mut start, "sts", &mut map)?,
                Field::Cts => set(&mut commit, "cts", &mut map)?,
                Field::Ops => set(&mut ops, "ops", &mut map)?,
                Field::Unknown => {
                    unknown_fields += 1;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let stamp = |raw: RawStamp| Stamp { physical: raw.p.0, logical: raw.l.0 };
        Ok(Txn {
            session: require(session, "sid")?,
            id: require(id, "tid")?,
            start: require(start, "sts").map(stamp)?,
            commit: require(commit, "cts").map(stamp)?,
            ops: require(ops, "ops")?,
            unknown_fields,
        })
    }
}

/// Takes the value of a field that may come once.
fn set<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.replace(map.next_value()?).is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    Ok(())
}

fn require<T, E: de::Error>(slot: Option<T>, name: &'static str) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(name))
}
