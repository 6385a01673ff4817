//! A check that is asked to end leaves what it has not decided undecided.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, check, patterns, supported, supported_patterns};
use isolario_model::{Attempt, Limit, Verdict};
use isolario_oracle::Draft;

fn is_interrupted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Undecided(why) if why.limit == Limit::NotBegun)
}

#[test]
fn nothing_is_claimed_of_what_was_not_looked_at() {
    let history = Draft::parse("a [0, 1]: w x 1\nb [2, 3]: r x 1").unwrap().history().unwrap();
    let options = CheckOptions::default();
    let decided = check(&history, supported(), &options);
    assert!(decided.iter().all(|result| matches!(result.verdict, Verdict::Satisfied(_))));
    options.stop.ask();
    for (before, result) in decided.iter().zip(check(&history, supported(), &options)) {
        assert_eq!((before.level, Attempt::Nothing), (result.level, result.decided_by));
        assert!(is_interrupted(&result.verdict), "{result:?}");
    }
    let kinds: Vec<_> = supported_patterns().collect();
    let found = patterns(&history, &kinds, &options);
    assert_eq!(found.len(), kinds.len());
    assert!(found.iter().all(|result| is_interrupted(&result.verdict)));
}
