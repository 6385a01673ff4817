use isolario_model::{
    History, Initial, Op, OpId, OpInput, Outcome, TxnId, Value, ValueRef, VersionRef,
};
use proptest::prelude::*;

use super::Cobra;
use super::record::{ANY, INITIAL, NULL, ReadRecord, Record, WriteRecord};
use crate::by_value::require_same_meaning;
use crate::error::Position;
use crate::narrow::as_unsigned;
use crate::test_support::*;
use crate::{HistoryFormat, OutputTarget, ParsedHistory, Source};

/// Transaction 1 writes 7 = 8 and reads the initial 9 = 0; transaction 2 reads that write.
const GOLDEN: &[u8] = b"S\0\0\0\0\0\0\0\x01\
    W\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x08\
    R\0\0\0\0\xbe\xbe\xeb\xee\0\0\0\0\xbe\xbe\xeb\xee\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0\
    C\0\0\0\0\0\0\0\x01\
    S\0\0\0\0\0\0\0\x02\
    R\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x08\
    C\0\0\0\0\0\0\0\x02";

const KEY: u64 = 7;

fn start(txn: u64) -> Record {
    Record::Start { txn }
}

fn commit(txn: u64) -> Record {
    Record::Commit { txn }
}

fn get(writer: u64, write: u64, value: u64) -> Record {
    Record::Read(ReadRecord { writer, write, key: KEY, value })
}

fn put(write: u64, value: u64) -> Record {
    Record::Write(WriteRecord { write, key: KEY, value })
}

fn log(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.write_to(&mut bytes).unwrap());
    bytes
}

fn load(files: &[(&str, &[u8])]) -> ParsedHistory {
    Cobra.read(&Source::from_files("h", own(files))).unwrap()
}

fn versions(history: &History) -> Vec<Option<VersionRef>> {
    (0..history.op_count()).map(|op| history.op_version(OpId::at(op))).collect()
}

fn complaint_of(records: &[Record]) -> String {
    complaint(&Cobra, &[("T0.log", &log(records))])
}

#[test]
fn golden_bytes_are_read_and_written() {
    let loaded = load(&[("T3.log", GOLDEN)]);
    let by_writer = VersionRef::ByWriter { txn: 1, write: 5 };
    let ops = [
        vec![version(write(7, 8), by_writer), version(read(9, 0), VersionRef::Initial)],
        vec![version(read(7, 8), by_writer)],
    ];
    let txns: Vec<_> =
        (1..).zip(&ops).map(|(id, ops)| TestTxn { id: Some(id), ..txn(3, ops) }).collect();
    assert_eq!(loaded.history, history(Initial::Marked, &txns));
    assert_eq!((loaded.ignored.len(), loaded.warnings.len()), (0, 0));
    assert_eq!(written(&Cobra, &loaded.history).unwrap(), own(&[("T3.log", GOLDEN)]));
    assert_eq!(claimed_by(&[("T3.log", GOLDEN)]), ["cobra"]);
}

#[test]
fn a_log_cut_between_records_has_a_transaction_of_unknown_outcome() {
    let cuts = cut_everywhere(&Cobra, &[("T0.log", GOLDEN)]);
    let mut unknown = 0;
    for (len, cut) in cuts.into_iter().enumerate() {
        match cut {
            Ok(loaded) => {
                let history = &loaded.history;
                let is_unknown = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
                let open = history.txns().filter(is_unknown).count();
                assert_eq!(open, loaded.warnings.len(), "cut at {len}");
                unknown += open;
            }
            Err(error) => assert!(matches!(error.position, Position::Byte(at) if at <= len as u64)),
        }
    }
    assert_eq!(unknown, 5, "after S, W, R of the first, S, R of the second");
}

#[test]
fn an_unknown_outcome_at_the_end_of_a_session_is_written_as_a_log_without_its_end() {
    let cut = log(&[start(1), commit(1), start(2), put(1, 5)]);
    let loaded = load(&[("T0.log", &cut)]);
    let warning = &loaded.warnings[0];
    assert_eq!(
        warning.message,
        "T0.log ends inside transaction 2: its outcome is taken as unknown"
    );
    assert_eq!(warning.position, Position::Byte(18));
    assert_eq!(written(&Cobra, &loaded.history).unwrap(), own(&[("T0.log", &cut)]));
}

#[test]
fn both_marks_of_the_initial_version_are_one_version() {
    let bytes = log(&[start(1), get(INITIAL, INITIAL, 3), get(NULL, NULL, 0), commit(1)]);
    let history = load(&[("T0.log", &bytes)]).history;
    assert_eq!(versions(&history), [Some(VersionRef::Initial); 2]);
}

#[test]
fn one_read_from_any_transaction_decides_how_all_versions_are_named() {
    let writes = log(&[start(1), put(4, 5), commit(1), start(2), put(4, 6), commit(2)]);
    let reads = log(&[start(3), get(ANY, 4, 5), get(INITIAL, INITIAL, 0), commit(3)]);
    let history = load(&[("T0.log", &writes), ("T1.log", &reads)]).history;
    let by_write = |value| Some(VersionRef::ByWrite { write: 4, value });
    let initial = Some(VersionRef::Initial);
    assert_eq!(versions(&history), [by_write(5), by_write(6), by_write(5), initial]);
    let files = own(&[("T0.log", &writes), ("T1.log", &reads)]);
    assert_eq!(written(&Cobra, &history).unwrap(), files);
}

#[test]
fn a_named_writer_beside_any_transaction_must_have_the_only_such_write() {
    let reads = [start(9), get(ANY, 4, 6), get(1, 4, 5), get(8, 8, 8), commit(9)];
    let one = [start(1), put(4, 5), put(4, 6), commit(1)];
    let history = load(&[("T0.log", &log(&one)), ("T1.log", &log(&reads))]).history;
    let by_write = |write, value| Some(VersionRef::ByWrite { write, value });
    let expected = [by_write(4, 5), by_write(4, 6), by_write(4, 6), by_write(4, 5), by_write(8, 8)];
    assert_eq!(versions(&history), expected);
    let two = [&one[..], &[start(2), put(4, 5), commit(2)]].concat();
    let refused = complaint(&Cobra, &[("T0.log", &log(&two)), ("T1.log", &log(&reads))]);
    let message = "h/T1.log: byte 42: expected transaction 1 alone to write this id and value \
                   (other reads here name no writer), found another write of them";
    assert_eq!(refused, message);
}

#[test]
fn what_is_wrong_is_said_with_its_byte() {
    let cases: [(&[Record], &str); 8] = [
        (&[put(1, 1)], "byte 0: expected S, the start of a transaction, found W, a write"),
        (
            &[start(1), start(2)],
            "byte 9: expected R, W, or C, the commit of transaction 1, \
             found S, the start of transaction 2",
        ),
        (
            &[start(1), commit(2)],
            "byte 9: expected R, W, or C, the commit of transaction 1, \
             found C, the commit of transaction 2",
        ),
        (
            &[commit(2)],
            "byte 0: expected S, the start of a transaction, found C, the commit of transaction 2",
        ),
        (
            &[start(1), commit(1), start(1)],
            "byte 18: expected a transaction not seen before, found transaction 1 again",
        ),
        (
            &[start(INITIAL)],
            "byte 0: expected the number of a transaction, \
             found 0xbebeebee, which does not name a transaction in reads",
        ),
        (
            &[start(1), get(NULL, INITIAL, 0)],
            "byte 9: expected write id 0xdeadbeef for the initial version, found 0xbebeebee",
        ),
        (
            &[start(1), get(INITIAL, 1, 0)],
            "byte 9: expected write id 0xbebeebee for the initial version, found 0x1",
        ),
    ];
    for (records, message) in cases {
        assert_eq!(complaint_of(records), format!("h/T0.log: {message}"));
    }
    let of_bytes = |bytes: &[u8]| complaint(&Cobra, &[("T0.log", bytes)]);
    assert_eq!(of_bytes(b"X"), "h/T0.log: byte 0: expected S, R, W or C, found the byte 0x58");
    assert_eq!(
        of_bytes(b"S\0\0"),
        "h/T0.log: byte 1: expected the transaction of a start, 8 bytes, found only 2 more bytes"
    );
    let file = Source::from_bytes("h", GOLDEN.to_vec()).unwrap();
    assert_eq!(Cobra.read(&file).unwrap_err().to_string(), "h: expected a directory, found a file");
}

#[test]
fn what_is_not_used_is_counted() {
    let loaded = load(&[("README", b"x"), ("T0.log", GOLDEN), ("T1.debug", b"y"), ("T2.log", b"")]);
    let counts: Vec<_> = loaded.ignored.iter().map(|i| (i.what, i.count)).collect();
    assert_eq!(counts, [("files that are not T*.log", 2), ("logs without transactions", 1)]);
}

#[test]
fn damage_is_never_a_panic() {
    survives_damage(&Cobra, &[("T0.log", GOLDEN), ("T1.log", &log(&[start(9), get(ANY, 5, 8)]))]);
}

#[test]
fn values_are_resolved_to_the_writes_they_came_from() {
    let zero = Initial::Value(Value::Int(0));
    let by_value = history_of(zero, &[&[write(7, 5)], &[read(7, 5), read(7, 0)]]);
    let files = written(&Cobra, &by_value).unwrap();
    let expected = [
        ("T0.log", log(&[start(1), put(1, 5), commit(1)])),
        ("T1.log", log(&[start(2), get(1, 1, 5), get(INITIAL, INITIAL, 0), commit(2)])),
    ];
    assert_eq!(files, own(&expected.each_ref().map(|(name, bytes)| (*name, &bytes[..]))));
}

#[test]
fn what_logs_cannot_say_is_refused() {
    let zero = || Initial::Value(Value::Int(0));
    let says = |initial, txns: &[&[TestOp]], what: &str| {
        let message = format!("the cobra format cannot express {what}");
        assert_eq!(refusal(&Cobra, &history_of(initial, txns)), message);
    };
    let several = "it has several candidate writers, and a log names one";
    says(zero(), &[&[read(7, 9)]], "the read of 7 that returned 9, which no transaction wrote");
    says(
        Initial::None,
        &[&[read(7, 0)]],
        "the read of 7 that returned 0, which no transaction wrote",
    );
    let twice = [&[write(7, 9)][..], &[write(7, 9)], &[read(7, 9)]];
    says(zero(), &twice, &format!("the read of 7 that returned 9: {several}"));
    let initial_or_written = [&[write(7, 0)][..], &[read(7, 0)]];
    says(zero(), &initial_or_written, &format!("the read of 7 that returned 0: {several}"));
    let range = "it takes whole numbers from 0 to 2^64-1";
    says(zero(), &[&[write(-7, 0)]], &format!("the key -7: {range}"));
    says(zero(), &[&[write(7, -1)]], &format!("the value -1: {range}"));

    let by_writer = VersionRef::ByWriter { txn: 5, write: 1 };
    let by_write = VersionRef::ByWrite { write: 1, value: 8 };
    let other = "a write of transaction #0 under the number of 5";
    says(Initial::Marked, &[&[version(write(7, 9), by_writer)]], other);
    let two_ways = [version(read(7, 9), by_writer), version(read(7, 8), by_write)];
    says(Initial::Marked, &[&two_ways], "versions that are named in two ways");
    let nameless = "operations with and without a named version in one history";
    says(Initial::Marked, &[&[version(read(7, 9), by_writer), write(7, 8)]], nameless);
    let wrong_value = [version(read(7, 9), by_write)];
    says(Initial::Marked, &[&wrong_value], "the value 9 in a version named by 8");
    let initial = [version(write(7, 9), VersionRef::Initial)];
    says(Initial::Marked, &[&initial], "a write of the initial version");
    let reserved = VersionRef::ByWriter { txn: ANY, write: 1 };
    let message = "transaction 2883448814: the number is reserved";
    says(Initial::Marked, &[&[version(read(7, 9), reserved)]], message);
}

#[test]
fn outcomes_that_logs_cannot_say_are_refused() {
    let ending = |outcome| TestTxn { outcome, ..txn(0, &[write(7, 1)]) };
    let of = |txns: &[TestTxn]| refusal(&Cobra, &history(Initial::Marked, txns));
    let message = "the cobra format cannot express aborted transactions";
    assert_eq!(of(&[ending(Outcome::Aborted)]), message);
    let message = "the cobra format cannot express \
                   a transaction of unknown outcome before others of its session";
    assert_eq!(of(&[ending(Outcome::Unknown), txn(0, &[])]), message);
}

#[test]
fn a_stream_and_a_directory_with_files_are_no_place_for_logs() {
    let history = history_of(Initial::Marked, &[&[write(7, 1)]]);
    let finish = |target| {
        let mut writer = Cobra.writer(target).unwrap();
        history.replay(&mut *writer).unwrap();
        writer.finish().unwrap_err().to_string()
    };
    let message =
        "the cobra format cannot express a history in a stream: it is a directory of files";
    assert_eq!(finish(OutputTarget::Stream(Box::new(Vec::new()))), message);
    let message = finish(OutputTarget::Path("src".into()));
    assert_eq!(message, "cannot write: src is a directory with files in it");
}

#[test]
fn numbers_of_sixty_four_bits_survive() {
    let bytes = log(&[start(u64::MAX), put(u64::MAX, u64::MAX), commit(u64::MAX)]);
    let history = load(&[("T0.log", &bytes)]).history;
    assert_eq!(history.txn_name(TxnId(0)), Some(ValueRef::Uint(u64::MAX)));
    assert_eq!(written(&Cobra, &history).unwrap(), own(&[("T0.log", &bytes)]));
}

/// Gives every transaction a number and every operation a version, as Cobra's own logs do.
fn name_versions(txns: &mut [TestTxn], writes: &[u64]) {
    let mut numbers = writes.iter().cycle().copied();
    let mut next = || numbers.next().unwrap_or(0);
    let count = txns.len() as u64;
    for (id, txn) in (1..).zip(txns) {
        txn.id = Some(id);
        for (op, version) in &mut txn.ops {
            let (writer, write) = (next() % (count + 2), next());
            *version = Some(match op {
                Op::Write { .. } => VersionRef::ByWriter { txn: id as u64, write },
                _ if writer == 0 => VersionRef::Initial,
                _ => VersionRef::ByWriter { txn: writer, write },
            });
        }
        txn.stamps = None;
    }
}

/// Makes every write unique and every read one of a write of its key, or of the initial 0.
fn make_resolvable(txns: &mut [TestTxn]) {
    let mut written: Vec<(ValueRef<'static>, ValueRef<'static>)> = Vec::new();
    let ops = |txns: &mut [TestTxn], change: &mut dyn FnMut(&mut OpInput<'static>)| {
        txns.iter_mut().flat_map(|txn| &mut txn.ops).for_each(|(op, _)| change(op));
    };
    ops(txns, &mut |op| {
        if let Op::Write { key, value } = op {
            *value = ValueRef::Int(written.len() as i64 + 1);
            written.push((*key, *value));
        }
    });
    ops(txns, &mut |op| {
        if let Op::Read { key, value: Some(value) } = op {
            let of_key = written.iter().filter(|(written, _)| written == key);
            let choices: Vec<_> = of_key.map(|(_, value)| *value).collect();
            let choice = as_unsigned(*value).unwrap_or(0) as usize % (choices.len() + 1);
            *value = choices.get(choice).copied().unwrap_or(ValueRef::Int(0));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn named_versions_come_back(
        mut txns in random_txns(0..5, &[Outcome::Committed]),
        writes in prop::collection::vec(0..40u64, 1..30),
    ) {
        name_versions(&mut txns, &writes);
        let before = history(Initial::Marked, &txns);
        let after = read_back(&Cobra, &written(&Cobra, &before).unwrap()).unwrap();
        prop_assert_eq!(before, after.history);
    }

    #[test]
    fn values_mean_the_same_once_they_are_resolved(
        mut txns in random_txns(0..8, &[Outcome::Committed]),
    ) {
        make_resolvable(&mut txns);
        let zero = Initial::Value(Value::Int(0));
        let files = written(&Cobra, &history(zero.clone(), &txns)).unwrap();
        let after = read_back(&Cobra, &files).unwrap().history;
        prop_assert_eq!(after.txn_count(), txns.len());
        prop_assert!(require_same_meaning("test", &after, &zero).is_ok());
    }
}
