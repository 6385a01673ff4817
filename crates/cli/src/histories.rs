//! Which histories are meant: a directory may be one history, a run, or many of either.

use std::fs;
use std::path::{Path, PathBuf};

use isolario::formats::{Source, sniff};

use crate::run_directory::history_in;

/// The paths, with directories of histories replaced by what is in them, in order of name. What is
/// neither a history nor holds one stays as it is, so that reading it says why.
pub(crate) fn expanded(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().flat_map(|path| found(&path).unwrap_or_else(|| vec![path])).collect()
}

/// The histories in a directory and in the directories below it; `None` if it is a history itself, is
/// not a directory, or holds no history.
fn found(directory: &Path) -> Option<Vec<PathBuf>> {
    if !directory.is_dir() {
        return None;
    }
    let mut histories = Vec::new();
    // What is left to visit, the next one last.
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if let Some(history) = history_in(&path) {
            histories.push(history);
        } else if is_history(&path) {
            // A directory with a file per session is one history.
            histories.push(path);
        } else if path == directory || !path.is_symlink() {
            // Links to directories are not followed: they may lead back up.
            let Ok(entries) = fs::read_dir(&path) else { continue };
            let from = left.len();
            left.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
            left[from..].sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    (!histories.is_empty()).then_some(histories)
}

fn is_history(path: &Path) -> bool {
    Source::open(path).is_ok_and(|source| sniff(&source).is_some())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const HISTORY: &str = "initial 0\nsession a\n  T1: w x 1\n";

    #[test]
    fn a_directory_of_histories_is_its_histories_and_runs_are_theirs() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("c/deeper")).unwrap();
        fs::create_dir(path("run")).unwrap();
        std::os::unix::fs::symlink(place.path(), path("c/up")).unwrap();
        for (name, text) in [
            ("b.txt", HISTORY),
            ("a.txt", HISTORY),
            ("c/deeper/d.txt", HISTORY),
            ("notes.html", "<!doctype html>"),
            ("run/history.iso", "whatever"),
            ("run/run.json", "{}"),
        ] {
            fs::write(path(name), text).unwrap();
        }
        let all = [path("a.txt"), path("b.txt"), path("c/deeper/d.txt"), path("run/history.iso")];
        assert_eq!(expanded(vec![place.path().to_owned()]), all);
        assert_eq!(expanded(vec![path("run")]), [path("run/history.iso")]);
        let others = vec![path("b.txt"), path("missing"), PathBuf::from("-")];
        assert_eq!(expanded(others.clone()), others);
    }
}
