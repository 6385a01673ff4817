//! The solver against the oracle, on all small histories without wrong reads: also on those that
//! the linear checkers take over, and also with search alone.

use std::sync::Arc;

use isolario_model::{Engine, Level, LevelResult, Limit, Verdict};
use isolario_oracle::random::{Case, Rng, Shape, generate, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};

use super::{Steps, check_with};
use crate::Options;
use crate::resolved::{RESOLVED, Resolved, first_outside};
use crate::weak::Weak;

const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// With everything, without the short search, with search alone, with every node as a chain.
pub(super) const ALL_WAYS: [Steps; 4] = [
    Steps::ALL,
    Steps { short_search: false, ..Steps::ALL },
    Steps { short_search: false, saturation: false, ..Steps::ALL },
    Steps { short_search: false, most_chains: 0, ..Steps::ALL },
];

fn complaint(draft: &Draft, options: &Options, steps: Steps) -> Option<String> {
    let history = draft.history().unwrap();
    if first_outside(&history, RESOLVED).is_some() {
        return None;
    }
    let resolved = Arc::new(Resolved::new(&history, options));
    let weak = Weak::new(Arc::clone(&resolved));
    if !weak.plain_anomalies().is_empty() || resolved.dependencies.reads.choices.open.is_none() {
        return None;
    }
    let oracle = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    let verifier = isolario_verify::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    LEVELS.into_iter().find_map(|level| {
        let verdict = check_with(&resolved, level, options, steps);
        let answer = satisfies(&history, level, oracle);
        let agrees = match &verdict {
            Verdict::Satisfied(_) => answer == Answer::Satisfied,
            Verdict::Violated(_) => answer == Answer::Violated,
            _ => false,
        };
        let result = LevelResult { level, engine: Engine::Strong { blind: None }, verdict };
        if !agrees {
            return Some(format!("{level}: the oracle says {answer:?}\n{result:#?}"));
        }
        let refusal = isolario_verify::verify(&history, &result, &verifier).err()?;
        Some(format!("{level}: the verifier says: {refusal}\n{result:#?}"))
    })
}

#[test]
fn a_solver_that_is_asked_to_stop_does_before_its_long_work() {
    // Two readers saw two writes in different orders: no order of the writes is right.
    let text = "a: w x 1\nb: w x 2\nc: r x 1\nc: r x 2\nd: r x 2\nd: r x 1";
    let history = Draft::parse(text).unwrap().history().unwrap();
    let options = Options::default();
    let resolved = Resolved::new(&history, &options);
    let solve = || check_with(&resolved, Level::Serializable, &options, Steps::ALL);
    assert!(matches!(solve(), Verdict::Violated(_)));
    options.stop.ask();
    match solve() {
        Verdict::Undecided(undecided) => assert_eq!(undecided.limit, Limit::Interrupted),
        other => panic!("{other:?}"),
    }
}

/// Histories on keys and sessions of their own.
fn side_by_side(drafts: &[Draft]) -> Draft {
    let mut all = Draft { initial: drafts[0].initial.clone(), txns: Vec::new() };
    for (number, draft) in drafts.iter().enumerate() {
        let mut txns = draft.txns.clone();
        for txn in &mut txns {
            txn.session = format!("{number}{}", txn.session);
            txn.ops.iter_mut().for_each(|op| *op.key_mut() = format!("{number}{}", op.key()));
        }
        all.txns.extend(txns);
    }
    all
}

#[test]
fn histories_side_by_side_are_solved_apart() {
    let levels = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
    let shape = |seed| Shape {
        txns: (3, 5),
        keys: 2,
        stale: 30,
        stray: 0,
        times: false,
        ..Shape::registers().swap_remove(seed as usize % 3)
    };
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..volume() / 20 {
        let draft = |at| generate(&shape(seed), &mut Rng::new(3 * seed + at));
        let drafts: Vec<Draft> = (0..3).map(draft).collect();
        let level = levels[seed as usize % 3];
        let alone = drafts.iter().map(|draft| {
            satisfies(&draft.history().unwrap(), level, isolario_oracle::Options::default())
        });
        let expected = alone.collect::<Vec<_>>();
        let together = side_by_side(&drafts);
        let history = together.history().unwrap();
        let resolved = Arc::new(Resolved::new(&history, &Options::default()));
        let weak = Weak::new(Arc::clone(&resolved));
        if !weak.plain_anomalies().is_empty() || resolved.dependencies.reads.choices.open.is_none()
        {
            continue;
        }
        let verdict = check_with(&resolved, level, &Options::default(), ALL_WAYS[1]);
        let is_satisfied = expected.iter().all(|answer| *answer == Answer::Satisfied);
        assert_eq!(matches!(verdict, Verdict::Satisfied(_)), is_satisfied, "{level}\n{together}");
        assert_eq!(matches!(verdict, Verdict::Violated(_)), !is_satisfied, "{level}\n{together}");
        let result = LevelResult { level, engine: Engine::Strong { blind: None }, verdict };
        isolario_verify::verify(&history, &result, &isolario_verify::Options::default()).unwrap();
        *(if is_satisfied { &mut satisfied } else { &mut violated }) += 1;
    }
    assert!(satisfied > 0 && violated > 0, "{satisfied} satisfied, {violated} violated");
}

fn agree(steps: Steps) {
    for case in Case::first(volume() / 2) {
        let options = Options {
            session_order: !case.seed.is_multiple_of(4),
            clock_skew: [0, 0, 0, 1, 4][case.seed as usize % 5],
            ..Options::default()
        };
        // Also those that the linear-time checker decides, which goes through the same oracle.
        let drafts = [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()];
        for draft in drafts {
            if complaint(&draft, &options, steps).is_some() {
                let small = shrink(draft, |d| complaint(d, &options, steps).is_some());
                let complaint = complaint(&small, &options, steps).unwrap_or_default();
                panic!("{options:?}\n{small}\n{complaint}");
            }
        }
    }
}

#[test]
fn oracle_solver_and_verifier_agree() {
    agree(Steps::ALL);
}

#[test]
fn oracle_saturation_and_verifier_agree() {
    agree(ALL_WAYS[1]);
}

#[test]
fn oracle_saturation_without_chains_and_verifier_agree() {
    agree(ALL_WAYS[3]);
}

#[test]
fn oracle_search_alone_and_verifier_agree() {
    agree(ALL_WAYS[2]);
}
