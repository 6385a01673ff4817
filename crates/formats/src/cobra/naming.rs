//! How the reads of a directory name the versions they saw.
//!
//! Most logs name the writer of every read, and a version is the pair of writer and write id.
//! Others put "any transaction" there; then a version is the pair of write id and value, which
//! may be written more than once. All operations of a history must name versions in one way, or
//! reads and writes could not be compared, so a single read of "any transaction" decides it for
//! the whole directory.
//!
//! In such a directory a read that does name its writer is taken as well, as long as nothing is
//! lost: the only write of that id and value must be its writer's. A read that names one of
//! several equal writes says more than the pair can; dropping that could hide a violation, so it
//! is refused.

use isolario_model::VersionRef;
use rustc_hash::FxHashMap;

use super::record::{ANY, INITIAL, NULL, ReadRecord, Record, WriteRecord, is_reserved, records};
use crate::error::Fault;

/// What names a version throughout a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Writer and write id.
    ByWriter,
    /// Write id and value. With the writers of each version, if there are reads that name one.
    ByWrite(Writers),
}

/// Per key, write id and value: the transaction that wrote it, or none if several did.
type Writers = FxHashMap<(u64, u64, u64), Option<u64>>;

/// Which of the two kinds of read there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadKinds {
    of_any: bool,
    of_named: bool,
}

impl ReadKinds {
    /// Looks through a log, and refuses it at the first record that is broken.
    pub(super) fn look_through(&mut self, log: &[u8]) -> Result<(), Fault> {
        for record in records(log) {
            if let (_, Record::Read(read)) = record? {
                self.of_any |= read.writer == ANY;
                self.of_named |= !is_reserved(read.writer);
            }
        }
        Ok(())
    }
}

impl Naming {
    /// The naming for a directory with these kinds of read.
    pub(super) fn choose<'a>(kinds: ReadKinds, logs: impl Iterator<Item = &'a [u8]>) -> Naming {
        match (kinds.of_any, kinds.of_named) {
            (false, _) => Naming::ByWriter,
            (true, false) => Naming::ByWrite(Writers::default()),
            (true, true) => {
                let mut writers = Writers::default();
                for (txn, write) in logs.flat_map(writes) {
                    writers
                        .entry((write.key, write.write, write.value))
                        .and_modify(|writer| *writer = None)
                        .or_insert(Some(txn));
                }
                Naming::ByWrite(writers)
            }
        }
    }

    /// The version a write made.
    pub(super) fn of_write(&self, txn: u64, write: &WriteRecord) -> VersionRef {
        match self {
            Naming::ByWriter => VersionRef::ByWriter { txn, write: write.write },
            Naming::ByWrite(_) => VersionRef::ByWrite { write: write.write, value: write.value },
        }
    }

    /// The version a read saw.
    pub(super) fn of_read(&self, at: usize, read: &ReadRecord) -> Result<VersionRef, Fault> {
        let by_write = VersionRef::ByWrite { write: read.write, value: read.value };
        match (self, read.writer) {
            (_, INITIAL | NULL) if read.write == read.writer => Ok(VersionRef::Initial),
            (_, INITIAL | NULL) => {
                let expected = format!("write id 0x{:x} for the initial version", read.writer);
                Err(Fault::malformed(at, expected, format!("0x{:x}", read.write)))
            }
            (Naming::ByWrite(_), ANY) => Ok(by_write),
            (Naming::ByWriter, txn) => Ok(VersionRef::ByWriter { txn, write: read.write }),
            (Naming::ByWrite(writers), txn) => {
                match writers.get(&(read.key, read.write, read.value)) {
                    Some(writer) if *writer != Some(txn) => {
                        let expected = format!(
                            "transaction {txn} alone to write this id and value \
                             (other reads here name no writer)"
                        );
                        Err(Fault::malformed(at, expected, "another write of them"))
                    }
                    _ => Ok(by_write),
                }
            }
        }
    }
}

/// The writes of a log with their transactions. Broken records were refused before, and what
/// stands outside of a transaction is refused after.
fn writes(log: &[u8]) -> impl Iterator<Item = (u64, WriteRecord)> + use<'_> {
    let mut open = 0;
    records(log).filter_map(move |record| match record {
        Ok((_, Record::Write(write))) => Some((open, write)),
        Ok((_, Record::Start { txn })) => {
            open = txn;
            None
        }
        Ok(_) | Err(_) => None,
    })
}
