use isolario_model::{Initial, Op, Outcome, Stamp, TxnId, Value, ValueRef};
use proptest::prelude::*;

use super::Chronos;
use crate::error::Position;
use crate::test_support::*;
use crate::{HistoryFormat, ParsedHistory, Source};

const GOLDEN: &str = "[
{\"sid\":3,\"tid\":50,\"sts\":{\"p\":\"10\",\"l\":1},\"cts\":{\"p\":\"20\",\"l\":1},\
\"ops\":[{\"t\":\"r\",\"k\":5,\"v\":0},{\"t\":\"w\",\"k\":5,\"v\":-9}]},
{\"sid\":3,\"tid\":7,\"sts\":{\"p\":\"20\",\"l\":1},\"cts\":{\"p\":\"30\",\"l\":1},\
\"ops\":[{\"t\":\"a\",\"k\":6,\"v\":\"x\"},{\"t\":\"r\",\"k\":6,\"v\":[null,true,\"\\\"\"]}]}
]
";

fn zero() -> Initial {
    Initial::Value(Value::Int(0))
}

fn load(text: &str) -> ParsedHistory {
    read_back(&Chronos, &own(&[("", text.as_bytes())])).unwrap()
}

fn complaint_of(text: &str) -> String {
    complaint(&Chronos, &[("", text.as_bytes())])
}

/// A file of one transaction with these operations, which begin at column 66.
fn with_ops(ops: &str) -> String {
    with_stamp("{\"p\":1,\"l\":0}", ops)
}

/// A file of one transaction with this start timestamp, at column 25.
fn with_stamp(stamp: &str, ops: &str) -> String {
    let stamps = format!("\"sts\":{stamp},\"cts\":{{\"p\":2,\"l\":0}}");
    format!("[{{\"sid\":1,\"tid\":1,{stamps},\"ops\":[{ops}]}}]")
}

#[test]
fn golden_text_is_read_and_written() {
    let key = ValueRef::Int(6);
    let elements: &[ValueRef<'_>] = &[ValueRef::Nil, ValueRef::Bool(true), ValueRef::Text("\"")];
    let lists = [
        (Op::Append { key, element: ValueRef::Text("x") }, None),
        (Op::ReadList { key, elements: Some(elements) }, None),
    ];
    let first = TestTxn { stamps: Some((10, 20)), ..txn(3, &[read(5, 0), write(5, -9)]) };
    let second = TestTxn { stamps: Some((20, 30)), ..txn(3, &lists) };
    let txns = [TestTxn { id: Some(50), ..first }, TestTxn { id: Some(7), ..second }];
    let loaded = load(GOLDEN);
    let expected = history(zero(), &txns);
    assert_eq!(bare(&loaded.history), bare(&expected));
    assert_eq!(loaded.history.txn_name(TxnId(1)), Some(ValueRef::Int(7)));
    assert_eq!(loaded.history.line(TxnId(1)), Some(3));
    assert_eq!((loaded.ignored.len(), loaded.warnings.len()), (0, 0));
    assert_eq!(written(&Chronos, &expected).unwrap(), own(&[("", GOLDEN.as_bytes())]));
    assert_eq!(claimed_by(&[("", GOLDEN.as_bytes())]), ["chronos"]);
}

#[test]
fn timestamps_are_numbers_bare_or_as_strings_and_other_fields_are_counted() {
    let text = "[{\"tid\":\"a\", \"note\":[{}], \"sid\":\"s\", \"ops\":[],
        \"sts\":{\"p\":\"18446744073709551615\",\"l\":\"2\"}, \"cts\":{\"l\":3,\"p\":4}, \"x\":0}]";
    let loaded = load(text);
    let physical = u64::MAX;
    assert_eq!(loaded.history.db_start(TxnId(0)), Some(Stamp { physical, logical: 2 }));
    assert_eq!(loaded.history.db_commit(TxnId(0)), Some(Stamp { physical: 4, logical: 3 }));
    let ignored = &loaded.ignored[0];
    assert_eq!((ignored.what, ignored.count), ("unknown fields", 2));
    assert_eq!(ignored.first, Position::Column(1, 2));
}

#[test]
fn transactions_of_a_session_are_in_order_of_appearance() {
    let txn = |tid: u64, time: u64| {
        let stamp = format!("{{\"p\":{time},\"l\":0}}");
        format!("{{\"sid\":1,\"tid\":{tid},\"sts\":{stamp},\"cts\":{stamp},\"ops\":[]}}")
    };
    let history = load(&format!("[{},{}]", txn(1, 9), txn(2, 5))).history;
    let names: Vec<_> = history.txns().filter_map(|txn| history.txn_name(txn)).collect();
    assert_eq!(names, [ValueRef::Int(1), ValueRef::Int(2)]);
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    let fields = "expected an object with the fields `sid`, `tid`, `sts`, `cts`, `ops`";
    for (text, message) in [
        ("{}", "1:1: expected '[', the beginning of an array, found '{'".to_owned()),
        ("", "1:1: expected '[', the beginning of an array, found the end of the input".to_owned()),
        ("[\n", "1:1: expected a closing ']', found the end of the input".to_owned()),
        ("[]\n x", "2:2: expected nothing after the closing bracket, found 'x'".to_owned()),
        ("[1]", format!("1:2: {fields}, found 1")),
        ("[{\"sid\":1}]", format!("1:2: {fields}, found {{\"sid\":1}}")),
        ("[{\"sid\":1,\n\"sid\":2}]", "2:1: expected each field once, found \"sid\"".to_owned()),
        ("[{\"sid\" 1}]", "1:9: expected ':', found '1'".to_owned()),
        ("[{\"sid\":1\u{1}}]", "1:10: expected ',' or '}', found '\\u{1}'".to_owned()),
    ] {
        assert_eq!(complaint_of(text), format!("h:{message}"), "{text}");
    }
    let number = "expected a whole number from 0 to 2^64-1, bare or as a string";
    for (stamp, message) in [
        ("{\"p\":\"+1\",\"l\":0}", format!("30: {number}, found \"+1\"")),
        ("{\"p\":-1,\"l\":0}", format!("30: {number}, found -1")),
        ("{\"p\":1,\"l\":0,\"q\":0}", {
            let found = "{\"p\":1,\"l\":0,\"q\":0}";
            format!("25: expected `p` and `l` alone, found {found}")
        }),
        ("7", "25: expected an object with the fields `p`, `l`, found 7".to_owned()),
    ] {
        assert_eq!(complaint_of(&with_stamp(stamp, "")), format!("h:1:{message}"), "{stamp}");
    }
    let scalar = "expected a whole number, a string, true, false or null";
    for (op, message) in [
        (
            "{\"t\":\"x\",\"k\":1,\"v\":1}",
            "71: expected \"r\", \"w\" or \"a\", found \"x\"".to_owned(),
        ),
        ("{\"t\":\"w\",\"k\":1,\"v\":[1]}", format!("85: {scalar}, found [1]")),
        ("{\"t\":\"a\",\"k\":1,\"v\":[]}", format!("85: {scalar}, found []")),
        ("{\"t\":\"r\",\"k\":1.5,\"v\":1}", format!("79: {scalar}, found 1.5")),
        ("{\"t\":\"r\",\"k\":1}", {
            let found = "{\"t\":\"r\",\"k\":1}";
            format!("66: expected an object with the fields `t`, `k`, `v`, found {found}")
        }),
    ] {
        assert_eq!(complaint_of(&with_ops(op)), format!("h:1:{message}"), "{op}");
    }
    let one = with_ops("");
    let one = &one[1..one.len() - 1];
    let twice = complaint_of(&format!("[{one},\n {one}]"));
    assert_eq!(twice, "h:2:2: expected a transaction not seen before, found transaction 1 again");
    assert_eq!(complaint_of(&format!("[{one} {one}]")), "h:1:69: expected ',' or ']', found '{'");
    assert_eq!(complaint_of(&format!("[{one},]")), "h:1:69: expected a value, found ']'");
    let directory = Source::from_files("h", vec![]);
    let error = Chronos.read(&directory).unwrap_err();
    assert_eq!(error.to_string(), "h: expected a file, found a directory");
}

#[test]
fn every_cut_is_an_error() {
    let cuts = cut_everywhere(&Chronos, &[("", GOLDEN.as_bytes())]);
    let last = cuts.len() - 1;
    for (len, cut) in cuts.into_iter().enumerate() {
        // The newline after the array is not part of it.
        if len == last {
            assert!(cut.is_ok());
            continue;
        }
        let error = cut.unwrap_err();
        let lines = GOLDEN[..len].matches('\n').count() as u64 + 1;
        assert!(
            matches!(error.position, Position::Column(line, _) if line <= lines),
            "{len}: {error}"
        );
    }
}

#[test]
fn damage_is_never_a_panic() {
    survives_damage(&Chronos, &[("", GOLDEN.as_bytes())]);
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = with_ops(&format!("{{\"t\":\"r\",\"k\":1,\"v\":{}", "[".repeat(100_000)));
    assert!(complaint_of(&deep).starts_with("h:1:"));
}

#[test]
fn what_chronos_cannot_say_is_refused() {
    let says = |txn: TestTxn, what: &str| {
        let message = format!("the chronos format cannot express {what}");
        assert_eq!(refusal(&Chronos, &history(zero(), &[txn])), message);
    };
    let with = |op| TestTxn { stamps: Some((1, 2)), ..txn(0, &[(op, None)]) };
    let no_stamps = "transactions without the database's start and commit timestamps";
    says(txn(0, &[]), no_stamps);
    says(TestTxn { outcome: Outcome::Aborted, ..txn(0, &[]) }, "aborted transactions");
    says(TestTxn { outcome: Outcome::Unknown, ..txn(0, &[]) }, "transactions of unknown outcome");
    let key = ValueRef::Int(1);
    says(with(Op::Read { key, value: None }), "an unobserved read of 1");
    says(with(Op::Delete { key }), "a delete of 1");
    let keyword = "the value :x: it takes whole numbers, strings, booleans, null";
    says(with(Op::Write { key, value: ValueRef::Keyword("x") }), keyword);
    let other = TestTxn { stamps: Some((1, 2)), ..txn(0, &[read(1, 7)]) };
    let message = "the chronos format cannot express the read of 1 that returned 7: \
                   there it would refer to another write, or to another initial state";
    assert_eq!(refusal(&Chronos, &history(Initial::Unwritten, &[other])), message);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn histories_come_back(mut txns in random_txns(-2..6, &[Outcome::Committed])) {
        txns.iter_mut().for_each(|txn| txn.stamps = txn.stamps.or(Some((1, 2))));
        let before = history(zero(), &txns);
        let after = read_back(&Chronos, &written(&Chronos, &before).unwrap()).unwrap();
        prop_assert_eq!(before, bare(&after.history));
    }
}
