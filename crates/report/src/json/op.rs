//! Operations and values as JSON.

use isolario_model::{History, KeyId, Op, OpId, RowView, ValueId, ValueRef};
use serde::{Serialize, Serializer};

/// The largest integer up to which JSON readers that use floating point are exact.
const EXACT: u64 = 1 << 53;

/// A value: integers beyond 2^53 and decimals as strings, keywords with their colon, what a row
/// holds as an object.
#[derive(Clone, Copy)]
pub(super) struct JsonValue<'a>(pub(super) ValueRef<'a>);

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Nil => serializer.serialize_unit(),
            ValueRef::Bool(b) => serializer.serialize_bool(b),
            ValueRef::Int(i) if i.unsigned_abs() <= EXACT => serializer.serialize_i64(i),
            ValueRef::Text(s) => serializer.serialize_str(s),
            // What a row holds. The key of a row is a name like any other.
            ValueRef::Tuple(tuple) if tuple.table().is_empty() => serializer
                .collect_map(tuple.columns().map(|(name, value)| (name, JsonValue(value)))),
            other => serializer.collect_str(&other),
        }
    }
}

/// An operation, by its short name in `op`.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum JsonOp<'a> {
    R {
        key: JsonValue<'a>,
        value: Seen<'a>,
        #[serde(skip_serializing_if = "is_false")]
        unobserved: bool,
    },
    W {
        key: JsonValue<'a>,
        value: JsonValue<'a>,
    },
    Delete {
        key: JsonValue<'a>,
    },
    Append {
        key: JsonValue<'a>,
        value: JsonValue<'a>,
    },
    Insert {
        key: JsonValue<'a>,
        value: JsonValue<'a>,
        applied: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seen: Option<JsonValue<'a>>,
    },
    Cas {
        key: JsonValue<'a>,
        expected: JsonValue<'a>,
        new: JsonValue<'a>,
        applied: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seen: Option<JsonValue<'a>>,
    },
    Select {
        predicate: String,
        rows: Option<Rows<'a>>,
    },
    Update {
        predicate: String,
        rows: Option<Rows<'a>>,
    },
    Aggregate {
        function: String,
        predicate: String,
        value: Option<JsonValue<'a>>,
    },
    /// A kind of operation newer than this program.
    Other {},
}

type Rows<'a> = Vec<(JsonValue<'a>, JsonValue<'a>)>;

/// What a read returned: one value, or the elements of a list.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Seen<'a> {
    One(Option<JsonValue<'a>>),
    List(Vec<JsonValue<'a>>),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> JsonOp<'a> {
    pub(super) fn of(history: &'a History, op: OpId) -> Self {
        let name = |key: KeyId| JsonValue(history.key_name(key));
        let value = |id: ValueId| JsonValue(history.value(id));
        let rows = |rows: &[RowView]| -> Rows<'a> {
            rows.iter().map(|row| (name(row.key), value(row.value))).collect()
        };
        match history.op(op) {
            Op::Read { key, value: seen } => JsonOp::R {
                key: name(key),
                value: Seen::One(seen.map(value)),
                unobserved: seen.is_none(),
            },
            Op::ReadList { key, elements } => JsonOp::R {
                key: name(key),
                value: match elements {
                    Some(elements) => Seen::List(elements.iter().map(|v| value(*v)).collect()),
                    None => Seen::One(None),
                },
                unobserved: elements.is_none(),
            },
            Op::Write { key, value: v } => JsonOp::W { key: name(key), value: value(v) },
            Op::Delete { key } => JsonOp::Delete { key: name(key) },
            Op::Append { key, element } => JsonOp::Append { key: name(key), value: value(element) },
            Op::InsertIfAbsent { key, value: v, applied, seen } => {
                JsonOp::Insert { key: name(key), value: value(v), applied, seen: seen.map(value) }
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => JsonOp::Cas {
                key: name(key),
                expected: value(expected),
                new: value(new),
                applied,
                seen: seen.map(value),
            },
            Op::PredicateRead { predicate, rows: seen } => {
                JsonOp::Select { predicate: predicate.to_string(), rows: seen.map(rows) }
            }
            Op::PredicateWrite { predicate, rows: written } => {
                JsonOp::Update { predicate: predicate.to_string(), rows: written.map(rows) }
            }
            Op::Aggregate { function, predicate, result } => JsonOp::Aggregate {
                function: function.to_string(),
                predicate: predicate.to_string(),
                value: result.map(value),
            },
            _ => JsonOp::Other {},
        }
    }
}
