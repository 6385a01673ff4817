//! What there is to say about one history, and the interface of those who say it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use isolario_model::{
    Anomaly, AnomalyKind, History, Level, LevelResult, Outcome, PatternResult, Verdict, VerdictKind,
};
#[cfg(feature = "html")]
use isolario_model::{RunRecord, RunVerdict};

#[cfg(feature = "html")]
use crate::excerpt::Excerpt;
use crate::finding::ReportFindings;
use crate::implied::levels_known;
use crate::involved::first_counterexample;
use crate::meaning::{Judgement, RequestedLevels};
use crate::provenance::Provenance;
#[cfg(feature = "html")]
use crate::sentences::headline;
use crate::summary::Summary;

/// How reports call a history. A string is the path of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryName<'a> {
    /// What people read.
    pub name: &'a str,
    /// Its file, where it is in one.
    pub file: Option<&'a str>,
    /// What was tested, for tools that follow it from run to run: without times, numbers and verdicts.
    pub test: &'a str,
}

impl<'a> From<&'a str> for HistoryName<'a> {
    fn from(path: &'a str) -> Self {
        HistoryName { name: path, file: Some(path).filter(|path| *path != "-"), test: path }
    }
}

impl<'a> From<&'a String> for HistoryName<'a> {
    fn from(path: &'a String) -> Self {
        path.as_str().into()
    }
}

/// What there is to say about one history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report<'h> {
    /// The name by which the user knows the history: its path.
    pub name: &'h str,
    /// Its file, where it is in one.
    pub file: Option<&'h str>,
    /// What was tested, by a name that is the same in every run.
    pub test: &'h str,
    /// What was observed.
    pub history: &'h History,
    /// How large it is.
    pub size: HistorySize,
    /// The answers, weakest level first.
    pub results: &'h [LevelResult],
    /// The answers for single anomalies, where these were asked for instead of levels.
    pub patterns: &'h [PatternResult],
    /// Which of the answers count. Where no level was asked for, only what violates the weakest ones is
    /// shown in full.
    pub asked: RequestedLevels<'h>,
    /// How long it took.
    pub timing: Timing,
    /// How many anomalies to show in full.
    pub max_anomalies: usize,
    /// By which program it was made, when, about which history, and how to verify it.
    pub provenance: Provenance,
    /// What the database's own word has to do with the answers, where it is part of the question.
    pub stated: Option<&'h StatedOrderEffect>,
    /// Whether commits were lost, where the server was down.
    pub lost: Option<LostCommitsResult<'h>>,
    /// The smallest part that still shows what is wrong, where somebody looked for it.
    #[cfg(feature = "html")]
    pub excerpt: Option<Excerpt<'h>>,
}

/// What answers owe to the order of versions that a database states, and to the versions that it says
/// operations met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedOrderEffect {
    /// Of the levels that are violated, what they come to without it.
    pub otherwise: Vec<LevelResult>,
    /// How many operations by predicate there are of which it does not say what they met.
    pub operations_without_set: u64,
}

/// The answer whether commits were lost, where the server was down during the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCommitsResult<'h> {
    /// The answer: violated where some were, by an anomaly for each.
    pub result: &'h PatternResult,
    /// The settings by which the server was to keep what it acknowledges; empty where they are not known.
    pub durability: &'h str,
}

impl LostCommitsResult<'_> {
    /// How many transactions were acknowledged before the server ended and are missing since it was back.
    pub fn total(&self) -> u64 {
        match &self.result.verdict {
            Verdict::Violated(findings) => findings.total,
            _ => 0,
        }
    }
}

/// How large a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HistorySize {
    /// Sessions.
    pub sessions: u64,
    /// Transactions of any outcome.
    pub transactions: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that aborted.
    pub aborted: u64,
    /// Transactions of unknown outcome.
    pub unknown: u64,
    /// Operations of all transactions.
    pub operations: u64,
    /// Keys.
    pub keys: u64,
}

/// What it cost. Stands apart from the results, which are the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The time to read the history.
    pub load: Duration,
    /// The time to check it.
    pub check: Duration,
    /// The most memory the process held, where the system tells.
    pub peak_rss_bytes: Option<u64>,
}

impl HistorySize {
    /// The size of a history.
    pub fn of(history: &History) -> HistorySize {
        let mut by_outcome = [0; 3];
        for txn in history.txns() {
            by_outcome[history.outcome(txn) as usize] += 1;
        }
        HistorySize {
            sessions: history.session_count() as u64,
            transactions: history.txn_count() as u64,
            committed: by_outcome[Outcome::Committed as usize],
            aborted: by_outcome[Outcome::Aborted as usize],
            unknown: by_outcome[Outcome::Unknown as usize],
            operations: history.op_count() as u64,
            keys: history.key_count() as u64,
        }
    }
}

impl<'h> Report<'h> {
    /// A report on a history, without timings.
    pub fn new(
        name: impl Into<HistoryName<'h>>,
        history: &'h History,
        results: &'h [LevelResult],
    ) -> Self {
        let HistoryName { name, file, test } = name.into();
        Report {
            name,
            file,
            test,
            history,
            size: HistorySize::of(history),
            results,
            patterns: &[],
            asked: RequestedLevels::default(),
            timing: Timing::default(),
            max_anomalies: 10,
            provenance: Provenance::default(),
            stated: None,
            lost: None,
            #[cfg(feature = "html")]
            excerpt: None,
        }
    }

    /// Where the first counterexample starts, as [`first_counterexample`] has it; none where the evidence is about a
    /// part of the history.
    pub(crate) fn first_counterexample(&self) -> Option<u64> {
        let is_whole = self.size.transactions == self.history.txn_count() as u64;
        is_whole.then(|| first_counterexample(self.history, self.results)).flatten()
    }

    /// Adds whether commits were lost.
    #[must_use]
    pub fn with_lost(self, lost: Option<LostCommitsResult<'h>>) -> Self {
        Report { lost, ..self }
    }

    /// A report on single anomalies in a history.
    pub fn of_patterns(
        name: impl Into<HistoryName<'h>>,
        history: &'h History,
        patterns: &'h [PatternResult],
    ) -> Self {
        Report { patterns, ..Report::new(name, history, &[]) }
    }

    /// Shows in full only what violates the weakest levels; of the rest, the names.
    #[must_use]
    pub fn with_weakest_only(self, weakest_only: bool) -> Self {
        Report { asked: RequestedLevels { weakest_only, ..self.asked }, ..self }
    }

    /// Sets the levels that were named.
    #[must_use]
    pub fn with_named(self, named: &'h [Level]) -> Self {
        Report { asked: RequestedLevels { named, ..self.asked }, ..self }
    }

    /// Sets which of the answers count.
    #[must_use]
    pub fn with_asked(self, asked: RequestedLevels<'h>) -> Self {
        Report { asked, ..self }
    }

    /// Adds what it cost.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Report { timing, ..self }
    }

    /// Sets how many anomalies to show in full.
    #[must_use]
    pub fn with_max_anomalies(self, max_anomalies: usize) -> Self {
        Report { max_anomalies, ..self }
    }

    /// Adds where it comes from.
    #[must_use]
    pub fn with_provenance(self, provenance: Provenance) -> Self {
        Report { provenance, ..self }
    }

    /// Adds what the answers owe to what the database states.
    #[must_use]
    pub fn with_stated(self, stated: &'h StatedOrderEffect) -> Self {
        Report { stated: Some(stated), ..self }
    }

    /// Adds the smallest part that still shows what is wrong.
    #[cfg(feature = "html")]
    #[must_use]
    pub fn with_excerpt(self, excerpt: Option<Excerpt<'h>>) -> Self {
        Report { excerpt, ..self }
    }

    /// The satisfied levels that no other satisfied level implies.
    pub fn strongest(&self) -> Vec<Level> {
        levels_known(self.results, VerdictKind::Satisfied).strongest().iter().collect()
    }

    /// The violated levels that imply no other violated level.
    pub fn weakest_violated(&self) -> Vec<Level> {
        levels_known(self.results, VerdictKind::Violated).weakest().iter().collect()
    }

    /// The anomalies of all levels, those of weaker levels first and clearest first. What a weak
    /// level forbids, the stronger ones forbid as well: it comes once.
    pub fn anomalies(&self) -> Vec<&'h Anomaly> {
        distinct(self.verdicts().map(|(_, verdict)| verdict))
    }

    /// The anomalies to show, of which the first [`Report::max_anomalies`] in full: those that tell the
    /// findings.
    pub fn reported_anomalies(&self) -> Vec<&'h Anomaly> {
        let found = self.found();
        found.findings[..found.reported].iter().map(|finding| finding.anomaly).collect()
    }

    /// The first finding that a level's answer lists: the weakest such level that counts, and the name it
    /// has there.
    pub fn first_at_a_level(&self) -> Option<(Level, AnomalyKind)> {
        let found = self.found();
        let first =
            found.findings.iter().find(|finding| finding.found_at.iter().next().is_some())?;
        let counts = |level: &Level| {
            let result = self.results.iter().find(|result| result.level == *level);
            result.is_some_and(|result| self.meaning(result) == Judgement::Violated)
        };
        let level = first.found_at.iter().find(counts).or_else(|| first.found_at.iter().next())?;
        Some((level, first.at(level).kind))
    }

    /// Everything that was found, each bug once, in the order in which to tell of it.
    pub fn found(&self) -> ReportFindings<'h> {
        ReportFindings::of(self)
    }

    /// The answers in short, each with the names under which its anomalies are told, clearest first.
    #[cfg(feature = "html")]
    pub fn answers_in_short(&self) -> Vec<RunVerdict> {
        let found = self.found();
        let short = |result: &LevelResult| RunVerdict {
            level: result.level,
            verdict: result.verdict.kind(),
            anomalies: found.kinds_of_level(result.level),
        };
        self.results.iter().map(short).collect()
    }

    /// What was tested in a run and what these answers come to: `PostgreSQL 15.4 at repeatable read: claim
    /// kept`.
    #[cfg(feature = "html")]
    pub fn headline(&self, run: &RunRecord) -> String {
        headline(self, run).0
    }

    /// All verdicts, with the level where they are about one. That on lost commits comes first.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = (Option<Level>, &'h Verdict)> + use<'h> {
        let lost = self.lost.map(|lost| (None, &lost.result.verdict));
        let levels = self.results.iter().map(|result| (Some(result.level), &result.verdict));
        let patterns = self.patterns.iter().map(|result| (None, &result.verdict));
        lost.into_iter().chain(levels).chain(patterns)
    }
}

/// The anomalies of some verdicts, each once: results that have one in common share it.
fn distinct<'h>(verdicts: impl Iterator<Item = &'h Verdict>) -> Vec<&'h Anomaly> {
    let mut known = BTreeSet::new();
    let anomalies = verdicts.flat_map(Verdict::anomalies);
    anomalies.filter(|a| known.insert(Arc::as_ptr(a))).map(AsRef::as_ref).collect()
}

/// Says what a report holds, in one form. A run is `begin`, then each history, then `end`.
pub trait Renderer {
    /// Writes what comes before all histories.
    fn begin(&mut self, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes the report on one history.
    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()>;

    /// Writes that a history could not be read or checked.
    fn failure(
        &mut self,
        name: HistoryName<'_>,
        error: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;

    /// Writes what several histories come to.
    fn summary(&mut self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()>;

    /// Writes what comes after all histories.
    fn end(&mut self, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{AnomalyKind, Attempt, Evidence, Findings, OpId, Witness};

    use super::*;
    use crate::testing::History as Builder;

    fn satisfied(level: Level) -> LevelResult {
        LevelResult {
            level,
            decided_by: Attempt::Rule,
            verdict: Verdict::Satisfied(Witness::Empty),
        }
    }

    fn violated(level: Level, reads: &[u32]) -> LevelResult {
        let anomalies: Vec<_> = reads
            .iter()
            .map(|read| {
                let evidence = Evidence::Read { read: OpId(*read), saw: None, instead: None };
                Anomaly::new(AnomalyKind::ThinAirRead, evidence)
            })
            .collect();
        let verdict = Verdict::Violated(Findings::new(anomalies, true));
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    #[test]
    fn the_strongest_levels_are_those_that_no_other_satisfied_one_implies() {
        let history = Builder::new().build();
        let results = [
            satisfied(Level::AdyaReadCommitted),
            satisfied(Level::ReadCommitted),
            satisfied(Level::CutIsolation),
            violated(Level::ReadAtomic, &[]),
        ];
        let report = Report::new("h", &history, &results);
        assert_eq!(report.strongest(), [Level::ReadCommitted, Level::CutIsolation]);
    }

    #[test]
    fn the_weakest_violated_levels_are_those_that_imply_no_other_violated_one() {
        let history = Builder::new().build();
        let mut results = [
            satisfied(Level::AdyaReadCommitted),
            violated(Level::ReadCommitted, &[1]),
            violated(Level::CutIsolation, &[2]),
            violated(Level::ReadAtomic, &[3]),
        ];
        // Read atomic shares what the weaker levels found.
        let shared: Vec<_> = results.iter().flat_map(|r| r.verdict.anomalies()).cloned().collect();
        if let Verdict::Violated(findings) = &mut results[3].verdict {
            findings.anomalies = shared;
        }
        let report = Report::new("h", &history, &results);
        assert_eq!(report.weakest_violated(), [Level::ReadCommitted, Level::CutIsolation]);
        assert_eq!(report.anomalies().len(), 3);
    }
}
