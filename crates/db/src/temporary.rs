//! The temporary directories of databases, which nobody should find after the process has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// Those there are, for whoever ends the process without dropping its databases.
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that is removed with the database that it belongs to.
pub(crate) struct Temporary(TempDir);

impl Temporary {
    pub(crate) fn make() -> io::Result<Temporary> {
        let mut directories = lock();
        let directory = TempDir::with_prefix("isolario-")?;
        directories.push(directory.path().to_owned());
        Ok(Temporary(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        lock().retain(|directory| directory != self.path());
    }
}

/// Removes the temporary directories of all databases that are open: for a process that is about to
/// exit without dropping them, as on a second Ctrl-C. Whatever uses those databases fails from now
/// on.
pub fn abandon_temporary_files() {
    for directory in lock().drain(..) {
        // A session may be making a file in it at this moment.
        let _ = (0..3).find(|_| fs::remove_dir_all(&directory).is_ok());
    }
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}
