//! The book has the table of claims, and every form of URL.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use isolario_db::{ClaimNodes, ClaimRow, DRIVERS};
use isolario_model::Level;
use isolario_workload::Kind;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn line(row: &ClaimRow) -> String {
    let workloads = match row.workloads {
        all if all.len() == Kind::ALL.len() => "all".to_owned(),
        some => some.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
    };
    let nodes = match row.nodes {
        ClaimNodes::Any => "any",
        ClaimNodes::One => "one",
        ClaimNodes::Several => "several",
    };
    let levels: Vec<_> = row.levels.iter().copied().map(Level::name).collect();
    let levels = levels.join(", ");
    let ClaimRow { database, isolation, source: words, .. } = row;
    format!("| {database} | {isolation} | {workloads} | {nodes} | {levels} | {words} |")
}

#[test]
fn the_book_has_every_claim_and_no_other() {
    let page = page("guide/claims.md");
    // Those of stores of others follow under a heading of their own.
    let (ours, _) = page.split_once("\n## Stores of others\n").unwrap();
    let rows =
        ours.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| database"));
    let shown: Vec<_> = rows.collect();
    let expected: Vec<_> = DRIVERS.iter().flat_map(|driver| driver.claims).map(line).collect();
    assert_eq!(shown, expected);
}

#[test]
fn the_book_has_every_database() {
    let page = page("guide/running.md");
    for driver in DRIVERS {
        let scheme = driver.schemes[0];
        assert!(page.contains(&format!("| `{scheme}:")), "{scheme}");
    }
}
