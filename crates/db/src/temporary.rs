//! The temporary directories of databases, which nobody should find after the process has ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::error::DbError;
use crate::locked::locked;

/// Those there are, for whoever ends the process without dropping its databases.
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that is removed with the database that it belongs to.
pub(crate) struct Temporary(TempDir);

impl Temporary {
    pub(crate) fn make() -> Result<Temporary, DbError> {
        let mut directories = locked(&DIRECTORIES);
        let directory = TempDir::with_prefix("isolario-").map_err(|error| {
            DbError::fatal(format!("cannot make a temporary directory: {error}"))
        })?;
        directories.push(directory.path().to_owned());
        Ok(Temporary(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        locked(&DIRECTORIES).retain(|directory| directory != self.path());
    }
}

/// Removes the temporary directories of all databases that are open: for a process that is about to
/// exit without dropping them, as on a second Ctrl-C. Whatever uses those databases fails from now
/// on.
pub fn abandon_temporary_files() {
    for directory in locked(&DIRECTORIES).drain(..) {
        // A session may be making a file in it at this moment.
        let _ = (0..3).find(|_| fs::remove_dir_all(&directory).is_ok());
    }
}
