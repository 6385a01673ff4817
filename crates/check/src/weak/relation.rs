//! The commit relation of a level with nothing left out, and where it is cyclic.
//!
//! Where a key is read twice from different transactions, the minimal forms of the rules (AWDIT)
//! leave out demands that matter only if the relation is acyclic otherwise: read atomic goes by the
//! first read of a key, since it refuses the second anyway; read committed leaves out what follows
//! by way of a writer that was seen, lost and seen again, or of `init`. For a level's verdict that is
//! enough. For its patterns it is not: a non-repeatable read is a pattern by itself, and no reason to
//! miss others. So these demands are added here. All else that the minimal forms leave out follows
//! from what they keep by steps of session order and reads.

use std::collections::BTreeSet;

use isolario_model::{Evidence, KeyId, Level, OpId, TxnId};

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

/// The reads of a transaction from others or from `init`, each with the writer.
pub(super) fn foreign_reads(
    dependencies: &Dependencies<'_>,
    reader: TxnId,
) -> impl Iterator<Item = (OpId, TxnId)> {
    dependencies.history.txn_ops(reader).filter_map(|op| match dependencies.reads.source(op) {
        Source::Txn(writer) => Some((op, writer)),
        _ => None,
    })
}

/// What a level demands of the reads of keys that their transactions read from several writers.
fn demands_of_repeated_reads(weak: &Weak<'_>, level: Level) -> Vec<Inference> {
    let mut found = Vec::new();
    // The causal rule is applied to every read.
    if level == Level::Causal {
        return found;
    }
    let history = weak.dependencies().history;
    let repeated: BTreeSet<(TxnId, KeyId)> = weak
        .non_repeatable()
        .iter()
        .filter_map(|anomaly| match anomaly.evidence {
            Evidence::Reads { key, first, .. } => Some((history.op_txn(first), key)),
            _ => None,
        })
        .collect();
    for (reader, key) in repeated {
        let reads = || foreign_reads(weak.dependencies(), reader);
        let of_key = |(op, _): &(OpId, TxnId)| history.op_keys()[op.index()] == key;
        for (read, after) in reads().filter(of_key) {
            for (op, before) in reads() {
                let counts = op < read || level != Level::ReadCommitted;
                if counts
                    && !before.is_init()
                    && before != after
                    && weak.writes().contains(before, key)
                {
                    let visible = match op < read {
                        true => Visibility::EarlierRead(op),
                        false => Visibility::LaterRead(op),
                    };
                    found.push(Inference { before, after, reader, key, read, visible });
                }
            }
        }
    }
    found
}
