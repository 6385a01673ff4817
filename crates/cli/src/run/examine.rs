//! The check of a run's history: what was asked for, or what the database claims.

use isolario::check::{Options, check, supported};
use isolario::model::{AnomalyKind, History, Level, LevelResult, RunVerdict, Verdict};

use crate::config::Request;

/// What to decide.
#[derive(Clone)]
pub(super) enum Ask {
    /// Levels that were named.
    Named(Request),
    /// What the database claims.
    Claim(Vec<Level>),
}

pub(super) struct Examined {
    /// What the answers mean.
    pub(super) request: Request,
    /// The answers, weakest level first.
    pub(super) results: Vec<LevelResult>,
    /// Claimed levels that could not be decided.
    pub(super) missing: Vec<Level>,
}

/// Decides what was asked. Of a claim that cannot be decided, it decides whatever weaker level it
/// can: to break one of those is to break the claim. Without a claim, it decides all levels.
pub(super) fn examine(history: &History, ask: &Ask, options: &Options) -> Examined {
    let claimed = match ask {
        Ask::Named(request) => {
            let results = check(history, &request.levels, options);
            return Examined { request: request.clone(), results, missing: Vec::new() };
        }
        Ask::Claim(levels) if levels.is_empty() => {
            let levels = supported().to_vec();
            let results = check(history, &levels, options);
            let request = Request { levels, named: Vec::new(), open: true };
            return Examined { request, results, missing: Vec::new() };
        }
        Ask::Claim(levels) => levels,
    };
    let has_checker = |level: &Level| supported().contains(level);
    let decidable: Vec<Level> = claimed.iter().copied().filter(has_checker).collect();
    let mut results = check(history, &decidable, options);
    let missing: Vec<Level> =
        claimed.iter().copied().filter(|level| !is_decided(*level, &results)).collect();
    if !missing.is_empty() {
        let follows = |level: &Level| missing.iter().any(|claim| claim.implies(*level));
        let weaker = supported().iter().copied();
        let weaker: Vec<Level> =
            weaker.filter(|level| follows(level) && !decidable.contains(level)).collect();
        let answers = check(history, &weaker, options).into_iter();
        results.extend(answers.filter(|answer| answers_something(&answer.verdict)));
        results.sort_by_key(|result| result.level);
    }
    let levels = results.iter().map(|result| result.level).collect();
    Examined { request: Request { levels, named: Vec::new(), open: false }, results, missing }
}

impl Examined {
    /// The answers in short.
    pub(super) fn verdicts(&self) -> Vec<RunVerdict> {
        let short = |result: &LevelResult| RunVerdict {
            level: result.level,
            verdict: result.verdict.kind(),
            anomalies: kinds(&result.verdict),
        };
        self.results.iter().map(short).collect()
    }
}

fn answers_something(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Satisfied(_) | Verdict::Violated(_))
}

fn is_decided(level: Level, results: &[LevelResult]) -> bool {
    results.iter().any(|result| result.level == level && answers_something(&result.verdict))
}

/// Each once, clearest first.
fn kinds(verdict: &Verdict) -> Vec<AnomalyKind> {
    let mut kinds: Vec<AnomalyKind> = Vec::new();
    for anomaly in verdict.anomalies() {
        if !kinds.contains(&anomaly.kind) {
            kinds.push(anomaly.kind);
        }
    }
    kinds
}
