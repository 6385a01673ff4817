//! Lost commits: what is claimed of two transactions and the outage between them is re-checked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario_model::{
    Batch, History, Op, OpId, OpInput, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef,
};
use isolario_verify::proof::{self, ProofPremises, ProofProblem, verify_proof_with};
use isolario_verify::{LostCommit, NotLost, Outage, VerifyOptions, verify_lost};

const X: ValueRef<'static> = ValueRef::Text("x");
const OUTAGE: Outage = Outage { begun: 100, over: 200 };

fn read(value: Option<i64>) -> OpInput<'static> {
    Op::Read { key: X, value: Some(value.map_or(ValueRef::Nil, ValueRef::Int)) }
}

fn write(value: i64) -> OpInput<'static> {
    Op::Write { key: X, value: value.into() }
}

fn append(element: i64) -> OpInput<'static> {
    Op::Append { key: X, element: element.into() }
}

/// Transactions by outcome, times and operations, each in a session of its own.
fn history(txns: &[(Outcome, i64, i64, &[OpInput<'_>])]) -> History {
    let mut batch = Batch::new();
    for (session, (outcome, start, finish, ops)) in (0i64..).zip(txns) {
        batch.begin(&TxnStart { session: session.into(), id: None, line: None }).unwrap();
        ops.iter().for_each(|op| batch.op(op).unwrap());
        let (start, finish) = (Some(*start), Some(*finish));
        batch.end(&TxnEnd { start, finish, ..TxnEnd::new(*outcome) }).unwrap();
    }
    batch.build().unwrap()
}

fn claim(lost: u32, via: &[u32], found: u32) -> LostCommit {
    LostCommit {
        lost: OpId(lost),
        via: via.iter().map(|op| OpId(*op)).collect(),
        found: OpId(found),
    }
}

fn answer(history: &History, claim: &LostCommit) -> Result<(), NotLost> {
    verify_lost(history, &[OUTAGE], std::slice::from_ref(claim))[0]
}

use Outcome::{Aborted, Committed, Unknown};

#[test]
fn a_version_that_is_found_again_was_lost() {
    let after = [read(None)];
    let lost = [read(None), write(1)];
    let told = |txns: &[_]| answer(&history(txns), &claim(1, &[], 2));
    assert_eq!(told(&[(Committed, 0, 10, &lost), (Committed, 300, 310, &after)]), Ok(()));
    // Nobody was told that it had committed, or the reader knows nothing.
    for (one, other) in [(Unknown, Committed), (Aborted, Committed), (Committed, Aborted)] {
        let txns: [(_, _, _, &[_]); 2] = [(one, 0, 10, &lost), (other, 300, 310, &after)];
        assert_eq!(told(&txns), Err(NotLost::NotAcknowledged));
    }
    // It may be late instead.
    for (finish, start) in [(100, 300), (150, 300), (10, 200), (10, 20)] {
        let txns: [(_, _, _, &[_]); 2] =
            [(Committed, 0, finish, &lost), (Committed, start, 400, &after)];
        assert_eq!(told(&txns), Err(NotLost::NoOutage), "{finish} {start}");
    }
}

#[test]
fn what_proves_nothing_is_refused() {
    let lost: (_, _, _, &[_]) = (Committed, 0, 10, &[read(Some(7)), write(1)]);
    let after: (_, _, _, &[_]) = (Committed, 300, 310, &[read(Some(7))]);
    let once: (_, _, _, &[_]) = (Committed, -9, -5, &[write(7)]);
    assert_eq!(answer(&history(&[lost, after, once]), &claim(1, &[], 2)), Ok(()));
    // Somebody else may have written the same, or it may have been there all the time.
    let twice = history(&[lost, after, once, once]);
    assert_eq!(answer(&twice, &claim(1, &[], 2)), Err(NotLost::WrittenTwice));
    let deleted: (_, _, _, &[_]) = (Committed, 20, 30, &[Op::Delete { key: X }]);
    let first: (_, _, _, &[_]) = (Committed, 0, 10, &[read(None), write(1)]);
    let nothing: (_, _, _, &[_]) = (Committed, 300, 310, &[read(None)]);
    let absent = history(&[first, nothing, deleted]);
    assert_eq!(answer(&absent, &claim(1, &[], 2)), Err(NotLost::WrittenTwice));
    // Who has not read does not know what it wrote over; nor does who read its own write.
    for ops in [&[read(Some(7)), read(None), write(1)][1..], &[write(7), read(Some(7)), write(1)]] {
        let blind = history(&[(Committed, 0, 10, ops), after]);
        let last = ops.len() as u32;
        assert_eq!(answer(&blind, &claim(last - 1, &[], last)), Err(NotLost::NotOverwritten));
    }
    // The reader's own write, an operation that is no read, and one that is not there.
    let own: (_, _, _, &[_]) = (Committed, 300, 310, &[write(7), read(Some(7))]);
    let history = history(&[lost, own]);
    assert_eq!(answer(&history, &claim(1, &[], 3)), Err(NotLost::OtherOps));
    assert_eq!(answer(&history, &claim(1, &[], 2)), Err(NotLost::OtherOps));
    assert_eq!(answer(&history, &claim(1, &[], 9)), Err(NotLost::NoSuchOp));
}

#[test]
fn unknown_ones_may_lie_between() {
    let after: (_, _, _, &[_]) = (Committed, 300, 310, &[read(None)]);
    let between = |outcome| {
        history(&[
            (outcome, 0, 10, &[read(None), write(1)]),
            (Committed, 20, 30, &[read(Some(1)), write(2)]),
            after,
        ])
    };
    assert_eq!(answer(&between(Unknown), &claim(3, &[1], 4)), Ok(()));
    assert_eq!(answer(&between(Aborted), &claim(3, &[1], 4)), Err(NotLost::NotAcknowledged));
    assert_eq!(answer(&between(Unknown), &claim(3, &[], 4)), Err(NotLost::NotOverwritten));
    assert_eq!(answer(&between(Unknown), &claim(1, &[3], 4)), Err(NotLost::NotAcknowledged));
}

#[test]
fn an_element_that_is_not_shown_was_lost() {
    let told = |elements: &[ValueRef<'static>]| {
        let ops = [Op::ReadList { key: X, elements: Some(elements) }];
        let txns: [(_, _, _, &[_]); 2] =
            [(Committed, 0, 10, &[append(1)]), (Committed, 300, 310, &ops)];
        answer(&history(&txns), &claim(0, &[], 1))
    };
    assert_eq!(told(&[]), Ok(()));
    assert_eq!(told(&[ValueRef::Int(2)]), Ok(()));
    assert_eq!(told(&[ValueRef::Int(2), ValueRef::Int(1)]), Err(NotLost::ElementPresent));
}

/// A proof of lost commits travels as a file, and rests on outages that somebody else states.
#[test]
fn a_proof_is_read_back_and_verified_with_its_outages() {
    let history = history(&[
        (Unknown, 0, 10, &[read(None), write(1)]),
        (Committed, 20, 30, &[read(Some(1)), write(2)]),
        (Committed, 300, 310, &[read(None)]),
    ]);
    let claims = [claim(3, &[1], 4)];
    let mut file = Vec::new();
    let options = VerifyOptions::default();
    proof::write_with_lost(&history, &[], &[OUTAGE], &claims, &options, "h", &mut file).unwrap();
    let given = ProofPremises::default().with_outages(&[OUTAGE]);
    let verified = verify_proof_with(&history, given, &file).unwrap();
    assert!(verified.is_right());
    assert_eq!(verified.proof.lost, claims);
    let without = verify_proof_with(&history, ProofPremises::default(), &file).unwrap_err();
    assert_eq!(without.problem, ProofProblem::OtherOutages);
    let text = String::from_utf8(file).unwrap();
    let forged = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        verify_proof_with(&history, given, text.replace(from, to).as_bytes())
    };
    assert!(!forged(r##""via":[[{"#":0},1]],"##, "").unwrap().is_right());
    assert!(!forged(r##""lost":[{"#":1},1]"##, r##""lost":[{"#":0},1]"##).unwrap().is_right());
    assert!(forged(r#""lost":1"#, r#""lost":2"#).unwrap_err().is_wrong_proof());
    assert!(forged(r#"[[100,200]]"#, r#"[[100]]"#).is_err());
    assert!(forged(r#"[[100,200]]"#, r#"[[40,50]]"#).is_err());
}
