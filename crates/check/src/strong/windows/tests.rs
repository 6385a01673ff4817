//! Windows against the whole, on histories that are too long for the oracle. That windows agree with the
//! oracle on small ones is tested with all other ways to solve.

use std::sync::Arc;

use isolario_model::{Attempt, Batch, History, Level, VerdictKind};
use isolario_oracle::random::Case;
use isolario_oracle::{history, volume};
use isolario_sim::{Config, Kind, Plant, Workload, generate, templates};

use crate::CheckOptions;
use crate::resolved::Resolved;
use crate::strong::tests::{LEVELS, SEGMENTS, USUAL, WHOLE, decide};
use crate::weak::Weak;

/// A store that gives a level, and clients that mostly write blindly.
fn blind(level: Level, seed: u64) -> Config {
    let workload = Workload {
        kind: Kind::General,
        ops: 2 + seed as u32 % 7,
        keys: [12, 60, 300][seed as usize % 3],
        read_ratio: 0.5,
        ..Workload::default()
    };
    let (abort_ratio, unknown_ratio) = (0.05, if seed.is_multiple_of(2) { 0.05 } else { 0.0 });
    let (txns, sessions) = (600, 2 + seed as u32 % 9);
    let stamps = seed.is_multiple_of(5);
    let config = Config { level, workload, txns, sessions, seed, stamps, ..Config::default() };
    Config { abort_ratio, unknown_ratio, ..config }
}

fn generated(config: &Config) -> History {
    let mut batch = Batch::new();
    generate(config, &mut batch).unwrap();
    batch.build().unwrap()
}

/// The history, unless something is wrong with it that no order can mend.
fn resolved<'h>(history: &'h History, options: &CheckOptions) -> Option<Arc<Resolved<'h>>> {
    let resolved = Arc::new(Resolved::new(history, options));
    let weak = Weak::new(Arc::clone(&resolved));
    let is_right = weak.plain_anomalies(Level::Serializable).is_empty()
        && resolved.dependencies.reads.choices.open.is_some()
        && resolved.order.is_some();
    is_right.then_some(resolved)
}

/// How windows decide a level, as a kind of verdict and whether they did. The whole says the same, and
/// the verifier agrees.
fn decided(resolved: &Resolved<'_>, level: Level, options: &CheckOptions) -> (VerdictKind, bool) {
    let history = resolved.dependencies.history;
    let result = decide(resolved, level, options, USUAL);
    let whole = decide(resolved, level, options, WHOLE);
    assert_eq!(result.verdict.kind(), whole.verdict.kind(), "{level}");
    let verifier = isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    isolario_verify::verify(history, &result, &verifier)
        .unwrap_or_else(|refusal| panic!("{level}: {refusal}"));
    (result.verdict.kind(), result.decided_by == Attempt::Segments)
}

#[test]
fn windows_and_the_whole_agree_on_long_histories() {
    let stores = [Level::SnapshotIsolation, Level::Serializable, Level::StrictSerializable];
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..volume() / 800 {
        let store = stores[seed as usize % 3];
        let template = &templates()[seed as usize / 3 % templates().len()];
        let plant = Plant { kind: template.kind, at: (seed % 17) as f64 / 17.0 };
        let anomalies = if seed.is_multiple_of(4) { Vec::new() } else { vec![plant] };
        let history = generated(&Config { anomalies, ..blind(store, seed) });
        let options = CheckOptions {
            session_order: !seed.is_multiple_of(7),
            clock_skew: seed % 3,
            ..CheckOptions::default()
        };
        let Some(resolved) = resolved(&history, &options) else { continue };
        for level in LEVELS {
            match decided(&resolved, level, &options) {
                (VerdictKind::Satisfied, true) => satisfied += 1,
                (VerdictKind::Violated, true) => violated += 1,
                _ => {}
            }
        }
    }
    assert!(satisfied > 0 && violated > 0, "{satisfied} satisfied, {violated} violated");
}

#[test]
fn most_small_histories_are_decided_in_windows_of_any_width() {
    let (mut all, mut satisfied, mut violated) = (0, 0, 0);
    for case in Case::first(volume() / 10) {
        let history = case.history().unwrap();
        let options = CheckOptions::default();
        let Some(resolved) = resolved(&history, &options) else { continue };
        for level in LEVELS {
            let result = decide(&resolved, level, &options, SEGMENTS);
            let by_windows = result.decided_by == Attempt::Segments;
            all += 1;
            satisfied += usize::from(by_windows && result.verdict.is_satisfied());
            violated += usize::from(by_windows && result.verdict.is_violated());
        }
    }
    assert!(10 * (satisfied + violated) > 9 * all, "{satisfied} and {violated} of {all}");
    assert!(satisfied > 100 && violated > 100, "{satisfied} and {violated} of {all}");
}

/// Whether a level is satisfied, and decided by windows of at most half of the order.
fn by_windows(text: &str, level: Level) -> (bool, bool) {
    let history = history(text);
    let options = CheckOptions::default();
    let resolved = Resolved::new(&history, &options);
    let result = decide(&resolved, level, &options, USUAL);
    (result.verdict.is_satisfied(), result.decided_by == Attempt::Segments)
}

/// Transactions of one session, each of which read what the one before it wrote.
fn padding(from: u64) -> String {
    let txn = |at: u64| {
        format!("p [{}, {}]: r p {at}, w p {}\n", from + 2 * at, from + 2 * at + 1, at + 1)
    };
    (1..20).map(txn).collect()
}

#[test]
fn two_that_finished_in_the_wrong_order_are_swapped_in_their_window() {
    // The last one read x before it was overwritten, and finished after that.
    let text = format!(
        "p [1, 2]: w p 1, w x 1\n{}a [100, 102]: w x 2\nb [101, 103]: r x 1\n",
        padding(10)
    );
    for level in LEVELS {
        assert_eq!(by_windows(&text, level), (true, true), "{level}");
    }
}

#[test]
fn a_violation_is_found_in_its_window() {
    // Both read what the other one overwrote.
    let text = format!(
        "p [1, 2]: w p 1, w x 1, w y 1\n{}a [100, 102]: r x 1, r y 1, w x 2\n\
         b [101, 103]: r x 1, r y 1, w y 2\n",
        padding(10)
    );
    assert_eq!(by_windows(&text, Level::Serializable), (false, true));
    assert_eq!(by_windows(&text, Level::SnapshotIsolation), (true, true));
}

#[test]
fn what_rests_on_an_assumption_is_no_violation() {
    // Nobody knows that x was 1 before it was 2, though a hundred others lie in between by time: it was
    // the other way round.
    let text = format!(
        "p [1, 2]: w p 1\nq [3, 4]: w x 1\n{}a [100, 102]: r y nil, w x 2\nb [101, 103]: r x 1, w y 2\n",
        padding(10)
    );
    let (is_satisfied, _) = by_windows(&text, Level::Serializable);
    assert!(is_satisfied);
    let (is_satisfied, _) = by_windows(&text, Level::StrictSerializable);
    assert!(!is_satisfied);
}
