//! Files that are written beside their target first, so that a failure leaves nothing half-written.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Refuses a place where no file can be, before any work is done for it.
pub(crate) fn refuse_impossible(place: &Path) -> Result<(), Failure> {
    let name = place.display();
    if place.is_dir() {
        return Err(Failure::new(format!("cannot write {name}: it is a directory"))
            .with_hint("name a file in it"));
    }
    match place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.is_dir() => {
            let parent = parent.display();
            Err(Failure::new(format!("cannot write {name}: there is no directory {parent}"))
                .with_hint("make it first, or choose another place"))
        }
        _ => Ok(()),
    }
}

/// A file or directory that is removed unless it was renamed.
pub(crate) struct Draft {
    path: PathBuf,
}

impl Draft {
    /// In the directory of the target, since a rename does not cross file systems.
    pub(crate) fn beside(target: &Path) -> Draft {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        Draft { path: target.with_file_name(name) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in the place of the target.
    pub(crate) fn keep_as(self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a draft. After the rename there is nothing left to remove; that is no failure.
pub(crate) fn remove(draft: &Path) {
    let _ = match draft.is_dir() {
        true => std::fs::remove_dir_all(draft),
        false => std::fs::remove_file(draft),
    };
}
