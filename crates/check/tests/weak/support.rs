//! Histories in the text language, and their verdicts in one line.

use isolario_check::{CheckOptions, check, supported};
use isolario_formats::{Source, find};
use isolario_model::{AnomalyKind, History, Level, Verdict};

/// The weak levels.
pub fn weak_levels() -> Vec<Level> {
    let is_weak = |level: &Level| Level::Causal.implies(*level) && !level.needs().version_order;
    supported().iter().copied().filter(is_weak).collect()
}

/// Reads a history in the text language.
pub fn history(text: &str) -> History {
    let source = Source::from_bytes("test", text.as_bytes().to_vec()).unwrap();
    find("text").unwrap().read(&source).unwrap_or_else(|error| panic!("{error}")).history
}

/// The names of the anomalies of a level, without repetition; empty if it is satisfied.
pub fn anomalies(history: &History, level: Level, options: &CheckOptions) -> Vec<AnomalyKind> {
    match &check(history, &[level], options)[0].verdict {
        Verdict::Satisfied(_) => Vec::new(),
        Verdict::Violated(findings) => {
            assert!(findings.total >= 1);
            let mut kinds: Vec<_> = findings.anomalies.iter().map(|a| a.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        }
        other => panic!("{level}: {other:?}"),
    }
}

/// The weakest of the weak levels that are violated: those of which nothing weaker is.
pub fn weakest_violated(text: &str) -> Vec<&'static str> {
    let history = history(text);
    let violated: Vec<Level> = weak_levels()
        .into_iter()
        .filter(|level| !anomalies(&history, *level, &CheckOptions::default()).is_empty())
        .collect();
    let weakest =
        |level: &&Level| violated.iter().all(|other| other == *level || !level.implies(*other));
    violated.iter().filter(weakest).map(|level| level.name()).collect()
}

/// The names of the anomalies that a level finds.
pub fn names(text: &str, level: Level) -> Vec<&'static str> {
    let kinds = anomalies(&history(text), level, &CheckOptions::default());
    kinds.into_iter().map(AnomalyKind::name).collect()
}

/// Why no level could be decided.
pub fn not_applicable(text: &str, level: Level) -> String {
    match &check(&history(text), &[level], &CheckOptions::default())[0].verdict {
        Verdict::NotApplicable(reason) => format!("{reason:?}"),
        other => panic!("{other:?}"),
    }
}
