//! Random small histories go through the oracle and the checkers. The two must agree, and the
//! verifier must accept what the checkers show for their answers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{check, supported};
use isolario_model::{History, Inapplicable, LevelResult, Verdict};
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, is_ambiguous, satisfies, volume};
use isolario_verify::verify;

/// How a history is read, by all three alike.
#[derive(Clone, Copy, Debug)]
struct Reading {
    session_order: bool,
    clock_skew: u64,
}

/// As it is by default.
const READING: Reading = Reading { session_order: true, clock_skew: 0 };

impl Reading {
    fn of(case: Case) -> Reading {
        let clock_skew = [0, 0, 0, 1, 4][case.seed as usize % 5];
        Reading { session_order: !case.seed.is_multiple_of(4), clock_skew }
    }

    fn by_checker(self) -> isolario_check::Options {
        let mut options = isolario_check::Options::default();
        (options.session_order, options.clock_skew) = (self.session_order, self.clock_skew);
        options
    }

    fn by_oracle(self) -> isolario_oracle::Options {
        isolario_oracle::Options::default()
            .with_session_order(self.session_order)
            .with_clock_skew(self.clock_skew)
    }

    fn by_verifier(self) -> isolario_verify::Options {
        isolario_verify::Options::default()
            .with_session_order(self.session_order)
            .with_clock_skew(self.clock_skew)
    }
}

/// What is wrong with one result.
fn complaint(history: &History, result: &LevelResult, reading: Reading) -> Option<String> {
    let answer = satisfies(history, result.level, reading.by_oracle());
    let agrees = match (&result.verdict, answer) {
        (_, Answer::Unsupported) => true,
        (Verdict::Satisfied(_), answer) => answer == Answer::Satisfied,
        (Verdict::Violated(_), answer) => answer == Answer::Violated,
        (Verdict::NotApplicable(Inapplicable::AmbiguousRead { .. }), _) => {
            is_ambiguous(history, result.level)
        }
        (Verdict::NotApplicable(Inapplicable::NoTimes), _) => !history.has_times(),
        (Verdict::NotApplicable(reason), _) => matches!(reason, Inapplicable::Operation { .. }),
        _ => false,
    };
    if !agrees {
        return Some(format!("{}: the oracle says {answer:?}\n{result:#?}", result.level));
    }
    let refusal = verify(history, result, &reading.by_verifier()).err()?;
    Some(format!("{}: the verifier says: {refusal}\n{result:#?}", result.level))
}

fn complaints(draft: &Draft, reading: Reading) -> Option<String> {
    let history = draft.history().expect("small");
    let options = reading.by_checker();
    // A panic is a finding like any other, to be shrunk and shown.
    let Ok(results) = std::panic::catch_unwind(|| check(&history, supported(), &options)) else {
        return Some("the checker panics".to_owned());
    };
    results.iter().find_map(|result| complaint(&history, result, reading))
}

#[track_caller]
fn agree(draft: Draft, reading: Reading) {
    if complaints(&draft, reading).is_some() {
        let small = shrink(draft, |draft| complaints(draft, reading).is_some());
        let complaint = complaints(&small, reading).unwrap_or_default();
        panic!("{reading:?}\n{small}\n{complaint}");
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers() {
    for case in Case::first(volume()) {
        agree(case.draft(), Reading::of(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers_read_before_written() {
    for case in Case::first(volume()) {
        agree(case.read_modify_write_draft(), Reading::of(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_lists() {
    for case in Case::first(volume()) {
        agree(case.list_draft(), Reading::of(case));
    }
}

#[test]
fn a_read_between_two_own_writes_of_one_value_saw_the_first() {
    let draft = Draft::parse("a: w x 3, r x 3, w x 3").expect("well formed");
    agree(draft, READING);
}

#[test]
fn an_element_is_wrong_if_everyone_who_appended_it_is() {
    for text in [
        "a: r x [1], append x 1\n b aborted: append x 1",
        "a aborted: append x 1\n b: r x [1], append x 1",
        "a: append x 1, r x [1 1]\n b aborted: append x 1",
        "a: append x 1, r x [1 1], append x 1\n b aborted: append x 1",
        "a: append x 1, r x [1 1]\n b: append x 1",
    ] {
        agree(Draft::parse(text).expect("well formed"), READING);
    }
}
