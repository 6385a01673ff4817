//! Proofs with something changed: refused, or still right.

use isolario_model::{Attempt, History, Level, LevelResult, TxnId, Verdict, Witness};
use isolario_oracle::history;
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, satisfies, volume};
use isolario_verify::VerifyOptions;
use isolario_verify::proof::{self, ProofProblem};

use crate::support::{options, proof_of, results, write};

/// Whether brute force says otherwise.
fn is_contradicted(history: &History, result: &LevelResult, session_order: bool) -> bool {
    let options = isolario_oracle::Options::default().with_session_order(session_order);
    let answer = || satisfies(history, result.level, options);
    match result.verdict {
        Verdict::Satisfied(_) => answer() == Answer::Violated,
        Verdict::Violated(_) => answer() == Answer::Satisfied,
        _ => false,
    }
}

/// No claim that is accepted may be wrong, whatever was done to the file.
#[track_caller]
fn accepts_only_truth(history: &History, file: &[u8]) {
    let Ok(verified) = proof::verify_proof(history, file) else { return };
    let session_order = verified.proof.options.session_order;
    for (result, refusal) in verified.proof.results.iter().zip(&verified.refusals) {
        let accepted = refusal.is_none();
        if accepted && is_contradicted(history, result, session_order) {
            panic!("{result:#?} was accepted:\n{}", String::from_utf8_lossy(file));
        }
    }
}

/// Changes some bytes: to anything, to what stands elsewhere, away, or twice.
fn scramble(file: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let (at, from) = (rng.below(file.len()), rng.below(file.len()));
        match rng.below(6) {
            0 => file[at] = rng.below(256) as u8,
            1 => file[at] = b"0123456789[]{}\",:#"[rng.below(18)],
            2 => file[at] = file[from],
            3 => drop(file.remove(at)),
            4 => file.insert(at, file[from]),
            _ => file.truncate(at.max(1)),
        }
    }
}

/// A random history: of registers, or now and then of lists.
fn random_history(case: &Case) -> History {
    let draft = if case.seed.is_multiple_of(3) { case.list_draft() } else { case.draft() };
    draft.history().expect("small")
}

#[test]
fn scrambled_files_are_never_taken_for_the_proof_of_an_untruth() {
    for case in Case::first(volume() / 20) {
        let history = random_history(&case);
        let file = proof_of(&history).into_bytes();
        let mut rng = Rng::new(case.seed);
        for _ in 0..8 {
            let mut scrambled = file.clone();
            scramble(&mut scrambled, &mut rng);
            accepts_only_truth(&history, &scrambled);
        }
    }
}

/// Changes that keep the file well formed: a word or a number replaced by another one.
fn reword(file: &str, rng: &mut Rng) -> String {
    const WORDS: [(&str, &str); 12] = [
        ("\"satisfied\"", "\"violated\""),
        ("\"level\":\"causal\"", "\"level\":\"read-atomic\""),
        ("\"why\":\"session\"", "\"why\":\"initial\""),
        ("\"rule\":\"read-atomic\"", "\"rule\":\"causal\""),
        ("\"rule\":\"causal\"", "\"rule\":\"read-committed\""),
        ("\"session_order\":true", "\"session_order\":false"),
        ("\"write\":null", "\"write\":[{\"#\":0},0]"),
        ("\"saw\":null", "\"saw\":[{\"#\":0},0]"),
        ("\"x\"", "\"y\""),
        ("FracturedReadCO", "CyclicCO"),
        ("ThinAirRead", "FutureRead"),
        ("\"verdict\":\"violated\"", "\"verdict\":\"satisfied\""),
    ];
    match rng.below(3) {
        0 => {
            let (word, other) = WORDS[rng.below(WORDS.len())];
            file.replacen(word, other, 1)
        }
        1 => swap_digit(file, rng),
        _ => swap_lines(file, rng),
    }
}

/// Replaces a digit beyond the header, whose digest is tested by itself.
fn swap_digit(file: &str, rng: &mut Rng) -> String {
    let header = file.find('\n').unwrap_or(0);
    let digits: Vec<usize> =
        (header..file.len()).filter(|at| file.as_bytes()[*at].is_ascii_digit()).collect();
    if digits.is_empty() {
        return file.to_owned();
    }
    let at = digits[rng.below(digits.len())];
    [&file[..at], &rng.below(10).to_string(), &file[at + 1..]].concat()
}

fn swap_lines(file: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<&str> = file.lines().collect();
    let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
    lines.swap(one, other);
    lines.join("\n")
}

#[test]
fn reworded_files_are_never_taken_for_the_proof_of_an_untruth() {
    for case in Case::first(volume() / 20) {
        let history = random_history(&case);
        let options = options(case.seed % 4 != 0);
        let file = write(&history, &results(&history, &options), &options);
        let mut rng = Rng::new(case.seed);
        for _ in 0..8 {
            accepts_only_truth(&history, reword(&file, &mut rng).as_bytes());
        }
    }
}

#[test]
fn a_proof_without_one_of_its_lines_is_no_proof() {
    for case in Case::first(volume() / 40) {
        let history = random_history(&case);
        let file = proof_of(&history);
        let lines: Vec<&str> = file.lines().collect();
        for at in 0..lines.len() {
            let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            assert!(proof::read(&history, without.as_bytes()).is_err(), "{without}");
            let twice = [&lines[..=at], &lines[at..]].concat().join("\n");
            assert!(proof::read(&history, twice.as_bytes()).is_err(), "{twice}");
            let short = lines[..at].join("\n");
            assert!(proof::read(&history, short.as_bytes()).is_err(), "{short}");
        }
    }
}

#[test]
fn a_proof_of_one_history_is_none_of_another() {
    let one = history("a: w x 1\n b: r x 1");
    let other = history("a: w x 1\n b: r x nil");
    let file = proof_of(&one);
    assert!(proof::verify_proof(&one, file.as_bytes()).expect("well formed").is_right());
    let error = proof::verify_proof(&other, file.as_bytes()).expect_err("another history");
    assert!(matches!(error.problem, ProofProblem::OtherHistory { .. }) && error.is_wrong_proof());
    assert_eq!(error.position, None);
}

#[test]
fn the_proof_says_by_how_much_clocks_may_differ() {
    let history = history("a [1, 2]: w x 1\n b [7, 8]: r x nil");
    let options = VerifyOptions::default().with_clock_skew(3);
    let order = Witness::CommitOrder(vec![TxnId(1), TxnId(0)]);
    let (level, verdict) = (Level::StrictSerializable, Verdict::Satisfied(order));
    let result = LevelResult { level, decided_by: Attempt::Versions, verdict };
    let file = write(&history, &[result], &options);
    let judge = |file: &str| {
        let verified = proof::verify_proof(&history, file.as_bytes()).expect("well formed");
        (verified.proof.options.clock_skew, verified.is_right())
    };
    assert_eq!(judge(&file), (3, true));
    assert_eq!(judge(&file.replace("\"clock_skew\":3", "\"clock_skew\":2")), (2, false));
    assert_eq!(judge(&file.replace(",\"clock_skew\":3", "")), (0, false));
}

#[test]
fn without_session_order_less_is_violated_and_the_proof_says_so() {
    let history = history("a: r x 1\n a: w x 1");
    let (with, without) = (options(true), options(false));
    let file = write(&history, &results(&history, &without), &without);
    assert!(proof::verify_proof(&history, file.as_bytes()).expect("well formed").is_right());
    let forged = file.replace("\"session_order\":false", "\"session_order\":true");
    assert!(!proof::verify_proof(&history, forged.as_bytes()).expect("well formed").is_right());
    assert_ne!(results(&history, &with), results(&history, &without));
}
