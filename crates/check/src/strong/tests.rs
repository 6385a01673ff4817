//! The solver against the oracle, on all small histories without wrong reads: also on those that
//! the linear checkers take over, and also with search alone.

use isolario_model::{Checker, Level, LevelResult, Verdict};
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};

use super::check_with;
use crate::Options;
use crate::reads::{Reads, first_unsupported};
use crate::weak::{Dependencies, Weak};

const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

fn complaint(draft: &Draft, options: &Options, saturate: bool) -> Option<String> {
    let history = draft.history().unwrap();
    if first_unsupported(&history).is_some() {
        return None;
    }
    let reads = Reads::resolve(&history);
    let dependencies = Dependencies::new(&history, &reads, options.session_order);
    let weak = Weak::new(&dependencies);
    if !weak.plain_anomalies().is_empty() || reads.ambiguous.is_some() {
        return None;
    }
    let oracle = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    let verifier = isolario_verify::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    LEVELS.into_iter().find_map(|level| {
        let verdict = check_with(&weak, level, options, saturate);
        let answer = satisfies(&history, level, oracle);
        let agrees = match &verdict {
            Verdict::Satisfied(_) => answer == Answer::Satisfied,
            Verdict::Violated(_) => answer == Answer::Violated,
            _ => false,
        };
        let result = LevelResult { level, checker: Checker::Strong { blind: None }, verdict };
        if !agrees {
            return Some(format!("{level}: the oracle says {answer:?}\n{result:#?}"));
        }
        let refusal = isolario_verify::verify(&history, &result, &verifier).err()?;
        if matches!(refusal, isolario_verify::Refusal::Unsupported(_)) {
            return None;
        }
        Some(format!("{level}: the verifier says: {refusal}\n{result:#?}"))
    })
}

fn agree(saturate: bool) {
    for case in Case::first(volume() / 2) {
        let options = Options {
            session_order: !case.seed.is_multiple_of(4),
            clock_skew: [0, 0, 0, 1, 4][case.seed as usize % 5],
            ..Options::default()
        };
        if complaint(&case.draft(), &options, saturate).is_some() {
            let small = shrink(case.draft(), |d| complaint(d, &options, saturate).is_some());
            let complaint = complaint(&small, &options, saturate).unwrap_or_default();
            panic!("{options:?}\n{small}\n{complaint}");
        }
    }
}

#[test]
fn oracle_solver_and_verifier_agree() {
    agree(true);
}

#[test]
fn oracle_search_alone_and_verifier_agree() {
    agree(false);
}
