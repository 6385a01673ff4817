//! `--version-order`: orders of versions, a JSON object per line.
//!
//! `{"key": "x", "values": [1, 2]}` or `{"key": "x", "writers": ["T1", "T2"]}`, earlier ones first.

use std::collections::HashMap;
use std::path::Path;

use isolario::check::StatedOrder;
use isolario::model::{History, KeyId, Op, OpId, Outcome, TxnId, ValueRef};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::failure::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: Json,
    values: Option<Vec<Json>>,
    writers: Option<Vec<Json>>,
}

/// What a file states about a history.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pub(crate) orders: Vec<StatedOrder>,
    /// How many keys and versions the history does not have.
    pub(crate) unknown: usize,
}

/// Reads the orders that a file states about the versions of a history.
pub(crate) fn read(file: &Path, history: &History) -> Result<Statements, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    parse(&text, history).map_err(|message| {
        let hint = "expected a line such as {\"key\": \"x\", \"values\": [1, 2]}";
        Failure::new(format!("{}:{message}", file.display())).with_hint(hint)
    })
}

fn parse(text: &str, history: &History) -> Result<Statements, String> {
    let names = Names::of(history);
    let mut statements = Statements::default();
    for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("{at}: {error}"))?;
        let stated = match (&line.values, &line.writers) {
            (Some(values), None) => values,
            (None, Some(writers)) => writers,
            _ => return Err(format!("{at}: either `values` or `writers` are needed")),
        };
        let key = value(&line.key).ok_or_else(|| format!("{at}: {} is no key", line.key))?;
        let Some(key) = history.find_key(key) else {
            statements.unknown += 1;
            continue;
        };
        let mut writers = Vec::new();
        for version in stated {
            match names.writer(key, version, line.values.is_some()) {
                Some(txn) if history.outcome(txn) == Outcome::Aborted => {
                    let (txn, key) = (history.txn_label(txn), history.key_name(key));
                    return Err(format!("{at}: {txn}, which wrote {version} to {key}, aborted"));
                }
                Some(txn) => writers.push(txn),
                None => statements.unknown += 1,
            }
        }
        statements.orders.push(StatedOrder { key, writers, at });
    }
    Ok(statements)
}

/// Who wrote which value, and who is called what.
struct Names<'h> {
    history: &'h History,
    writers: HashMap<(KeyId, u64), TxnId>,
    txns: HashMap<ValueRef<'h>, TxnId>,
}

impl<'h> Names<'h> {
    fn of(history: &'h History) -> Self {
        let mut writers = HashMap::new();
        for txn in history.txns() {
            for op in history.op_range(txn).map(OpId::at) {
                if let Op::Write { key, value } = history.op(op) {
                    writers.insert((key, value.word()), txn);
                }
            }
        }
        let txns = history.txns().filter_map(|txn| Some((history.txn_name(txn)?, txn))).collect();
        Names { history, writers, txns }
    }

    /// The writer of a version, given by its value or by its name.
    fn writer(&self, key: KeyId, version: &Json, by_value: bool) -> Option<TxnId> {
        let version = value(version)?;
        if by_value {
            let word = self.history.find_value(version)?.word();
            self.writers.get(&(key, word)).copied()
        } else {
            self.txns.get(&version).copied()
        }
    }
}

fn value(json: &Json) -> Option<ValueRef<'_>> {
    Some(match json {
        Json::Null => ValueRef::Nil,
        Json::Bool(value) => ValueRef::Bool(*value),
        Json::String(text) => ValueRef::Text(text),
        Json::Number(number) => match number.as_i64() {
            Some(number) => ValueRef::Int(number),
            None => ValueRef::Uint(number.as_u64()?),
        },
        Json::Array(_) | Json::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use isolario::model::{Batch, TxnEnd, TxnSink, TxnStart};

    use super::*;

    fn history() -> History {
        let mut batch = Batch::new();
        let outcomes = [Outcome::Committed, Outcome::Committed, Outcome::Aborted];
        for (number, outcome) in (1i64..).zip(outcomes) {
            let start = TxnStart { session: "s".into(), id: Some(number.into()), line: None };
            batch.begin(&start).unwrap();
            batch.op(&Op::Write { key: "x".into(), value: (10 * number).into() }).unwrap();
            batch.end(&TxnEnd::new(outcome)).unwrap();
        }
        batch.build().unwrap()
    }

    #[test]
    fn versions_are_named_by_value_or_by_writer() {
        let text = "{\"key\": \"x\", \"values\": [20, 7, 10]}\n\n{\"key\":\"x\",\"writers\":[1,2]}\n{\"key\":\"y\",\"values\":[1]}";
        let statements = parse(text, &history()).unwrap();
        let order = |writers: [u32; 2], at| StatedOrder {
            key: KeyId(0),
            writers: writers.map(TxnId).to_vec(),
            at,
        };
        assert_eq!(statements.orders, [order([1, 0], 1), order([0, 1], 3)]);
        assert_eq!(statements.unknown, 2);
    }

    #[test]
    fn aborted_versions_and_unclear_lines_are_errors() {
        for (text, error) in [
            ("{\"key\":\"x\",\"values\":[30]}", "1: 3, which wrote 30 to x, aborted"),
            ("{\"key\":\"x\"}", "1: either `values` or `writers` are needed"),
            ("{\"key\":[],\"values\":[]}", "1: [] is no key"),
        ] {
            assert_eq!(parse(text, &history()).unwrap_err(), error);
        }
        assert!(parse("{", &history()).unwrap_err().starts_with("1: EOF"));
    }
}
