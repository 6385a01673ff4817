//! Golden files: the exact form of both formats, and what it means.

use isolario_formats::{HistoryFormat, Source, sniff};
use isolario_model::Initial;

use super::memory::{read, write};

const EVERYTHING_JSONL: &str = include_str!("../golden/jsonl-everything.jsonl");
const NOTES_JSONL: &str = include_str!("../golden/jsonl-notes.jsonl");
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
    assert_eq!(rewritten("jsonl", EVERYTHING_JSONL), EVERYTHING_JSONL);
    assert_eq!(rewritten("jsonl", NOTES_JSONL), NOTES_JSONL);
    assert_eq!(rewritten("text", EVERYTHING_TEXT), EVERYTHING_TEXT);
    assert_eq!(rewritten("plume", SMALL_PLUME), SMALL_PLUME);
    assert_eq!(write("dbcop", &read("dbcop", SMALL_DBCOP)).unwrap(), SMALL_DBCOP);
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
fn both_formats_say_the_same() {
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
