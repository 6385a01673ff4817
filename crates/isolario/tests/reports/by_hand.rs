//! Evidence for anomalies that no checker calls by their name: the histories are small enough to say
//! which operation is which.

use isolario::model::{
    Anomaly, AnomalyKind, Edge, Evidence, History, KeyId, OpId, Reason, TxnId, VersionOrder,
};

pub(crate) fn anomaly(history: &History, kind: AnomalyKind) -> Anomaly {
    let op = |txn: u32, at: usize| history.txn_ops(TxnId(txn)).nth(at).unwrap();
    let key = |op: OpId| history.op(op).key().unwrap();
    let evidence = match kind {
        AnomalyKind::Phantom => {
            let rows = |at: u32| (op(at, 0), op(at, 1));
            let ((first, alice), (second, carol)) = (rows(1), rows(2));
            let phantom =
                |read, write| Reason::PredicateAntiDependency { read, key: key(write), write };
            cycle([edge(1, 2, phantom(first, carol)), edge(2, 1, phantom(second, alice))])
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
