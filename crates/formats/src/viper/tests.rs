use isolario_model::{Initial, Op, Outcome, Value, ValueRef, VersionRef};
use proptest::prelude::*;

use super::Viper;
use crate::error::Position;
use crate::test_support::*;
use crate::{HistoryFormat, Source};

const GOLDEN: &str =
    "{\"value\": [[\"w\", 1, -10, true], [\"r\", 2, 7, false]]}\n{\"value\": []}\n";

fn complaint_of(text: &str) -> String {
    complaint(&Viper, &[("J0.log", text.as_bytes())])
}

#[test]
fn golden_lines_are_read_and_written() {
    let files = [("J24.log", GOLDEN.as_bytes())];
    let expected =
        history(Initial::Unwritten, &[txn(24, &[write(1, -10), read(2, 7)]), txn(24, &[])]);
    let loaded = read_back(&Viper, &own(&files)).unwrap();
    assert_eq!(bare(&loaded.history), expected);
    let lines: Vec<_> = loaded.history.txns().map(|txn| loaded.history.line(txn)).collect();
    assert_eq!(lines, [Some(1), Some(2)]);
    assert_eq!((loaded.ignored.len(), loaded.warnings.len()), (0, 0));
    assert_eq!(written(&Viper, &expected).unwrap(), own(&files));
    assert_eq!(claimed_by(&files), ["viper"]);
}

#[test]
fn files_of_any_name_are_sessions_and_what_is_not_used_is_counted() {
    let odd = "\r\n {\"extra\": [{}], \"value\" : [[\"w\", 1, 1, false]], \"time\": 3}";
    let files = [(".hidden", &b"\0"[..]), ("alice", odd.as_bytes()), ("bob.json", b"\n")];
    let loaded = read_back_unsniffed(&files);
    assert_eq!(loaded.history.session_name(isolario_model::SessionId(0)), "alice".into());
    let counts: Vec<_> = loaded.ignored.iter().map(|i| (i.what, i.count, i.first)).collect();
    let line = Position::Line(2);
    let expected = [
        ("hidden files", 1, Position::Whole),
        ("files without transactions", 1, Position::Whole),
        ("unknown fields", 2, line),
        ("flags other than true of writes, false of reads", 1, line),
    ];
    assert_eq!(counts, expected);
}

fn read_back_unsniffed(files: &[(&str, &[u8])]) -> crate::ParsedHistory {
    Viper.read(&Source::from_files("h", own(files))).unwrap()
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    let ops = |ops: &str| complaint_of(&format!("{GOLDEN}{{\"value\": [{ops}]}}"));
    for op in [
        "[\"x\",1,2,true]",
        "[\"w\",\"k\",2,true]",
        "[\"w\",1,9223372036854775808,true]",
        "[\"w\",1,2]",
        "[\"w\",1,2,1]",
        "7",
    ] {
        let expected = "expected [\"r\" or \"w\", key, value, flag]";
        assert_eq!(ops(op), format!("h/J0.log:3:12: {expected}, found {op}"));
    }
    let object = "expected an object with the field `value`";
    for (text, message) in [
        ("[]", format!("1: {object}, found []")),
        ("{}", format!("1: {object}, found {{}}")),
        ("{\"value\": 1}", "11: expected an array of operations, found 1".to_owned()),
        (
            "{\"value\": [], \"value\": []}",
            "15: expected each field once, found \"value\"".to_owned(),
        ),
        ("{\"value\": []} x", "15: expected nothing after the value, found 'x'".to_owned()),
        ("{\"value\": [}", "12: expected a value, found '}'".to_owned()),
    ] {
        assert_eq!(complaint_of(text), format!("h/J0.log:1:{message}"));
    }
    let file = Source::from_bytes("h", GOLDEN.into()).unwrap();
    assert_eq!(Viper.read(&file).unwrap_err().to_string(), "h: expected a directory, found a file");
}

#[test]
fn a_cut_inside_a_line_is_an_error_in_that_line() {
    let first_line = GOLDEN.find('\n').unwrap();
    let cuts = cut_everywhere(&Viper, &[("J0.log", GOLDEN.as_bytes())]);
    for (len, cut) in cuts.into_iter().enumerate() {
        let is_whole =
            len == 0 || (first_line..=first_line + 1).contains(&len) || len + 1 == GOLDEN.len();
        match cut {
            Ok(_) => assert!(is_whole, "cut at {len}"),
            Err(error) => {
                let line = if len <= first_line { 1 } else { 2 };
                assert!(
                    !is_whole && matches!(error.position, Position::Column(l, _) if l == line),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn damage_is_never_a_panic() {
    survives_damage(&Viper, &[("J0.log", GOLDEN.as_bytes())]);
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("{{\"value\": {}", "[".repeat(100_000));
    assert!(complaint_of(&deep).starts_with("h/J0.log:1:"));
}

#[test]
fn what_viper_cannot_say_is_refused() {
    let says = |history: &isolario_model::History, what: &str| {
        let message = format!("the viper format cannot express {what}");
        assert_eq!(refusal(&Viper, history), message);
    };
    for (outcome, what) in [
        (Outcome::Aborted, "aborted transactions"),
        (Outcome::Unknown, "transactions of unknown outcome"),
    ] {
        says(&history(Initial::Unwritten, &[TestTxn { outcome, ..txn(0, &[]) }]), what);
    }
    let other = "the read of 1 that returned 5: \
                 there it would refer to another write, or to another initial state";
    says(&history_of(Initial::None, &[&[read(1, 5)]]), other);
    let zero = Initial::Value(Value::Int(0));
    says(&history_of(zero, &[&[read(1, 5)]]), other);
    let marked = [
        version(read(1, 5), VersionRef::Initial),
        version(write(1, 5), VersionRef::ByWriter { txn: 1, write: 1 }),
    ];
    says(&history_of(Initial::Marked, &[&marked]), other);
    let op = Op::Write { key: ValueRef::Int(1), value: ValueRef::from(u64::MAX) };
    let what = "the value 18446744073709551615: it takes whole numbers from -2^63 to 2^63-1";
    says(&history_of(Initial::Unwritten, &[&[(op, None)]]), what);
    let op = Op::Delete { key: ValueRef::Int(1) };
    says(&history_of(Initial::Unwritten, &[&[(op, None)]]), "a delete of 1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn histories_come_back(mut txns in random_txns(-5..i64::MAX, &[Outcome::Committed])) {
        txns.iter_mut().for_each(|txn| txn.stamps = None);
        let before = history(Initial::Unwritten, &txns);
        let after = read_back(&Viper, &written(&Viper, &before).unwrap()).unwrap();
        prop_assert_eq!(before, bare(&after.history));
    }
}
