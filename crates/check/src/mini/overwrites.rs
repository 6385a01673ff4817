//! Who overwrote what: in a read-modify-write history, a matter of looking it up.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{History, KeyId, OpId, OpKind, TxnId};
use rayon::prelude::*;

use super::accesses::{Access, Accesses, LastWrites};
use crate::reads::{Reads, Source};

/// Transactions per task.
const TXNS_PER_TASK: usize = 1 << 14;

/// No version, and nobody.
const NONE: u32 = u32::MAX;
/// The initial version of the read's key.
const INITIAL: u32 = u32::MAX - 1;

/// A version of a key: the last write of it by its transaction, or the initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Initial(KeyId),
    Written(OpId),
}

/// A transaction that overwrote a version which it had read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Replacement {
    pub(super) version: Version,
    pub(super) txn: TxnId,
    /// Its read of the version.
    pub(super) read: OpId,
}

/// A write that nothing orders among the versions of its key: its transaction had not read the key,
/// and it is not the one loader that the key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlindWrite(pub(crate) OpId);

/// The version order of a read-modify-write history.
pub(super) struct Overwrites<'a> {
    history: &'a History,
    reads: &'a Reads,
    last_writes: LastWrites<'a>,
    /// Per write, who overwrote the version; the first by number, where there are several.
    of_written: Vec<AtomicU32>,
    /// Per key, who overwrote the initial version.
    of_initial: Vec<AtomicU32>,
    parts: Vec<Part>,
}

/// Some consecutive transactions.
struct Part {
    txns: Range<usize>,
    /// Per operation, the word of the version that it read from elsewhere.
    seen: Vec<u32>,
    /// The first write of each key that a transaction had not read, in order.
    blind: Vec<OpId>,
    /// Versions that had been overwritten already.
    diverging: Vec<Version>,
}

impl<'a> Overwrites<'a> {
    /// Looks everything up, or says which write does not fit.
    pub(super) fn new(history: &'a History, reads: &'a Reads) -> Result<Self, BlindWrite> {
        let nobody = |count: usize| (0..count).map(|_| AtomicU32::new(NONE)).collect();
        let mut overwrites = Overwrites {
            history,
            reads,
            last_writes: LastWrites::new(history),
            of_written: nobody(history.op_count()),
            of_initial: nobody(history.key_count()),
            parts: Vec::new(),
        };
        let starts = (0..history.txn_count()).into_par_iter().step_by(TXNS_PER_TASK);
        overwrites.parts = starts
            .map_init(Accesses::default, |accesses, start| overwrites.look_up(start, accesses))
            .collect();
        overwrites.admit_loaders()?;
        Ok(overwrites)
    }

    fn look_up(&self, start: usize, accesses: &mut Accesses) -> Part {
        let txns = start..(start + TXNS_PER_TASK).min(self.history.txn_count());
        let ops = self.history.op_range(TxnId::at(txns.end - 1)).end
            - self.history.op_range(TxnId::at(start)).start;
        let (blind, diverging) = (Vec::new(), Vec::new());
        let mut part = Part { txns, seen: Vec::with_capacity(ops), blind, diverging };
        for txn in part.txns.clone().map(TxnId::at) {
            if self.reads.is_kept(txn) {
                accesses.clear();
                self.history.op_range(txn).for_each(|op| {
                    self.look_up_op(txn, OpId::at(op), accesses, &mut part);
                });
            } else {
                part.seen.extend(self.history.op_range(txn).map(|_| NONE));
            }
        }
        part
    }

    #[inline]
    fn look_up_op(&self, txn: TxnId, op: OpId, accesses: &mut Accesses, part: &mut Part) {
        let key = self.history.op_keys()[op.index()];
        let mut seen = NONE;
        if is_write(self.history.op_kinds()[op.index()]) {
            match accesses.write(key) {
                Access::Read { version } => self.replace(txn, key, version, part),
                Access::New => part.blind.push(op),
                Access::Written => {}
            }
        } else if let Source::Txn(writer) = self.reads.source(op) {
            seen = self.word(writer, key);
            accesses.read(key, seen);
        }
        part.seen.push(seen);
    }

    /// The word of the version that a transaction wrote.
    fn word(&self, writer: TxnId, key: KeyId) -> u32 {
        if writer.is_init() {
            INITIAL
        } else {
            self.last_writes.of(writer, key).map_or(NONE, |write| write.0)
        }
    }

    fn replace(&self, txn: TxnId, key: KeyId, word: u32, part: &mut Part) {
        let Some(version) = version(word, key) else { return };
        // The least number wins, whichever thread comes first.
        if self.slot(version).fetch_min(txn.0, Ordering::Relaxed) != NONE {
            part.diverging.push(version);
        }
    }

    fn slot(&self, version: Version) -> &AtomicU32 {
        match version {
            Version::Initial(key) => &self.of_initial[key.index()],
            Version::Written(write) => &self.of_written[write.index()],
        }
    }

    /// A key may have one blind writer if nobody else overwrote its initial version: all other
    /// versions then descend from that writer's, so that it was the first.
    fn admit_loaders(&self) -> Result<(), BlindWrite> {
        for write in self.parts.iter().flat_map(|part| &part.blind) {
            let key = self.history.op_keys()[write.index()];
            let loader = self.history.op_txn(*write).0;
            let first = &self.of_initial[key.index()];
            if first.fetch_min(loader, Ordering::Relaxed) != NONE {
                return Err(BlindWrite(*write));
            }
        }
        Ok(())
    }

    /// Who overwrote a version.
    #[inline]
    fn replacer(&self, version: Version) -> Option<TxnId> {
        let txn = self.slot(version).load(Ordering::Relaxed);
        (txn != NONE).then_some(TxnId(txn))
    }

    /// The anti-dependencies, each reader before whoever overwrote what it read, by part.
    pub(super) fn anti_dependencies(&self) -> Vec<Vec<(TxnId, TxnId)>> {
        let of_part = |part: &Part| {
            let mut edges = Vec::new();
            self.for_each_missed(part, &mut |reader, writer| {
                edges.push((reader, writer));
                true
            });
            edges
        };
        self.parts.par_iter().map(of_part).collect()
    }

    /// Whether all anti-dependencies lead forward by these places.
    pub(super) fn agree_with(&self, places: &[u32]) -> bool {
        let forward =
            |reader: TxnId, writer: TxnId| places[reader.index()] < places[writer.index()];
        self.parts.par_iter().all(|part| self.for_each_missed(part, &mut { forward }))
    }

    /// Calls `each` with readers and those who overwrote what they read, as long as it says so;
    /// whether it always did.
    fn for_each_missed(&self, part: &Part, each: &mut impl FnMut(TxnId, TxnId) -> bool) -> bool {
        let first = self.history.op_range(TxnId::at(part.txns.start)).start;
        part.txns.clone().map(TxnId::at).all(|reader| {
            self.history.op_range(reader).all(|op| {
                let key = self.history.op_keys()[op];
                let version = version(part.seen[op - first], key);
                match version.and_then(|version| self.replacer(version)) {
                    Some(writer) if writer != reader => each(reader, writer),
                    _ => true,
                }
            })
        })
    }

    /// The version that an operation read from elsewhere, and who wrote it.
    pub(super) fn version_read(&self, op: OpId) -> Option<(Version, TxnId)> {
        let Source::Txn(writer) = self.reads.source(op) else { return None };
        let key = self.history.op_keys()[op.index()];
        Some((version(self.word(writer, key), key)?, writer))
    }

    /// A read of `reader` whose version `writer` overwrote.
    pub(super) fn missed_read(&self, reader: TxnId, writer: TxnId) -> Option<OpId> {
        self.history.txn_ops(reader).find(|op| {
            let version = self.version_read(*op).map(|(version, _)| version);
            version.and_then(|version| self.replacer(version)) == Some(writer)
        })
    }

    /// The read by which a transaction saw a version.
    pub(super) fn read_of(&self, txn: TxnId, version: Version) -> Option<OpId> {
        let sees = |op: &OpId| self.version_read(*op).is_some_and(|(read, _)| read == version);
        self.history.txn_ops(txn).find(sees)
    }

    /// Whether some version was overwritten by several transactions that had all read it.
    pub(super) fn diverge(&self) -> bool {
        self.parts.iter().any(|part| !part.diverging.is_empty())
    }

    /// All transactions that overwrote a version which another one overwrote, too; by version.
    pub(super) fn divergences(&self) -> Vec<Replacement> {
        let diverging = self.parts.iter().flat_map(|part| &part.diverging);
        let mut versions: Vec<Version> = diverging.copied().collect();
        versions.sort_unstable();
        versions.dedup();
        let mut found = Vec::new();
        for txn in self.history.txns().filter(|txn| self.reads.is_kept(*txn)) {
            for op in self.history.txn_ops(txn) {
                if let Some((version, _)) = self.version_read(op)
                    && versions.binary_search(&version).is_ok()
                    && self.writes_after(txn, op)
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

fn version(word: u32, key: KeyId) -> Option<Version> {
    match word {
        NONE => None,
        INITIAL => Some(Version::Initial(key)),
        write => Some(Version::Written(OpId(write))),
    }
}

pub(super) fn is_write(kind: OpKind) -> bool {
    matches!(kind, OpKind::Write | OpKind::Delete)
}
