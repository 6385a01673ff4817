//! The commit relation of a level with nothing left out, and where it is cyclic.
//!
//! Where a key is read twice from different transactions, the minimal forms of the rules (AWDIT)
//! leave out demands that matter only if the relation is acyclic otherwise: read atomic goes by the
//! first read of a key, since it refuses the second anyway; read committed leaves out what follows
//! by way of a writer that was seen, lost and seen again, or of `init`. For a level's verdict that is
//! enough. For its patterns it is not: a non-repeatable read is a pattern by itself, and no reason to
//! miss others. So these demands are added here. All else that the minimal forms leave out follows
//! from what they keep by steps of session order and reads.

use isolario_model::{KeyId, Level, OpId, TxnId};

use super::Weak;
use super::inference::{Inference, Visibility};
use super::naming::Cyclic;
use crate::resolved::Source;
use crate::resolved::{Dependencies, Inferred, Saturated};

/// The commit relation of a level.
pub(super) struct Relation {
    pub(super) level: Level,
    pub(super) inferred: Inferred,
    /// Empty if there are no cycles.
    pub(super) cyclic: Cyclic,
}

impl Relation {
    pub(super) fn new(weak: &Weak<'_>, level: Level) -> Self {
        let more = demands_of_repeated_reads(weak, level);
        let inferred = weak.saturate(level, &more);
        let graph = Saturated { dependencies: weak.dependencies(), inferred: &inferred };
        let cyclic = match weak.resolved.guessed_order(&graph) {
            Some(_) if !inferred.before_init => Cyclic::default(),
            _ => weak.on_cycles(level, &graph, &more),
        };
        Relation { level, inferred, cyclic }
    }

    pub(super) fn is_acyclic(&self) -> bool {
        self.cyclic.component_of.is_empty()
    }

    /// Whether a transaction is on a cycle; for `init`, whether anything would have to precede it.
    pub(super) fn has_cycle_with(&self, txn: TxnId) -> bool {
        let component = self.cyclic.component_of.get(txn.index());
        if txn.is_init() {
            self.inferred.before_init
        } else {
            component.is_some_and(|number| *number != u32::MAX)
        }
    }

    /// Whether the relation puts the writer that was seen before the one that was missed. The rule
    /// puts it after that one, so this is the question whether both are on one cycle; `init` comes
    /// before everything.
    pub(super) fn closes(&self, seen: TxnId, missed: TxnId) -> bool {
        let component = |txn: TxnId| self.cyclic.component_of.get(txn.index());
        seen.is_init() || (self.has_cycle_with(missed) && component(seen) == component(missed))
    }
}

/// A read from another transaction, or from `init`.
type External = (OpId, TxnId, KeyId);

fn demands_of_repeated_reads(weak: &Weak<'_>, level: Level) -> Vec<Inference> {
    let mut found = Vec::new();
    // The causal rule is applied to every read.
    if level == Level::Causal {
        return found;
    }
    let history = weak.dependencies().history;
    let (mut reads, mut sources) = (Vec::new(), Vec::new());
    for reader in history.txns().filter(|txn| weak.dependencies().reads.is_kept(*txn)) {
        collect_external(weak.dependencies(), reader, &mut reads);
        sources.clear();
        sources.extend(reads.iter().map(|(_, from, key)| (*key, *from)));
        sources.sort_unstable();
        sources.dedup();
        let differing = |pair: &&[(KeyId, TxnId)]| pair[0].0 == pair[1].0;
        // Sorted, as the sources are.
        let keys: Vec<KeyId> = sources.windows(2).filter(differing).map(|w| w[0].0).collect();
        if !keys.is_empty() {
            demand(weak, level, reader, &reads, &keys, &mut found);
        }
    }
    found
}

fn collect_external(dependencies: &Dependencies<'_>, reader: TxnId, reads: &mut Vec<External>) {
    reads.clear();
    for op in dependencies.history.txn_ops(reader) {
        if let Source::Txn(from) = dependencies.reads.source(op) {
            reads.push((op, from, dependencies.history.op_keys()[op.index()]));
        }
    }
}

/// What a level demands of the writers that one reader saw, as far as it concerns some keys.
fn demand(
    weak: &Weak<'_>,
    level: Level,
    reader: TxnId,
    reads: &[External],
    keys: &[KeyId],
    found: &mut Vec<Inference>,
) {
    for (at, (read, after, key)) in reads.iter().copied().enumerate() {
        if keys.binary_search(&key).is_err() {
            continue;
        }
        let seen = if level == Level::ReadCommitted { &reads[..at] } else { reads };
        for (op, before, _) in seen.iter().copied() {
            if !before.is_init() && before != after && weak.writes().contains(before, key) {
                let visible = match op < read {
                    true => Visibility::EarlierRead(op),
                    false => Visibility::LaterRead(op),
                };
                found.push(Inference { before, after, reader, key, read, visible });
            }
        }
    }
}
