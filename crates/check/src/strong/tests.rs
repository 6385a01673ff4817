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
        Some(format!("{level}: the verifier says: {refusal}\n{result:#?}"))
    })
}

#[test]
fn the_example_of_king_cobra_is_one_choice() {
    // Emme, Figure 8: T3 read from T1, and T2 wrote the key, too.
    let draft = Draft::parse("a: w(x,1)\nb: w(x,2)\nc: r(x,1)").unwrap();
    let history = draft.history().unwrap();
    let mut text = Vec::new();
    let options = Options::default();
    assert!(crate::dump_problem(&history, Level::Serializable, &options, &mut text).unwrap());
    let expected = "problem serializable
node 0 #0
node 1 #1
node 2 #2
known 0 2 wr
choice x: #0 before #1 0>1 2>1 or #1 before #0 1>0
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn a_solver_that_is_asked_to_stop_does_before_its_long_work() {
    // Two readers saw two writes in different orders: no order of the writes is right.
    let text = "a: w(x,1)\nb: w(x,2)\nc: r(x,1)\nc: r(x,2)\nd: r(x,2)\nd: r(x,1)";
    let history = Draft::parse(text).unwrap().history().unwrap();
    let reads = Reads::resolve(&history);
    let dependencies = Dependencies::new(&history, &reads, true);
    let options = Options::default();
    let solve = || check_with(&Weak::new(&dependencies), Level::Serializable, &options, true);
    assert!(matches!(solve(), Verdict::Violated(_)));
    options.stop.ask();
    match solve() {
        Verdict::Undecided { reason } => assert!(reason.contains("interrupted"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

fn agree(saturate: bool) {
    for case in Case::first(volume() / 2) {
        let options = Options {
            session_order: !case.seed.is_multiple_of(4),
            clock_skew: [0, 0, 0, 1, 4][case.seed as usize % 5],
            ..Options::default()
        };
        // Also those that the linear-time checker decides, which goes through the same oracle.
        for draft in [case.draft(), case.read_modify_write_draft()] {
            if complaint(&draft, &options, saturate).is_some() {
                let small = shrink(draft, |d| complaint(d, &options, saturate).is_some());
                let complaint = complaint(&small, &options, saturate).unwrap_or_default();
                panic!("{options:?}\n{small}\n{complaint}");
            }
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
