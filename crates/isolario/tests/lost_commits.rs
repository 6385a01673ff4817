//! Which commits count as lost where a server was down for a while.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario::run::{LostCommits, Outage};
use isolario_oracle::history;

/// How many are lost where the server was down from 10 to 20.
fn lost(text: &str) -> Option<(u64, String)> {
    let found = LostCommits::find(&history(text), &[Outage { begun: 10, over: 20 }])?;
    Some((found.total, found.words))
}

#[test]
fn what_was_written_over_is_back() {
    let text = "a [0, 1]: r x nil, w x 1\n b [2, 3]: r x 1, w x 2\n c [21, 22]: r x nil";
    let (total, words) = lost(text).unwrap();
    assert_eq!(total, 2, "{words}");
    let partly = "a [0, 1]: r x nil, w x 1\n b [2, 3]: r x 1, w x 2\n c [21, 22]: r x 1";
    assert_eq!(lost(partly).unwrap().0, 1);
}

#[test]
fn what_is_there_is_not_lost() {
    let kept = "a [0, 1]: r x nil, w x 1\n c [21, 22]: r x 1";
    assert_eq!(lost(kept), None);
    // Two wrote over the same version, which some levels allow: one of them is there.
    let forked = "a [0, 1]: r x nil, w x 1\n b [0, 2]: r x nil, w x 2\n c [21, 22]: r x 2";
    assert_eq!(lost(forked), None);
    // Nobody knows what a blind write wrote over.
    let blind = "a [0, 1]: w x 1\n b [2, 3]: w x 2\n c [21, 22]: r x 1";
    assert_eq!(lost(blind), None);
}

#[test]
fn only_what_was_acknowledged_before_the_fault_counts() {
    for outcome in ["aborted", "unknown"] {
        let text = format!("a {outcome} [0, 1]: r x nil, w x 1\n c [21, 22]: r x nil");
        assert_eq!(lost(&text), None, "{outcome}");
    }
    let during = "a [0, 11]: r x nil, w x 1\n c [21, 22]: r x nil";
    assert_eq!(lost(during), None);
    let early_reader = "a [0, 1]: r x nil, w x 1\n c [15, 22]: r x nil";
    assert_eq!(lost(early_reader), None);
    // It did commit: somebody saw it, and wrote over it.
    let through = "a unknown [0, 1]: r x nil, w x 1\n b [2, 3]: r x 1, w x 2\n c [21, 22]: r x nil";
    assert_eq!(lost(through).unwrap().0, 1);
    // Who comes after the fault writes over what is there.
    let after = "a [0, 1]: r x nil, w x 1\n b [21, 22]: r x 1, w x 2\n c [23, 24]: r x 1";
    assert_eq!(lost(after), None);
}

#[test]
fn a_conditional_write_tells_what_it_wrote_over() {
    let text = "a [0, 1]: cas x nil -> 1 ok\n b [2, 3]: cas x 1 -> 2 ok\n c [21, 22]: r x 1";
    assert_eq!(lost(text).unwrap().0, 1);
    assert_eq!(lost(&text.replace("r x 1", "r x 2")), None);
}

#[test]
fn lists_never_forget() {
    let text = "a [0, 1]: append x 1\n b [2, 3]: append x 2\n c [21, 22]: r x [1]";
    assert_eq!(lost(text).unwrap().0, 1);
    assert_eq!(lost("a [0, 1]: append x 1\n c [21, 22]: r x [1]"), None);
}
