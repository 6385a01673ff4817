//! Single patterns: what is found is what Plume's Table 1 says, and nothing else.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod brute_force;

use std::collections::{BTreeMap, BTreeSet};

use brute_force::BruteForce;
use isolario_check::{CheckOptions, check, patterns, supported, supported_patterns};
use isolario_model::{
    AnomalyKind, Attempt, Initial, Level, LevelResult, PatternResult, Value, Verdict,
};
use isolario_oracle::random::{Case, Rng, Shape, generate, shrink};
use isolario_oracle::{Draft, volume};

/// Larger than the other random histories: the patterns by commit order need several observers.
fn wide(seed: u64) -> Draft {
    let plain = Shape { txns: (5, 9), sessions: 5, ops: (2, 4), ..Shape::default() };
    let shapes = [
        Shape { keys: 3, repeated: 10, ..plain.clone() },
        Shape { keys: 4, repeated: 5, forked: 80, stray: 0, ..plain.clone() },
        Shape { keys: 3, unknown: 10, aborted: 5, initial: Initial::None, ..plain.clone() },
        Shape { keys: 2, wandering: 40, initial: Initial::Value(Value::Int(0)), ..plain.clone() },
        Shape { keys: 3, ops: (2, 6), reads: 70, repeated: 60, wandering: 30, ..plain.clone() },
        Shape { keys: 4, ops: (1, 3), txns: (6, 10), specialists: 60, forked: 60, ..plain },
    ];
    let mut rng = Rng::new(seed);
    let shape = &shapes[rng.below(shapes.len())];
    generate(shape, &mut rng)
}

/// A random history, and whether its sessions are ordered.
fn case(seed: u64) -> (Draft, bool) {
    let draft = if seed.is_multiple_of(3) { Case { seed }.draft() } else { wide(seed) };
    (draft, seed % 4 != 1)
}

/// The patterns that were found, each with evidence that holds; none where causality is undefined.
fn found(draft: &Draft, session_order: bool) -> BTreeSet<AnomalyKind> {
    let kinds: Vec<_> = supported_patterns().collect();
    let history = draft.history().unwrap();
    let results = patterns(&history, &kinds, &options(session_order));
    let occurs = |result: &&PatternResult| match &result.verdict {
        Verdict::Violated(findings) => {
            assert!(findings.total >= 1 && !findings.anomalies.is_empty());
            // Not read uncommitted: what is seen there depends on unknown outcomes.
            let mut levels = supported().iter().filter(|level| !level.needs().version_order);
            let level = levels.find(|level| result.kind.forbidden_at(**level));
            let verdict = result.verdict.clone();
            let proof = LevelResult { level: *level.unwrap(), decided_by: Attempt::Rule, verdict };
            let options =
                isolario_verify::VerifyOptions::default().with_session_order(session_order);
            let refused = isolario_verify::verify(&history, &proof, &options).err();
            assert_eq!(refused, None, "{proof:?}\n{draft}");
            true
        }
        Verdict::Satisfied(_) | Verdict::NotApplicable(_) => false,
        other => panic!("{other:?}"),
    };
    results.iter().filter(occurs).map(|result| result.kind).collect()
}

fn options(session_order: bool) -> CheckOptions {
    CheckOptions::default().with_session_order(session_order)
}

/// Fails with the smallest part of a history that fails as well.
fn assert_small(draft: Draft, holds: impl Fn(&Draft) -> bool, explain: impl Fn(&Draft) -> String) {
    if !holds(&draft) {
        let small = shrink(draft, |draft| !holds(draft));
        panic!("{}\n{small}", explain(&small));
    }
}

#[test]
fn patterns_are_those_of_brute_force() {
    let mut seen: BTreeMap<AnomalyKind, u64> = BTreeMap::new();
    for (draft, session_order) in (0..volume() / 2).map(case) {
        let expected =
            |draft: &Draft| BruteForce::new(draft, session_order).map(|history| history.patterns());
        let Some(kinds) = expected(&draft) else { continue };
        kinds.into_iter().for_each(|kind| *seen.entry(kind).or_default() += 1);
        assert_small(
            draft,
            |draft| expected(draft).is_none_or(|kinds| kinds == found(draft, session_order)),
            |draft| {
                let found = found(draft, session_order);
                format!("{:?} and not {found:?}, session order: {session_order}", expected(draft))
            },
        );
    }
    let of_registers = |kind: &AnomalyKind| *kind <= AnomalyKind::ConflictCm;
    for kind in supported_patterns().filter(of_registers) {
        assert!(seen.get(&kind).is_some_and(|count| *count >= 5), "{kind} is too rare: {seen:?}");
    }
}

/// The table calls some patterns general cases of others, by formula: whoever has one has the other.
/// An answer names the special one alone; the formulas follow from it.
#[test]
fn the_formulas_of_the_table_hold_where_the_pattern_or_a_special_case_of_it_is_found() {
    use AnomalyKind as A;
    let special_cases: [(A, &[A]); 6] = [
        (A::NonMonoReadCo, &[]),
        (A::NonMonoReadCm, &[A::NonMonoReadCo]),
        (A::FracturedReadCo, &[A::NonMonoReadCo]),
        (A::FracturedReadCm, &[A::NonMonoReadCo, A::NonMonoReadCm, A::FracturedReadCo]),
        (A::CoConflictCm, &[A::NonMonoReadCo, A::FracturedReadCo]),
        (
            A::ConflictCm,
            &[
                A::NonMonoReadCo,
                A::NonMonoReadCm,
                A::FracturedReadCo,
                A::FracturedReadCm,
                A::CoConflictCm,
            ],
        ),
    ];
    for (draft, session_order) in (0..volume() / 10).map(case) {
        let Some(history) = BruteForce::new(&draft, session_order) else { continue };
        let (holding, found) = (history.formulas(), found(&draft, session_order));
        for (kind, special) in special_cases {
            let is_found = found.contains(&kind) || special.iter().any(|s| found.contains(s));
            let is_causal = matches!(kind, A::CoConflictCm | A::ConflictCm);
            if !(is_causal && found.contains(&A::CyclicCo)) {
                assert_eq!(is_found, holding.contains(&kind), "{kind}: {found:?}\n{draft}");
            }
        }
    }
}

/// Whatever name the report on a level gives is found when it is asked for.
#[test]
fn names_in_reports_on_levels_are_patterns_that_occur() {
    for (draft, session_order) in (0..volume() / 4).map(case) {
        let unfound = |draft: &Draft| -> Vec<(Level, AnomalyKind)> {
            let history = draft.history().unwrap();
            // What depends on whose write a read saw, nobody looks for one by one.
            if isolario_oracle::is_ambiguous(&history, Level::Causal) {
                return Vec::new();
            }
            let found = found(draft, session_order);
            let results = check(&history, WEAK, &options(session_order));
            let names = results.iter().flat_map(|result| match &result.verdict {
                Verdict::Violated(findings) => {
                    findings.anomalies.iter().map(|a| (result.level, a.kind)).collect()
                }
                _ => Vec::new(),
            });
            // What a session misses of its own has an everyday name; its letter is TAP-k or TAP-l. A
            // dirty update is told beside the aborted read that it began with.
            let fractured = [AnomalyKind::FracturedReadCo, AnomalyKind::FracturedReadCm];
            let occurs = |kind: AnomalyKind| match kind {
                AnomalyKind::SessionGuaranteeViolation => {
                    fractured.iter().any(|kind| found.contains(kind))
                }
                AnomalyKind::DirtyUpdate => found.contains(&AnomalyKind::AbortedRead),
                kind => found.contains(&kind),
            };
            names.filter(|(_, kind)| !occurs(*kind)).collect()
        };
        assert_small(draft, |d| unfound(d).is_empty(), |d| format!("{:?}", unfound(d)));
    }
}

const WEAK: &[Level] = &[
    Level::AdyaReadCommitted,
    Level::ReadCommitted,
    Level::CutIsolation,
    Level::ReadAtomic,
    Level::Causal,
];

/// What lists show is an order of commits, too. A level is violated exactly if one of its patterns
/// occurs, or lists contradict themselves.
#[test]
fn patterns_of_lists_are_what_violates_levels() {
    for case in Case::first(volume() / 8) {
        let draft = case.list_draft();
        let history = draft.history().unwrap();
        let found = found(&draft, true);
        for result in check(&history, WEAK, &CheckOptions::default()) {
            let expected = match &result.verdict {
                Verdict::Satisfied(_) => false,
                Verdict::Violated(findings) => {
                    if findings.anomalies.iter().any(|a| a.kind == AnomalyKind::DirtyWrite) {
                        continue;
                    }
                    true
                }
                _ => continue,
            };
            let forbidden = found.iter().any(|kind| kind.forbidden_at(result.level));
            assert_eq!(forbidden, expected, "{}: {found:?}\n{draft}", result.level);
        }
    }
}

#[test]
fn a_dirty_write_does_not_hide_a_cycle_of_reads() {
    let text = "a: append x 1, append y 1, r z [2]\nb: append x 2, append y 2, append z 2\nc: r x [1 2], r y [2 1]";
    assert!(occurring(text).contains(&"CyclicCO"));
    let alone = "a: append x 1, append y 1\nb: append x 2, append y 2\nc: r x [1 2], r y [2 1]";
    assert!(!occurring(alone).contains(&"CyclicCO"));
}

fn occurring(text: &str) -> Vec<&'static str> {
    found(&Draft::parse(text).unwrap(), true).into_iter().map(AnomalyKind::name).collect()
}

#[test]
fn one_pattern_does_not_hide_another_of_the_same_writers() {
    // Carol goes back in time; Dave sees the same two writers the other way round.
    let text = "alice: w x 1\nalice: w x 2, w y 2\ncarol: r y 2, r x 1\ndave: r x 1, r y 2";
    assert_eq!(occurring(text), ["NonMonoReadCO", "FracturedReadCO"]);
}

#[test]
fn a_pattern_that_closes_only_in_the_relation_of_a_stronger_level_is_the_general_one() {
    // T1 comes before T2 by what T3 read in this order, which is read committed's rule; back it goes
    // only by what T4 missed of its session, which is read atomic's.
    let text = "a: w y 2, w x 3\nb: w y 4\nc: r x 3, r y 4, w x 5\nc: r x 3";
    assert_eq!(occurring(text), ["FracturedReadCO", "FracturedReadCM"]);
}

#[test]
fn a_causal_conflict_does_not_hide_one_by_commit_order() {
    // As above, with a longer way in place of the session.
    let text = "a: w q 1, w x 1\nb: w q 2\nc: r x 1, r q 2, w x 2\nd: r x 2, w y 3\n\
                e: r y 3, r x 1";
    assert_eq!(occurring(text), ["COConflictCM", "ConflictCM"]);
}

#[test]
fn a_non_repeatable_read_does_not_hide_a_fractured_one() {
    let text = "a: w z 6, w x 7\nb: w z 8, w x 9\nc: r x 9, r z 8, r x 7";
    assert_eq!(occurring(text), ["NonRepeatableRead", "FracturedReadCM"]);
}

#[test]
fn a_plain_non_repeatable_read_is_called_nothing_else() {
    let plain = [AnomalyKind::NonRepeatableRead];
    for text in [
        "a: w x 1\nb: w x 2\nc: r x 1, r x 2",
        "a: w x 1\nb: r x 1, w x 2\nc: r x 1, r x 2",
        "b: w x 2\nc: r x nil, r x 2",
    ] {
        let history = Draft::parse(text).unwrap().history().unwrap();
        for result in check(&history, &[Level::ReadAtomic, Level::Causal], &options(true)) {
            let Verdict::Violated(findings) = &result.verdict else { panic!("{result:?}") };
            assert!(findings.anomalies.iter().map(|a| a.kind).eq(plain), "{findings:?}");
        }
    }
    assert_eq!(occurring("a: w x 1\nb: w x 2\nc: r x 1, r x 2"), ["NonRepeatableRead"]);
}

#[test]
fn asking_for_one_pattern_finds_it_as_asking_for_all_does() {
    for seed in 0..volume() / 50 {
        let draft = wide(seed);
        let history = draft.history().unwrap();
        let all: Vec<_> = supported_patterns().collect();
        let together = patterns(&history, &all, &CheckOptions::default());
        for (kind, result) in all.iter().zip(&together) {
            let alone = patterns(&history, &[*kind], &CheckOptions::default());
            assert_eq!(alone[0].kind, *kind);
            assert_eq!(alone[0].verdict.name(), result.verdict.name(), "{kind}\n{draft}");
        }
    }
}

#[test]
fn ambiguous_reads_and_other_operations_leave_it_open() {
    let verdicts = |text: &str, kind| {
        let history = Draft::parse(text).unwrap().history().unwrap();
        patterns(&history, &[kind], &CheckOptions::default())[0].verdict.name()
    };
    let ambiguous = "a: w x 1\nb: w x 1\nc: r x 1, r y 7";
    assert_eq!(verdicts(ambiguous, AnomalyKind::FracturedReadCo), "not-applicable");
    assert_eq!(verdicts(ambiguous, AnomalyKind::ThinAirRead), "violated");
    assert_eq!(verdicts("a: append l 1", AnomalyKind::ThinAirRead), "satisfied");
    assert_eq!(verdicts("a: w x 1", AnomalyKind::LostUpdate), "not-applicable");
    let cycle = "a: r y 1, w x 1\nb: r x 1, w y 1";
    assert_eq!(verdicts(cycle, AnomalyKind::CyclicCo), "violated");
    assert_eq!(verdicts(cycle, AnomalyKind::ConflictCm), "not-applicable");
}
