//! The solver against the oracle, on all small histories without wrong reads: also on those that
//! the linear checkers take over, and also with search alone.

use std::sync::Arc;
use std::time::Instant;

use isolario_model::{Attempt, Level, LevelResult, Limit, Verdict};
use isolario_oracle::random::{Case, Rng, Shape, generate, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};

use super::limits::Limits;
use super::{MOST_CHAINS, Steps, WIDEST_PERCENT, search, windows};
use crate::CheckOptions;
use crate::plan::Conclusion;
use crate::resolved::{RESOLVED, Resolved, first_outside};
use crate::weak::Weak;

pub(super) const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// How a level is solved in a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct SolverSetup {
    /// Up to which share of the order it is repaired in windows; not at all if that is nothing.
    widest_percent: usize,
    steps: Steps,
}

/// As levels are solved.
pub(super) const USUAL: SolverSetup =
    SolverSetup { widest_percent: WIDEST_PERCENT, steps: Steps::ALL };

/// Window by window, however wide windows grow.
pub(super) const SEGMENTS: SolverSetup = SolverSetup { widest_percent: 100, steps: Steps::ALL };

/// By a search over the whole history.
pub(super) const WHOLE: SolverSetup = SolverSetup { widest_percent: 0, steps: Steps::ALL };

const SATURATED: Steps = Steps { short_search: false, saturation: true, most_chains: MOST_CHAINS };

/// With everything, without the short search, with search alone, with every node as a chain.
pub(super) const ALL_WAYS: [SolverSetup; 4] = [
    USUAL,
    SolverSetup { steps: SATURATED, ..WHOLE },
    SolverSetup { steps: Steps { saturation: false, ..SATURATED }, ..WHOLE },
    SolverSetup { steps: Steps { most_chains: 0, ..SATURATED }, ..WHOLE },
];

/// Decides a level, by segments or by a search.
pub(super) fn decide(
    resolved: &Resolved<'_>,
    level: Level,
    options: &CheckOptions,
    setup: SolverSetup,
) -> LevelResult {
    let began = Instant::now();
    let limits = Limits::new(options, level, began);
    let by_segments = match setup.widest_percent {
        0 => Conclusion::Pass,
        percent => windows::decide(resolved, &limits, percent),
    };
    match by_segments {
        Conclusion::Pass => {
            let found = search(resolved, level, options, began, setup.steps);
            found.result(level, Attempt::Search)
        }
        found => found.result(level, Attempt::Segments),
    }
}

fn complaint(draft: &Draft, options: &CheckOptions, setup: SolverSetup) -> Option<String> {
    let history = draft.history().unwrap();
    if first_outside(&history, RESOLVED).is_some() {
        return None;
    }
    let resolved = Arc::new(Resolved::new(&history, options));
    let weak = Weak::new(Arc::clone(&resolved));
    if !weak.plain_anomalies(Level::Serializable).is_empty()
        || resolved.dependencies.reads.choices.open.is_none()
    {
        return None;
    }
    let oracle = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    let verifier = isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    LEVELS.into_iter().find_map(|level| {
        let result = decide(&resolved, level, options, setup);
        let answer = satisfies(&history, level, oracle);
        let agrees = match &result.verdict {
            Verdict::Satisfied(_) => answer == Answer::Satisfied,
            Verdict::Violated(_) => answer == Answer::Violated,
            _ => false,
        };
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
    let options = CheckOptions::default();
    let resolved = Resolved::new(&history, &options);
    let solve = || decide(&resolved, Level::Serializable, &options, USUAL).verdict;
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

/// Three histories side by side; half of them with reads that may have seen one of several writes.
fn three(seed: u64, txns: (usize, usize)) -> [Draft; 3] {
    let shape = Shape::registers().swap_remove(seed as usize % 3);
    let shape = Shape { txns, keys: 2, stale: 30, stray: 0, times: false, ..shape };
    let shape = match seed % 6 {
        0..3 => shape,
        3 => Shape { duplicates: 50, ..shape },
        4 => Shape { duplicates: 40, unknown: 40, ..shape },
        _ => Shape { deletes: 40, unknown: 20, ..shape },
    };
    [0, 1, 2].map(|at| generate(&shape, &mut Rng::new(3 * seed + at)))
}

/// The verdict after saturation, if the history has nothing that is wrong by itself. The verifier agrees
/// with it.
fn saturated(draft: &Draft, level: Level) -> Option<Verdict> {
    let history = draft.history().unwrap();
    let resolved = Arc::new(Resolved::new(&history, &CheckOptions::default()));
    let weak = Weak::new(Arc::clone(&resolved));
    if !weak.plain_anomalies(Level::Serializable).is_empty()
        || resolved.dependencies.reads.choices.open.is_none()
    {
        return None;
    }
    let result = decide(&resolved, level, &CheckOptions::default(), ALL_WAYS[1]);
    isolario_verify::verify(&history, &result, &isolario_verify::VerifyOptions::default())
        .unwrap_or_else(|refusal| panic!("{level}: {refusal}\n{draft}"));
    Some(result.verdict)
}

#[test]
fn histories_side_by_side_are_solved_apart() {
    let levels = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..volume() / 10 {
        let (drafts, level) = (three(seed, (3, 5)), levels[seed as usize / 6 % 3]);
        let together = side_by_side(&drafts);
        let Some(verdict) = saturated(&together, level) else { continue };
        let is_satisfied = drafts.iter().all(|draft| {
            let oracle = isolario_oracle::Options::default();
            satisfies(&draft.history().unwrap(), level, oracle) == Answer::Satisfied
        });
        assert_eq!(matches!(verdict, Verdict::Satisfied(_)), is_satisfied, "{level}\n{together}");
        assert_eq!(matches!(verdict, Verdict::Violated(_)), !is_satisfied, "{level}\n{together}");
        *(if is_satisfied { &mut satisfied } else { &mut violated }) += 1;
    }
    assert!(satisfied > 0 && violated > 0, "{satisfied} satisfied, {violated} violated");
}

#[test]
fn a_part_that_takes_cases_refutes_the_whole() {
    // Too long for the oracle, and long enough that saturation leaves cases open. The verifier has the
    // last word.
    let levels = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
    for seed in 0..volume() / 20 {
        let (drafts, level) = (three(seed, (10, 16)), levels[seed as usize / 6 % 3]);
        let Some(verdict) = saturated(&side_by_side(&drafts), level) else { continue };
        let alone = drafts.iter().map(|draft| saturated(draft, level));
        let is_satisfied = { alone }.all(|v| matches!(v, Some(Verdict::Satisfied(_))));
        assert_eq!(matches!(verdict, Verdict::Satisfied(_)), is_satisfied, "{seed} {level}");
        assert_eq!(matches!(verdict, Verdict::Violated(_)), !is_satisfied, "{seed} {level}");
    }
}

/// Also of histories that the linear-time checker decides, which goes through the same oracle.
fn agree(setup: SolverSetup) {
    agree_on(setup, volume() / 2, |case| {
        vec![case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()]
    });
}

fn agree_on(setup: SolverSetup, cases: u64, drafts: impl Fn(Case) -> Vec<Draft>) {
    for case in Case::first(cases) {
        let options = CheckOptions {
            session_order: !case.seed.is_multiple_of(4),
            clock_skew: [0, 0, 0, 1, 4][case.seed as usize % 5],
            ..CheckOptions::default()
        };
        for draft in drafts(case) {
            if complaint(&draft, &options, setup).is_some() {
                let small = shrink(draft, |d| complaint(d, &options, setup).is_some());
                let complaint = complaint(&small, &options, setup).unwrap_or_default();
                panic!("{options:?}\n{small}\n{complaint}");
            }
        }
    }
}

#[test]
fn oracle_solver_and_verifier_agree() {
    agree(USUAL);
}

#[test]
fn oracle_windows_and_verifier_agree() {
    agree(SEGMENTS);
}

#[test]
fn oracle_windows_and_verifier_agree_on_lists() {
    agree_on(SEGMENTS, volume() / 4, |case| vec![case.list_draft()]);
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

#[test]
fn that_a_transaction_is_there_may_rest_on_what_another_read_did_not_see() {
    // The last read of z saw one of two deletes of unknown outcome, since its session had written x: so d
    // is there, from which the other one read. Without that, nothing is wrong.
    let text = "z: w x 1, w y 2\n\
                b unknown: w x 4\n\
                a: r x 4, w y 6\n\
                d unknown: r y 6, w y 9, r x 1, delete x\n\
                z: r x nil\n\
                e unknown: r y 9, w y 11, delete x";
    let verdict = saturated(&Draft::parse(text).unwrap(), Level::Serializable);
    assert!(matches!(verdict, Some(Verdict::Violated(_))), "{verdict:?}");
}
