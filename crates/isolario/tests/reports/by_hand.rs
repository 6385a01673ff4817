//! Evidence for anomalies that no checker calls by their name: the histories are small enough to say
//! which operation is which.

use isolario::model::{
    Anomaly, AnomalyKind, Edge, Evidence, ExpectedVersion, History, KeyId, OpId, Reason, TxnId,
    VersionOrder,
};

pub(crate) fn anomaly(history: &History, kind: AnomalyKind) -> Anomaly {
    let op = |txn: u32, at: usize| history.txn_ops(TxnId(txn)).nth(at).unwrap();
    let key = |op: OpId| history.op(op).key().unwrap();
    let changed = |read, write| Reason::PredicateAntiDependency {
        read,
        key: key(write),
        write,
        evaluated: None,
    };
    let met = |read, write| Reason::PredicateRead { read, key: key(write), write };
    let evidence = match kind {
        AnomalyKind::PredicateManyPreceders => {
            cycle([edge(2, 1, changed(op(2, 0), op(1, 0))), edge(1, 2, met(op(2, 1), op(1, 0)))])
        }
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
