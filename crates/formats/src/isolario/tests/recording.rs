//! What a recorder leaves behind, finished or not.

use std::path::Path;

use isolario_fuzz::arbitrary::{Facts, sample};
use isolario_model::{
    Clock, Initial, Meta, Op, Outcome, SinkError, Stamp, TxnEnd, TxnId, TxnStart, Value, ValueRef,
};

use tempfile::NamedTempFile;

use super::super::layout::read_header;
use super::{describe, history, load, read, temp_file, write};
use crate::LiveRecorder;

fn create(file: &NamedTempFile) -> LiveRecorder {
    LiveRecorder::create(file.path(), &Meta::default()).unwrap()
}

fn start<'a>(session: i64) -> TxnStart<'a> {
    TxnStart { session: session.into(), id: None, line: None }
}

fn committed<'a>() -> TxnEnd<'a> {
    TxnEnd::new(Outcome::Committed)
}

#[test]
fn sessions_record_from_their_own_threads() {
    let file = temp_file();
    let recorder = create(&file).keeping(1 << 20);
    std::thread::scope(|scope| {
        for session in 0..4 {
            let mut records = recorder.session();
            scope.spawn(move || {
                for value in 0..500 {
                    let op = write(session, value);
                    records.begin(&start(session), Some(value), &[op]).unwrap();
                    records.op(&op).unwrap();
                    records.end(&committed()).unwrap();
                }
                records.flush().unwrap();
            });
        }
    });
    let running = crate::read(file.path()).unwrap().history;
    let kept = recorder.finish().unwrap().unwrap();
    let finished = crate::read(file.path()).unwrap();
    assert!(finished.warnings.is_empty());
    assert!(kept.history == finished.history);
    for history in [running, finished.history] {
        assert_eq!((history.txn_count(), history.op_count()), (2000, 2000));
        for session in history.sessions() {
            let starts: Vec<_> =
                history.session_txns(session).map(|txn| history.start(txn)).collect();
            assert!(starts.is_sorted(), "in the order of the session");
        }
    }
}

#[test]
fn before_a_transaction_is_sent_the_file_has_its_writes_and_all_its_session_did() {
    let file = temp_file();
    let recorder = create(&file);
    let mut records = recorder.session();
    let outcomes = || {
        let history = crate::read(file.path()).unwrap().history;
        let outcomes: Vec<_> = history.txns().map(|txn| history.outcome(txn)).collect();
        (outcomes, history.op_count())
    };
    records.begin(&start(0), None, &[write(1, 1)]).unwrap();
    assert_eq!(outcomes(), (vec![Outcome::Unknown], 1));
    records.op(&write(1, 1)).unwrap();
    records.end(&committed()).unwrap();
    records.begin(&start(0), None, &[write(1, 2), write(1, 3)]).unwrap();
    assert_eq!(outcomes(), (vec![Outcome::Committed, Outcome::Unknown], 3));
}

#[test]
fn records_out_of_order_are_refused() {
    let file = temp_file();
    let recorder = create(&file);
    let mut records = recorder.session();
    let is_sequence = |result| matches!(result, Err(SinkError::Sequence(_)));
    assert!(is_sequence(records.op(&write(1, 1))));
    assert!(is_sequence(records.end(&committed())));
    records.begin(&start(0), None, &[]).unwrap();
    assert!(is_sequence(records.begin(&start(0), None, &[])));
}

/// The device that is always full.
#[test]
fn a_full_disk_is_an_error() {
    let full = Path::new("/dev/full");
    let error = LiveRecorder::create(full, &Meta::default()).unwrap_err();
    assert!(
        matches!(error, SinkError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull)
    );
}

#[test]
fn a_recording_of_any_history_reads_back_before_and_after_it_is_finished() {
    let file = temp_file();
    let random = sample(Facts::WithoutNotes, 60).unwrap();
    let recorder = LiveRecorder::create(file.path(), random.meta()).unwrap().keeping(1 << 20);
    let mut records = recorder.session();
    for txn in random.txns() {
        let session = random.session_name(random.session_of(txn));
        let start = TxnStart { session, id: random.txn_name(txn), line: random.line(txn) };
        records.begin(&start, None, &[]).unwrap();
        for op in random.txn_ops(txn) {
            random.with_op_input(op, |op| records.op(op)).unwrap();
        }
        records.end(&random.txn_end(txn)).unwrap();
    }
    records.flush().unwrap();
    let running = crate::read(file.path()).unwrap();
    assert!(running.history == random);
    assert_eq!(
        running.warnings[0].message,
        "the file has no end mark: it was truncated, or its recorder did not finish"
    );
    let kept = recorder.finish().unwrap().unwrap();
    let finished = crate::read(file.path()).unwrap();
    for parsed in [kept, finished] {
        assert!(parsed.history == random);
        assert!(parsed.warnings.is_empty());
    }
}

/// Of more blocks than one, which readers put together in another way.
#[test]
fn what_is_kept_is_what_a_reader_of_the_file_finds() {
    let recorded = |allowed: usize| {
        let file = temp_file();
        let recorder = create(&file).keeping(allowed);
        let mut sessions: Vec<_> = (0..3).map(|_| recorder.session()).collect();
        for value in 0..150_000 {
            let (session, op) = (value % 3, write(value % 7, value));
            let records = &mut sessions[session as usize];
            records.begin(&start(session), Some(value), &[op]).unwrap();
            records.op(&op).unwrap();
            records.end(&TxnEnd { finish: Some(value + 2), ..committed() }).unwrap();
        }
        sessions.iter_mut().for_each(|records| records.flush().unwrap());
        drop(sessions);
        let kept = recorder.finish().unwrap();
        (kept.map(|kept| kept.history), crate::read(file.path()).unwrap().history)
    };
    let (kept, read) = recorded(1 << 24);
    assert!(kept.unwrap() == read);
    let (kept, read) = recorded(1 << 10);
    assert!(kept.is_none());
    assert_eq!(read.txn_count(), 150_000);
}

#[test]
fn what_is_in_flight_becomes_unknown_with_the_writes_it_meant_to_make() {
    let file = temp_file();
    let recorder = create(&file);
    let (mut first, mut second) = (recorder.session(), recorder.session());
    first.begin(&start(1), Some(5), &[write(1, 10), write(1, 10), write(2, 20)]).unwrap();
    let cas = |applied| Op::CompareAndSet {
        key: ValueRef::Int(3),
        expected: ValueRef::Int(0),
        new: ValueRef::Int(1),
        applied,
        seen: None,
    };
    second.begin(&start(2), None, &[cas(None), read(4, 0)]).unwrap();
    first.op(&write(1, 10)).unwrap();
    second.op(&cas(Some(true))).unwrap();
    first.flush().unwrap();
    second.flush().unwrap();

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
        "2 transactions began and did not end: their outcome is unknown"
    );
}

#[test]
fn what_was_meant_and_not_done_counts_only_where_the_outcome_is_unknown() {
    for (outcome, ops) in [(Outcome::Committed, 0), (Outcome::Aborted, 0), (Outcome::Unknown, 1)] {
        let file = temp_file();
        let recorder = create(&file);
        let mut records = recorder.session();
        records.begin(&start(1), Some(1), &[write(1, 1)]).unwrap();
        records.end(&TxnEnd { start: Some(2), ..TxnEnd::new(outcome) }).unwrap();
        records.flush().unwrap();
        recorder.finish().unwrap();
        let loaded = crate::read(file.path()).unwrap();
        assert_eq!(loaded.history.op_count(), ops, "{outcome:?}");
        assert_eq!(loaded.history.start(TxnId(0)), Some(2));
    }
}

#[test]
fn transactions_of_many_sessions_interleave() {
    let file = temp_file();
    let meta = Meta { initial: Initial::Value(Value::Int(0)), clock: Clock::EventOrder };
    let recorder = LiveRecorder::create(file.path(), &meta).unwrap();
    let mut sessions: Vec<_> = (0..5i64).map(|name| (name, recorder.session())).collect();
    for (name, records) in &mut sessions {
        records.begin(&start(*name), None, &[write(*name, *name)]).unwrap();
    }
    for (name, records) in sessions.iter_mut().rev() {
        records.op(&write(*name, *name)).unwrap();
        let db_commit = Some(Stamp { physical: 7, logical: 1 });
        records.end(&TxnEnd { db_commit, ..committed() }).unwrap();
        records.flush().unwrap();
    }
    recorder.finish().unwrap();
    let history = crate::read(file.path()).unwrap().history;
    assert_eq!(history.meta(), &meta);
    // Sessions are numbered in the order in which their first transactions finish.
    let names: Vec<_> = history.sessions().map(|s| history.session_name(s).to_string()).collect();
    assert_eq!(names, ["4", "3", "2", "1", "0"]);
    assert!(history.txns().all(|txn| history.txn_ops(txn).len() == 1));
}

#[test]
fn a_recording_that_cannot_be_packed_stays_readable() {
    let file = temp_file();
    let recorder = create(&file);
    let mut records = recorder.session();
    records.begin(&start(1), None, &[]).unwrap();
    records.end(&committed()).unwrap();
    records.flush().unwrap();
    // A directory where the packed file would go.
    let packing = format!("{}.packing", file.path().display());
    std::fs::create_dir(&packing).unwrap();
    assert!(recorder.finish().is_err());
    std::fs::remove_dir(&packing).unwrap();
    assert_eq!(crate::read(file.path()).unwrap().history.txn_count(), 1);
}

/// Files of versions 1 and 2 differ from those of 3 and 4 in nothing that they use.
#[test]
fn files_of_older_versions_are_read_as_ever() {
    let as_version = |path: &Path, version: u8| {
        let mut bytes = std::fs::read(path).unwrap();
        let crc = read_header(&bytes).unwrap().len - 4;
        bytes[8] = version;
        let fits = crc32fast::hash(&bytes[..crc]).to_le_bytes();
        bytes[crc..crc + 4].copy_from_slice(&fits);
        load(&bytes).unwrap().history
    };
    let file = temp_file();
    let recorder = create(&file);
    let mut records = recorder.session();
    for value in 0..3 {
        records.begin(&start(0), Some(value), &[write(1, value)]).unwrap();
        records.op(&write(1, value)).unwrap();
        records.end(&committed()).unwrap();
    }
    records.flush().unwrap();
    let running = as_version(file.path(), 2);
    recorder.finish().unwrap();
    let finished = as_version(file.path(), 1);
    let now = crate::read(file.path()).unwrap().history;
    assert_eq!(now.txn_count(), 3);
    assert!(running == now && finished == now);
}
