//! Random small histories go through the oracle and the checkers. The two must agree, and the
//! verifier must accept what the checkers show for their answers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{check, supported};
use isolario_model::{History, Inapplicable, LevelResult, Verdict};
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, is_ambiguous, satisfies, volume};
use isolario_verify::verify;

/// What is wrong with one result.
fn complaint(history: &History, result: &LevelResult, session_order: bool) -> Option<String> {
    let answer = satisfies(history, result.level, isolario_oracle::Options { session_order });
    let agrees = match (&result.verdict, answer) {
        (_, Answer::Unsupported) => true,
        (Verdict::Satisfied(_), answer) => answer == Answer::Satisfied,
        (Verdict::Violated(_), answer) => answer == Answer::Violated,
        (Verdict::NotApplicable(Inapplicable::AmbiguousRead { .. }), _) => is_ambiguous(history),
        (Verdict::NotApplicable(reason), _) => matches!(reason, Inapplicable::Operation { .. }),
        _ => false,
    };
    if !agrees {
        return Some(format!("{}: the oracle says {answer:?}\n{result:#?}", result.level));
    }
    let options = isolario_verify::Options { session_order };
    let refusal = verify(history, result, &options).err()?;
    Some(format!("{}: the verifier says: {refusal}\n{result:#?}", result.level))
}

fn complaints(draft: &Draft, session_order: bool) -> Option<String> {
    let history = draft.history().expect("small");
    let mut options = isolario_check::Options::default();
    options.session_order = session_order;
    // A panic is a finding like any other, to be shrunk and shown.
    let Ok(results) = std::panic::catch_unwind(|| check(&history, supported(), &options)) else {
        return Some("the checker panics".to_owned());
    };
    results.iter().find_map(|result| complaint(&history, result, session_order))
}

#[track_caller]
fn agree(draft: Draft, session_order: bool) {
    if complaints(&draft, session_order).is_some() {
        let small = shrink(draft, |draft| complaints(draft, session_order).is_some());
        let complaint = complaints(&small, session_order).unwrap_or_default();
        panic!("session order: {session_order}\n{small}\n{complaint}");
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers() {
    for case in Case::first(volume()) {
        agree(case.draft(), case.seed % 4 != 0);
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_lists() {
    for case in Case::first(volume() / 4) {
        agree(case.list_draft(), case.seed % 4 != 0);
    }
}

#[test]
fn a_read_between_two_own_writes_of_one_value_saw_the_first() {
    agree(Draft::parse("a: w(x,3) r(x,3) w(x,3)").expect("well formed"), true);
}
