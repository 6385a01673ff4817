//! The version order that read-modify-writes show: who overwrote what is a matter of looking it up.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{Edge, History, KeyId, OpId, Reason, TxnId, VersionOrder};
use rayon::prelude::*;

use super::accesses::{Access, Accesses, LastWrites, writes};
use super::{Dependencies, Reads, Resolved, Source};
use crate::blocks::{self, Block};
use crate::graph::Order;
use crate::order::{Demand, OrderRule};
use crate::plan::Conclusion;

/// No version, no operation, and no transaction.
const NONE: u32 = u32::MAX;

/// The initial version of the read's key.
const INITIAL: u32 = u32::MAX - 1;

/// A version of a key: the last write of it by its transaction, or the initial one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Initial(KeyId),
    Written(OpId),
}

/// The version order of a read-modify-write history.
pub(crate) struct Overwrites<'h> {
    history: &'h History,
    resolved: Arc<Resolved<'h>>,
    last_writes: LastWrites<'h>,
    /// Per write, who overwrote the version; the first by number, where there are several.
    of_written: Vec<AtomicU32>,
    /// Per key, who overwrote the initial version.
    of_initial: Vec<AtomicU32>,
    blocks: Vec<Block>,
    /// Per operation, the word of the version that it read from elsewhere.
    seen: Vec<u32>,
    /// Whether some version was overwritten by several transactions that had all read it.
    diverge: bool,
}

/// What was found in a block, beside the versions seen.
#[derive(Default)]
struct Found {
    /// The first write of each key that a transaction had not read.
    blind: Vec<OpId>,
    /// Whether a version had been overwritten already.
    diverge: bool,
}

impl<'h> Overwrites<'h> {
    /// Looks everything up; none if a write does not fit.
    pub(crate) fn new(resolved: Arc<Resolved<'h>>) -> Option<Self> {
        let history = resolved.dependencies.history;
        let blocks = blocks::blocks(history);
        // Where blind writes are common, the first block has two of one key as a rule. To find these is far
        // less than to find out who overwrote what.
        let first = blocks.first().map(|block| blind_writes(&resolved.dependencies, block));
        if has_misfit(history, first.as_slice(), |_| false) {
            return None;
        }
        let mut overwrites = Overwrites {
            history,
            resolved,
            last_writes: LastWrites::new(history),
            of_written: nobody(history.op_count()),
            of_initial: nobody(history.key_count()),
            blocks,
            seen: Vec::new(),
            diverge: false,
        };
        let mut seen = vec![0u32; history.op_count()];
        let found: Vec<Found> = blocks::cut(history, &overwrites.blocks, &mut seen)
            .into_par_iter()
            .map_init(Accesses::default, |accesses, block| overwrites.look_up(block, accesses))
            .collect();
        overwrites.admit_loaders(&found)?;
        overwrites.seen = seen;
        overwrites.diverge = found.iter().any(|found| found.diverge);
        Some(overwrites)
    }

    fn reads(&self) -> &Reads {
        &self.resolved.dependencies.reads
    }

    /// Looks up what a block's transactions read and overwrote.
    fn look_up(&self, block: Vec<(Range<usize>, &mut [u32])>, accesses: &mut Accesses) -> Found {
        let mut found = Found::default();
        for (txns, seen) in block {
            seen.fill(NONE);
            let first = blocks::ops(self.history, &txns).start;
            for txn in txns.map(TxnId::at).filter(|txn| self.reads().is_kept(*txn)) {
                accesses.clear();
                for op in self.history.op_range(txn) {
                    seen[op - first] = self.look_up_op(txn, OpId::at(op), accesses, &mut found);
                }
            }
        }
        found
    }

    #[inline]
    fn look_up_op(&self, txn: TxnId, op: OpId, accesses: &mut Accesses, found: &mut Found) -> u32 {
        let key = self.history.op_keys()[op.index()];
        let mut seen = NONE;
        if writes(self.history.op_kinds()[op.index()]) {
            match accesses.write(key) {
                Access::Read { version } => self.replace(txn, key, version, found),
                Access::New => found.blind.push(op),
                Access::Written => {}
            }
        } else if let Source::Txn(writer) = self.reads().source(op) {
            seen = self.word(writer, key);
            accesses.read(key, seen);
        }
        seen
    }

    /// The word of the version that a transaction wrote.
    fn word(&self, writer: TxnId, key: KeyId) -> u32 {
        if writer.is_init() {
            INITIAL
        } else {
            self.last_writes.of(writer, key).map_or(NONE, |write| write.0)
        }
    }

    fn replace(&self, txn: TxnId, key: KeyId, word: u32, found: &mut Found) {
        let Some(version) = version(word, key) else { return };
        // The least number wins, whichever thread comes first.
        if self.slot(version).fetch_min(txn.0, Ordering::Relaxed) != NONE {
            found.diverge = true;
        }
    }

    fn slot(&self, version: Replaced) -> &AtomicU32 {
        match version {
            Replaced::Initial(key) => &self.of_initial[key.index()],
            Replaced::Written(write) => &self.of_written[write.index()],
        }
    }

    /// Takes the blind writes for the first versions of their keys; none if one does not fit.
    fn admit_loaders(&self, found: &[Found]) -> Option<()> {
        let is_replaced = |key: KeyId| self.of_initial[key.index()].load(Ordering::Relaxed) != NONE;
        if has_misfit(self.history, found, is_replaced) {
            return None;
        }
        for write in found.iter().flat_map(|found| &found.blind) {
            let key = self.history.op_keys()[write.index()];
            let loader = self.history.op_txn(*write).0;
            self.of_initial[key.index()].store(loader, Ordering::Relaxed);
        }
        Some(())
    }

    /// Who overwrote a version.
    #[inline]
    fn replacer(&self, version: Replaced) -> Option<TxnId> {
        let txn = self.slot(version).load(Ordering::Relaxed);
        (txn != NONE).then_some(TxnId(txn))
    }

    /// The anti-dependencies that are wanted: each reader before the transaction that overwrote what it read.
    pub(crate) fn anti_dependencies(
        &self,
        is_wanted: impl Fn(Demand) -> bool + Sync + Send,
    ) -> Vec<Demand> {
        let visit = |(): &mut (), reader, edges: &mut Vec<Demand>| {
            for op in self.history.op_range(reader) {
                let version = version(self.seen[op], self.history.op_keys()[op]);
                if let Some(writer) = version.and_then(|version| self.replacer(version))
                    && writer != reader
                    && is_wanted((reader.0, writer.0))
                {
                    edges.push((reader.0, writer.0));
                }
            }
        };
        blocks::gather(&self.blocks, || (), visit).concat()
    }

    /// The version that an operation read from elsewhere.
    fn version_read(&self, op: OpId) -> Option<Replaced> {
        let Source::Txn(writer) = self.reads().source(op) else { return None };
        let key = self.history.op_keys()[op.index()];
        version(self.word(writer, key), key)
    }

    /// Whether some version was overwritten by several transactions that had all read it.
    pub(crate) fn diverge(&self) -> bool {
        self.diverge
    }
}

/// Anti-dependencies: each reader before the transaction that overwrote what it read.
impl OrderRule for Overwrites<'_> {
    fn denied(&self, order: &Order) -> Result<Vec<Demand>, Conclusion> {
        Ok(self.anti_dependencies(|demand| order.denies(demand)))
    }

    fn among(&self, order: &Order, denied: &[Demand]) -> Option<Vec<Demand>> {
        let within = order.within(denied);
        let is_within =
            |(reader, writer): Demand| within[reader as usize] && within[writer as usize];
        Some(self.anti_dependencies(is_within))
    }

    fn explain(&self, reader: TxnId, writer: TxnId) -> Option<Edge> {
        let missed = |op: OpId| {
            let version = self.version_read(op)?;
            (self.replacer(version) == Some(writer)).then_some((op, version))
        };
        let (read, version) = self.history.txn_ops(reader).find_map(missed)?;
        let sees = |op: &OpId| self.version_read(*op) == Some(version);
        let own_read = self.history.txn_ops(writer).find(sees);
        let (seen, known) = match (version, own_read) {
            (Replaced::Written(write), Some(read)) => {
                (self.history.op_txn(write), VersionOrder::ReadModifyWrite { read })
            }
            _ => (TxnId::INIT, VersionOrder::Initial),
        };
        let key = self.history.op_keys()[read.index()];
        let reason = Reason::AntiDependency { key, read, writer: seen, known };
        Some(Edge { from: reader, to: writer, reason })
    }
}

/// The blind writes of a block, and nothing else of it.
fn blind_writes(dependencies: &Dependencies<'_>, block: &Block) -> Found {
    let Dependencies { history, reads, .. } = dependencies;
    let (mut found, mut accesses) = (Found::default(), Accesses::default());
    for txn in block.iter().flat_map(Clone::clone).map(TxnId::at) {
        accesses.clear();
        for op in history.txn_ops(txn).filter(|_| reads.is_kept(txn)) {
            let key = history.op_keys()[op.index()];
            if !writes(history.op_kinds()[op.index()]) {
                if matches!(reads.source(op), Source::Txn(_)) {
                    accesses.read(key, NONE);
                }
            } else if accesses.write(key) == Access::New {
                found.blind.push(op);
            }
        }
    }
    found
}

/// Whether a blind write is not the one loader that its key may have. A key may have one if no transaction
/// overwrote its initial version: all other versions then descend from the loader's, so that it was the
/// first.
fn has_misfit(
    history: &History,
    found: &[Found],
    is_replaced: impl Fn(KeyId) -> bool + Sync,
) -> bool {
    let key = |write: OpId| history.op_keys()[write.index()];
    let first = nobody(history.key_count());
    let first_of = |write: OpId| &first[key(write).index()];
    found.par_iter().for_each(|found| {
        for write in &found.blind {
            first_of(*write).fetch_min(write.0, Ordering::Relaxed);
        }
    });
    let is_misfit = |write: &OpId| {
        first_of(*write).load(Ordering::Relaxed) != write.0 || is_replaced(key(*write))
    };
    found.par_iter().any(|found| found.blind.iter().any(is_misfit))
}

/// An array of `count` empty slots.
fn nobody(count: usize) -> Vec<AtomicU32> {
    (0..count).into_par_iter().map(|_| AtomicU32::new(NONE)).collect()
}

fn version(word: u32, key: KeyId) -> Option<Replaced> {
    match word {
        NONE => None,
        INITIAL => Some(Replaced::Initial(key)),
        write => Some(Replaced::Written(OpId(write))),
    }
}
