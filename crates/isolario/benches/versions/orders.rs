//! What the simulated store knows of a history and no client does, in files beside the history.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use isolario::check::CheckOptions;
use isolario::formats::version_order::{self, VersionOrderWriter};
use isolario::formats::{Source, serialization_order};
use isolario::model::{History, PromisedOrder, SinkError, Stamp};
use isolario_bench::Failure;
use isolario_sim::{KEY_COLUMN, TABLE, TableChronicle, VersionSet};

/// Transactions on one line.
const PER_LINE: usize = 100;

/// The order of versions and what operations by range met, as it becomes known; and the order of
/// transactions, which is known at the end.
pub struct Orders {
    history: PathBuf,
    versions: VersionOrderWriter<BufWriter<File>>,
    commits: Vec<(Stamp, u64)>,
}

impl Orders {
    /// Files beside that of a history.
    pub fn create(history: &Path) -> Result<Orders, Failure> {
        let file = BufWriter::new(File::create(versions_of(history))?);
        let versions = VersionOrderWriter::of_rows(file, TABLE, KEY_COLUMN);
        Ok(Orders { history: history.to_owned(), versions, commits: Vec::new() })
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.versions.finish()?;
        self.commits.sort_unstable();
        let mut file = BufWriter::new(File::create(txns_of(&self.history))?);
        for part in self.commits.chunks(PER_LINE) {
            let names: Vec<String> = part.iter().map(|(_, txn)| txn.to_string()).collect();
            writeln!(file, "{{\"order\":[{}]}}", names.join(","))?;
        }
        Ok(file.flush()?)
    }
}

/// The version certificate of a history, from the file beside it.
pub fn certificate(file: &Path, history: &History) -> Result<CheckOptions, Failure> {
    let stated = version_order::read(&Source::open(&versions_of(file))?, history)?;
    let options = CheckOptions::default().with_version_order(stated.orders);
    Ok(options.with_version_sets(stated.sets).with_trusted_version_order(true))
}

/// The promised order of a history's transactions, from the file beside it.
pub fn promise(file: &Path, history: &History) -> Result<CheckOptions, Failure> {
    let sequence = serialization_order::read(&Source::open(&txns_of(file))?, history)?;
    let order = PromisedOrder::of_txns(history, &sequence.txns);
    Ok(CheckOptions::default().with_promised_order(order))
}

fn versions_of(history: &Path) -> PathBuf {
    history.with_extension("versions")
}

fn txns_of(history: &Path) -> PathBuf {
    history.with_extension("transactions")
}

impl TableChronicle for Orders {
    fn version(&mut self, row: u64, writer: u64) -> Result<(), SinkError> {
        Ok(self.versions.version(row, writer as i64)?)
    }

    fn met(&mut self, txn: u64, op: usize, set: VersionSet<'_>) -> Result<(), SinkError> {
        match set {
            VersionSet::Snapshot(at) => self.versions.snapshot(txn, op, at)?,
            VersionSet::Versions(rows) => {
                let rows = rows.iter().map(|(row, writer)| (row.table, row.id, *writer));
                self.versions.versions(txn, op, &rows.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.commits.push((place, txn));
        Ok(())
    }
}
