//! Arguments that take several cases, as people read them: small, and told case by case.

use crate::sandbox::Sandbox;

/// What is said of a history between the table of levels and the advice.
fn explained(level: &str, history: &str, more: &[&str]) -> String {
    let sandbox = Sandbox::new().file("h.txt", history);
    let args = [&["check", "-q", "--level", level, "h.txt"], more].concat();
    let text = sandbox.stdout(&args);
    let begin = text.find("\n\n").map_or(0, |at| at + 2);
    let end = text.find("  Where to look").unwrap_or(text.len());
    format!("{history}---\n{}", text[begin..end].trim_end())
}

const TORN: &str = "\
session a
  T1: w x 1, w y 1
session b
  T2: w x 1, w y 2
session c
  T3: r x 1, r y nil
";

#[test]
fn a_read_that_missed_part_of_either_writer() {
    insta::assert_snapshot!(explained("ser", TORN, &[]));
}

#[test]
fn a_read_of_a_version_that_was_overwritten_whichever_it_was() {
    let history = "\
session a
  T1: w x 1
  T2: w x 2, w y 1
session b
  T3: w x 1
  T4: w x 3, w z 1
session c
  T5: r y 1, r z 1, r x 1
";
    insta::assert_snapshot!(explained("si", history, &[]));
}

#[test]
fn an_effect_seen_without_either_cause() {
    let history = "\
session a
  T1: w x 1
session b
  T2: w x 1
session c
  T3: r x 1, w y 1
session d
  T4: r y 1, r x nil
";
    insta::assert_snapshot!(explained("prefix", history, &[]));
}

#[test]
fn a_deleted_row_that_came_back() {
    let history = "\
session a
  T1: w x 1
  T2: delete x
  T3: w done 1
session b
  T4: r done 1, r x 1
";
    insta::assert_snapshot!(explained("ser", history, &[]));
}

#[test]
fn an_absence_after_the_last_write() {
    let history = "\
session a
  T1: delete x
  T2: w x 1
  T3: w done 1
session b
  T4: r done 1, r x nil
";
    insta::assert_snapshot!(explained("ser", history, &[]));
}

#[test]
fn a_write_whose_outcome_is_unknown_and_which_cannot_have_committed() {
    let history = "\
session a
  T1: w x 1
  T2: w x 2, w y 1
session b
  T3 unknown: r y nil, w x 1
session c
  T4: r y 1, r x 1
";
    insta::assert_snapshot!(explained("ser", history, &[]));
}

#[test]
fn two_orders_of_blind_writes_that_are_both_impossible() {
    let history = "\
session a
  T1: w x 1
session b
  T2: w x 2
session c
  T3: r x 1, w y 1
session d
  T4: r x 2, r y nil
session e
  T5: r x 2, w z 1
session f
  T6: r x 1, r z nil
";
    insta::assert_snapshot!(explained("ser", history, &[]));
}

#[test]
fn a_lost_update_of_a_value_that_others_wrote_too() {
    let history = "\
session a
  T1: w x 1
session b
  T2: w x 1
session c
  T3: r x 1, w x 2
session d
  T4: r x 1, w x 3
session e
  T5: r x 1, w x 4
";
    insta::assert_snapshot!(explained("si", history, &[]));
}

#[test]
fn a_weak_level_whichever_write_was_read() {
    let history = "\
session a
  T1: w x 1, w y 1
session b
  T2: w x 1, w y 2
session c
  T3: r x 1, w z 1
session d
  T4: r z 1, r y nil
";
    insta::assert_snapshot!(explained("causal", history, &[]));
}

#[test]
fn half_of_what_either_writer_wrote() {
    insta::assert_snapshot!(explained("ra", TORN, &[]));
}

#[test]
fn operations_that_do_not_matter_are_left_out() {
    let history = "\
session a
  T1: w x 1, w p 1, w y 1
  T2: r p 1, w q 1
session b
  T3: w x 1, w y 2, w s 1
session c
  T4: r s nil, r x 1, r y nil, w r 1
session d
  T5: r r 1, r q 1
";
    insta::assert_snapshot!(explained("ser", history, &[]));
}

/// Many transactions, of which three matter.
fn crowded() -> String {
    let mut history = TORN.to_owned();
    for number in 0..12 {
        let (before, after) = (number, number + 1);
        history += &format!("session d{number}\n  D{number}: r z {before}, w z {after}, w x 9\n");
    }
    history.replace("r z 0,", "r z nil,")
}

#[test]
fn what_does_not_matter_is_left_out() {
    insta::assert_snapshot!(explained("ser", &crowded(), &[]));
}

#[test]
fn nothing_is_looked_for_if_nobody_wants_it() {
    insta::assert_snapshot!(explained("ser", &crowded(), &["--no-minimize"]));
}
