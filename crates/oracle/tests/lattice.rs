//! Over random histories: the levels imply each other as the lattice says, and none of them is
//! nearly always satisfied or nearly always violated.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and shows the shares it found"
)]

use std::ops::RangeInclusive;

use isolario_model::{AnomalyKind, History, Initial, Level, Outcome, Value};
use isolario_oracle::random::{Case, append_twin, shrink};
use isolario_oracle::{
    Answer, Draft, DraftOp, Options, has_bad_read, history, is_ambiguous, levels, satisfies, volume,
};

fn answers(history: &History, options: Options) -> Vec<Answer> {
    levels().map(|level| satisfies(history, level, options)).collect()
}

/// A pair of levels that contradicts the lattice.
fn contradiction(draft: &Draft, options: Options) -> Option<String> {
    let answers = answers(&draft.history().expect("small"), options);
    for (strong, strong_answer) in levels().zip(&answers) {
        for (weak, weak_answer) in levels().zip(&answers) {
            let kept = (*strong_answer, *weak_answer) != (Answer::Satisfied, Answer::Violated);
            if strong.implies(weak) && !kept {
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

/// Asserts that each of these levels is satisfied by such a share of some histories, in percent, and
/// that it is told apart from those right below it.
#[track_caller]
fn levels_are_told_apart(
    drafts: impl Iterator<Item = Draft>,
    shares: RangeInclusive<u64>,
    such: impl Fn(Level) -> bool,
) {
    let count = levels().count();
    let mut cases = 0;
    let mut satisfied = vec![0_u64; count];
    let mut between = vec![vec![0_u64; count]; count];
    for draft in drafts {
        cases += 1;
        let answers = answers(&draft.history().expect("small"), Options::default());
        for (level, answer) in answers.iter().enumerate() {
            satisfied[level] += u64::from(*answer == Answer::Satisfied);
            for (other, other_answer) in answers.iter().enumerate() {
                between[level][other] += u64::from(answer != other_answer);
            }
        }
    }
    for (strong, level) in levels().enumerate().filter(|(_, level)| such(*level)) {
        let share = 100 * satisfied[strong] / cases;
        println!("{level}: {share}% satisfied");
        assert!(shares.contains(&share), "{level}: {share}% satisfied");
        let weaker = levels().enumerate().filter(|(_, weaker)| level.weaker().contains(weaker));
        for (weak, weaker) in weaker.filter(|(_, weaker)| !only_predicates_tell(*weaker, level)) {
            let per_mille = 1_000 * between[strong][weak] / cases;
            println!("{weaker} without {level}: {per_mille} per mille");
            assert!(per_mille >= 1, "{weaker} and {level} are hardly told apart");
        }
    }
}

/// Whether two levels differ in predicates alone.
fn only_predicates_tell(weak: Level, strong: Level) -> bool {
    use Level::{RepeatableRead, Serializable, StrictSerializable, StrongRepeatableRead};
    [(RepeatableRead, Serializable), (StrongRepeatableRead, StrictSerializable)]
        .contains(&(weak, strong))
}

/// Registers do not show the order of their versions, and some order does for nearly every history
/// at the levels that ask for one.
#[test]
fn every_level_of_registers_is_often_satisfied_often_violated_and_told_apart() {
    let cases = Case::first((volume() / 4).max(1_000));
    levels_are_told_apart(cases.map(Case::draft), 20..=80, |level| !level.needs().version_order);
}

#[test]
fn every_level_of_lists_is_often_satisfied_often_violated_and_told_apart() {
    let cases = Case::first((volume() / 4).max(1_000));
    levels_are_told_apart(cases.map(Case::list_draft), 10..=90, |_| true);
}

const DIRTY_READ: &str = "a aborted: append x 1\n b: r x [1]";
const NON_MONOTONIC: &str = "a: append x 1\n b: r x [1], r x []";
const FRACTURED_READ: &str = "a: append x 1, append y 1\n b: r x [], r y [1]";
const OWN_SESSION_MISSED: &str = "a: append x 1\n a: r x []";
const CAUSE_MISSED: &str = "a: append x 1\n b: r x [1], append y 1\n c: r y [1], r x []";
const LOST_UPDATE: &str = "a: r x [], append x 1\n b: r x [], append x 2";
const LONG_FORK: &str = "a: append x 1\n b: append y 1\n c: r x [1], r y []\n d: r x [], r y [1]";
const WRITE_SKEW: &str = "a: r x [], append y 1\n b: r y [], append x 1";
const STALE_READ: &str = "a [10, 20]: append x 1\n b [30, 40]: r x []";
const OVERWRITTEN_BY_THE_PAST: &str =
    "a [10, 20]: append x 1\n b [30, 40]: append x 2\n c: r x [2 1]";

/// Per pair of neighbours, the weaker one first, what tells them apart.
fn separating(weak: Level, strong: Level) -> Option<&'static str> {
    use Level::*;
    Some(match (weak, strong) {
        (ReadUncommitted, StrongReadUncommitted) | (AdyaReadCommitted, StrongAdyaReadCommitted) => {
            OVERWRITTEN_BY_THE_PAST
        }
        (ReadUncommitted, AdyaReadCommitted) | (StrongReadUncommitted, StrongAdyaReadCommitted) => {
            DIRTY_READ
        }
        (AdyaReadCommitted, ReadCommitted) => NON_MONOTONIC,
        (ReadCommitted | CutIsolation, ReadAtomic) | (CutIsolation, ConsistentView) => {
            FRACTURED_READ
        }
        (ReadAtomic, Causal) => CAUSE_MISSED,
        (Causal, ParallelSnapshotIsolation) | (Prefix, SnapshotIsolation) => LOST_UPDATE,
        (ConsistentView, ParallelSnapshotIsolation) => OWN_SESSION_MISSED,
        (Causal, Prefix) | (ParallelSnapshotIsolation, SnapshotIsolation) => LONG_FORK,
        (SnapshotIsolation, StrongSnapshotIsolation)
        | (StrongAdyaReadCommitted, StrongSnapshotIsolation | StrongRepeatableRead)
        | (RepeatableRead, StrongRepeatableRead)
        | (Serializable, StrictSerializable) => STALE_READ,
        (AdyaReadCommitted | CutIsolation, RepeatableRead)
        | (SnapshotIsolation, Serializable)
        | (StrongSnapshotIsolation, StrictSerializable) => WRITE_SKEW,
        _ => return None,
    })
}

#[test]
fn a_history_separates_each_level_from_those_right_below_it() {
    for strong in levels() {
        let weaker = strong.weaker().iter().filter(|weak| !only_predicates_tell(**weak, strong));
        for weak in weaker {
            let text = separating(*weak, strong).expect("every pair has its history");
            let answer = |level| satisfies(&history(text), level, Options::default());
            assert_eq!(answer(*weak), Answer::Satisfied, "{weak} below {strong}: {text}");
            assert_eq!(answer(strong), Answer::Violated, "{strong} above {weak}: {text}");
        }
    }
}

#[test]
fn without_session_order_consistent_view_is_parallel_snapshot_isolation() {
    let options = Options::default().with_session_order(false);
    for case in Case::first(volume() / 10) {
        for draft in [case.draft(), case.list_draft(), case.read_modify_write_draft()] {
            let history = draft.history().expect("small");
            let answer = |level| satisfies(&history, level, options);
            let parallel = answer(Level::ParallelSnapshotIsolation);
            assert_eq!(answer(Level::ConsistentView), parallel, "{draft}");
        }
    }
}

#[test]
fn lists_satisfy_no_level_that_their_last_elements_violate() {
    for case in Case::first(volume() / 10) {
        let options = Options::default().with_session_order(case.seed % 4 != 0);
        let lists = case.list_draft();
        let registers = lists.last_elements().history().expect("small");
        for level in levels() {
            let answers = [&lists.history().expect("small"), &registers]
                .map(|history| satisfies(history, level, options));
            assert_ne!(answers, [Answer::Satisfied, Answer::Violated], "{level}\n{lists}");
        }
    }
}

/// Below, two may have overwritten one version, and registers forget what lists show.
#[test]
fn registers_and_their_append_twins_are_alike_where_no_update_may_be_lost() {
    let mut compared = [0; 2];
    for case in Case::first(volume() / 4) {
        let registers = case.read_modify_write_draft();
        let Some(lists) = append_twin(&registers) else { continue };
        let options = Options::default().with_session_order(case.seed % 4 != 0);
        for level in levels().filter(|level| AnomalyKind::LostUpdate.forbidden_at(*level)) {
            let answer =
                |draft: &Draft| satisfies(&draft.history().expect("small"), level, options);
            assert_eq!(answer(&lists), answer(&registers), "{level}\n{registers}\n{lists}");
            compared[usize::from(answer(&lists) == Answer::Satisfied)] += 1;
        }
    }
    assert!(compared.iter().all(|count| *count > 1_000), "{compared:?}");
}

/// A property of a history: its name, how many of a thousand should have it, and whether one has.
type Property<'p> = (&'p str, usize, &'p dyn Fn(&Draft) -> bool);

/// Asserts that of so many histories at least this share has each property.
#[track_caller]
fn are_frequent(drafts: &[Draft], properties: &[Property<'_>]) {
    for (name, at_least, holds) in properties {
        let share = 1_000 * drafts.iter().filter(|draft| holds(draft)).count() / drafts.len();
        println!("{name}: {share} per mille");
        assert!(share >= *at_least, "{name}: {share} per mille");
    }
}

fn has_outcome(outcome: Outcome) -> impl Fn(&Draft) -> bool {
    move |draft| draft.txns.iter().any(|txn| txn.outcome == outcome)
}

/// The operations of committed transactions.
fn committed(draft: &Draft) -> impl Iterator<Item = &DraftOp> {
    let txns = draft.txns.iter().filter(|txn| txn.outcome == Outcome::Committed);
    txns.flat_map(|txn| &txn.ops)
}

/// Whether two different items among those that are looked for agree.
fn some_pair<T>(items: &[T], agree: impl Fn(&T, &T) -> bool) -> bool {
    items.iter().enumerate().any(|(at, one)| items[..at].iter().any(|other| agree(other, one)))
}

fn appends(draft: &Draft) -> Vec<(&str, &Value)> {
    let mut appends = Vec::new();
    for op in committed(draft) {
        if let DraftOp::Append(key, element) = op {
            appends.push((key.as_str(), element));
        }
    }
    appends
}

fn has_an_append_that_nobody_reads(draft: &Draft) -> bool {
    let shows = |op: &DraftOp, key: &str, element: &Value| match op {
        DraftOp::ReadList(other, Some(elements)) => other == key && elements.contains(element),
        _ => false,
    };
    appends(draft).iter().any(|(key, element)| {
        committed(draft).any(|op| op.key() == *key && matches!(op, DraftOp::ReadList(_, Some(_))))
            && !committed(draft).any(|op| shows(op, key, element))
    })
}

fn repeats_a_read(draft: &Draft) -> bool {
    draft.txns.iter().any(|txn| {
        let reads = txn.ops.iter().filter(|op| matches!(op, DraftOp::ReadList(..)));
        some_pair(&reads.collect::<Vec<_>>(), |one, other| one.key() == other.key())
    })
}

#[test]
fn lists_have_all_that_is_difficult_about_them() {
    let drafts: Vec<Draft> = Case::first(2_000).map(Case::list_draft).collect();
    let sessions =
        |draft: &Draft| some_pair(&draft.txns, |one, other| one.session != other.session);
    are_frequent(
        &drafts,
        &[
            ("appends that nobody reads", 300, &has_an_append_that_nobody_reads),
            ("several sessions", 800, &sessions),
            ("aborted transactions", 100, &has_outcome(Outcome::Aborted)),
            ("unknown outcomes", 150, &has_outcome(Outcome::Unknown)),
            ("repeated reads", 300, &repeats_a_read),
            ("equal elements", 40, &|draft| some_pair(&appends(draft), |one, other| one == other)),
        ],
    );
}

#[test]
fn registers_have_all_that_is_difficult_about_their_values() {
    let drafts: Vec<Draft> = Case::first(4_000).map(Case::draft).collect();
    let writes = |draft: &Draft| {
        let write = |op: &DraftOp| match op {
            DraftOp::Write(key, value) => Some((key.clone(), value.clone())),
            _ => None,
        };
        some_pair(&committed(draft).filter_map(write).collect::<Vec<_>>(), |one, other| {
            one == other
        })
    };
    let any_initial = |draft: &Draft| draft.initial == Initial::Unwritten;
    are_frequent(
        &drafts,
        &[
            ("equal values", 40, &writes),
            ("any initial value", 100, &any_initial),
            ("two initial values of a key", 15, &has_two_initial_values),
            ("bad reads", 50, &|draft| has_bad_read(&draft.history().expect("small"))),
            ("ambiguous reads", 20, &|draft| {
                is_ambiguous(&draft.history().expect("small"), Level::Causal)
            }),
        ],
    );
}

fn has_two_initial_values(draft: &Draft) -> bool {
    let is_written = |key: &str, value: &Value| {
        let mut ops = draft.txns.iter().flat_map(|txn| &txn.ops);
        ops.any(|op| matches!(op, DraftOp::Write(k, v) if k == key && v == value))
    };
    let unwritten = committed(draft).filter_map(|op| match op {
        DraftOp::Read(key, Some(value)) if !is_written(key, value) => Some((key, value)),
        _ => None,
    });
    draft.initial == Initial::Unwritten
        && some_pair(&unwritten.collect::<Vec<_>>(), |one, other| {
            one.0 == other.0 && one.1 != other.1
        })
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
