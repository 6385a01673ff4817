//! The edges and cycles that a history seems to show.

use std::collections::BTreeMap;

use isolario_model::{
    Edge, History, Initial, KeyId, Op, OpId, OpKind, Outcome, Reason, TxnId, VersionOrder,
};

/// So many cycles of a history are looked at; where there are more, not all are.
pub const MOST: usize = 3_000;

/// The edges that a history seems to show, made without much thought: the verifier must think.
pub struct Edges<'h> {
    history: &'h History,
    pub txns: Vec<TxnId>,
    /// Orders of two writers that seem to follow from others.
    pub derived: BTreeMap<(TxnId, TxnId), Vec<VersionOrder>>,
}

impl<'h> Edges<'h> {
    pub fn new(history: &'h History) -> Self {
        let may_commit = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let txns = history.txns().filter(may_commit).collect();
        Edges { history, txns, derived: BTreeMap::new() }
    }

    fn is(&self, op: OpId, kinds: &[OpKind]) -> bool {
        kinds.contains(&self.history.op_kinds()[op.index()])
    }

    fn key(&self, op: OpId) -> KeyId {
        self.history.op_keys()[op.index()]
    }

    fn reads(&self, txn: TxnId) -> Vec<OpId> {
        let kinds = [OpKind::Read, OpKind::ReadList];
        self.history.txn_ops(txn).filter(|op| self.is(*op, &kinds)).collect()
    }

    fn writes(&self, txn: TxnId, key: KeyId) -> Vec<OpId> {
        let kinds = [OpKind::Write, OpKind::Delete, OpKind::Append];
        let is_write = |op: &OpId| self.is(*op, &kinds);
        self.history.txn_ops(txn).filter(|op| is_write(op) && self.key(*op) == key).collect()
    }

    /// Who seems to have written what a read saw, and by which write.
    fn sources(&self, read: OpId) -> Vec<(TxnId, Option<OpId>)> {
        if self.is(read, &[OpKind::ReadList]) {
            return self.appenders(read);
        }
        let (key, word) = (self.key(read), self.history.encoded_version(read));
        let of = |txn: &TxnId| {
            let writes = self.writes(*txn, key).into_iter();
            let same = writes.filter(|write| self.history.encoded_version(*write) == word);
            same.map(|write| (*txn, Some(write))).collect::<Vec<_>>()
        };
        let mut sources: Vec<_> = self.txns.iter().flat_map(of).collect();
        let unwritten = *self.history.initial() == Initial::Unwritten && sources.is_empty();
        if unwritten || self.history.encoded_initial_version() == Some(word) {
            sources.push((TxnId::INIT, None));
        }
        sources
    }

    /// Any of those whom a list read shows may be the last one.
    fn appenders(&self, read: OpId) -> Vec<(TxnId, Option<OpId>)> {
        let last = |txn: &TxnId| self.writes(*txn, self.key(read)).last().copied();
        let shown = self.txns.iter().filter(|txn| self.shows(read, **txn));
        let appenders = shown.map(|txn| (*txn, last(txn)));
        appenders.chain([(TxnId::INIT, None)]).collect()
    }

    /// Whether a list read shows something that a transaction appended to the list.
    fn shows(&self, read: OpId, txn: TxnId) -> bool {
        let Op::ReadList { elements: Some(elements), .. } = self.history.op(read) else {
            return false;
        };
        self.writes(txn, self.key(read)).into_iter().any(|write| {
            let word = self.history.encoded_version(write);
            elements.iter().any(|element| element.to_bits() == word)
        })
    }

    /// How the order of a writer's version and another's seems to be known.
    fn orders(&self, key: KeyId, first: TxnId, second: TxnId) -> Vec<VersionOrder> {
        let mut orders = self.derived.get(&(first, second)).cloned().unwrap_or_default();
        if first.is_init() {
            orders.push(VersionOrder::Initial);
        }
        for read in self.reads(second).into_iter().filter(|read| self.key(*read) == key) {
            if self.sources(read).iter().any(|(txn, _)| *txn == first) {
                orders.push(VersionOrder::ReadModifyWrite { read });
            }
        }
        for read in self.txns.iter().flat_map(|txn| self.reads(*txn)) {
            if self.key(read) == key && self.shows(read, first) {
                orders.extend([VersionOrder::List { read }, VersionOrder::AppendedLater { read }]);
            }
        }
        orders
    }

    fn between(&self, from: TxnId, to: TxnId) -> Vec<Edge> {
        let mut reasons = vec![Reason::Session];
        if let (Some(finish), Some(start)) = (self.history.finish(from), self.history.start(to)) {
            reasons.push(Reason::RealTime { finish, start });
        }
        for read in self.reads(to) {
            let sources = self.sources(read).into_iter().filter(|(writer, _)| *writer == from);
            let key = self.key(read);
            reasons.extend(sources.map(|(_, write)| Reason::Read { key, read, write }));
        }
        for key in (0..self.history.key_count()).map(KeyId::at) {
            if self.writes(to, key).is_empty() {
                continue;
            }
            if !self.writes(from, key).is_empty() {
                let orders = self.orders(key, from, to).into_iter();
                reasons.extend(orders.map(|known| Reason::Overwrite { key, known }));
            }
            for read in self.reads(from).into_iter().filter(|read| self.key(*read) == key) {
                for (writer, _) in self.sources(read) {
                    let orders = self.orders(key, writer, to).into_iter();
                    let anti = |known| Reason::AntiDependency { key, read, writer, known };
                    reasons.extend(orders.map(anti));
                }
            }
        }
        reasons.into_iter().map(|reason| Edge { from, to, reason }).collect()
    }

    fn all(&self) -> Vec<Edge> {
        let pairs = self.txns.iter().flat_map(|from| self.txns.iter().map(move |to| (*from, *to)));
        pairs
            .filter(|(from, to)| from != to)
            .flat_map(|(from, to)| self.between(from, to))
            .collect()
    }

    /// Cycles of up to so many edges, shorter ones first.
    pub fn cycles(&self, longest: usize) -> Vec<Vec<Edge>> {
        let edges = self.all();
        let mut cycles = Vec::new();
        for length in 2..=longest {
            for first in &self.txns {
                extend(&mut Vec::new(), *first, *first, &edges, length, &mut cycles);
            }
        }
        cycles
    }
}

/// Goes on from a transaction, only to later ones than the first: each cycle is found once.
fn extend(
    path: &mut Vec<Edge>,
    first: TxnId,
    at: TxnId,
    edges: &[Edge],
    length: usize,
    cycles: &mut Vec<Vec<Edge>>,
) {
    if path.len() == length || cycles.len() > MOST {
        return;
    }
    for edge in edges.iter().filter(|edge| edge.from == at && edge.to >= first) {
        path.push(edge.clone());
        if edge.to == first {
            if path.len() == length {
                cycles.push(path.clone());
            }
        } else if path.iter().all(|before| before.from != edge.to) {
            extend(path, first, edge.to, edges, length, cycles);
        }
        path.pop();
    }
}
