//! The histories of `isolario explain`: each is what its page says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isolario::check::{CheckOptions, check, supported};
use isolario::formats::{Source, find};
use isolario::model::{AnomalyKind, History, Level, Verdict};
use isolario::report::explain::Topic;

fn history(topic: Topic) -> History {
    let text = topic.page().history;
    let source = Source::from_bytes(topic.name(), text.into()).unwrap();
    let loaded = find("text").unwrap().read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert!(loaded.warnings.is_empty() && loaded.ignored.is_empty(), "{}", topic.name());
    loaded.history
}

/// The anomalies that a level finds; none where the level cannot be decided for such a history.
fn found(history: &History, level: Level) -> Option<Vec<AnomalyKind>> {
    match &check(history, &[level], &CheckOptions::default())[0].verdict {
        Verdict::Satisfied(_) => Some(Vec::new()),
        Verdict::Violated(findings) => Some(findings.anomalies.iter().map(|a| a.kind).collect()),
        Verdict::NotApplicable(_) => None,
        other => panic!("{level}: {other:?}"),
    }
}

/// Whether the checkers that there are find it under its own name.
fn has_its_own_name(kind: AnomalyKind) -> bool {
    use AnomalyKind::{
        ConflictCm, ItemAntiDependencyCycle, LongFork, LostUpdate, NonadjacentAntiDependencies,
        NotLinearizable, RealTimeCycle, StaleRead, WriteSkew,
    };
    let strong = [
        LongFork,
        LostUpdate,
        WriteSkew,
        NonadjacentAntiDependencies,
        ItemAntiDependencyCycle,
        StaleRead,
        RealTimeCycle,
        NotLinearizable,
    ];
    kind <= ConflictCm || strong.contains(&kind)
}

/// Whether the history of an anomaly should violate a level.
fn expected_at(kind: AnomalyKind, level: Level) -> bool {
    match (kind, level) {
        // Nothing is wrong unless somebody trusts the order that the database states.
        (AnomalyKind::OrderContradiction, _) => false,
        // Its single operations are transactions, too, and one of them read a stale version.
        (AnomalyKind::NotLinearizable, _) => {
            level.implies(Level::StrongSnapshotIsolation) || kind.forbidden_at(level)
        }
        _ => kind.forbidden_at(level),
    }
}

#[test]
fn histories_of_anomalies_violate_the_levels_that_forbid_them_and_no_others() {
    let mut decided = 0;
    for kind in AnomalyKind::all() {
        let history = history(Topic::Anomaly(kind));
        // What is wrong with predicates takes a certificate to be sure.
        if history.has_predicates() {
            continue;
        }
        for level in supported() {
            let Some(found) = found(&history, *level) else { continue };
            // Consistent view forbids it as far as it takes no session order.
            let depends =
                kind.forbidden_at(Level::ParallelSnapshotIsolation) && !kind.forbidden_at(*level);
            if *level == Level::ConsistentView && depends {
                continue;
            }
            let expected = expected_at(kind, *level);
            assert_eq!(!found.is_empty(), expected, "{kind} at {level}: {found:?}");
            decided += 1;
        }
    }
    assert!(decided >= 250, "{decided}");
}

#[test]
fn anomalies_are_found_under_their_own_names_and_alone() {
    for kind in AnomalyKind::all().filter(|kind| has_its_own_name(*kind)) {
        let history = history(Topic::Anomaly(kind));
        let weakest = supported().iter().find(|level| kind.forbidden_at(**level)).unwrap();
        assert_eq!(found(&history, *weakest), Some(vec![kind]), "{kind} at {weakest}");
    }
}

#[test]
fn histories_of_levels_separate_them_from_the_next_weaker_ones() {
    for level in Level::all() {
        let history = history(Topic::Level(level));
        for other in supported().iter().filter(|other| !other.implies(level)) {
            // The same but for predicates.
            let but_for_predicates = [Level::RepeatableRead, Level::StrongRepeatableRead];
            if but_for_predicates.contains(other) {
                continue;
            }
            if level.implies(*other) {
                let found = found(&history, *other);
                assert!(found.is_none_or(|found| found.is_empty()), "{level} and {other}");
            }
        }
        if supported().contains(&level) {
            assert!(found(&history, level).is_none_or(|found| !found.is_empty()), "{level}");
        }
    }
}
