//! Over random histories: the levels imply each other as the lattice says, and none of them is
//! nearly always satisfied or nearly always violated.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_model::History;
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, LEVELS, Options, satisfies, volume};

fn answers(history: &History, options: Options) -> Vec<Answer> {
    LEVELS.iter().map(|level| satisfies(history, *level, options)).collect()
}

/// A pair of levels that contradicts the lattice.
fn contradiction(draft: &Draft, options: Options) -> Option<String> {
    let answers = answers(&draft.history().expect("small"), options);
    for (strong, strong_answer) in LEVELS.iter().zip(&answers) {
        for (weak, weak_answer) in LEVELS.iter().zip(&answers) {
            let kept = (*strong_answer, *weak_answer) != (Answer::Satisfied, Answer::Violated);
            if strong.implies(*weak) && !kept {
                return Some(format!("{strong} is satisfied, {weak} is not"));
            }
        }
    }
    None
}

#[test]
fn a_history_that_satisfies_a_level_satisfies_the_weaker_ones() {
    for case in Case::first(volume() / 4) {
        let options = Options::default().with_session_order(case.seed % 4 != 0);
        for draft in [case.draft(), case.list_draft()] {
            if contradiction(&draft, options).is_some() {
                let small = shrink(draft, |draft| contradiction(draft, options).is_some());
                panic!("{case:?}: {:?}\n{small}", contradiction(&small, options));
            }
        }
    }
}

#[test]
fn every_level_is_often_satisfied_often_violated_and_told_apart_from_its_neighbours() {
    let cases = (volume() / 4).max(1_000);
    let mut satisfied = [0_u64; LEVELS.len()];
    let mut between = [[0_u64; LEVELS.len()]; LEVELS.len()];
    for case in Case::first(cases) {
        let answers = answers(&case.history().expect("small"), Options::default());
        for (level, answer) in answers.iter().enumerate() {
            satisfied[level] += u64::from(*answer == Answer::Satisfied);
            for (other, other_answer) in answers.iter().enumerate() {
                between[level][other] += u64::from(answer != other_answer);
            }
        }
    }
    for (level, satisfied) in LEVELS.iter().zip(satisfied) {
        let share = 100 * satisfied / cases;
        println!("{level}: {share}% satisfied");
        assert!((20..=80).contains(&share), "{level}: {share}% satisfied");
    }
    for (strong, level) in LEVELS.iter().enumerate() {
        let weaker = level.weaker().iter().filter_map(|w| LEVELS.iter().position(|l| l == w));
        for weak in weaker {
            let per_mille = 1_000 * between[strong][weak] / cases;
            println!("{} without {level}: {per_mille} per mille", LEVELS[weak]);
            assert!(per_mille >= 1, "{} and {level} are hardly told apart", LEVELS[weak]);
        }
    }
}

#[test]
fn a_case_is_a_function_of_its_seed_and_comes_back_from_text() {
    for case in Case::first(500) {
        for draft in [case.draft(), case.list_draft()] {
            assert_eq!(Draft::parse(&draft.to_string()), Ok(draft));
        }
        assert_eq!(case.draft(), case.draft());
    }
}
