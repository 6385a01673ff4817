//! What the manifest of the Jepsen histories expects of lists and registers.

use isolario::check::{CheckOptions, check};
use isolario::model::{History, Level, VerdictKind};

use crate::manifest::Row;

/// Files and levels where we answer otherwise than Elle does, and why. The book has the same list.
const DIFFERENCES: [(&str, &str, &str); 6] = [
    ("elle-cli/elle/rw-register.edn", "strict-serializable", NOBODY_WROTE),
    ("elle-cli/elle/rw-register.json", "strict-serializable", NOBODY_WROTE),
    ("elle-unit/rw-register/garbage-read.edn", "strict-serializable", NOBODY_WROTE),
    ("elle-unit/rw-register/g2-item-lin.edn", "read-committed", NOBODY_WROTE),
    ("elle-unit/rw-register/wfr-off.edn", "serializable", NOBODY_WROTE),
    ("elle-unit/rw-register/g0-seqkeys.edn", "read-uncommitted", NO_ORDER),
];

const NOBODY_WROTE: &str = "a read returns what nobody wrote, which Elle lets pass";
const NO_ORDER: &str = "registers do not show the order of their versions";

/// What is wrong with our answer to the question of a row, if it states an answer.
pub fn difference(row: Row<'_>, history: &History) -> Option<String> {
    let (stated, with_options) = (row.text("expected"), row.text("isolation_level_and_opts"));
    let expected = match stated.split([' ', ',']).next() {
        Some("valid") => VerdictKind::Satisfied,
        Some("invalid") => VerdictKind::Violated,
        _ => return None,
    };
    let name = with_options.split(' ').next().unwrap_or_default();
    let Some((level, session_order)) = level_of(name) else {
        return Some(format!("{name} is no level that we know"));
    };
    let options = CheckOptions::default().with_session_order(session_order);
    let found = check(history, &[level], &options)[0].verdict.kind();
    let known = DIFFERENCES.iter().find(|(path, of, _)| (*path, *of) == (row.path(), name));
    match (found == expected, known) {
        (true, None) | (false, Some(_)) => None,
        (true, Some((.., why))) => Some(format!("{name} is as expected, and not otherwise: {why}")),
        (false, None) => Some(format!("{name} is expected to be {stated}, and is {found:?}")),
    }
}

/// The level that Elle means, and whether it counts session order: its plain levels do not.
fn level_of(name: &str) -> Option<(Level, bool)> {
    Some(match name {
        "read-uncommitted" => (Level::ReadUncommitted, false),
        "read-committed" => (Level::AdyaReadCommitted, false),
        "read-atomic" => (Level::ReadAtomic, false),
        "consistent-view" => (Level::ConsistentView, false),
        "snapshot-isolation" => (Level::SnapshotIsolation, false),
        "repeatable-read" | "snapshot-isolation+repeatable-read" => (Level::RepeatableRead, false),
        "serializable" => (Level::Serializable, false),
        "strong-session-snapshot-isolation" => (Level::SnapshotIsolation, true),
        "strict-serializable" | "strong-serializable" => (Level::StrictSerializable, true),
        _ => return None,
    })
}
