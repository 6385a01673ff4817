//! The book says what the tables say, and its links lead somewhere.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isolario_model::{AnomalyKind, Level};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

fn page(name: &str) -> String {
    fs::read_to_string(source().join(name)).unwrap()
}

/// The rows of the table with this heading, cell by cell.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let after = page.lines().skip_while(|line| *line != heading);
    let rows = after.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let inner = row.strip_prefix('|').and_then(|row| row.strip_suffix('|')).unwrap();
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// The levels' names, with commas between.
fn names(levels: &[Level]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_page_on_anomalies_is_the_table() {
    let page = page("levels/anomalies.md");
    let heading = "| our name | Plume | MTC | Adya | Elle | IsoRel | forbidden from |";
    let expected: Vec<Vec<String>> = AnomalyKind::all()
        .map(|kind| {
            let row = kind.names();
            let text = |name: Option<&str>| name.unwrap_or_default().to_owned();
            vec![
                row.name.to_owned(),
                kind.pattern().unwrap_or_default(),
                row.mtc.map(String::from).unwrap_or_default(),
                text(row.adya),
                text(row.elle),
                text(row.isorel),
                names(row.forbidden_by),
            ]
        })
        .collect();
    assert_eq!(table(&page, heading), expected);
    let meanings: Vec<_> = AnomalyKind::all()
        .map(|kind| vec![kind.name().to_owned(), kind.names().meaning.to_owned()])
        .collect();
    assert_eq!(table(&page, "| our name | what happened |"), meanings);
    let everyday: Vec<_> = AnomalyKind::all()
        .map(|kind| {
            let row = kind.names();
            vec![row.name.to_owned(), row.title.to_owned(), row.everyday.join(", ")]
        })
        .collect();
    let heading = "| our name | title in reports | other everyday names |";
    assert_eq!(table(&page, heading), everyday);
}

#[test]
fn the_page_on_levels_lists_every_name_alias_and_promise() {
    let rows = table(&page("levels/index.md"), "| level | aliases | promise | built |");
    let listed: Vec<_> = rows.iter().map(|row| row[..3].to_vec()).collect();
    let expected: Vec<Vec<String>> = Level::all()
        .map(|level| {
            let aliases: Vec<_> =
                level.aliases().iter().map(|alias| format!("`{alias}`")).collect();
            vec![format!("`{level}`"), aliases.join(", "), level.promise().to_owned()]
        })
        .collect();
    assert_eq!(listed, expected);
}

/// Every file in the book's source, relative to it.
fn files() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(source()).unwrap().to_owned());
            }
        }
    }
    found
}

/// The targets of the links on a page, code left aside.
fn links(page: &str) -> Vec<String> {
    let fenced = page.split("```").step_by(2);
    let prose: String = fenced.flat_map(|text| text.split('`').step_by(2)).collect();
    let starts = prose.split("](").skip(1);
    starts.map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

#[test]
fn every_page_is_in_the_summary() {
    let listed: BTreeSet<_> = links(&page("SUMMARY.md")).into_iter().map(PathBuf::from).collect();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: BTreeSet<_> = files().into_iter().filter(is_page).collect();
    assert!(pages.remove(Path::new("SUMMARY.md")));
    assert_eq!(listed, pages);
}

#[test]
fn every_relative_link_leads_to_a_file_of_the_book() {
    let mut count = 0;
    for file in files() {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = source().join(file.parent().unwrap());
        let targets = links(&fs::read_to_string(source().join(&file)).unwrap());
        for target in targets.iter().filter(|target| !target.contains("://")) {
            let path = target.split('#').next().unwrap();
            // What lies outside of the book's source is not part of the finished book.
            let found = folder.join(path).canonicalize().ok();
            let inside = found.is_some_and(|f| f.starts_with(source().canonicalize().unwrap()));
            assert!(inside, "{}: the link to {target} leads nowhere", file.display());
            count += 1;
        }
    }
    assert!(count > 30, "only {count} links");
}
