//! Serial orders against the oracle, the verifier and the simulated store.

use isolario_model::{Attempt, Batch};
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};
use isolario_sim::{Config, Kind, Workload, generate};

use super::*;

/// What the verifier says against an answer.
fn refusal(
    history: &History,
    level: Level,
    options: &CheckOptions,
    conclusion: Conclusion,
) -> Option<String> {
    let verifier = isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    let result = conclusion.result(level, Attempt::Replay);
    let refusal = isolario_verify::verify(history, &result, &verifier).err()?;
    Some(format!("{level}: the verifier says: {refusal}\n{result:#?}"))
}

/// The order of a history, however small.
fn serial(history: &History, options: &CheckOptions) -> Option<Serial> {
    fits(history, options).then(|| Serial::find(history, options))?
}

/// What is wrong about a serial order that was found; none if there is none.
fn complaint(draft: &Draft, options: &CheckOptions) -> Option<String> {
    let history = draft.history().unwrap();
    let serial = serial(&history, options)?;
    let oracle = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    Level::by_order().iter().copied().find_map(|level| {
        if level.needs().times && !history.has_times() {
            return None;
        }
        let conclusion = serial.check(&history, level, options);
        if matches!(conclusion, Conclusion::Pass) {
            return None;
        }
        match satisfies(&history, level, oracle) {
            Answer::Satisfied => refusal(&history, level, options, conclusion),
            answer => Some(format!("{level}: the oracle says {answer:?}")),
        }
    })
}

#[test]
fn oracle_and_verifier_agree_with_every_order_that_is_found() {
    let (mut found, mut with_unknown) = ([0, 0, 0], 0);
    for case in Case::first(volume()) {
        let options = CheckOptions {
            session_order: !case.seed.is_multiple_of(4),
            clock_skew: [0, 0, 0, 1, 4][case.seed as usize % 5],
            ..CheckOptions::default()
        };
        let drafts = [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()];
        for (draft, found) in drafts.into_iter().zip(&mut found) {
            let history = draft.history().unwrap();
            if serial(&history, &options).is_some() {
                *found += 1;
                let outcomes = Outcomes::of(&history).unwrap();
                with_unknown += u32::from(!outcomes.are_known());
            }
            if complaint(&draft, &options).is_some() {
                let small = shrink(draft, |draft| complaint(draft, &options).is_some());
                panic!("{options:?}\n{small}\n{}", complaint(&small, &options).unwrap_or_default());
            }
        }
    }
    assert!(found.iter().all(|found| *found > 100), "{found:?}");
    assert!(with_unknown > 100, "{with_unknown}");
}

#[test]
fn an_unknown_outcome_is_a_commit_where_it_was_read() {
    // In whatever place it is recorded, and however it was read,
    assert!(is_found("b: r x 1\na unknown: w x 1"));
    assert!(is_found("c: r y 2\nb unknown: r x 1, w y 2\na unknown: w x 1"));
    // nothing follows it in its session,
    assert!(is_found("a: w x 1\na unknown: w x 2\na: r x 1\na: r x 1\nb: r x 2"));
    // and where it was not read, it is left out.
    assert!(is_found("a: w x 1\nb unknown: w x 2\nc: r x 1"));
    assert!(!is_found("b unknown: r x 1, w y 2\na unknown: r y 2, w x 1\nc: r x 1"));
}

fn simulated(kind: Kind, level: Level, seed: u64) -> History {
    let workload = Workload { kind, ops: 8, keys: 1000, read_ratio: 0.5, ..Workload::default() };
    let config = Config { level, workload, txns: 10_000, sessions: 20, seed, ..Config::default() };
    let mut batch = Batch::new();
    generate(&config, &mut batch).unwrap();
    batch.build().unwrap()
}

#[test]
fn the_orders_of_a_serializable_store_are_found() {
    let options = CheckOptions::default();
    for kind in [Kind::Mini, Kind::General] {
        let history = simulated(kind, Level::StrictSerializable, 1);
        let serial = serial(&history, &options).expect("an order");
        for level in Level::by_order().iter().copied() {
            let conclusion = serial.check(&history, level, &options);
            assert!(conclusion.holds(), "{level}");
            assert_eq!(refusal(&history, level, &options, conclusion), None);
        }
    }
}

#[test]
fn a_store_that_is_not_serializable_has_no_order() {
    for kind in [Kind::Mini, Kind::General] {
        for level in [Level::ReadCommitted, Level::Causal] {
            let history = simulated(kind, level, 1);
            assert!(serial(&history, &CheckOptions::default()).is_none(), "{kind:?} {level}");
        }
    }
}

fn is_found(text: &str) -> bool {
    let history = Draft::parse(text).unwrap().history().unwrap();
    serial(&history, &CheckOptions::default()).is_some()
}

#[test]
fn writers_readers_and_sessions_are_put_right() {
    // In the order of the lines, which is all that is known:
    assert!(is_found("a: w x 1\nb: r x 1, w x 2\nc: r x 2"));
    // a reader before its writer,
    assert!(is_found("b: r x 1\na: w x 1"));
    // a reader after somebody overwrote what it saw,
    assert!(is_found("a: w x 1\nb: w x 2\nc: r x 1\nd: r x 2"));
    // writers the wrong way round, which shows much later,
    assert!(is_found("a: w x 1\nb: w x 2\nc: w y 3\nd: w y 4\ne: w y 5\nc: r x 1\nd: r x 1"));
    // a chain of read-modify-writes from its end.
    assert!(is_found("d: r x 3, w x 4\nc: r x 2, w x 3\nb: r x 1, w x 2\na: w x 1"));
}

#[test]
fn what_a_replay_does_not_tell_is_left_to_others() {
    // A lost update, an own write that was not read, and what nobody wrote have no order.
    assert!(!is_found("a: w x 1\nb: r x 1, w x 2\nc: r x 1, w x 3"));
    assert!(!is_found("a: w x 1, r x 2\nb: w x 2"));
    assert!(!is_found("a: r x 7"));
    // With two of unknown outcome that wrote the same, it is open which of them committed.
    assert!(!is_found("a unknown: w x 1\nb: r x 1\nc unknown: w x 1"));
    assert!(!is_found("a unknown: w x 1\nb: r x 1\nc: w x 1"));
}
