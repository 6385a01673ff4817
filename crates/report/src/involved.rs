//! Which transactions and which of their operations an anomaly is about.

use isolario_model::{
    Anomaly, Edge, Evidence, History, KeyId, LevelResult, OpId, Reason, TxnId, Verdict,
};

use crate::sentences::{last_write, own_writes_between};
use crate::show::KeyVersions;

/// A transaction that is part of an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvolvedTxn {
    /// The transaction; never `init`.
    pub txn: TxnId,
    /// Those of its operations that matter, in program order.
    pub ops: Vec<OpId>,
    /// How many operations it has beside those.
    pub omitted: usize,
}

/// Where in a history the first counterexample starts: how many transactions began before the first
/// one of any anomaly. None where nothing is wrong, or where times do not tell.
pub fn first_counterexample(history: &History, results: &[LevelResult]) -> Option<u64> {
    let violated = results.iter().filter_map(|result| match &result.verdict {
        Verdict::Violated(findings) => Some(&findings.anomalies),
        _ => None,
    });
    let txns = violated.flatten().flat_map(|anomaly| involved(history, anomaly));
    let first = txns.filter_map(|involved| history.start(involved.txn)).min()?;
    let before = |txn| history.start(txn).is_some_and(|start| start < first);
    Some(history.txns().filter(|txn| before(*txn)).count() as u64)
}

/// The transactions of an anomaly, in the order in which its argument names them.
///
/// Of two reads that do not fit together, the evidence does not say who wrote what they saw: these
/// writers are part of a [`Finding`](crate::Finding), and not of this.
pub fn involved(history: &History, anomaly: &Anomaly) -> Vec<InvolvedTxn> {
    gather(history, anomaly).finish()
}

/// The transactions of an anomaly, with those who wrote what its reads saw.
pub(crate) fn involved_with(
    history: &History,
    anomaly: &Anomaly,
    versions: &KeyVersions<'_>,
) -> Vec<InvolvedTxn> {
    let mut gathered = gather(history, anomaly);
    if let Evidence::Reads { first, second, .. } = anomaly.evidence {
        let sources = [first, second].into_iter().filter_map(|read| versions.sources(read));
        // Where it may have been either of two, neither is accused.
        let certain = sources.filter(|sources| !sources.is_ambiguous());
        certain.flat_map(|sources| sources.writes).for_each(|write| gathered.op(write));
    }
    gathered.finish()
}

fn gather<'h>(history: &'h History, anomaly: &Anomaly) -> Gathered<'h> {
    let mut gathered = Gathered { history, found: Vec::new() };
    match &anomaly.evidence {
        Evidence::Read { read, saw, instead } | Evidence::Row { read, saw, instead, .. } => {
            saw.iter().chain(instead).chain([read]).for_each(|op| gathered.op(*op));
        }
        Evidence::Reads { first, second, edges, .. } => {
            gathered.edges(edges);
            gathered.op(*first);
            own_writes_between(history, *first, *second).for_each(|op| gathered.op(op));
            gathered.op(*second);
        }
        Evidence::Cycle { edges } => gathered.edges(edges),
        Evidence::Cases { cycles } => cycles.iter().for_each(|cycle| gathered.edges(cycle)),
        Evidence::Operations { ops, .. } => ops.iter().for_each(|op| gathered.op(*op)),
        Evidence::Unexpected { op, expected, .. } => {
            expected.iter().filter_map(|version| version.write).for_each(|op| gathered.op(op));
            gathered.op(*op);
        }
        Evidence::Concurrent { first, second, .. } => {
            [first, second].into_iter().for_each(|op| gathered.op(*op));
        }
        Evidence::Lost { key, write, found, .. } => {
            let of_key = |op: &OpId| history.op(*op).key() == Some(*key);
            let writer = history.txn_ops(history.op_txn(*write));
            writer.take_while(|op| op <= write).filter(of_key).for_each(|op| gathered.op(op));
            gathered.op(*found);
        }
        _ => {}
    }
    gathered
}

struct Gathered<'h> {
    history: &'h History,
    found: Vec<(TxnId, Vec<OpId>)>,
}

impl Gathered<'_> {
    fn txn(&mut self, txn: TxnId) -> Option<&mut Vec<OpId>> {
        if txn.is_init() {
            return None;
        }
        let at = self.found.iter().position(|(found, _)| *found == txn).unwrap_or_else(|| {
            self.found.push((txn, Vec::new()));
            self.found.len() - 1
        });
        Some(&mut self.found[at].1)
    }

    fn op(&mut self, op: OpId) {
        let txn = self.history.op_txn(op);
        if let Some(ops) = self.txn(txn) {
            ops.push(op);
        }
    }

    fn write(&mut self, txn: TxnId, key: KeyId) {
        if let Some(op) = last_write(self.history, txn, key) {
            self.op(op);
        }
    }

    /// Gathers from edges and from what they rest on.
    fn edges(&mut self, edges: &[Edge]) {
        for edge in edges {
            self.txn(edge.from);
            self.txn(edge.to);
        }
        Edge::walk(edges).for_each(|edge| self.edge(edge));
    }

    fn edge(&mut self, edge: &Edge) {
        self.txn(edge.from);
        self.txn(edge.to);
        edge.writes().for_each(|(txn, key)| self.write(txn, key));
        edge.reason.reads().for_each(|read| self.op(read));
        match &edge.reason {
            Reason::Read { write, .. } => write.iter().for_each(|op| self.op(*op)),
            Reason::PredicateAntiDependency { read, write, .. }
            | Reason::PredicateRead { read, write, .. } => {
                self.op(*read);
                self.op(*write);
            }
            Reason::StartDependency { op, .. } => self.op(*op),
            _ => {}
        }
    }

    fn finish(self) -> Vec<InvolvedTxn> {
        let history = self.history;
        let involved = |(txn, mut ops): (TxnId, Vec<OpId>)| {
            ops.sort_unstable();
            ops.dedup();
            let omitted = history.txn_ops(txn).len() - ops.len();
            InvolvedTxn { txn, ops, omitted }
        };
        self.found.into_iter().map(involved).collect()
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{AnomalyKind, VersionOrder};

    use super::*;
    use crate::testing::{History as Builder, edge, r, w};

    #[test]
    fn only_the_operations_that_matter_are_listed_and_the_rest_is_counted() {
        let history = Builder::new()
            .txn(&[w("a", 1), w("x", 1), w("b", 1)])
            .session()
            .txn(&[r("x", 1), r("c", 0), w("y", 2)])
            .build();
        let (x, y) = (KeyId(1), KeyId(4));
        let cycle = vec![
            edge(0, 1, Reason::Read { key: x, read: OpId(3), write: Some(OpId(1)) }),
            edge(1, 0, Reason::Overwrite { key: y, known: VersionOrder::Assumed }),
        ];
        let anomaly = Anomaly::new(AnomalyKind::CyclicCo, Evidence::Cycle { edges: cycle });
        let found = involved(&history, &anomaly);
        assert_eq!(
            found,
            [
                InvolvedTxn { txn: TxnId(0), ops: vec![OpId(1)], omitted: 2 },
                InvolvedTxn { txn: TxnId(1), ops: vec![OpId(3), OpId(5)], omitted: 1 },
            ]
        );
    }

    #[test]
    fn the_initial_state_is_no_transaction() {
        let history = Builder::new().txn(&[r("x", 0)]).build();
        let read = Reason::Read { key: KeyId(0), read: OpId(0), write: None };
        let edges = vec![Edge { from: TxnId::INIT, to: TxnId(0), reason: read }];
        let anomaly = Anomaly::new(AnomalyKind::CyclicCo, Evidence::Cycle { edges });
        assert_eq!(involved(&history, &anomaly).len(), 1);
    }
}
