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

/// What a directory holds; nothing where it is a history itself, or no directory.
fn found(directory: &Path) -> Option<Vec<PathBuf>> {
    if !directory.is_dir() {
        return None;
    }
    if let Some(history) = history_in(directory) {
        return Some(vec![history]);
    }
    // A file per session: one history.
    if is_history(directory) {
        return None;
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort_unstable();
    let one = |entry: PathBuf| {
        history_in(&entry).or_else(|| Some(entry).filter(|entry| is_history(entry)))
    };
    let histories: Vec<PathBuf> = entries.into_iter().filter_map(one).collect();
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
        fs::create_dir(path("run")).unwrap();
        for (name, text) in [
            ("b.txt", HISTORY),
            ("a.txt", HISTORY),
            ("notes.html", "<!doctype html>"),
            ("run/history.iso", "whatever"),
            ("run/run.json", "{}"),
        ] {
            fs::write(path(name), text).unwrap();
        }
        let all = [path("a.txt"), path("b.txt"), path("run/history.iso")];
        assert_eq!(expanded(vec![place.path().to_owned()]), all);
        assert_eq!(expanded(vec![path("run")]), [path("run/history.iso")]);
        let others = vec![path("b.txt"), path("missing"), PathBuf::from("-")];
        assert_eq!(expanded(others.clone()), others);
    }
}
