use std::sync::LazyLock;

use isolario_model::{Initial, Op, Outcome, Predicate, Value, ValueRef};
use proptest::prelude::*;

use super::{Dbcop, has_header};
use crate::error::Position;
use crate::test_support::*;
use crate::{HistoryFormat, Source};

const HEADER_LEN: usize = 5 * 8 + (8 + 8) + 2 * (8 + 25);

fn zero() -> Initial {
    Initial::Value(Value::Int(0))
}

/// Puts bytes together as dbcop does.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn numbers(mut self, numbers: &[u64]) -> Bytes {
        numbers.iter().for_each(|number| self.0.extend(number.to_le_bytes()));
        self
    }

    fn text(self, text: &str) -> Bytes {
        let mut bytes = self.numbers(&[text.len() as u64]);
        bytes.0.extend(text.as_bytes());
        bytes
    }

    fn byte(mut self, byte: u8) -> Bytes {
        self.0.push(byte);
        self
    }

    fn event(self, is_write: u8, key: u64, value: u64, is_success: u8) -> Bytes {
        self.byte(is_write).numbers(&[key, value]).byte(is_success)
    }

    /// A header for so many sessions.
    fn header(sessions: u64, sizes: [u64; 3]) -> Bytes {
        let date = "1970-01-01T00:00:00+00:00";
        let [variables, txns, events] = sizes;
        let numbers = [0, sessions, variables, txns, events];
        Bytes::default().numbers(&numbers).text("isolario").text(date).text(date)
    }
}

/// Two sessions; one committed and one aborted transaction; a read and two writes.
fn golden() -> Vec<u8> {
    Bytes::header(2, [2, 1, 2])
        .numbers(&[2, 1, 2])
        .event(1, 7, 8, 1)
        .event(0, 9, 0, 1)
        .byte(1)
        .numbers(&[1, 1])
        .event(1, 7, 5, 1)
        .byte(0)
        .0
}

fn complaint_of(bytes: &[u8]) -> String {
    complaint(&Dbcop, &[("", bytes)])
}

#[test]
fn golden_bytes_are_read_and_written() {
    let aborted = TestTxn { outcome: Outcome::Aborted, ..txn(1, &[write(7, 5)]) };
    let expected = history(zero(), &[txn(0, &[write(7, 8), read(9, 0)]), aborted]);
    let loaded = read_back(&Dbcop, &own(&[("", &golden())])).unwrap();
    assert_eq!(loaded.history, expected);
    assert_eq!((loaded.ignored.len(), loaded.warnings.len()), (0, 0));
    assert_eq!(written(&Dbcop, &expected).unwrap(), own(&[("", &golden())]));
    assert_eq!(claimed_by(&[("", &golden())]), ["dbcop"]);
}

#[test]
fn a_directory_with_the_file_is_taken_too() {
    let files = [("history.bincode", &golden()[..]), ("notes.txt", b"x")];
    let loaded = read_back(&Dbcop, &own(&files)).unwrap();
    assert_eq!(loaded.history.txn_count(), 2);
    assert_eq!(loaded.ignored[0].what, "files other than history.bincode");
    assert_eq!(claimed_by(&files), ["dbcop"]);
    let cut = [("history.bincode", &golden()[..9])];
    assert!(complaint(&Dbcop, &cut).starts_with("h/history.bincode: byte 8: expected"));
    let message = "h: expected a file, or a directory with history.bincode, \
                   found a directory without it";
    assert_eq!(complaint(&Dbcop, &[("other", b"x")]), message);
}

#[test]
fn failed_events_are_dropped_and_counted() {
    let bytes = Bytes::header(1, [1, 1, 3])
        .numbers(&[1, 1, 3])
        .event(1, 7, 8, 0)
        .event(0, 7, 0, 1)
        .event(0, 7, 0, 0)
        .byte(1);
    let loaded = read_back(&Dbcop, &own(&[("", &bytes.0)])).unwrap();
    assert_eq!(loaded.history, history(zero(), &[txn(0, &[read(7, 0)])]));
    let failed = &loaded.ignored[0];
    assert_eq!((failed.what, failed.count), ("failed events", 2));
    assert_eq!(failed.first, Position::Byte(HEADER_LEN as u64 + 24));
}

#[test]
fn a_header_that_counts_other_sessions_is_a_warning_and_other_sizes_are_not() {
    let bytes = Bytes::header(5, [99, 99, 99]).numbers(&[1, 1, 0]).byte(1);
    let loaded = read_back(&Dbcop, &own(&[("", &bytes.0)])).unwrap();
    let warning = &loaded.warnings[0];
    assert_eq!(warning.message, "the header states 5 nodes, but the file has 1 sessions");
    assert_eq!(warning.position, Position::Byte(HEADER_LEN as u64));
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn sessions_without_transactions_are_counted() {
    let bytes = Bytes::header(2, [0, 1, 0]).numbers(&[2, 0, 1, 0]).byte(1);
    let loaded = read_back(&Dbcop, &own(&[("", &bytes.0)])).unwrap();
    assert_eq!(loaded.history, history(zero(), &[txn(1, &[])]));
    assert_eq!(loaded.ignored[0].what, "sessions without transactions");
}

#[test]
fn every_cut_is_an_error_with_its_byte() {
    for (len, cut) in cut_everywhere(&Dbcop, &[("", &golden())]).into_iter().enumerate() {
        let error = cut.unwrap_err();
        let is_inside = |at| at <= len as u64;
        assert!(matches!(error.position, Position::Byte(at) if is_inside(at)), "{error}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_byte() {
    let header = || Bytes::header(1, [1, 1, 1]);
    let at = |offset: usize, message: &str| format!("h: byte {}: {message}", HEADER_LEN + offset);
    let huge = header().numbers(&[u64::MAX]);
    let message = "expected at most 0 sessions, for which there are bytes, \
                   found 18446744073709551615";
    assert_eq!(complaint_of(&huge.0), at(0, message));
    let many_txns = header().numbers(&[1, 2, 0]).byte(1);
    let message = "expected at most 1 transactions, for which there are bytes, found 2";
    assert_eq!(complaint_of(&many_txns.0), at(8, message));
    let many_events = header().numbers(&[1, 1, 1]).byte(1);
    let message = "expected at most 0 events, for which there are bytes, found 1";
    assert_eq!(complaint_of(&many_events.0), at(16, message));
    let trailing = header().numbers(&[1, 1, 0]).byte(1).byte(0);
    assert_eq!(
        complaint_of(&trailing.0),
        at(25, "expected the end of the file, found 1 more bytes")
    );
    for (event, offset, message) in [
        ((2, 1), 24, "expected 0 or 1, whether the event is a write, found 2"),
        ((1, 7), 41, "expected 0 or 1, whether the event succeeded, found 7"),
    ] {
        let bytes = header().numbers(&[1, 1, 1]).event(event.0, 7, 8, event.1).byte(1);
        assert_eq!(complaint_of(&bytes.0), at(offset, message));
    }
    let bytes = header().numbers(&[1, 1, 0]).byte(9);
    let message = "expected 0 or 1, whether the transaction committed, found 9";
    assert_eq!(complaint_of(&bytes.0), at(24, message));
}

#[test]
fn texts_of_the_header_are_checked() {
    let long = Bytes::default().numbers(&[0, 0, 0, 0, 0, u64::MAX]).0;
    let message = "h: byte 48: expected the description of the history, \
                   18446744073709551615 bytes, found the end of the file";
    assert_eq!(complaint_of(&long), message);
    let binary = Bytes::default().numbers(&[0, 0, 0, 0, 0, 1]).byte(0xff).0;
    let message = complaint_of(&binary);
    let beginning = "h: byte 48: expected the description of the history in UTF-8, found";
    assert!(message.starts_with(beginning), "{message}");
}

#[test]
fn only_a_header_with_a_date_is_recognised() {
    assert!(has_header(&golden()));
    let numbers = [0; 5];
    assert!(!has_header(&Bytes::default().numbers(&numbers).text("").text("").text("").0));
    assert!(!has_header(&[0; 200]));
    assert!(!has_header(b"r(1,2,3,4)\nw(1,2,3,4)\n"));
}

#[test]
fn damage_is_never_a_panic() {
    survives_damage(&Dbcop, &[("", &golden())]);
}

#[test]
fn what_dbcop_cannot_say_is_refused() {
    let says = |history: &isolario_model::History, what: &str| {
        let message = format!("the dbcop format cannot express {what}");
        assert_eq!(refusal(&Dbcop, history), message);
    };
    let unknown = TestTxn { outcome: Outcome::Unknown, ..txn(0, &[]) };
    says(&history(zero(), &[unknown]), "transactions of unknown outcome");
    let other = "the read of 1 that returned 5: \
                 there it would refer to another write, or to another initial state";
    says(&history_of(Initial::Unwritten, &[&[read(1, 5)]]), other);
    let key = ValueRef::Text("x");
    let ops = |op| history_of(zero(), &[&[(op, None)]]);
    let number = "it takes whole numbers from 0 to 2^64-1";
    says(&ops(Op::Read { key, value: Some(key) }), &format!("the key x: {number}"));
    static PREDICATE: LazyLock<Predicate> = LazyLock::new(|| Predicate::unparsed("p"));
    for (op, what) in [
        (Op::Read { key, value: None }, "an unobserved read of x"),
        (Op::Delete { key }, "a delete of x"),
        (Op::Append { key, element: key }, "an append to x"),
        (Op::ReadList { key, elements: Some(&[]) }, "a read of the list x"),
        (Op::ReadList { key, elements: None }, "an unobserved read of the list x"),
        (
            Op::InsertIfAbsent { key, value: key, applied: None, seen: None },
            "an insert-if-absent of x",
        ),
        (
            Op::CompareAndSet { key, expected: key, new: key, applied: None, seen: None },
            "a compare-and-set of x",
        ),
        (Op::PredicateRead { predicate: &PREDICATE, rows: None }, "predicate operations"),
    ] {
        says(&ops(op), what);
    }
}

#[test]
fn numbers_of_sixty_four_bits_survive() {
    let (key, value) = (ValueRef::from(u64::MAX), ValueRef::from(u64::MAX - 1));
    let before = history_of(zero(), &[&[(Op::Write { key, value }, None)]]);
    let after = read_back(&Dbcop, &written(&Dbcop, &before).unwrap()).unwrap();
    assert_eq!(after.history, before);
}

#[test]
fn a_history_that_ends_inside_a_transaction_is_not_written() {
    use isolario_model::TxnStart;
    let target = crate::OutputTarget::Stream(Box::new(Vec::new()));
    let mut writer = Dbcop.writer(target).unwrap();
    writer.begin(&TxnStart { session: ValueRef::Int(0), id: None, line: None }).unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.to_string(), "the history ends inside a transaction");
}

#[test]
fn packed_files_are_read() {
    let packed = zstd::encode_all(&golden()[..], 3).unwrap();
    let source = Source::from_bytes("h.zst", packed).unwrap();
    assert_eq!(Dbcop.read(&source).unwrap().history.txn_count(), 2);
}

/// Gives the sessions in use the numbers 0, 1, … as the format does.
fn number_sessions(txns: &mut [TestTxn]) {
    let mut sessions: Vec<i64> = txns.iter().map(|txn| txn.session).collect();
    sessions.dedup();
    for txn in txns {
        txn.session = sessions.iter().position(|s| *s == txn.session).unwrap_or(0) as i64;
        txn.stamps = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn histories_come_back(
        mut txns in random_txns(0..6, &[Outcome::Committed, Outcome::Aborted]),
    ) {
        number_sessions(&mut txns);
        let before = history(zero(), &txns);
        let after = read_back(&Dbcop, &written(&Dbcop, &before).unwrap()).unwrap();
        prop_assert_eq!(before, after.history);
    }
}
