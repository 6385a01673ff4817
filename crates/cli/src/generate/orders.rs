//! The true orders of a generated history, as files.

use std::io::{self, Write};
use std::path::PathBuf;

use isolario::formats::version_order::VersionOrderWriter;
use isolario::model::{SinkError, Stamp};
use isolario::sim::{Chronicle, KEY_COLUMN, TABLE, TableChronicle, VersionSet};

use crate::console::Console;
use crate::failure::Failure;
use crate::outfile::{OutFile, cannot_write, refuse_replacing, write_whole};
use crate::reports::tell;

/// Transactions of the serialization order that stand on one line.
const PER_LINE: usize = 100;

/// Where the true orders go.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) versions: Option<PathBuf>,
    /// The share of the versions that are written.
    pub(crate) share: f64,
    pub(crate) serialization: Option<PathBuf>,
    /// Whether versions are those of rows.
    pub(crate) of_rows: bool,
}

impl Orders {
    /// Refuses files that would have to be replaced, before any work is done.
    pub(crate) fn refuse_existing(&self, force: bool) -> Result<(), Failure> {
        let mut files = self.versions.iter().chain(&self.serialization);
        files.try_for_each(|file| refuse_replacing(file, force))
    }

    /// Begins to write.
    pub(crate) fn create(&self) -> OrderFiles<'_> {
        let writer = |out| match self.of_rows {
            true => VersionOrderWriter::of_rows(out, TABLE, KEY_COLUMN),
            false => VersionOrderWriter::new(out),
        };
        let open = |file: &PathBuf| OutFile::create(file).map(writer);
        OrderFiles { orders: self, versions: self.versions.as_ref().map(open), commits: Vec::new() }
    }
}

/// Files in the making. That of the serialization order is written at the end: a transaction that
/// only reads takes its place among those that committed long before.
pub(crate) struct OrderFiles<'o> {
    orders: &'o Orders,
    /// What went wrong is reported at the end: the history can still be written.
    versions: Option<io::Result<VersionOrderWriter<OutFile>>>,
    commits: Vec<(Stamp, u64)>,
}

impl OrderFiles<'_> {
    /// Writes about versions, as long as that goes well.
    fn state(&mut self, write: impl FnOnce(&mut VersionOrderWriter<OutFile>) -> io::Result<()>) {
        if let Some(Ok(writer)) = &mut self.versions
            && let Err(error) = write(writer)
        {
            self.versions = Some(Err(error));
        }
    }

    fn commit(&mut self, txn: u64, place: Stamp) {
        if self.orders.serialization.is_some() {
            self.commits.push((place, txn));
        }
    }
}

impl Chronicle for OrderFiles<'_> {
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError> {
        self.state(|writer| writer.version(key, value));
        Ok(())
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.commit(txn, place);
        Ok(())
    }
}

impl TableChronicle for OrderFiles<'_> {
    fn version(&mut self, row: u64, txn: u64) -> Result<(), SinkError> {
        self.state(|writer| writer.version(row, txn as i64));
        Ok(())
    }

    fn met(&mut self, txn: u64, op: usize, set: VersionSet<'_>) -> Result<(), SinkError> {
        self.state(|writer| match set {
            VersionSet::Snapshot(at) => writer.snapshot(txn, op, at),
            VersionSet::Versions(rows) => {
                let rows = rows.iter().map(|(row, writer)| (row.table, row.id, *writer));
                writer.versions(txn, op, &rows.collect::<Vec<_>>())
            }
        });
        Ok(())
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.commit(txn, place);
        Ok(())
    }
}

impl OrderFiles<'_> {
    /// Puts the files in their places, and says so. The answer says whether all could be.
    pub(crate) fn finish(mut self, console: &mut Console) -> bool {
        let mut all = true;
        if let (Some(writer), Some(file)) = (self.versions.take(), &self.orders.versions) {
            let written = writer.and_then(VersionOrderWriter::finish).and_then(OutFile::finish);
            let written = written.map_err(|error| cannot_write(file, &error));
            all &= tell(written, "the order of versions", file, console);
        }
        if let Some(file) = &self.orders.serialization {
            self.commits.sort_unstable();
            let written = write_whole(file, |out| write_commits(&self.commits, out));
            all &= tell(written, "the order of transactions", file, console);
        }
        all
    }
}

fn write_commits(commits: &[(Stamp, u64)], out: &mut dyn Write) -> io::Result<()> {
    for part in commits.chunks(PER_LINE) {
        let names: Vec<String> = part.iter().map(|(_, txn)| txn.to_string()).collect();
        writeln!(out, "{{\"order\":[{}]}}", names.join(","))?;
    }
    Ok(())
}
