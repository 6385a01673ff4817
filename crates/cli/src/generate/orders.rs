//! The true orders of a generated history, as files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use isolario::formats::version_order::Writer;
use isolario::model::{SinkError, Stamp};
use isolario::sim::Chronicle;

use crate::draft::Draft;
use crate::failure::Failure;

/// Transactions of the serialization order that stand on one line.
const PER_LINE: usize = 100;

/// Where the true orders go.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) versions: Option<PathBuf>,
    /// The share of the versions that are told.
    pub(crate) share: f64,
    pub(crate) serialization: Option<PathBuf>,
}

impl Orders {
    /// Refuses files that would have to be replaced, before any work is done.
    pub(crate) fn refuse_existing(&self, force: bool) -> Result<(), Failure> {
        let mut files = self.versions.iter().chain(&self.serialization);
        match files.find(|file| file.symlink_metadata().is_ok() && !force) {
            None => Ok(()),
            Some(file) => Err(Failure::new(format!("{} exists already", file.display()))
                .with_hint("replace it with --force, or choose another name")),
        }
    }

    /// Begins to write.
    pub(crate) fn create(&self) -> Result<OrderFiles<'_>, Failure> {
        let open = |file: &PathBuf| -> Result<_, Failure> {
            let draft = Draft::beside(file);
            let out = File::create(draft.path()).map_err(|error| failed(file, &error))?;
            Ok((Writer::new(BufWriter::new(out)), draft))
        };
        let versions = self.versions.as_ref().map(open).transpose()?;
        Ok(OrderFiles { orders: self, versions, commits: Vec::new() })
    }
}

/// Files in the making. That of the serialization order is written at the end: a transaction that
/// only reads takes its place among those that committed long before.
pub(crate) struct OrderFiles<'o> {
    orders: &'o Orders,
    versions: Option<(Writer<BufWriter<File>>, Draft)>,
    commits: Vec<(Stamp, u64)>,
}

impl Chronicle for OrderFiles<'_> {
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError> {
        match &mut self.versions {
            Some((writer, _)) => Ok(writer.version(key, value)?),
            None => Ok(()),
        }
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        if self.orders.serialization.is_some() {
            self.commits.push((place, txn));
        }
        Ok(())
    }
}

impl OrderFiles<'_> {
    /// Puts the files in their places.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if let (Some((writer, draft)), Some(file)) = (self.versions.take(), &self.orders.versions) {
            let written = writer.finish().and_then(|_| draft.keep_as(file));
            written.map_err(|error| failed(file, &error))?;
        }
        if let Some(file) = &self.orders.serialization {
            self.commits.sort_unstable();
            write_commits(&self.commits, file).map_err(|error| failed(file, &error))?;
        }
        Ok(())
    }
}

fn write_commits(commits: &[(Stamp, u64)], file: &Path) -> io::Result<()> {
    let draft = Draft::beside(file);
    let mut out = BufWriter::new(File::create(draft.path())?);
    for part in commits.chunks(PER_LINE) {
        let names: Vec<String> = part.iter().map(|(_, txn)| txn.to_string()).collect();
        writeln!(out, "{{\"order\":[{}]}}", names.join(","))?;
    }
    out.flush()?;
    draft.keep_as(file)
}

fn failed(file: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", file.display()))
}
