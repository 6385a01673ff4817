//! Single patterns: what is found is what Plume's Table 1 says, and nothing else.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod brute_force;

use std::collections::{BTreeMap, BTreeSet};

use brute_force::BruteForce;
use isolario_check::{Options, check, patterns, supported, supported_patterns};
use isolario_model::{AnomalyKind, Engine, Initial, LevelResult, PatternResult, Value, Verdict};
use isolario_oracle::random::{Case, Rng, Shape, generate};
use isolario_oracle::{Draft, volume};

/// Larger than the other random histories: the patterns by commit order need several observers.
fn wide(seed: u64) -> Draft {
    let plain = Shape { txns: (5, 9), sessions: 5, ops: (2, 4), ..Shape::default() };
    let shapes = [
        Shape { keys: 3, repeated: 10, ..plain.clone() },
        Shape { keys: 4, repeated: 5, forked: 80, stray: 0, ..plain.clone() },
        Shape { keys: 3, unknown: 10, aborted: 5, initial: Initial::None, ..plain.clone() },
        Shape { keys: 2, wandering: 40, initial: Initial::Value(Value::Int(0)), ..plain },
    ];
    let mut rng = Rng::new(seed);
    let shape = &shapes[rng.below(shapes.len())];
    generate(shape, &mut rng)
}

/// The patterns that were found, each with evidence that holds; none where causality is undefined.
fn found(draft: &Draft) -> BTreeSet<AnomalyKind> {
    let kinds: Vec<_> = supported_patterns().collect();
    let history = draft.history().unwrap();
    let results = patterns(&history, &kinds, &Options::default());
    let occurs = |result: &&PatternResult| match &result.verdict {
        Verdict::Violated(findings) => {
            assert!(findings.total >= 1 && !findings.anomalies.is_empty());
            let level = supported().iter().find(|level| result.kind.forbidden_at(**level));
            let verdict = result.verdict.clone();
            let proof = LevelResult { level: *level.unwrap(), engine: Engine::Weak, verdict };
            let options = isolario_verify::Options::default();
            let refused = isolario_verify::verify(&history, &proof, &options).err();
            assert_eq!(refused, None, "{proof:?}\n{draft}");
            true
        }
        Verdict::Satisfied(_) | Verdict::NotApplicable(_) => false,
        other => panic!("{other:?}"),
    };
    results.iter().filter(occurs).map(|result| result.kind).collect()
}

fn compare(drafts: impl Iterator<Item = Draft>) -> BTreeMap<AnomalyKind, u64> {
    let mut seen: BTreeMap<AnomalyKind, u64> = BTreeMap::new();
    for draft in drafts {
        let Some(expected) = BruteForce::new(&draft).map(|history| history.patterns()) else {
            continue;
        };
        assert_eq!(found(&draft), expected, "\n{draft}");
        expected.into_iter().for_each(|kind| *seen.entry(kind).or_default() += 1);
    }
    seen
}

#[test]
fn patterns_are_those_of_brute_force() {
    let mut seen = compare(Case::first(volume() / 8).map(Case::draft));
    for (kind, count) in compare((0..volume() / 5).map(wide)) {
        *seen.entry(kind).or_default() += count;
    }
    let of_registers = |kind: &AnomalyKind| *kind <= AnomalyKind::ConflictCm;
    for kind in supported_patterns().filter(of_registers) {
        assert!(seen.get(&kind).is_some_and(|count| *count >= 5), "{kind} is too rare: {seen:?}");
    }
}

/// What lists show is an order of commits, too. A level is violated exactly if one of its patterns
/// occurs, or lists contradict themselves.
#[test]
fn patterns_of_lists_are_what_violates_levels() {
    for case in Case::first(volume() / 8) {
        let draft = case.list_draft();
        let history = draft.history().unwrap();
        let found = found(&draft);
        for result in check(&history, supported(), &Options::default()) {
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
fn a_dirty_write_does_not_hide_a_circle_of_reads() {
    let text = "a: a(x,1) a(y,1) l(z,[2])\nb: a(x,2) a(y,2) a(z,2)\nc: l(x,[1,2]) l(y,[2,1])";
    assert!(occurring(text).contains(&"CyclicCO"));
    let alone = "a: a(x,1) a(y,1)\nb: a(x,2) a(y,2)\nc: l(x,[1,2]) l(y,[2,1])";
    assert!(!occurring(alone).contains(&"CyclicCO"));
}

fn occurring(text: &str) -> Vec<&'static str> {
    found(&Draft::parse(text).unwrap()).into_iter().map(AnomalyKind::name).collect()
}

#[test]
fn one_pattern_does_not_hide_another_of_the_same_writers() {
    // Carol goes back in time; Dave sees the same two writers the other way round.
    let text = "alice: w(x,1)\nalice: w(x,2) w(y,2)\ncarol: r(y,2) r(x,1)\ndave: r(x,1) r(y,2)";
    assert_eq!(occurring(text), ["NonMonoReadCO", "FracturedReadCO"]);
}

#[test]
fn asking_for_one_pattern_finds_it_as_asking_for_all_does() {
    for seed in 0..volume() / 50 {
        let draft = wide(seed);
        let history = draft.history().unwrap();
        let all: Vec<_> = supported_patterns().collect();
        let together = patterns(&history, &all, &Options::default());
        for (kind, result) in all.iter().zip(&together) {
            let alone = patterns(&history, &[*kind], &Options::default());
            assert_eq!(alone[0].kind, *kind);
            assert_eq!(alone[0].verdict.name(), result.verdict.name(), "{kind}\n{draft}");
        }
    }
}

#[test]
fn ambiguous_reads_and_other_operations_leave_it_open() {
    let verdicts = |text: &str, kind| {
        let history = Draft::parse(text).unwrap().history().unwrap();
        patterns(&history, &[kind], &Options::default())[0].verdict.name()
    };
    let ambiguous = "a: w(x,1)\nb: w(x,1)\nc: r(x,1) r(y,7)";
    assert_eq!(verdicts(ambiguous, AnomalyKind::FracturedReadCo), "not-applicable");
    assert_eq!(verdicts(ambiguous, AnomalyKind::ThinAirRead), "violated");
    assert_eq!(verdicts("a: a(l,1)", AnomalyKind::ThinAirRead), "satisfied");
    assert_eq!(verdicts("a: w(x,1)", AnomalyKind::LostUpdate), "not-applicable");
    let circle = "a: r(y,1) w(x,1)\nb: r(x,1) w(y,1)";
    assert_eq!(verdicts(circle, AnomalyKind::CyclicCo), "violated");
    assert_eq!(verdicts(circle, AnomalyKind::ConflictCm), "not-applicable");
}
