//! What many sessions record at once.

use std::path::Path;

use isolario_model::{Meta, Outcome, SinkError, TxnEnd, TxnStart};

use super::{TempFile, write};
use crate::LiveRecorder;

fn start<'a>(session: i64) -> TxnStart<'a> {
    TxnStart { session: session.into(), id: None, line: None }
}

fn committed<'a>() -> TxnEnd<'a> {
    TxnEnd::new(Outcome::Committed)
}

#[test]
fn sessions_record_from_their_own_threads() {
    let file = TempFile::new();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
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
    recorder.finish().unwrap();
    let finished = crate::read(file.path()).unwrap();
    assert!(finished.warnings.is_empty());
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
    let file = TempFile::new();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
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
    let file = TempFile::new();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
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
