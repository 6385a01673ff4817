//! Which commits count as lost where a server was down for a while.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario::formats::{Source, find};
use isolario::model::History;
use isolario::report::explain::Topic;
use isolario::run::{LostCommits, Outage};
use isolario::verify::verify_lost;
use isolario_oracle::history;

const OUTAGE: Outage = Outage { begun: 10, over: 20 };

fn of_text(text: &str) -> History {
    let source = Source::from_bytes("history", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// How many are lost where the server was down from 10 to 20.
fn lost(text: &str) -> Option<(u64, String)> {
    let found = LostCommits::find(&history(text), &[OUTAGE])?;
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

#[test]
fn the_page_that_explains_it_shows_one() {
    let text = Topic::LostCommit.page().history;
    assert!(text.contains("killed at 20, and is back at 30"), "{text}");
    let lost = LostCommits::find(&of_text(text), &[Outage { begun: 20, over: 30 }]).unwrap();
    assert_eq!(lost.words, "T1 wrote balance=130 over 100, and T2 finds 100 again");
}

#[test]
fn a_row_that_was_deleted_is_not_lost() {
    // Who comes later deletes what was inserted: that nothing is there again says nothing.
    let deleted = "a [0, 1]: r x nil, w x 1\n b [2, 3]: r x 1, delete x\n c [21, 22]: r x nil";
    assert_eq!(lost(deleted), None);
    // Neither does it where only a delete of unknown outcome could have been it.
    let perhaps = deleted.replace(" b [2, 3]", " b unknown [2, 3]");
    assert_eq!(lost(&perhaps), None);
    // Its own delete is not what it wrote before.
    let own = "a [0, 1]: r x nil, w x 1\n b [2, 3]: r x 1, w x 2, delete x\n c [21, 22]: r x 1";
    assert_eq!(lost(own), None);
}

/// How many are lost where rows are written by predicate, too, by transactions of sessions of their own.
fn lost_rows(txns: &[&str]) -> u64 {
    let sessions = txns.iter().enumerate().map(|(n, txn)| format!("session s{n}\n  T{n} {txn}\n"));
    let history = of_text(&sessions.collect::<String>());
    let found = LostCommits::find(&history, &[OUTAGE]);
    let Some(found) = found else { return 0 };
    for answer in verify_lost(&history, &[OUTAGE], &found.evidence) {
        assert_eq!(answer, Ok(()), "{found}");
    }
    found.total
}

#[test]
fn rows_are_lost_as_registers_are() {
    let insert = "[0, 1]: r t(id=1) nil, w t(id=1) (v=1)";
    let update = "[2, 3]: r t(id=1) (v=1), w t(id=1) (v=2)";
    let delete = "[4, 5]: update from t where v > 0 -> {t(id=1): nil}";
    let other = "[4, 5]: update from t where v > 7 -> {t(id=2): nil}";
    let finds_old = "[21, 22]: r t(id=1) (v=1)";
    let finds_nothing = "[21, 22]: r t(id=1) nil";
    assert_eq!(lost_rows(&[insert, update, finds_old]), 1);
    // A version that is found again was not put there by a delete.
    assert_eq!(lost_rows(&[insert, update, delete, finds_old]), 1);
    assert_eq!(lost_rows(&[insert, update, delete, finds_nothing]), 0);
    assert_eq!(lost_rows(&[insert, update, other, finds_nothing]), 2);
    // Nobody knows which rows it met; but for an aborted one, which left nothing.
    let unanswered = |outcome: &str| format!("{outcome} [4, 5]: update from t where v > 0 -> ?");
    assert_eq!(lost_rows(&[insert, update, &unanswered("unknown"), finds_old]), 0);
    assert_eq!(lost_rows(&[insert, update, &unanswered("aborted"), finds_old]), 1);
}
