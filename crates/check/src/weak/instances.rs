//! Where a pattern of Plume's Table 1 may occur: every reader, the read, the writer it saw and a
//! writer that it missed.
//!
//! The rules of the levels infer no more than they need, so what they leave out may be the only
//! instance of a pattern. Here nothing is left out. But a writer that was missed comes before the
//! one that was seen, by the rule; if it also comes after it, as all patterns ask, both lie on a
//! cycle: only transactions on cycles of the level's commit relation need looking at.

use isolario_model::{AnomalyKind, History, KeyId, Level, OpId, OpKind, TxnId};

use super::Dependencies;
use super::naming::Cyclic;
use super::saturated::{Inference, Visibility};
use crate::graph::{BUDGET, InEdges};
use crate::reads::Source;

/// A place where the writer that was missed is visible in the way of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) inference: Inference,
    /// What it is called if the writer that was seen comes causally before the other one.
    pub(super) causally: AnomalyKind,
    /// What it is called if the commit relation alone says so.
    pub(super) by_commit: AnomalyKind,
}

/// The instances of a level's patterns at one read and one missed writer, by how that is visible.
/// Each goes by the most special pattern that it is an instance of:
///
/// - read committed: something was read from the missed writer before (another key: TAP-h, TAP-i;
///   the same key: the pattern that has no letter);
/// - read atomic: something else was read from it only later, or it is of the same session (TAP-k,
///   TAP-l). Of several reads of a key the first counts, as in the level's rule: that they differ
///   is a non-repeatable read;
/// - causal: the reader depends on it, and on the way is another transaction (TAP-m, TAP-n).
pub(super) fn at_read(
    level: Level,
    dependencies: &Dependencies<'_>,
    inference: &Inference,
) -> Vec<Instance> {
    let Inference { before, reader, key, read, .. } = *inference;
    let (history, reads) = (dependencies.history, dependencies.reads);
    let key_of = |op: OpId| history.op_keys()[op.index()];
    let seen = || {
        history.txn_ops(reader).filter(|op| reads.source(*op) == Source::Txn(before) && *op != read)
    };
    let other_before = seen().find(|op| *op < read && key_of(*op) != key);
    let found = |visible, causally, by_commit| Instance {
        inference: Inference { visible, ..*inference },
        causally,
        by_commit,
    };
    use AnomalyKind as A;
    match level {
        Level::ReadCommitted => {
            let same_before = seen().find(|op| *op < read && key_of(*op) == key);
            let other = other_before
                .map(|op| found(Visibility::EarlierRead(op), A::NonMonoReadCo, A::NonMonoReadCm));
            let same = same_before.map(|op| {
                found(Visibility::EarlierRead(op), A::NonMonotonicRead, A::NonMonotonicRead)
            });
            other.into_iter().chain(same).collect()
        }
        Level::ReadAtomic if other_before.is_some() => Vec::new(),
        Level::ReadAtomic => {
            let is_first = !history
                .txn_ops(reader)
                .take_while(|op| *op < read)
                .any(|op| key_of(op) == key && matches!(reads.source(op), Source::Txn(_)));
            let later = seen().find(|op| is_first && *op > read && key_of(*op) != key);
            let session = dependencies.precedes_in_session(before, reader);
            let visible =
                later.map(Visibility::LaterRead).or_else(|| session.then_some(Visibility::Session));
            let fractured =
                visible.map(|visible| found(visible, A::FracturedReadCo, A::FracturedReadCm));
            fractured.into_iter().collect()
        }
        _ if seen().next().is_some() || dependencies.precedes_in_session(before, reader) => {
            Vec::new()
        }
        _ => vec![found(Visibility::Causal, A::CoConflictCm, A::ConflictCm)],
    }
}

/// What read committed's rule demands where a key was read from several transactions. The minimal
/// form of the rule leaves out what follows from the rest once a cycle is allowed for, through
/// `init` or through a writer that was seen, lost and seen again; but such a cycle is a pattern by
/// itself, and no way for others.
pub(super) fn of_repeated_reads(dependencies: &Dependencies<'_>) -> Vec<Inference> {
    let history = dependencies.history;
    let mut found = Vec::new();
    for reader in history.txns().filter(|txn| dependencies.reads.is_kept(*txn)) {
        let external = || history.txn_ops(reader).filter_map(|op| source(dependencies, op));
        let mut sources: Vec<(KeyId, TxnId)> =
            external().map(|(_, from, key)| (key, from)).collect();
        sources.sort_unstable();
        sources.dedup();
        let from_several = |key| sources.windows(2).any(|w| w[0].0 == key && w[1].0 == key);
        for (read, after, key) in external().filter(|(.., key)| from_several(*key)) {
            for (seen, before, _) in external().take_while(|(seen, ..)| *seen < read) {
                if !before.is_init() && before != after && writes(history, before, key) {
                    let visible = Visibility::EarlierRead(seen);
                    found.push(Inference { before, after, reader, key, read, visible });
                }
            }
        }
    }
    found
}

/// A read from another transaction: the read, whom it is from, and its key.
fn source(dependencies: &Dependencies<'_>, op: OpId) -> Option<(OpId, TxnId, KeyId)> {
    match dependencies.reads.source(op) {
        Source::Txn(from) => Some((op, from, dependencies.history.op_keys()[op.index()])),
        _ => None,
    }
}

fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    history.txn_ops(txn).any(|op| is_write(history, op) && history.op_keys()[op.index()] == key)
}

fn is_write(history: &History, op: OpId) -> bool {
    matches!(history.op_kinds()[op.index()], OpKind::Write | OpKind::Delete | OpKind::Append)
}

/// All instances of a level's patterns.
pub(super) struct Instances<'a> {
    level: Level,
    dependencies: &'a Dependencies<'a>,
    cyclic: &'a Cyclic,
    writers: Writers,
    ancestors: Ancestors,
    found: Vec<Instance>,
    steps: usize,
}

impl<'a> Instances<'a> {
    /// Finds them all, and whether there was time for that.
    pub(super) fn find(
        level: Level,
        dependencies: &'a Dependencies<'a>,
        cyclic: &'a Cyclic,
    ) -> (Vec<Instance>, bool) {
        let mut instances = Instances {
            level,
            dependencies,
            cyclic,
            writers: Writers::new(dependencies),
            ancestors: Ancestors::new(dependencies.node_count()),
            found: Vec::new(),
            steps: 0,
        };
        let kept = dependencies.history.txns().filter(|txn| dependencies.reads.is_kept(*txn));
        for reader in kept {
            instances.at_reader(reader);
            if instances.steps + instances.ancestors.edges_seen > BUDGET {
                return (instances.found, false);
            }
        }
        (instances.found, true)
    }

    fn at_reader(&mut self, reader: TxnId) {
        let (history, reads) = (self.dependencies.history, self.dependencies.reads);
        for read in history.txn_ops(reader) {
            let Source::Txn(after) = reads.source(read) else { continue };
            let key = history.op_keys()[read.index()];
            let mut missed: Vec<TxnId> = match self.level {
                Level::ReadCommitted => self.read_from(reader),
                Level::ReadAtomic => {
                    [self.read_from(reader), self.of_session(reader, key)].concat()
                }
                _ => self.writers.of(key).to_vec(),
            };
            self.steps += missed.len();
            missed.retain(|before| {
                *before != reader
                    && self.on_one_cycle(after, *before)
                    && self.writers.have(key, *before)
            });
            missed.sort_unstable();
            missed.dedup();
            if self.level == Level::Causal && !missed.is_empty() {
                self.ancestors.find(self.dependencies, reader);
                missed.retain(|before| self.ancestors.contain(*before));
            }
            for before in missed {
                let visible = Visibility::Causal;
                let inference = Inference { before, after, reader, key, read, visible };
                self.found.extend(at_read(self.level, self.dependencies, &inference));
            }
        }
    }

    /// Whether both are on one cycle; `init` comes before everything.
    fn on_one_cycle(&self, after: TxnId, before: TxnId) -> bool {
        after != before
            && (after.is_init() || {
                let component = self.cyclic.component_of[after.index()];
                component != u32::MAX && component == self.cyclic.component_of[before.index()]
            })
    }

    /// Whom a reader read from.
    fn read_from(&self, reader: TxnId) -> Vec<TxnId> {
        let ops = self.dependencies.history.txn_ops(reader);
        ops.filter_map(|op| source(self.dependencies, op))
            .map(|(_, writer, _)| writer)
            .filter(|writer| !writer.is_init())
            .collect()
    }

    /// The writers of a key up to the reader in its session.
    fn of_session(&self, reader: TxnId, key: KeyId) -> Vec<TxnId> {
        let history = self.dependencies.history;
        let session = history.session_of(reader);
        let writers = self.writers.of(key);
        // The transactions of a session have numbers in a row.
        let end = writers.partition_point(|writer| *writer < reader);
        let start = writers[..end].partition_point(|writer| history.session_of(*writer) < session);
        writers[start..end].to_vec()
    }
}

/// Per key, the kept transactions that write it, in order.
struct Writers {
    /// One past the last writer of each key.
    ends: Vec<u32>,
    txns: Vec<TxnId>,
}

impl Writers {
    fn new(dependencies: &Dependencies<'_>) -> Self {
        let history: &History = dependencies.history;
        let mut writes: Vec<(KeyId, TxnId)> = Vec::new();
        for txn in history.txns().filter(|txn| dependencies.reads.is_kept(*txn)) {
            let keys = history.txn_ops(txn).filter(|op| is_write(history, *op));
            writes.extend(keys.map(|op| (history.op_keys()[op.index()], txn)));
        }
        writes.sort_unstable();
        writes.dedup();
        let mut ends = vec![0; history.key_count()];
        writes.iter().for_each(|(key, _)| ends[key.index()] += 1);
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        Writers { ends, txns: writes.into_iter().map(|(_, txn)| txn).collect() }
    }

    fn of(&self, key: KeyId) -> &[TxnId] {
        let start = if key.index() == 0 { 0 } else { self.ends[key.index() - 1] as usize };
        &self.txns[start..self.ends[key.index()] as usize]
    }

    fn have(&self, key: KeyId, txn: TxnId) -> bool {
        self.of(key).binary_search(&txn).is_ok()
    }
}

/// What one transaction depends on, by session order and reads.
struct Ancestors {
    of: Option<TxnId>,
    /// Per transaction, the round in which it was last found.
    stamp: Vec<u32>,
    round: u32,
    edges_seen: usize,
}

impl Ancestors {
    fn new(txns: usize) -> Self {
        Ancestors { of: None, stamp: vec![0; txns], round: 0, edges_seen: 0 }
    }

    fn find(&mut self, dependencies: &Dependencies<'_>, txn: TxnId) {
        if self.of.replace(txn) == Some(txn) {
            return;
        }
        self.round += 1;
        let mut open = vec![txn.0];
        while let Some(node) = open.pop() {
            for before in dependencies.predecessors(node) {
                self.edges_seen += 1;
                if std::mem::replace(&mut self.stamp[before as usize], self.round) != self.round {
                    open.push(before);
                }
            }
        }
    }

    fn contain(&self, txn: TxnId) -> bool {
        self.stamp[txn.index()] == self.round
    }
}
