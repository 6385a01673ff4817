//! Golden files of the Jepsen formats: recognised, read as stated, and written again byte for
//! byte.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

use std::path::{Path, PathBuf};

use isolario_formats::{FORMATS, HistoryFormat, Source, Target, find, sniff};
use isolario_model::{Clock, History, Outcome};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/jepsen").join(name)
}

fn load(path: &Path, format: &str) -> History {
    let source = Source::open(path).unwrap();
    assert_eq!(sniff(&source).map(HistoryFormat::name), Some(format));
    let knowing: Vec<_> = FORMATS.iter().filter(|f| f.sniff(&source)).map(|f| f.name()).collect();
    assert_eq!(knowing, [format], "one format knows it");
    find(format).unwrap().read(&source).unwrap().history
}

fn assert_written_again(name: &str, format: &str) -> History {
    let path = golden(name);
    let history = load(&path, format);
    let copy = std::env::temp_dir().join(format!("isolario-{}-{name}", std::process::id()));
    let mut writer = find(format).unwrap().writer(Target::Path(copy.clone())).unwrap();
    history.replay(&mut *writer).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read_to_string(&copy).unwrap();
    std::fs::remove_file(&copy).unwrap();
    assert_eq!(written, std::fs::read_to_string(&path).unwrap());
    history
}

/// Sessions, transactions by outcome, operations and keys.
fn sizes(history: &History) -> (usize, [usize; 3], usize, usize) {
    let outcomes = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];
    let count = |outcome| history.txns().filter(|txn| history.outcome(*txn) == outcome).count();
    (history.session_count(), outcomes.map(count), history.op_count(), history.key_count())
}

#[test]
fn list_append_in_edn() {
    let history = assert_written_again("list-append.edn", "elle-edn");
    assert_eq!(sizes(&history), (3, [2, 1, 1], 8, 3));
    assert_eq!(history.clock(), Clock::Nanoseconds);
}

#[test]
fn rw_register_in_json() {
    let history = assert_written_again("rw-register.json", "elle-json");
    assert_eq!(sizes(&history), (3, [2, 1, 1], 7, 2));
    assert!(!history.has_times());
}

#[test]
fn cas_register_in_a_log() {
    let history = assert_written_again("cas-register.log", "jepsen-log");
    assert_eq!(sizes(&history), (4, [4, 1, 1], 6, 1));
    assert_eq!(history.clock(), Clock::EventOrder);
}
