//! What is written, and what is refused.

use isolario_model::{
    Clock, Initial, Meta, Op, OpInput, OpNotes, Outcome, Predicate, SinkError, TxnEnd, TxnSink,
    TxnStart, Value, ValueRef, VersionRef,
};

use super::write_with;
use crate::plume::INITIAL;

fn meta(initial: Initial) -> Meta {
    Meta { initial, clock: Clock::Nanoseconds }
}

/// What comes of one transaction.
fn write_txn(initial: Initial, op: &OpInput<'_>, end: &TxnEnd<'_>) -> Result<String, SinkError> {
    write_with(|sink| {
        sink.meta(&meta(initial))?;
        sink.begin(&TxnStart { session: 1u64.into(), id: None, line: None })?;
        sink.op(op)?;
        sink.end(end)
    })
}

#[test]
fn names_that_are_no_free_numbers_get_the_smallest_free_ones() {
    let names = [
        ("a".into(), Some(1u64.into())),
        (0u64.into(), None),
        (5u64.into(), Some("t".into())),
        ("a".into(), Some(1u64.into())),
        (5u64.into(), Some(ValueRef::Int(-1))),
        (5u64.into(), Some(7u64.into())),
    ];
    let text = write_with(|sink| {
        sink.meta(&meta(INITIAL))?;
        for (session, id) in names {
            sink.begin(&TxnStart { session, id, line: None })?;
            sink.op(&Op::Write { key: 8u64.into(), value: 9u64.into() })?;
            sink.end(&TxnEnd::new(Outcome::Committed))?;
        }
        Ok(())
    });
    let expected = "w(8,9,0,1)\nw(8,9,1,0)\nw(8,9,5,2)\nw(8,9,0,3)\nw(8,9,5,4)\nw(8,9,5,7)\n";
    assert_eq!(text.unwrap(), expected);
}

#[test]
fn annotations_are_left_out() {
    let end = TxnEnd {
        start: Some(1),
        finish: Some(2),
        error: Some("40001"),
        ..TxnEnd::new(Outcome::Aborted)
    };
    let op = Op::Read { key: 1u64.into(), value: Some(0u64.into()) };
    assert_eq!(write_txn(INITIAL, &op, &end).unwrap(), "r(1,0,1,-1)\n");
}

#[test]
fn what_would_change_the_meaning_is_refused() {
    let committed = TxnEnd::new(Outcome::Committed);
    let (one, text): (ValueRef<'_>, ValueRef<'_>) = (1u64.into(), "x".into());
    let write = Op::Write { key: one, value: one };
    for (op, what) in [
        (Op::Write { key: text, value: one }, "the key x: only whole numbers from 0 on"),
        (Op::Write { key: one, value: text }, "the value x: only whole numbers from 0 on"),
        (
            Op::Read { key: one, value: Some(ValueRef::Int(-1)) },
            "the value -1: only whole numbers from 0 on",
        ),
        (Op::Read { key: one, value: None }, "a read without a value"),
        (Op::Delete { key: one }, "a delete"),
        (Op::Append { key: one, element: one }, "operations on lists"),
        (Op::ReadList { key: one, elements: None }, "operations on lists"),
        (
            Op::InsertIfAbsent { key: one, value: one, applied: None, seen: None },
            "conditional writes",
        ),
        (
            Op::PredicateRead { predicate: &Predicate::unparsed("v = 1"), rows: None },
            "predicate operations",
        ),
    ] {
        let error = write_txn(INITIAL, &op, &committed).unwrap_err().to_string();
        assert_eq!(error, format!("the plume format cannot express {what}"));
    }
    let unknown = TxnEnd::new(Outcome::Unknown);
    let error = write_txn(INITIAL, &write, &unknown).unwrap_err().to_string();
    assert!(error.ends_with("a transaction of unknown outcome"), "{error}");

    let empty = write_with(|sink| {
        sink.meta(&meta(INITIAL))?;
        sink.begin(&TxnStart { session: one, id: None, line: None })?;
        sink.end(&committed)
    });
    assert!(empty.unwrap_err().to_string().ends_with("a transaction without operations"));

    let versioned = write_with(|sink| {
        sink.meta(&meta(INITIAL))?;
        sink.begin(&TxnStart { session: one, id: None, line: None })?;
        sink.op_with(&write, &OpNotes { version: Some(VersionRef::Initial), sql: None })
    });
    assert!(versioned.unwrap_err().to_string().ends_with("named apart from their values"));
}

#[test]
fn initial_states_other_than_zero_are_refused() {
    let committed = TxnEnd::new(Outcome::Committed);
    let write = |initial, value: u64| {
        let op = Op::Write { key: 1u64.into(), value: value.into() };
        write_txn(initial, &op, &committed)
    };
    for initial in [
        Initial::Value(Value::Nil),
        Initial::UnlessWritten(Value::Int(1)),
        Initial::Unwritten,
        Initial::Marked,
        Initial::None,
    ] {
        assert!(matches!(write(initial, 1), Err(SinkError::Inexpressible { .. })));
    }
    let unstated =
        write_with(|sink| sink.begin(&TxnStart { session: 1u64.into(), id: None, line: None }));
    assert!(matches!(unstated, Err(SinkError::Inexpressible { .. })));

    // A write of 0 is ambiguous where `init` writes it for certain, and is not in Plume text.
    let always = Initial::Value(Value::Int(0));
    assert!(write(always.clone(), 1).is_ok());
    assert!(matches!(write(always, 0), Err(SinkError::Inexpressible { .. })));
    assert!(write(INITIAL, 0).is_ok());
}

#[test]
fn operations_and_ends_out_of_place_are_refused() {
    let one: ValueRef<'_> = 1u64.into();
    let start = TxnStart { session: one, id: None, line: None };
    let refused = |tell: &dyn Fn(&mut dyn TxnSink) -> Result<(), SinkError>| {
        let result = write_with(|sink| {
            sink.meta(&meta(INITIAL))?;
            tell(sink)
        });
        assert!(matches!(result, Err(SinkError::Sequence(_))));
    };
    refused(&|sink| sink.op(&Op::Write { key: one, value: one }));
    refused(&|sink| sink.end(&TxnEnd::new(Outcome::Committed)));
    refused(&|sink| sink.begin(&start).and_then(|()| sink.begin(&start)));
}
