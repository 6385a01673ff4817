//! What an argument rests on: the operations that it names, and the transactions that take part.

use isolario_model::{
    Anomaly, Edge, Evidence, History, KeyId, Op, OpId, Outcome, Reason, TxnId, VersionOrder,
};
use rustc_hash::FxHashSet;

use crate::resolved::writes;

/// Whether an argument takes more than what clients saw: the opposite is refuted, or cases are
/// supposed.
pub(super) fn is_intricate(anomaly: &Anomaly) -> bool {
    let supposed = |known: &VersionOrder| {
        matches!(known, VersionOrder::Refuted { .. } | VersionOrder::Assumed)
    };
    let takes_more = |edge: &Edge| match &edge.reason {
        Reason::Refuted { .. } => true,
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => supposed(known),
        _ => false,
    };
    match &anomaly.evidence {
        Evidence::Cases { .. } => true,
        evidence @ Evidence::Cycle { .. } => evidence.walk().any(takes_more),
        _ => false,
    }
}

/// What an argument names, and everyone who wrote what one of its reads saw.
pub(super) struct RestsOn<'h> {
    history: &'h History,
    txns: FxHashSet<TxnId>,
    reads: FxHashSet<OpId>,
    /// Who wrote which key.
    written: FxHashSet<(TxnId, KeyId)>,
    /// The versions that the reads saw; of lists, the last element that others appended.
    seen: FxHashSet<(KeyId, u64)>,
}

impl<'h> RestsOn<'h> {
    pub(super) fn new(history: &'h History, anomaly: &Anomaly) -> Self {
        let mut found = RestsOn {
            history,
            txns: FxHashSet::default(),
            reads: FxHashSet::default(),
            written: FxHashSet::default(),
            seen: FxHashSet::default(),
        };
        for edge in anomaly.evidence.walk() {
            found.txns.extend([edge.from, edge.to]);
            if let Reason::AntiDependency { writer, .. } = edge.reason {
                found.txns.insert(writer);
            }
            found.reads.extend(edge.reason.reads());
            found.written.extend(edge.writes());
        }
        found.add_what_shows_outcomes();
        found.txns.extend(found.reads.iter().map(|read| history.op_txn(*read)));
        found.seen = found.reads.iter().filter_map(|read| found.version(*read)).collect();
        found
    }

    /// A transaction of unknown outcome counts because somebody saw what it wrote: these reads are part
    /// of the argument, and the outcome of their transactions may be unknown, too.
    fn add_what_shows_outcomes(&mut self) {
        let history = self.history;
        let is_unknown = |txn: &TxnId| !txn.is_init() && history.outcome(*txn) == Outcome::Unknown;
        let mut waiting: Vec<TxnId> = self.txns.iter().copied().filter(is_unknown).collect();
        while let Some(unknown) = waiting.pop() {
            let own = history.txn_ops(unknown).filter(|op| writes(history.op_kinds()[op.index()]));
            let written: FxHashSet<(KeyId, u64)> = own
                .map(|op| (history.op_keys()[op.index()], history.encoded_version(op)))
                .collect();
            for txn in history.txns().filter(|txn| *txn != unknown) {
                let ops = history.txn_ops(txn);
                let saw_it =
                    |op: &OpId| self.seen_by(*op).any(|version| written.contains(&version));
                let reads: Vec<OpId> = ops.filter(saw_it).collect();
                if !reads.is_empty() && self.txns.insert(txn) && is_unknown(&txn) {
                    waiting.push(txn);
                }
                self.reads.extend(reads);
            }
        }
    }

    /// The versions that an operation saw: of a list, all its elements.
    fn seen_by(&self, op: OpId) -> impl Iterator<Item = (KeyId, u64)> {
        let (value, elements) = match self.history.op(op) {
            Op::Read { value: Some(_), .. } => {
                (Some(self.history.encoded_version(op)), [].as_slice())
            }
            Op::ReadList { elements: Some(elements), .. } => (None, elements),
            _ => (None, [].as_slice()),
        };
        let key = self.history.op_keys()[op.index()];
        let words = value.into_iter().chain(elements.iter().map(|element| element.to_bits()));
        words.map(move |word| (key, word))
    }

    /// The transactions, in the order of the history.
    pub(super) fn txns(&self) -> Vec<TxnId> {
        let writes_it = |op: OpId| self.writes_what_was_seen(op);
        let takes_part =
            |txn: &TxnId| self.txns.contains(txn) || self.history.txn_ops(*txn).any(writes_it);
        self.history.txns().filter(takes_part).collect()
    }

    /// The operations, in the order of the history: reads, and all that a transaction wrote of a key.
    pub(super) fn ops(mut self) -> Vec<OpId> {
        let history = self.history;
        let key = |op: OpId| history.op_keys()[op.index()];
        for txn in history.txns() {
            let seen = history.txn_ops(txn).filter(|op| self.writes_what_was_seen(*op));
            let seen: Vec<_> = seen.map(|op| (txn, key(op))).collect();
            self.written.extend(seen);
        }
        let is_named = |txn: TxnId, op: OpId| match writes(history.op_kinds()[op.index()]) {
            true => self.written.contains(&(txn, key(op))),
            false => self.reads.contains(&op),
        };
        let ops = |txn| history.txn_ops(txn).filter(move |op| is_named(txn, *op));
        history.txns().flat_map(ops).collect()
    }

    fn writes_what_was_seen(&self, op: OpId) -> bool {
        writes(self.history.op_kinds()[op.index()])
            && self
                .seen
                .contains(&(self.history.op_keys()[op.index()], self.history.encoded_version(op)))
    }

    /// The version that a read saw. A list holds all appends before its last one by another
    /// transaction, so that one stands for it.
    fn version(&self, read: OpId) -> Option<(KeyId, u64)> {
        let history = self.history;
        let Op::ReadList { key, elements: Some(elements) } = history.op(read) else {
            return Some((history.op_keys()[read.index()], history.encoded_version(read)));
        };
        let is_own = |element: u64| {
            history.txn_ops(history.op_txn(read)).any(|op| {
                writes(history.op_kinds()[op.index()])
                    && (history.op_keys()[op.index()], history.encoded_version(op))
                        == (key, element)
            })
        };
        let last = elements.iter().map(|element| element.to_bits()).rfind(|word| !is_own(*word))?;
        Some((key, last))
    }
}
