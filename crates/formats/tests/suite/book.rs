//! The book has every format.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use isolario_formats::FORMATS;

/// The first code on each row, table by table.
fn tables(page: &str) -> Vec<BTreeSet<String>> {
    let mut tables = Vec::new();
    let mut in_table = false;
    for line in page.lines() {
        if in_table && !line.starts_with('|') {
            in_table = false;
        } else if line.starts_with("| format |") {
            in_table = true;
            tables.push(BTreeSet::new());
        } else if in_table && let Some(name) = line.split('`').nth(1) {
            tables.last_mut().unwrap().insert(name.to_owned());
        }
    }
    tables
}

#[test]
fn every_table_of_formats_has_every_format_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/formats/index.md");
    let tables = tables(&fs::read_to_string(page).unwrap());
    assert_eq!(tables.len(), 3);
    let formats: BTreeSet<_> = FORMATS.iter().map(|format| format.name().to_owned()).collect();
    for table in tables {
        assert_eq!(table, formats);
    }
}
