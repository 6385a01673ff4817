//! Conversions between all formats: what a history says survives every pair of formats that can
//! express it.

mod capabilities;
mod essence;
mod random;
mod sniffing;

use isolario_formats::{FORMATS, HistoryFormat, find, sniff};
use isolario_fuzz::files::write;
use isolario_model::{History, SinkError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use capabilities::{Common, Format, TABLE};
use essence::essence;

/// Writes, recognises and reads.
fn convert(format: &Format, history: &History) -> Result<History, SinkError> {
    let name = format.name;
    let format = find(name).unwrap();
    let source = write(format, history)?.source("converted").unwrap();
    assert_eq!(sniff(&source).map(HistoryFormat::name), Some(name));
    let loaded = format.read(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(loaded.ignored.is_empty() && loaded.warnings.is_empty(), "{name}");
    Ok(loaded.history)
}

/// Takes a history through both formats, or as far as the second one can follow.
fn convert_twice(
    (first, second): (&Format, &Format),
    common: &Common,
    history: &History,
) -> Result<(), TestCaseError> {
    if history.op_count() == 0 {
        return Ok(());
    }
    let refused = |format: &Format, error| {
        TestCaseError::fail(format!("{} refuses its part: {error}", format.name))
    };
    let between = convert(first, history).map_err(|error| refused(first, error))?;
    match (convert(second, &between), second.refuses_what_comes_from(first)) {
        (Ok(after), None) => {
            prop_assert_eq!(essence(&after, common), essence(history, common));
            Ok(())
        }
        (Err(SinkError::Inexpressible { .. }), Some(_)) => Ok(()),
        (Ok(_), Some(why)) => Err(TestCaseError::fail(format!("taken, although {why}"))),
        (Err(error), _) => Err(refused(second, error)),
    }
}

/// The failure, and the smallest history that shows it.
fn told(error: &TestError<History>, common: &Common) -> String {
    match error {
        TestError::Fail(why, history) => format!("{why}\n{:#?}", essence(history, common)),
        TestError::Abort(why) => why.to_string(),
    }
}

#[test]
fn the_table_has_every_format() {
    let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
    assert_eq!(names, TABLE.each_ref().map(|format| format.name));
}

#[test]
fn histories_survive_every_pair_of_formats() {
    let mut failures = Vec::new();
    let mut pairs = 0;
    for first in &TABLE {
        for second in &TABLE {
            let Some(common) = first.common(second) else { continue };
            pairs += 1;
            let mut runner = TestRunner::new(Config {
                cases: 32,
                failure_persistence: None,
                max_shrink_iters: 300,
                ..Config::default()
            });
            let result = runner.run(&random::history(common.clone()), |history| {
                convert_twice((first, second), &common, &history)
            });
            if let Err(error) = result {
                failures.push(format!(
                    "{} to {}: {}",
                    first.name,
                    second.name,
                    told(&error, &common)
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {pairs}:\n{}", failures.len(), failures.join("\n\n"));
    assert!(pairs > 90, "only {pairs} pairs have anything in common");
}
