//! The reader's details; round trips and golden files are integration tests.

use isolario_model::{Clock, History, Initial, Meta, Op, Outcome, Stamp, Value, VersionRef};
use proptest::prelude::*;

use super::{Jsonl, ops, read};
use crate::{HistoryFormat, IgnoredItems, ParsedHistory, Position, Source};

fn load(text: &str) -> ParsedHistory {
    let source = Source::from_bytes("h.jsonl", text.into()).unwrap();
    Jsonl.read(&source).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    let source = Source::from_bytes("h.jsonl", text.into()).unwrap();
    match Jsonl.read(&source) {
        Ok(_) => panic!("read without an error: {text}"),
        Err(error) => error.to_string(),
    }
}

fn kinds(history: &History) -> Vec<String> {
    history.op_kinds().iter().map(|kind| format!("{kind:?}")).collect()
}

/// Rows and decimals came with version 2: until then, these objects were texts like any other.
#[test]
fn version_1_has_no_rows_and_no_decimals() {
    let line = r#"{"session":1,"ops":[["w",{"table":"t","row":{"id":1}},{"row":{"a":{"decimal":"1.5"}}}]]}"#;
    let written = |header: &str| {
        let history = load(&format!("{header}{line}")).history;
        let op = history.txns().flat_map(|txn| history.txn_ops(txn)).next().unwrap();
        match history.op(op) {
            Op::Write { key, value } => {
                (history.key_name(key).to_owned(), history.value(value).to_owned())
            }
            other => panic!("{other:?}"),
        }
    };
    let other = |text: &str| Value::Other(text.into());
    let old =
        (other(r#"{"row":{"id":1},"table":"t"}"#), other(r#"{"row":{"a":{"decimal":"1.5"}}}"#));
    assert_eq!(written("{\"isolario\":1}\n"), old);
    assert_eq!(written("# by hand\n\n{\"initial\":0,\"isolario\":1}\n"), old);
    for header in ["{\"isolario\":2}\n", ""] {
        let (key, value) = written(header);
        assert!(matches!((&key, &value), (Value::Tuple(_), Value::Tuple(_))), "{key:?} {value:?}");
    }
}

#[test]
fn a_transaction_needs_only_a_session_and_operations() {
    let history = load(r#"{"session":"a","ops":[["w","x",1]]}"#).history;
    let txn = history.txns().next().unwrap();
    assert_eq!(*history.meta(), Meta::default());
    assert_eq!(history.outcome(txn), Outcome::Committed);
    assert_eq!((history.txn_name(txn), history.line(txn)), (None, Some(1)));
}

#[test]
fn every_fact_of_a_transaction_is_read() {
    let history = load(
        r#"{"session":1,"id":"t","outcome":"unknown","start":-5,"finish":7,"db_start":3,"db_commit":[4,1],
        "snapshot":"s","error":"e","ops":[["r","x",0],["w","x",1]],"sql":{"1":"update"},
        "versions":{"0":"initial","1":{"txn":9,"write":8}}}"#
            .replace('\n', " ")
            .as_str(),
    )
    .history;
    let txn = history.txns().next().unwrap();
    let end = history.txn_end(txn);
    assert_eq!((end.outcome, end.start, end.finish), (Outcome::Unknown, Some(-5), Some(7)));
    assert_eq!(end.db_start, Some(Stamp { physical: 3, logical: 0 }));
    assert_eq!(end.db_commit, Some(Stamp { physical: 4, logical: 1 }));
    assert_eq!((end.snapshot, end.error), (Some("s"), Some("e")));
    let ops: Vec<_> = history.txn_ops(txn).collect();
    assert_eq!(history.op_sql(ops[1]), Some("update"));
    assert_eq!(history.op_version(ops[0]), Some(VersionRef::Initial));
    assert_eq!(history.op_version(ops[1]), Some(VersionRef::ByWriter { txn: 9, write: 8 }));
}

#[test]
fn the_value_of_a_read_says_whether_it_is_of_a_register_or_of_a_list() {
    let history = load(
        r#"{"session":1,"ops":[["r","x",1],["r","x",null],["r","x",[]],["r","x",[1,[2]]],["r","x",null,"unobserved"],["r","x",[],"unobserved"],["r","x",{"other":"[1]"}],["r","x","unobserved"]]}"#,
    )
    .history;
    let expected = [
        "Read",
        "Read",
        "ReadList",
        "ReadList",
        "ReadUnobserved",
        "ReadListUnobserved",
        "Read",
        "Read",
    ];
    assert_eq!(kinds(&history), expected);
}

#[test]
fn the_word_unobserved_is_a_mark_only_where_an_answer_precedes_it() {
    let history = load(
        r#"{"session":1,"ops":[["insert","x",1,false,"unobserved"],["w","x","unobserved"],["aggregate","count(*)","p","unobserved"],["aggregate","count(*)","p",null,"unobserved"]]}"#,
    )
    .history;
    let ops: Vec<_> = history.txns().flat_map(|txn| history.txn_ops(txn)).collect();
    assert!(matches!(history.op(ops[0]), Op::InsertIfAbsent { seen: Some(_), .. }));
    assert!(matches!(history.op(ops[2]), Op::Aggregate { result: Some(_), .. }));
    assert!(matches!(history.op(ops[3]), Op::Aggregate { result: None, .. }));
}

#[test]
fn the_header_states_the_initial_value_and_the_clock() {
    let cases = [
        ("0", Initial::Value(Value::Int(0))),
        ("null", Initial::Value(Value::Nil)),
        (r#"{"value":"a"}"#, Initial::Value(Value::Text("a".into()))),
        (r#"{"unless_written":0}"#, Initial::UnlessWritten(Value::Int(0))),
        (r#""unwritten""#, Initial::Unwritten),
        (r#""marked""#, Initial::Marked),
        (r#""none""#, Initial::None),
    ];
    for (text, initial) in cases {
        let history =
            load(&format!(r#"{{"isolario":1,"initial":{text},"clock":"order"}}"#)).history;
        assert_eq!(*history.meta(), Meta { initial, clock: Clock::EventOrder });
    }
}

#[test]
fn comments_and_blank_lines_count_for_nothing_and_unknown_fields_are_counted() {
    let loaded = load(
        "# a\n// b\n\n{\"isolario\":1,\"by\":\"me\"}\n\n{\"session\":1,\"ops\":[],\"x\":1,\"y\":[]}\n",
    );
    assert_eq!(loaded.history.line(loaded.history.txns().next().unwrap()), Some(6));
    let first = Position::Line(4);
    assert_eq!(loaded.ignored, [IgnoredItems { what: "unknown fields", count: 3, first }]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let cases = [
        (r#"{"session":1,"ops":[["r","x"]}"#, "1:30: expected ',' or ']', found '}'"),
        (r#"{"session":1,"ops":["#, "1:20: expected a closing ']', found the end of the input"),
        ("{} {}", "1:4: expected nothing after the value, found '{'"),
        ("[1]", "1:1: expected a JSON object, found [1]"),
        (r#"{"ops":[]}"#, r#"1:1: expected a field "session", found none"#),
        (r#"{"session":1}"#, r#"1:1: expected an array of operations as "ops", found none"#),
        (
            r#"{"session":1,"ops":[["w","x",1],["w","x"]]}"#,
            r#"1:33: expected ["w", key, value], found ["w","x"]"#,
        ),
        (
            r#"{"session":1,"ops":[["read","x",1]]}"#,
            r#"1:21: expected an array that begins with one of r, w, delete, append, insert, cas, select, update, aggregate, found ["read","x",1]"#,
        ),
        (
            r#"{"session":1,"outcome":"ok","ops":[]}"#,
            r#"1:24: expected "committed", "aborted" or "unknown" as "outcome", found "ok""#,
        ),
        (
            r#"{"session":1,"start":1.5,"ops":[]}"#,
            r#"1:22: expected a whole number as "start", found 1.5"#,
        ),
        (
            r#"{"session":1,"ops":[["w","x",18446744073709551616]]}"#,
            "1:30: expected a smaller number, or a string, found 18446744073709551616, which is beyond 64 bits",
        ),
        (
            r#"{"session":1,"ops":[["select","v > 1",[["x",1,"first"]]]]}"#,
            r#"1:21: expected ["select", predicate, [[key, value], …]] with versions as third parts, or null and "unobserved", found ["select","v > 1",[["x",1,"first"]]]"#,
        ),
        (
            r#"{"session":1,"ops":[["w","x",{"row":{"a":1,"a":2}}]]}"#,
            "1:44: expected each column once, found a",
        ),
        (
            r#"{"session":1,"ops":[],"sql":{"0":"x"}}"#,
            r#"1:30: expected positions of operations, below 0, in "sql", found 0"#,
        ),
        (
            r#"{"session":1,"ops":[["w","x",1]],"sql":{"00":"x"}}"#,
            r#"1:41: expected positions of operations, below 1, in "sql", found 00"#,
        ),
        (r#"{"session":1,"ops":[],"ops":[]}"#, r#"1:23: expected each field once, found "ops""#),
        (
            "{\"isolario\":1}\n{\"isolario\":1}",
            "2:1: expected a transaction (only the first line is a header), found a header",
        ),
        (
            r#"{"isolario":3}"#,
            r#"1:13: expected 1 or 2, the version of the format as "isolario", found 3"#,
        ),
        (
            r#"{"isolario":1,"initial":"zero"}"#,
            r#"1:25: expected a whole number, boolean or null, {"value": …}, {"unless_written": …}, "unwritten", "marked" or "none" as "initial", found "zero""#,
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), format!("h.jsonl:{message}"), "{text}");
    }
}

#[test]
fn the_schema_knows_every_operation_and_its_examples_can_be_read() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/book/src/formats/jsonl.schema.json"))
            .unwrap();
    let mut tags = Vec::new();
    constants(&schema["$defs"], &mut tags);
    for (tag, _) in ops::FORMS {
        assert!(tags.contains(tag), "the schema lacks {tag}");
    }
    let examples = schema["examples"].as_array().unwrap();
    let lines: Vec<_> = examples.iter().map(ToString::to_string).collect();
    let loaded = load(&lines.join("\n"));
    assert_eq!(loaded.history.txn_count() + 1, examples.len());
    assert_eq!(loaded.ignored, []);
}

/// All strings that the schema states under `const`.
fn constants<'s>(schema: &'s serde_json::Value, found: &mut Vec<&'s str>) {
    match schema {
        serde_json::Value::Object(fields) => {
            found.extend(fields.get("const").and_then(|text| text.as_str()));
            fields.values().for_each(|field| constants(field, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| constants(item, found)),
        _ => {}
    }
}

#[test]
fn only_lines_of_this_format_are_claimed() {
    let claims = |text: &str| Jsonl.sniff(&Source::from_bytes("h", text.into()).unwrap());
    assert!(claims(r#"{"isolario":1}"#));
    assert!(claims("\n# comment\n {\"session\":1,\"ops\":[]}"));
    assert!(claims(r#"{"session":1,"ops":[["w","x",1}"#), "a mistake is for the reader to name");
    assert!(!claims(r#"{"value": [["w", 1, 2, true]]}"#));
    assert!(!claims(r#"{"type":"ok","process":0,"f":"txn","value":[["w","ops",1]]}"#));
    assert!(!claims(r#"[{"sid":1,"ops":[]}]"#));
    assert!(!claims(""));
}

/// Lines that mean different things depending on their place, and mistakes.
const LINES: &[&str] = &[
    r#"{"session":1,"ops":[["w","x",1],["append","l",2]]}"#,
    r#"{"session":"a","id":"t","ops":[["r","l",[2,"e"]],["r","x",18446744073709551615]]}"#,
    r#"{"session":2,"ops":[["w","y","é"]],"versions":{"0":{"txn":9,"write":8}},"sql":{"0":"s"}}"#,
    r#"{"session":2,"ops":[["cas","y",1,2,true]],"color":1,"shape":2}"#,
    "# a comment",
    "",
];
const RARE: &[&str] = &[
    r#"{"isolario":1,"initial":7,"unknown":true}"#,
    r#"{"session":1}"#,
    "\u{feff}",
    r#"{"session":1,"ops":[["w","x"]]}"#,
    "{",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn chunks_do_not_show(
        head in prop::collection::vec(prop::sample::select(vec!["", "#", RARE[0]]), 0..3),
        lines in prop::collection::vec(
            prop_oneof![30 => prop::sample::select(LINES), 1 => prop::sample::select(RARE)],
            0..20,
        ),
        size in 1..200usize,
    ) {
        let text = [head, lines].concat().join("\n");
        let source = Source::from_bytes("h.jsonl", text.clone().into()).unwrap();
        let whole = read(&source, text.len());
        let chunked = read(&source, size);
        match (whole, chunked) {
            (Ok(whole), Ok(chunked)) => {
                prop_assert_eq!(&chunked.ignored, &whole.ignored);
                let (chunked, whole) = (chunked.history, whole.history);
                prop_assert_eq!(&chunked, &whole);
                prop_assert_eq!(chunked.op_keys(), whole.op_keys());
                prop_assert_eq!(chunked.encoded_values(), whole.encoded_values());
                for txn in whole.txns() {
                    prop_assert_eq!(chunked.line(txn), whole.line(txn));
                }
            }
            (Err(whole), Err(chunked)) => {
                prop_assert_eq!(chunked.to_string(), whole.to_string());
            }
            (whole, chunked) => prop_assert!(false, "{:?} {:?}", whole.err(), chunked.err()),
        }
    }
}
