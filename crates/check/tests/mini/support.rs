//! Histories in the text language, and their verified verdicts.

use isolario_check::{CheckOptions, check};
use isolario_formats::{Source, find};
use isolario_model::{Attempt, History, Level, LevelResult, Verdict};
use isolario_verify::verify;

/// Reads a history in the text language.
pub fn history(text: &str) -> History {
    let source = Source::from_bytes("test", text.as_bytes().to_vec()).unwrap();
    find("text").unwrap().read(&source).unwrap_or_else(|error| panic!("{error}")).history
}

/// The answer for a level, which the verifier has accepted.
pub fn result(history: &History, level: Level, options: &CheckOptions) -> LevelResult {
    let result = check(history, &[level], options).remove(0);
    let by_verifier = isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    verify(history, &result, &by_verifier).unwrap_or_else(|no| panic!("{level}: {no}"));
    result
}

/// The names of the anomalies that a level finds; none if it is satisfied.
pub fn names(text: &str, level: Level) -> Vec<&'static str> {
    names_with(text, level, &CheckOptions::default())
}

/// As [`names`], of a history that is read in another way.
pub fn names_with(text: &str, level: Level, options: &CheckOptions) -> Vec<&'static str> {
    match result(&history(text), level, options).verdict {
        Verdict::Satisfied(_) => Vec::new(),
        Verdict::Violated(findings) => findings.anomalies.iter().map(|a| a.kind.name()).collect(),
        other => panic!("{level}: {other:?}"),
    }
}

/// Who decides a level.
pub fn decided_by(text: &str, level: Level) -> Attempt {
    result(&history(text), level, &CheckOptions::default()).decided_by
}
