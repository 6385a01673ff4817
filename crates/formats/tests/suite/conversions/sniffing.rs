//! Every file that is shipped is recognised by its own format's sniffer and by no other.

use std::fs;
use std::path::{Path, PathBuf};

use isolario_formats::{FORMATS, Source, read};

fn shipped_files(directory: &str) -> Vec<PathBuf> {
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_none_or(|extension| extension != "md") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The format of a file in this repository, by the end of its name.
fn format_of(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("bincode") => "dbcop",
        Some("edn") => "elle-edn",
        Some("iso") => "isolario",
        Some("json") => "elle-json",
        Some("jsonl") => "jsonl",
        Some("log") => "jepsen-log",
        Some("plume") => "plume",
        Some("txt") => "text",
        _ => panic!("{path:?}: which format is this? say it here"),
    }
}

#[test]
fn shipped_files_are_claimed_by_one_sniffer() {
    let files = [shipped_files("tests/golden"), shipped_files("../../examples/histories")].concat();
    assert!(files.len() > 25, "only {} files are shipped", files.len());
    for path in files {
        let source = Source::open(&path).unwrap();
        let claims: Vec<_> =
            FORMATS.iter().filter(|format| format.sniff(&source)).map(|f| f.name()).collect();
        assert_eq!(claims, [format_of(&path)], "{path:?}");
    }
}

#[test]
fn what_looks_like_nothing_is_read_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let error = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        error.strip_prefix(&path.display().to_string()).unwrap().to_owned()
    };
    let prose = "Dear reader";
    assert_eq!(error("h.txt", prose), ":1:1: expected `session` and its name, found `Dear`");
    assert_eq!(error("h.jsonl", prose), ":1:1: expected a value, found Dear");
    assert_eq!(error("h.edn", "[1]"), ":1:2: expected an operation: a map, found 1");
    assert!(error("h.iso", prose).starts_with(": byte 0: expected the mark of an isolario file"));
    assert_eq!(error("h.dat", prose), ": not in any known history format");
    assert_eq!(error("h.txt", ""), ": not in any known history format");
}
