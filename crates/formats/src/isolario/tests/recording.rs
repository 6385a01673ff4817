//! What a recorder leaves behind, finished or not.

use isolario_model::{
    Clock, Initial, Meta, Op, OpNotes, Outcome, Stamp, TxnEnd, TxnId, TxnStart, Value, ValueRef,
};

use super::random::Dice;
use super::{TempFile, describe, history, read, write};
use crate::{Recorder, TxnNumber};

fn start<'a>(session: i64) -> TxnStart<'a> {
    TxnStart { session: session.into(), id: None, line: None }
}

fn create(file: &TempFile) -> Recorder {
    Recorder::create(file.path(), &Meta::default()).unwrap()
}

#[test]
fn a_recording_of_any_history_reads_back_before_and_after_it_is_finished() {
    let file = TempFile::new();
    let random = history(|sink| Dice::new(11).tell(60, sink));
    let mut recorder = Recorder::create(file.path(), random.meta()).unwrap();
    for txn in random.txns() {
        let session = random.session_name(random.session_of(txn));
        let start = TxnStart { session, id: random.txn_name(txn), line: random.line(txn) };
        let number = recorder.begin(&start, None, &[]).unwrap();
        for op in random.txn_ops(txn) {
            let notes = OpNotes { version: random.op_version(op), sql: random.op_sql(op) };
            random.with_op_input(op, |op| recorder.op(number, op, &notes)).unwrap();
        }
        recorder.end(number, &random.txn_end(txn)).unwrap();
    }
    recorder.flush().unwrap();
    let running = crate::read(file.path()).unwrap();
    assert!(running.history == random);
    assert_eq!(
        running.warnings[0].message,
        "the file has no end mark: it was cut, or its recorder did not finish"
    );
    recorder.finish().unwrap();
    let finished = crate::read(file.path()).unwrap();
    assert!(finished.history == random);
    assert!(finished.warnings.is_empty());
}

#[test]
fn what_is_in_flight_becomes_unknown_with_the_writes_it_meant_to_make() {
    let file = TempFile::new();
    let mut recorder = create(&file);
    let none = OpNotes::default();
    let first =
        recorder.begin(&start(1), Some(5), &[write(1, 10), write(1, 10), write(2, 20)]).unwrap();
    let cas = |applied| Op::CompareAndSet {
        key: ValueRef::Int(3),
        expected: ValueRef::Int(0),
        new: ValueRef::Int(1),
        applied,
        seen: None,
    };
    let other = recorder.begin(&start(2), None, &[cas(None), read(4, 0)]).unwrap();
    recorder.op(first, &write(1, 10), &none).unwrap();
    recorder.op(other, &cas(Some(true)), &none).unwrap();
    drop(recorder);

    let loaded = crate::read(file.path()).unwrap();
    let expected = history(|sink| {
        sink.begin(&start(1))?;
        for op in [write(1, 10), write(1, 10), write(2, 20)] {
            sink.op(&op)?;
        }
        sink.end(&TxnEnd { start: Some(5), ..TxnEnd::new(Outcome::Unknown) })?;
        sink.begin(&start(2))?;
        sink.op(&cas(Some(true)))?;
        sink.op(&Op::Read { key: ValueRef::Int(4), value: None })?;
        sink.end(&TxnEnd::new(Outcome::Unknown))
    });
    assert!(loaded.history == expected, "{}", describe(&loaded.history, TxnId(0)));
    assert_eq!(
        loaded.warnings[1].message,
        "2 transactions have begun and not ended: their outcome is unknown"
    );
}

#[test]
fn what_was_meant_and_not_done_counts_only_where_the_outcome_is_unknown() {
    for (outcome, ops) in [(Outcome::Committed, 0), (Outcome::Aborted, 0), (Outcome::Unknown, 1)] {
        let file = TempFile::new();
        let mut recorder = create(&file);
        let txn = recorder.begin(&start(1), Some(1), &[write(1, 1)]).unwrap();
        recorder.end(txn, &TxnEnd { start: Some(2), ..TxnEnd::new(outcome) }).unwrap();
        recorder.finish().unwrap();
        let loaded = crate::read(file.path()).unwrap();
        assert_eq!(loaded.history.op_count(), ops, "{outcome:?}");
        assert_eq!(loaded.history.start(TxnId(0)), Some(2));
    }
}

#[test]
fn transactions_of_many_sessions_interleave() {
    let file = TempFile::new();
    let meta = Meta { initial: Initial::Value(Value::Int(0)), clock: Clock::EventOrder };
    let mut recorder = Recorder::create(file.path(), &meta).unwrap();
    let txns: Vec<TxnNumber> =
        (0..5).map(|s| recorder.begin(&start(s), None, &[write(s, s)]).unwrap()).collect();
    for (session, txn) in txns.iter().enumerate() {
        recorder.op(*txn, &write(session as i64, session as i64), &OpNotes::default()).unwrap();
    }
    for txn in txns.iter().rev() {
        let stamp = Some(Stamp { physical: 7, logical: 1 });
        let end = TxnEnd { db_commit: stamp, ..TxnEnd::new(Outcome::Committed) };
        recorder.end(*txn, &end).unwrap();
    }
    recorder.finish().unwrap();
    let loaded = crate::read(file.path()).unwrap();
    assert_eq!(loaded.history.meta(), &meta);
    // Sessions are numbered in the order in which their first transactions finish.
    let names: Vec<_> =
        loaded.history.sessions().map(|s| loaded.history.session_name(s).to_string()).collect();
    assert_eq!(names, ["4", "3", "2", "1", "0"]);
    assert!(loaded.history.txns().all(|txn| loaded.history.txn_ops(txn).len() == 1));
}

#[test]
fn records_out_of_order_are_refused_and_leave_the_file_whole() {
    let file = TempFile::new();
    let mut recorder = create(&file);
    let txn = recorder.begin(&start(1), None, &[]).unwrap();
    recorder.end(txn, &TxnEnd::new(Outcome::Committed)).unwrap();
    assert!(recorder.op(txn, &write(1, 1), &OpNotes::default()).is_err());
    assert!(recorder.end(txn, &TxnEnd::new(Outcome::Committed)).is_err());
    recorder.finish().unwrap();
    assert_eq!(crate::read(file.path()).unwrap().history.txn_count(), 1);
}

#[test]
fn a_recording_that_cannot_be_packed_stays_readable() {
    let file = TempFile::new();
    let mut recorder = create(&file);
    let txn = recorder.begin(&start(1), None, &[]).unwrap();
    recorder.end(txn, &TxnEnd::new(Outcome::Committed)).unwrap();
    // A directory where the packed file would go.
    let packing = file.path().with_extension("iso.packing");
    std::fs::create_dir(&packing).unwrap();
    assert!(recorder.finish().is_err());
    std::fs::remove_dir(&packing).unwrap();
    assert_eq!(crate::read(file.path()).unwrap().history.txn_count(), 1);
}
