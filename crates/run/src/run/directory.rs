//! The run directory: everything that is needed to look at a run again, and to repeat it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use isolario_model::RunRecord;
use isolario_report::Utc;

use super::error::RunError;

/// The history in a run directory.
pub const HISTORY: &str = "history.iso";
/// The order of versions that the database's log tells, in a run directory.
pub const VERSION_ORDER: &str = "version-order.jsonl";
/// What is known of the run, in its directory.
pub const RECORD: &str = "run.json";
/// The proof of what was found, in a run directory.
pub const PROOF: &str = "proof";
/// The smallest part of the history that shows what is wrong, in the text language.
pub const SHRUNK: &str = "shrunk.txt";
/// The proof that this part shows it.
pub const SHRUNK_PROOF: &str = "shrunk.proof";

/// The directory of a run.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Whether it was not there before.
    is_new: bool,
}

/// Where a run goes if nobody says otherwise.
pub fn default_directory(seed: u64) -> PathBuf {
    PathBuf::from("isolario-runs").join(format!("{}-{seed}", stamp(unix_seconds())))
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Directory {
    /// Makes the directory. One that holds anything is left alone.
    pub(super) fn create(path: PathBuf) -> Result<Directory, RunError> {
        let is_new = !path.exists();
        let mut entries = match std::fs::create_dir_all(&path).and_then(|()| path.read_dir()) {
            Ok(entries) => entries,
            Err(error) => return Err(RunError::Directory { path, error }),
        };
        if entries.next().is_some() {
            return Err(RunError::NotEmpty { path });
        }
        Ok(Directory { path, is_new })
    }

    /// A directory that is there already, with what a run has left in it.
    pub(super) fn existing(path: PathBuf) -> Directory {
        Directory { path, is_new: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn history(&self) -> PathBuf {
        self.file(HISTORY)
    }

    /// Writes what is known of the run.
    pub(super) fn write_record(&self, record: &RunRecord) -> Result<(), RunError> {
        self.write(RECORD, |out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            writeln!(out)
        })
    }

    /// What is known of the run, if it can be read.
    pub(super) fn record(&self) -> Option<RunRecord> {
        serde_json::from_reader(File::open(self.file(RECORD)).ok()?).ok()
    }

    /// Writes a file that is there as a whole or not at all. The directory is the run's own, so
    /// nobody else's file is in the way.
    pub(super) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), RunError> {
        let (path, draft) = (self.file(name), self.file(&format!(".{name}.tmp")));
        let whole = || -> io::Result<()> {
            let mut out = BufWriter::new(File::create(&draft)?);
            write(&mut out)?;
            out.flush()?;
            std::fs::rename(&draft, &path)
        };
        whole().map_err(|error| {
            // What is half-written is worth nothing; whether it can be removed changes nothing.
            let _ = std::fs::remove_file(&draft);
            RunError::Write { path, error }
        })
    }

    /// Removes a directory in which nothing happened.
    pub(super) fn discard(self) {
        // Whoever put something else there in the meantime keeps it.
        let _ = std::fs::remove_file(self.history());
        let _ = std::fs::remove_file(self.file(RECORD));
        if self.is_new {
            let _ = std::fs::remove_dir(&self.path);
            // `isolario-runs`, where this would have been the first one.
            if self.path.parent().is_some_and(|parent| parent == Path::new("isolario-runs")) {
                let _ = std::fs::remove_dir("isolario-runs");
            }
        }
    }
}

/// A moment as `YYYYMMDD-HHMMSS`, in UTC.
fn stamp(seconds: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::of(seconds);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_827_696, "20000229-123456"),
            (1_709_251_200, "20240301-000000"),
            (4_107_542_399, "21000228-235959"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
    }
}
