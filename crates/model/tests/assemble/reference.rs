//! The naive model: transactions as structs, grouped by session in order of first arrival.

use isolario_model::{History, OpKind, TxnId, Value};

use crate::arrivals::{TestOp, TestTxn};

/// Checks every accessor of a history against the transactions it was made of.
pub fn check_against_reference(arrivals: &[TestTxn], history: &History) {
    let sessions = group(arrivals);
    assert_eq!(history.session_count(), sessions.len());
    assert_eq!(history.txn_count(), arrivals.len());
    assert_eq!(history.op_count(), arrivals.iter().map(|txn| txn.ops.len()).sum::<usize>());
    let mut txns = history.txns();
    let mut ops = 0;
    for (id, (name, expected)) in history.sessions().zip(&sessions) {
        assert_eq!(history.session_name(id), name.as_ref());
        assert_eq!(history.session_txns(id).len(), expected.len());
        for (txn, expected) in history.session_txns(id).zip(expected) {
            assert_eq!(txns.next(), Some(txn));
            assert_eq!(history.session_of(txn), id);
            assert_eq!(history.op_range(txn), ops..ops + expected.ops.len());
            ops += expected.ops.len();
            check_txn(history, txn, expected);
        }
    }
    assert_eq!(txns.next(), None);
    check_keys(arrivals, history);
}

fn group(arrivals: &[TestTxn]) -> Vec<(Value, Vec<&TestTxn>)> {
    let mut sessions: Vec<(Value, Vec<&TestTxn>)> = Vec::new();
    for txn in arrivals {
        match sessions.iter_mut().find(|(name, _)| *name == txn.session) {
            Some((_, txns)) => txns.push(txn),
            None => sessions.push((txn.session.clone(), vec![txn])),
        }
    }
    sessions
}

fn check_txn(history: &History, txn: TxnId, expected: &TestTxn) {
    assert_eq!(history.txn_name(txn), expected.id.as_ref().map(Value::as_ref));
    assert_eq!(history.line(txn), expected.line);
    let mut end = expected.end();
    // Times that contradict themselves are left out.
    if matches!((end.start, end.finish), (Some(start), Some(finish)) if finish < start) {
        (end.start, end.finish) = (None, None);
    }
    assert_eq!(history.txn_end(txn), end);
    assert_eq!(history.txn_ops(txn).len(), expected.ops.len());
    for (op, (input, notes)) in history.txn_ops(txn).zip(&expected.ops) {
        assert_eq!(history.op_txn(op), txn);
        assert_eq!(history.op_kinds()[op.index()], kind(input));
        assert_eq!(history.op_version(op), notes.version);
        assert_eq!(history.op_sql(op), notes.sql.as_deref());
        history.with_op_input(op, |found| input.with_input(|given| assert_eq!(found, given)));
    }
    let label = history.txn_label(txn);
    match &expected.id {
        None => assert_eq!(label, format!("#{}", txn.0)),
        Some(Value::Text(name)) => assert_eq!(label, **name),
        Some(name) => assert_eq!(label, name.to_string()),
    }
}

fn kind(op: &TestOp) -> OpKind {
    match op {
        TestOp::Read(_, Some(_)) => OpKind::Read,
        TestOp::Read(_, None) => OpKind::ReadUnobserved,
        TestOp::Write(..) => OpKind::Write,
        TestOp::Delete(_) => OpKind::Delete,
        TestOp::Append(..) => OpKind::Append,
        TestOp::ReadList(_, Some(_)) => OpKind::ReadList,
        TestOp::ReadList(_, None) => OpKind::ReadListUnobserved,
        TestOp::Insert(..) => OpKind::InsertIfAbsent,
        TestOp::Cas(..) => OpKind::CompareAndSet,
        TestOp::PredicateRead(..) => OpKind::PredicateRead,
        TestOp::PredicateWrite(..) => OpKind::PredicateWrite,
        TestOp::Aggregate(..) => OpKind::Aggregate,
    }
}

/// Keys are numbered in the order they arrive.
fn check_keys(arrivals: &[TestTxn], history: &History) {
    let mut names: Vec<Value> = Vec::new();
    let mut see = |name: &Value| {
        if !names.contains(name) {
            names.push(name.clone());
        }
    };
    for (op, _) in arrivals.iter().flat_map(|txn| &txn.ops) {
        match op {
            TestOp::PredicateRead(_, rows) | TestOp::PredicateWrite(_, rows) => {
                rows.iter().flatten().for_each(|row| see(&row.key));
            }
            TestOp::Aggregate(..) => {}
            _ => op.with_input(|input| see(&input.key().unwrap().to_owned())),
        }
    }
    assert_eq!(history.key_count(), names.len());
    for (number, name) in names.iter().enumerate() {
        let key = history.find_key(name.as_ref()).unwrap();
        assert_eq!((key.index(), history.key_name(key)), (number, name.as_ref()));
    }
}
