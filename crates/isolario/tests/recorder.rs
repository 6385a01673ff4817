//! The recorder for tests: what is recorded, what counts as unknown, how an assertion fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use isolario::check::CheckOptions;
use isolario::model::{History, Op, Outcome, ValueRef, Verdict};
use isolario::recorder::Session;
use isolario::verify::{self, verify};
use isolario::{Level, Recorder};

fn outcomes(history: &History) -> Vec<Outcome> {
    history.txns().map(|txn| history.outcome(txn)).collect()
}

/// Two clients that read the same value and both overwrite it.
fn lost_update() -> Recorder {
    let recorder = Recorder::new();
    let (mut alice, mut bob) = (recorder.session(), recorder.session());
    let (mut one, mut two) = (alice.begin(), bob.begin());
    one.read("x", None::<i32>).write("x", 1);
    two.read("x", None::<i32>).write("x", 2);
    one.commit();
    two.commit();
    recorder
}

#[test]
fn an_assertion_fails_with_an_explanation() {
    let recorder = lost_update();
    recorder.assert(Level::ReadCommitted);
    let failed = catch_unwind(AssertUnwindSafe(|| recorder.assert(Level::SnapshotIsolation)));
    let words = failed.unwrap_err().downcast::<String>().unwrap();
    assert!(words.contains("LostUpdate"), "{words}");
    assert!(words.contains("snapshot-isolation"), "{words}");
    let checked = recorder.check(Level::SnapshotIsolation).unwrap();
    assert!(checked.is_violated() && !checked.is_satisfied());
    assert_eq!(checked.to_string(), *words);
}

#[test]
fn answers_can_be_verified() {
    let recorder = lost_update();
    for level in [Level::ReadAtomic, Level::Serializable] {
        let checked = recorder.check_with(level, &CheckOptions::default()).unwrap();
        verify(&checked.history, &checked.results[0], &verify::VerifyOptions::default()).unwrap();
    }
}

#[test]
fn a_transaction_without_an_end_is_of_unknown_outcome() {
    let recorder = Recorder::new();
    let mut session = recorder.session();
    session.begin().write("x", 1).write("y", 1);
    session.begin().unknown();
    session.begin().rollback();
    session.begin().commit();
    let mut other = recorder.session();
    let panicked = thread::spawn(move || {
        let mut txn = other.begin();
        txn.write("x", 2);
        panic!("in the middle of a transaction");
    });
    assert!(panicked.join().is_err());
    let mut third = recorder.session();
    let mut open = third.begin();
    open.write("x", 3);
    use Outcome::{Aborted, Committed, Unknown};
    assert_eq!(
        outcomes(&recorder.history().unwrap()),
        [Unknown, Unknown, Aborted, Committed, Unknown, Unknown]
    );
    // It may have committed by now, and somebody may have seen it: that is no thin air.
    let mut reader = recorder.session();
    let mut txn = reader.begin();
    txn.read("x", 3);
    txn.commit();
    assert!(recorder.check(Level::StrictSerializable).unwrap().is_satisfied());
    open.commit();
    assert_eq!(outcomes(&recorder.history().unwrap())[5], Committed);
    assert!(recorder.check(Level::Serializable).unwrap().is_satisfied());
}

#[test]
fn times_are_from_begin_to_commit() {
    let recorder = Recorder::new();
    let mut session = recorder.session();
    for value in 0..3 {
        let mut txn = session.begin();
        txn.write("x", value);
        txn.commit();
    }
    session.begin().write("x", 9);
    let history = recorder.history().unwrap();
    let times: Vec<_> =
        history.txns().map(|txn| (history.start(txn), history.finish(txn))).collect();
    assert!(times[..3].iter().all(|(start, finish)| start.is_some() && start <= finish));
    assert!(times[..3].is_sorted());
    assert!(times[3].0.is_some() && times[3].1.is_none(), "nobody knows when it ended");
}

#[test]
fn every_kind_of_operation_and_value_is_recorded() {
    let recorder = Recorder::with_initial(0);
    let mut session = recorder.session();
    let mut txn = session.begin();
    txn.read(1u8, 0).write(2i64, "text".to_owned()).delete(3usize).append("list", 1);
    txn.read_list("list", [1]).compare_and_set(b"k\xff", 0, Some(2), true);
    txn.insert_if_absent(String::from("n"), true, false);
    txn.commit();
    let history = recorder.history().unwrap();
    assert_eq!((history.op_count(), history.key_count()), (7, 6));
    let op = history.txn_ops(history.txns().next().unwrap()).nth(5).unwrap();
    history.with_op_input(op, |op| {
        let Op::CompareAndSet { key, applied, .. } = op else { panic!("{op:?}") };
        assert_eq!((*key, *applied), (ValueRef::Other("x'6bff'"), Some(true)));
    });
}

#[test]
fn nothing_satisfies_nothing() {
    let recorder = Recorder::new();
    let checked = recorder.check(Level::ReadCommitted).unwrap();
    assert!(!checked.is_satisfied() && !checked.is_violated());
    assert!(checked.to_string().contains("nothing to check"));
    assert!(matches!(checked.results[0].verdict, Verdict::Satisfied(_)));
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn sessions_and_transactions_go_to_threads_and_tasks() {
    let recorder = Recorder::new();
    let mut session: Session = recorder.session();
    is_send(&session);
    let txn = session.begin();
    is_send(&txn);
    txn.rollback();
    thread::scope(|scope| {
        for client in 0..8i64 {
            let mut session = recorder.session();
            scope.spawn(move || {
                for n in 0..500 {
                    let mut txn = session.begin();
                    txn.write(client, n);
                    txn.commit();
                }
            });
        }
    });
    let history = recorder.history().unwrap();
    assert_eq!((history.session_count(), history.txn_count()), (9, 4001));
    let checked = recorder.check(Level::StrictSerializable).unwrap();
    assert!(checked.is_satisfied());
    assert_eq!(checked.contention().unwrap().conflicted, 0);
    let failed = catch_unwind(AssertUnwindSafe(|| recorder.assert(Level::StrictSerializable)));
    let words = failed.unwrap_err().downcast::<String>().unwrap();
    assert!(words.contains("and 0 did on a key: too few to show"), "{words}");
}
