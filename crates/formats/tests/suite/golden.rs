//! Golden files: recognised, read as stated, and written again byte for byte.

use std::path::{Path, PathBuf};

use isolario_formats::{FORMATS, HistoryFormat, OutputTarget, Source, find, sniff};
use isolario_model::{Clock, History, Initial, Outcome};

use crate::memory::{read, write};

const EVERYTHING_JSONL: &str = include_str!("../golden/jsonl-everything.jsonl");
const NOTES_JSONL: &str = include_str!("../golden/jsonl-notes.jsonl");
const ROWS_JSONL: &str = include_str!("../golden/jsonl-rows.jsonl");
const ROWS_TEXT: &str = include_str!("../golden/text-rows.txt");
const EVERYTHING_TEXT: &str = include_str!("../golden/text-everything.txt");
const AWDIT: &str = include_str!("../golden/text-awdit.txt");
const AWDIT_AS_TEXT: &str = include_str!("../golden/text-awdit-converted.txt");

const SMALL_PLUME: &str = include_str!("../golden/small.plume");
const SMALL_DBCOP: &[u8] = include_bytes!("../golden/small.bincode");

fn rewritten(format: &str, golden: &str) -> String {
    String::from_utf8(write(format, &read(format, golden.as_bytes())).unwrap()).unwrap()
}

#[test]
fn each_golden_file_is_recognised() {
    for (golden, format) in [
        (EVERYTHING_JSONL, "jsonl"),
        (NOTES_JSONL, "jsonl"),
        (ROWS_JSONL, "jsonl"),
        (ROWS_TEXT, "text"),
        (EVERYTHING_TEXT, "text"),
        (AWDIT, "text"),
        (AWDIT_AS_TEXT, "text"),
    ] {
        let source = Source::from_bytes("golden", golden.into()).unwrap();
        assert_eq!(sniff(&source).map(HistoryFormat::name), Some(format), "{golden}");
    }
}

#[test]
fn each_golden_file_is_written_as_it_stands() {
    assert_eq!(rewritten("jsonl", ROWS_JSONL), ROWS_JSONL);
    assert_eq!(rewritten("text", ROWS_TEXT), ROWS_TEXT);
    for golden in [EVERYTHING_JSONL, NOTES_JSONL] {
        // They are of the first version, which differs in nothing that they use.
        let now = golden.replacen("{\"isolario\":1", "{\"isolario\":2", 1);
        assert_eq!(rewritten("jsonl", golden), now);
    }
    assert_eq!(rewritten("plume", SMALL_PLUME), SMALL_PLUME);
    assert_eq!(write("dbcop", &read("dbcop", SMALL_DBCOP)).unwrap(), SMALL_DBCOP);
}

/// Files of the version before rows and structured predicates, written by the program of that time.
/// They are never written again. Each pair was one history then.
#[test]
fn files_of_the_first_version_mean_what_they_meant() {
    let binary: [&[u8]; 4] = [
        include_bytes!("../golden/v1/everything.iso"),
        include_bytes!("../golden/v1/notes.iso"),
        include_bytes!("../golden/v1/objects.iso"),
        include_bytes!("../golden/v1/run.iso"),
    ];
    let lines = [
        EVERYTHING_JSONL,
        NOTES_JSONL,
        include_str!("../golden/v1/objects.jsonl"),
        include_str!("../golden/v1/run.jsonl"),
    ];
    for (binary, lines) in binary.into_iter().zip(lines) {
        let history = read("jsonl", lines.as_bytes());
        assert!(read("isolario", binary) == history, "{lines}");
        for format in ["isolario", "jsonl"] {
            assert!(read(format, &write(format, &history).unwrap()) == history, "{lines}");
        }
    }
}

#[test]
fn the_golden_files_of_plume_and_dbcop_hold_one_history() {
    for history in [read("plume", SMALL_PLUME.as_bytes()), read("dbcop", SMALL_DBCOP)] {
        let sizes = (history.session_count(), history.txn_count(), history.op_count());
        assert_eq!(sizes, (3, 7, 9));
        assert_eq!(write("dbcop", &history).unwrap(), SMALL_DBCOP);
    }
}

#[test]
fn predicates_in_quotes_and_without_an_arrow_are_read_as_ever() {
    let before = read("text", EVERYTHING_TEXT.as_bytes());
    let now = rewritten("text", EVERYTHING_TEXT);
    assert!(read("text", now.as_bytes()) == before);
    assert!(now.contains("select where v > 3 -> {k1: 5"), "{now}");
}

#[test]
fn both_formats_say_the_same() {
    assert!(read("text", ROWS_TEXT.as_bytes()) == read("jsonl", ROWS_JSONL.as_bytes()));
    let from_text = read("text", EVERYTHING_TEXT.as_bytes());
    assert!(from_text == read("jsonl", EVERYTHING_JSONL.as_bytes()));
    assert_eq!(
        (from_text.session_count(), from_text.txn_count(), from_text.op_count()),
        (3, 7, 26)
    );
}

#[test]
fn the_form_of_awdit_converts_to_ours() {
    let history = read("text", AWDIT.as_bytes());
    assert_eq!(*history.initial(), Initial::None);
    assert_eq!(rewritten("text", AWDIT), AWDIT_AS_TEXT);
}

fn jepsen(name: &str) -> PathBuf {
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
    let path = jepsen(name);
    let history = load(&path, format);
    let copy = tempfile::NamedTempFile::new().unwrap();
    let mut writer =
        find(format).unwrap().writer(OutputTarget::Path(copy.path().to_owned())).unwrap();
    history.replay(&mut *writer).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read_to_string(copy.path()).unwrap();
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
