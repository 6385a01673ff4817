//! Which checker decides a level for a history, and what the levels asked for can share.

use isolario_model::{
    AnomalyKind, Checker, History, Inapplicable, Level, LevelResult, PatternResult, Verdict,
};

use crate::Options;
use crate::reads::{self, Reads};
use crate::weak::{Dependencies, Weak};

/// The levels that can be decided, weaker ones first.
pub(crate) const SUPPORTED: &[Level] = &[
    Level::AdyaReadCommitted,
    Level::ReadCommitted,
    Level::CutIsolation,
    Level::ReadAtomic,
    Level::Causal,
];

/// Decides the levels. Reads are resolved and the dependency graph is built once for all.
pub(crate) fn check(history: &History, levels: &[Level], options: &Options) -> Vec<LevelResult> {
    if let Some(op) = reads::first_unsupported(history) {
        return answer_all(levels, &Verdict::NotApplicable(Inapplicable::Operation { op }));
    }
    let reads = Reads::resolve(history);
    let dependencies = Dependencies::new(history, &reads, options.session_order);
    let weak = Weak::new(&dependencies);
    let decide = |level: &Level| {
        let verdict = if SUPPORTED.contains(level) {
            weak.check(*level)
        } else {
            Verdict::NotApplicable(Inapplicable::Other(format!("there is no checker for {level}")))
        };
        LevelResult { level: *level, checker: Checker::Weak, verdict }
    };
    levels.iter().map(decide).collect()
}

/// Decides which patterns occur.
pub(crate) fn patterns(
    history: &History,
    kinds: &[AnomalyKind],
    options: &Options,
) -> Vec<PatternResult> {
    if let Some(op) = reads::first_unsupported(history) {
        let verdict = Verdict::NotApplicable(Inapplicable::Operation { op });
        let answer = |kind: &AnomalyKind| PatternResult { kind: *kind, verdict: verdict.clone() };
        return kinds.iter().map(answer).collect();
    }
    let reads = Reads::resolve(history);
    let dependencies = Dependencies::new(history, &reads, options.session_order);
    Weak::new(&dependencies).patterns(kinds)
}

fn answer_all(levels: &[Level], verdict: &Verdict) -> Vec<LevelResult> {
    let answer = |level: &Level| LevelResult {
        level: *level,
        checker: Checker::Weak,
        verdict: verdict.clone(),
    };
    levels.iter().map(answer).collect()
}
