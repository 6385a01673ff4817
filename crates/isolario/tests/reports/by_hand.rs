//! Evidence for anomalies that no checker calls by their name: the histories are small enough to say
//! which operation is which.

use isolario::model::{
    Anomaly, AnomalyKind, Edge, Evidence, ExpectedVersion, History, KeyId, OpId, Reason, TxnId,
    VersionOrder,
};

pub(crate) fn anomaly(history: &History, kind: AnomalyKind) -> Anomaly {
    let op = |txn: u32, at: usize| history.txn_ops(TxnId(txn)).nth(at).unwrap();
    let key = |op: OpId| history.op(op).key().unwrap();
    let changed = |read, write| Reason::PredicateAntiDependency { read, key: key(write), write };
    let met = |read, write| Reason::PredicateRead { read, key: key(write), write };
    let read = |read, write| Reason::Read { key: key(write), read, write: Some(write) };
    let evidence = match kind {
        AnomalyKind::Phantom => {
            cycle([edge(1, 0, changed(op(1, 0), op(0, 0))), edge(0, 1, read(op(1, 1), op(0, 0)))])
        }
        AnomalyKind::PredicateManyPreceders => {
            cycle([edge(2, 1, changed(op(2, 0), op(1, 0))), edge(1, 2, met(op(2, 1), op(1, 0)))])
        }
        AnomalyKind::PredicateSingleAntiDependency => cycle([
            edge(2, 0, changed(op(2, 0), op(0, 0))),
            edge(0, 1, read(op(1, 0), op(0, 0))),
            edge(1, 2, read(op(2, 1), op(1, 1))),
        ]),
        AnomalyKind::PredicateWriteSkew => cycle([
            edge(0, 1, changed(op(0, 0), op(1, 1))),
            edge(1, 0, changed(op(1, 0), op(0, 1))),
        ]),
        AnomalyKind::PredicateAntiDependencyCycle => cycle([
            edge(0, 2, changed(op(0, 0), op(2, 1))),
            edge(2, 1, missing(key(op(1, 1)), op(2, 0))),
            edge(1, 0, missing(key(op(0, 1)), op(1, 0))),
        ]),
        AnomalyKind::ResultMismatch => {
            let write = op(0, 0);
            let expected = vec![ExpectedVersion { key: key(write), write: Some(write) }];
            Evidence::Unexpected { op: op(1, 1), expected, result: None }
        }
        AnomalyKind::OrderContradiction => {
            let read = op(1, 0);
            let stated = edge(0, 1, Reason::Stated { at: 1 });
            cycle([stated, edge(1, 0, missing(key(read), read))])
        }
        kind => panic!("{kind} is not found"),
    };
    Anomaly::new(kind, evidence)
}

fn cycle(edges: impl Into<Vec<Edge>>) -> Evidence {
    Evidence::Cycle { edges: edges.into() }
}

fn edge(from: u32, to: u32, reason: Reason) -> Edge {
    Edge { from: TxnId(from), to: TxnId(to), reason }
}

/// A read of the initial version, which somebody overwrote.
fn missing(key: KeyId, read: OpId) -> Reason {
    Reason::AntiDependency { key, read, writer: TxnId::INIT, known: VersionOrder::Initial }
}
