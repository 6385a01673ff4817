//! Which checker decides a level for a history, and what the levels asked for can share.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Clock, Engine, Findings, History, Inapplicable, Level, LevelResult,
    PatternResult, Verdict,
};

use crate::Options;
use crate::findings;
use crate::lin;
use crate::mini::Mini;
use crate::resolved::{BlindWrite, Resolved, first_on_list, first_unsupported};
use crate::stop::{unlooked, unlooked_level};
use crate::strong;
use crate::weak::Weak;

/// Decides the levels. Linearizability is about operations of more kinds and needs none of what
/// the others share.
pub(crate) fn check(history: &History, levels: &[Level], options: &Options) -> Vec<LevelResult> {
    let is_single = |level: &&Level| **level == Level::Linearizable;
    let others: Vec<Level> = levels.iter().filter(|level| !is_single(level)).copied().collect();
    let mut results = check_transactions(history, &others, options).into_iter();
    let answer = |level: &Level| match level {
        Level::Linearizable if !options.stop.is_asked() => {
            let verdict = lin::check(history, options);
            Some(LevelResult { level: *level, engine: Engine::Lin, verdict })
        }
        Level::Linearizable => Some(unlooked_level(*level)),
        _ => results.next(),
    };
    let mut results: Vec<LevelResult> = levels.iter().filter_map(answer).collect();
    findings::share(&mut results);
    results
}

/// Decides levels of transactions. Reads are resolved and the dependency graph is built once for
/// all.
fn check_transactions(history: &History, levels: &[Level], options: &Options) -> Vec<LevelResult> {
    if levels.is_empty() {
        return Vec::new();
    }
    if let Some(op) = first_unsupported(history) {
        return answer_all(levels, &Verdict::NotApplicable(Inapplicable::Operation { op }));
    }
    if options.stop.is_asked() {
        return levels.iter().copied().map(unlooked_level).collect();
    }
    let resolved = Arc::new(Resolved::new(history, options));
    let weak = Weak::new(Arc::clone(&resolved));
    let plan = Plan { history, options, resolved, weak, mini: OnceCell::new() };
    levels.iter().map(|level| plan.check(*level)).collect()
}

/// A history, and what is known of it.
struct Plan<'a> {
    history: &'a History,
    options: &'a Options,
    resolved: Arc<Resolved<'a>>,
    weak: Weak<'a>,
    mini: OnceCell<Result<Mini<'a>, BlindWrite>>,
}

impl Plan<'_> {
    fn check(&self, level: Level) -> LevelResult {
        if self.options.stop.is_asked() {
            return unlooked_level(level);
        }
        let (engine, verdict) = match level {
            Level::AdyaReadCommitted
            | Level::ReadCommitted
            | Level::CutIsolation
            | Level::ReadAtomic
            | Level::Causal => (Engine::Weak, self.weak.check(level)),
            level if level.is_decided() => self.check_strong(level),
            _ => (Engine::Weak, Verdict::NotApplicable(Inapplicable::NoChecker)),
        };
        LevelResult { level, engine, verdict }
    }

    /// Wrong reads refute a strong level whatever the rest. Without them, the history is decided
    /// in linear time if every write in it follows a read, and by search otherwise.
    fn check_strong(&self, level: Level) -> (Engine, Verdict) {
        if let Some(reason) = self.lacks(level) {
            return (Engine::Mini, Verdict::NotApplicable(reason));
        }
        let mut anomalies = self.weak.plain_anomalies();
        if !anomalies.is_empty() {
            anomalies.extend(self.lost_updates(level));
            return (Engine::Mini, Verdict::Violated(Findings::new(anomalies, false)));
        }
        if let Some(reason) = &self.resolved.dependencies.reads.choices.refusal {
            return (Engine::Mini, Verdict::NotApplicable(reason.clone()));
        }
        let mini = self.mini.get_or_init(|| Mini::new(Arc::clone(&self.resolved), self.options));
        let has_stated = self.options.trust_version_order && !self.options.version_order.is_empty();
        match mini {
            Err(BlindWrite(write)) => (Engine::Strong { blind: Some(*write) }, self.search(level)),
            Ok(mini) => match mini.check(level).filter(|_| !has_stated) {
                Some(verdict) => (Engine::Mini, verdict),
                None => (Engine::Strong { blind: None }, self.search(level)),
            },
        }
    }

    /// The lost updates beside wrong reads: what two transactions overwrote is lost whatever else
    /// they saw.
    fn lost_updates(&self, level: Level) -> Vec<Anomaly> {
        let is_forbidden = AnomalyKind::LostUpdate.forbidden_at(level);
        let mini =
            self.mini.get_or_init(|| Mini::new(Arc::clone(&self.resolved), self.options)).as_ref();
        mini.ok().filter(|_| is_forbidden).map(Mini::lost_updates).unwrap_or_default()
    }

    /// Searches for an order. Where there is none and the argument takes choices, a weaker level may
    /// tell in fewer words why.
    fn search(&self, level: Level) -> Verdict {
        let verdict = strong::check(&self.resolved, level, self.options);
        let is_intricate = |findings: &Findings| {
            findings.anomalies.iter().all(|a| a.kind == AnomalyKind::NoOrderPossible)
        };
        match &verdict {
            Verdict::Violated(findings) if is_intricate(findings) => {
                match self.weak.check(Level::Causal) {
                    Verdict::Violated(findings) => {
                        Verdict::Violated(Findings { exact: false, ..findings })
                    }
                    _ => verdict,
                }
            }
            _ => verdict,
        }
    }

    /// What a strong level needs and the history does not have.
    fn lacks(&self, level: Level) -> Option<Inapplicable> {
        if let Some(op) = first_on_list(self.history) {
            return Some(Inapplicable::Operation { op });
        }
        if !matches!(level, Level::StrictSerializable | Level::StrongSnapshotIsolation) {
            return None;
        }
        if !self.history.has_times() {
            return Some(Inapplicable::NoTimes);
        }
        unwidenable(self.history, self.options)
    }
}

/// Clocks may differ, but not the order of events.
pub(crate) fn unwidenable(history: &History, options: &Options) -> Option<Inapplicable> {
    let by_events = history.clock() == Clock::EventOrder;
    (by_events && options.clock_skew > 0).then_some(Inapplicable::SkewOfEventOrder)
}

/// Writes down the problem that a level makes of a history, if it makes one.
pub(crate) fn dump_problem(
    history: &History,
    level: Level,
    options: &Options,
    out: &mut dyn io::Write,
) -> io::Result<bool> {
    if first_unsupported(history).or_else(|| first_on_list(history)).is_some() {
        return Ok(false);
    }
    let resolved = Arc::new(Resolved::new(history, options));
    let is_refused = resolved.dependencies.reads.choices.refusal.is_some();
    let has_wrong_reads =
        is_refused || !Weak::new(Arc::clone(&resolved)).plain_anomalies().is_empty();
    if has_wrong_reads {
        return Ok(false);
    }
    strong::dump(&resolved, level, out)
}

/// Decides which patterns occur.
pub(crate) fn patterns(
    history: &History,
    kinds: &[AnomalyKind],
    options: &Options,
) -> Vec<PatternResult> {
    let verdict = match first_unsupported(history) {
        Some(op) => Some(Verdict::NotApplicable(Inapplicable::Operation { op })),
        None => options.stop.is_asked().then(unlooked),
    };
    if let Some(verdict) = verdict {
        let answer = |kind: &AnomalyKind| PatternResult { kind: *kind, verdict: verdict.clone() };
        return kinds.iter().map(answer).collect();
    }
    Weak::new(Arc::new(Resolved::new(history, options))).patterns(kinds)
}

fn answer_all(levels: &[Level], verdict: &Verdict) -> Vec<LevelResult> {
    let answer = |level: &Level| LevelResult {
        level: *level,
        engine: Engine::Weak,
        verdict: verdict.clone(),
    };
    levels.iter().map(answer).collect()
}
