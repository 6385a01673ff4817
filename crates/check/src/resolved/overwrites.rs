//! The version order that read-modify-writes show: who overwrote what is a matter of looking it up.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{Edge, History, KeyId, OpId, Reason, TxnId, VersionOrder};
use rayon::prelude::*;

use super::accesses::{Access, Accesses, LastWrites, writes};
use super::blind_writes::{Loaders, NONE, has_misfit, nobody};
use super::{Reads, Resolved, Source};
use crate::blocks::{self, Block};
use crate::graph::Order;
use crate::order::{Demand, Rule};
use crate::plan::Conclusion;

/// The initial version of the read's key.
const INITIAL: u32 = u32::MAX - 1;

/// A version of a key: the last write of it by its transaction, or the initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Replaced {
    Initial(KeyId),
    Written(OpId),
}

/// A transaction that overwrote a version which it had read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Replacement {
    pub(crate) version: Replaced,
    pub(crate) txn: TxnId,
    /// Its read of the version.
    pub(crate) read: OpId,
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
    /// Versions that had been overwritten already.
    diverging: Vec<Replaced>,
}

/// What was found in a block, beside the versions seen.
#[derive(Default)]
struct Found {
    /// The first write of each key that a transaction had not read.
    blind: Vec<OpId>,
    /// Versions that had been overwritten already.
    diverging: Vec<Replaced>,
}

impl<'h> Overwrites<'h> {
    /// Looks everything up; none if a write does not fit.
    pub(crate) fn new(resolved: Arc<Resolved<'h>>) -> Option<Self> {
        let history = resolved.dependencies.history;
        let blocks = blocks::blocks(history);
        let loaders = Loaders::new(&resolved.dependencies);
        if loaders.are_likely_misfits(&blocks) && !loaders.fit(&blocks) {
            return None;
        }
        Overwrites::thorough(resolved)
    }

    /// The same without a quick look at blind writes first.
    pub(super) fn thorough(resolved: Arc<Resolved<'h>>) -> Option<Self> {
        let history = resolved.dependencies.history;
        let mut overwrites = Overwrites {
            history,
            resolved,
            last_writes: LastWrites::new(history),
            of_written: nobody(history.op_count()),
            of_initial: nobody(history.key_count()),
            blocks: blocks::blocks(history),
            seen: Vec::new(),
            diverging: Vec::new(),
        };
        let mut seen = vec![0u32; history.op_count()];
        let found: Vec<Found> = blocks::cut(history, &overwrites.blocks, &mut seen)
            .into_par_iter()
            .map_init(Accesses::default, |accesses, block| overwrites.look_up(block, accesses))
            .collect();
        let blind: Vec<&[OpId]> = found.iter().map(|found| &found.blind[..]).collect();
        overwrites.admit_loaders(&blind)?;
        overwrites.seen = seen;
        overwrites.diverging = found.into_iter().flat_map(|found| found.diverging).collect();
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
            found.diverging.push(version);
        }
    }

    fn slot(&self, version: Replaced) -> &AtomicU32 {
        match version {
            Replaced::Initial(key) => &self.of_initial[key.index()],
            Replaced::Written(write) => &self.of_written[write.index()],
        }
    }

    /// Takes the blind writes for the first versions of their keys; none if one does not fit.
    fn admit_loaders(&self, blind: &[&[OpId]]) -> Option<()> {
        let is_replaced = |key: KeyId| self.of_initial[key.index()].load(Ordering::Relaxed) != NONE;
        if has_misfit(self.history, blind, is_replaced) {
            return None;
        }
        for write in blind.iter().copied().flatten() {
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

    /// The anti-dependency of a read on a transaction that overwrote the version after a read of its own.
    pub(crate) fn missed(
        &self,
        read: OpId,
        version: Replaced,
        (to, own_read): (TxnId, Option<OpId>),
    ) -> Edge {
        let (from, key) = (self.history.op_txn(read), self.history.op_keys()[read.index()]);
        let (writer, known) = match (version, own_read) {
            (Replaced::Written(write), Some(read)) => {
                (self.history.op_txn(write), VersionOrder::ReadModifyWrite { read })
            }
            _ => (TxnId::INIT, VersionOrder::Initial),
        };
        Edge { from, to, reason: Reason::AntiDependency { key, read, writer, known } }
    }

    /// Whether some version was overwritten by several transactions that had all read it.
    pub(crate) fn diverge(&self) -> bool {
        !self.diverging.is_empty()
    }

    /// All transactions that overwrote a version which another one overwrote, too; by version.
    pub(crate) fn divergences(&self) -> Vec<Replacement> {
        self.reads_of_divergences(|txn, read| self.writes_after(txn, read))
    }

    /// How many transactions read a version that several overwrote, summed over these versions.
    pub(crate) fn readers_of_divergences(&self) -> usize {
        self.reads_of_divergences(|_, _| true).len()
    }

    /// Reads of the versions that several transactions overwrote, one per transaction; by version.
    fn reads_of_divergences(&self, counts: impl Fn(TxnId, OpId) -> bool) -> Vec<Replacement> {
        let mut versions = self.diverging.clone();
        versions.sort_unstable();
        versions.dedup();
        let mut found = Vec::new();
        for txn in self.history.txns().filter(|txn| self.reads().is_kept(*txn)) {
            for op in self.history.txn_ops(txn) {
                if let Some(version) = self.version_read(op)
                    && versions.binary_search(&version).is_ok()
                    && counts(txn, op)
                {
                    found.push(Replacement { version, txn, read: op });
                }
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|replacement| (replacement.version, replacement.txn));
        found
    }

    /// Whether a transaction writes the key of one of its reads after that read.
    fn writes_after(&self, txn: TxnId, read: OpId) -> bool {
        let key = self.history.op_keys()[read.index()];
        self.last_writes.of(txn, key).is_some_and(|write| write > read)
    }
}

/// Anti-dependencies: each reader before the transaction that overwrote what it read.
impl Rule for Overwrites<'_> {
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
        Some(self.missed(read, version, (writer, self.history.txn_ops(writer).find(sees))))
    }
}

fn version(word: u32, key: KeyId) -> Option<Replaced> {
    match word {
        NONE => None,
        INITIAL => Some(Replaced::Initial(key)),
        write => Some(Replaced::Written(OpId(write))),
    }
}
