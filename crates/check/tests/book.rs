//! The book says which levels are built, and its small histories show what it says they show.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

use isolario_check::{CheckOptions, check, supported};
use isolario_formats::{Source, find};
use isolario_model::{Level, Verdict};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src").join(name);
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_on_levels_marks_those_that_are_built() {
    let page = page("levels/index.md");
    let picture = page.split("```").nth(1).unwrap();
    for level in Level::all() {
        let is_built = supported().contains(&level);
        let row = page.lines().find(|line| line.starts_with(&format!("| `{level}` |"))).unwrap();
        assert_eq!(row.ends_with("| yes |"), is_built, "{row}");
        let words: Vec<_> = picture.split_whitespace().collect();
        let mark = if is_built { format!("{level}*") } else { level.to_string() };
        assert!(words.contains(&mark.as_str()), "{mark} is not in the picture");
    }
}

/// The weakest levels that a history violates; nothing where none could be decided.
fn weakest_violated(text: &str) -> Option<Vec<Level>> {
    let source = Source::from_bytes("book", text.into()).unwrap();
    let loaded = find("text").unwrap().read(&source).unwrap_or_else(|error| panic!("{error}"));
    // What needs a version order is left aside: most of these histories have none.
    let levels = supported().iter().copied().filter(|level| !level.needs().version_order);
    let results = check(&loaded.history, &levels.collect::<Vec<_>>(), &CheckOptions::default());
    if results.iter().all(|result| matches!(result.verdict, Verdict::NotApplicable(_))) {
        return None;
    }
    let violated = results.iter().filter(|r| matches!(r.verdict, Verdict::Violated(_)));
    let violated: Vec<_> = violated.map(|result| result.level).collect();
    let is_weakest = |level: &Level| violated.iter().all(|v| v == level || !level.implies(*v));
    Some(violated.iter().copied().filter(is_weakest).collect())
}

#[test]
fn the_histories_on_the_page_on_semantics_show_what_their_first_lines_say() {
    let page = page("levels/semantics.md");
    let histories: Vec<_> = page.split("```text\n").skip(1).collect();
    assert!(histories.len() >= 9);
    for history in histories {
        let history = history.split("```").next().unwrap();
        let claim = history.lines().next().unwrap();
        let violated = weakest_violated(history);
        let expected = if claim.starts_with("# not applicable") {
            None
        } else if claim.starts_with("# satisfied by every level") {
            Some(Vec::new())
        } else {
            let words = claim.strip_prefix("# violates ").unwrap().split([':', ',']);
            let levels = words.map(|word| word.trim().trim_start_matches("and "));
            Some(levels.filter_map(Level::find).collect())
        };
        assert_eq!(violated, expected, "{history}");
    }
}

/// Whether the checkers have a module: `weak/`, `plan/applies`, `cycles.rs`.
fn is_module(path: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path.trim_end_matches('/'));
    path.is_dir() || path.with_extension("rs").is_file()
}

#[test]
fn every_module_that_the_architecture_names_exists() {
    let page = page("contributing/architecture.md");
    let section = page.split("## The checkers").nth(1).unwrap().split("\n## ").next().unwrap();
    let (picture, table) = (
        section.split("```").nth(1).unwrap(),
        section.lines().filter(|line| line.starts_with("| `")),
    );
    let in_picture = picture.split_whitespace().map(|word| word.trim_matches([',', ':']));
    let in_picture = in_picture.filter(|word| word.contains('/') || word.ends_with(".rs"));
    let mut named = 0;
    for path in in_picture {
        assert!(is_module(path), "{path}, in the picture");
        named += 1;
    }
    for row in table {
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let cells: Vec<&str> = row.split('|').collect();
        let of_row = cells[1].split('`').skip(1).step_by(2);
        let parents: Vec<&str> = of_row.collect();
        let is_lower =
            |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || "_/.".contains(c));
        for name in names.into_iter().filter(is_lower) {
            let is_within = |parent: &&str| is_module(&format!("{parent}{name}"));
            assert!(is_module(name) || parents.iter().any(is_within), "{name}, in {row}");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}
