//! The shipped examples and those of the book: all can be read, and the table that lists them is
//! complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isolario_formats::{HistoryFormat, Source, find, read, sniff};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/histories")
}

fn histories() -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

#[test]
fn every_example_is_read_and_says_what_happened() {
    let histories = histories();
    assert!(histories.len() >= 20);
    for path in histories {
        let source = Source::open(&path).unwrap();
        assert_eq!(sniff(&source).map(HistoryFormat::name), Some("text"), "{path:?}");
        let loaded = read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.history.op_count() > 0, "{path:?} is empty");
        assert!(loaded.ignored.is_empty() && loaded.warnings.is_empty(), "{path:?}");
        assert!(fs::read_to_string(&path).unwrap().starts_with("# "), "{path:?} has no comment");
    }
}

#[test]
fn the_table_lists_every_example_once() {
    let readme = fs::read_to_string(examples().join("README.md")).unwrap();
    let rows: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("| [")).collect();
    let listed: BTreeSet<_> =
        rows.iter().filter_map(|row| row.split(']').next()).map(str::to_owned).collect();
    let names = histories();
    let present: BTreeSet<_> =
        names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, present);
    assert_eq!(rows.len(), present.len());
}

#[test]
fn every_history_in_the_book_is_read() {
    for format in ["jsonl", "text"] {
        let page = format!("../../docs/book/src/formats/{format}.md");
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        let fence = format!("```{format}\n");
        let blocks = page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap());
        let mut count = 0;
        for block in blocks {
            let source = Source::from_bytes(format, block.into()).unwrap();
            let loaded = find(format).unwrap().read(&source);
            let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{block}"));
            assert!(loaded.ignored.is_empty(), "{block}");
            count += 1;
        }
        assert!(count >= 2, "{format}.md has {count} histories");
    }
}
