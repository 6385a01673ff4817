//! What a run found, as facts.

use std::fmt;
use std::path::{Path, PathBuf};

use isolario_formats::Warning;
use isolario_model::{History, Level, LevelResult, RunRecord, StopReason, VerdictKind};
use isolario_report::sentences::too_few_overlapped;
use isolario_report::{
    HistoryName, Provenance, Report, RequestedLevels, Timing, grouped, known, shell_word,
};
use isolario_verify::proof::Digest;

use super::directory::{HISTORY, PROOF};
use super::error::RunError;
use super::examine::{Examination, Judgement};
use super::lost::{LostCommits, report_of_lost};
use super::recorded_outages;
use super::whitebox::{Basis, Whitebox};
use isolario_report::as_text;
use isolario_shrink::ShrunkHistory;

/// What a run found.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// What was done, as it stands in `run.json`.
    pub record: RunRecord,
    /// The run directory.
    pub directory: PathBuf,
    /// What was recorded.
    pub history: History,
    /// What was odd about the recording.
    pub warnings: Vec<Warning>,
    /// What the check came to.
    pub examination: Examination,
    /// How long it took to read and check the history.
    pub timing: Timing,
    /// How many anomalies the report shows in full.
    pub max_anomalies: usize,
    /// When it was recorded, the digest of the history, and how to verify the proof.
    pub provenance: Provenance,
    /// The smallest part of the history that shows what is wrong, where something is and it was found.
    pub excerpt: Option<ShrunkHistory>,
    /// What the database's own log says, where that was asked for.
    pub whitebox: Option<Whitebox>,
    /// What was acknowledged before a fault of the server and is missing after it.
    pub lost: Option<LostCommits>,
    /// The files that could not be written. What was found stands here all the same.
    pub unwritten: Vec<RunError>,
}

impl RunOutcome {
    /// What it all comes to.
    pub fn judgement(&self) -> Judgement {
        self.report("").judgement_of_run(&self.record).max(Judgement::Satisfied)
    }

    /// Panics unless the database kept its promise, or satisfied the levels that were asked for, in a run
    /// in which enough transactions overlapped to show otherwise. The message is the explanation.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn assert_kept(&self) {
        let contention = self.examination.contention.as_ref();
        match (self.judgement(), contention.and_then(too_few_overlapped)) {
            (Judgement::Satisfied, None) => {}
            (Judgement::Satisfied, Some(too_few)) => panic!(
                "{too_few}: ask for more sessions, fewer keys or longer pauses (Settings::with_think)"
            ),
            _ => panic!("{}\n\n{}", self.promise(), as_text(&self.report(&self.name()))),
        }
    }

    /// The name by which reports call the history: its file.
    pub fn name(&self) -> String {
        self.directory.join(HISTORY).display().to_string()
    }

    /// The report on the history, by a name.
    pub fn report<'o>(&'o self, name: impl Into<HistoryName<'o>>) -> Report<'o> {
        let outages = recorded_outages(&self.record);
        Report::new(name, &self.history, &self.examination.results)
            .with_asked(self.examination.asked())
            .with_max_anomalies(self.max_anomalies)
            .with_timing(self.timing)
            .with_provenance(self.provenance.clone())
            .with_lost(report_of_lost(self.lost.as_ref(), &outages, &self.record.durability))
            .with_excerpt(self.excerpt.as_ref().map(ShrunkHistory::excerpt))
    }

    /// The report on answers that rest on the database's own word, by a name.
    pub fn whitebox_report<'o>(
        &'o self,
        name: impl Into<HistoryName<'o>>,
        results: &'o [LevelResult],
    ) -> Report<'o> {
        let asked = RequestedLevels { weakest_only: false, ..self.examination.asked() };
        Report::new(name, &self.history, results)
            .with_asked(asked)
            .with_max_anomalies(self.max_anomalies)
            .with_timing(self.timing)
    }

    /// The same, with how to verify its proof.
    pub(super) fn own_word_report<'o>(
        &'o self,
        name: &'o str,
        basis: Basis,
        results: &'o [LevelResult],
    ) -> Report<'o> {
        let proof = format!("{}.proof", basis.stem());
        let flags = basis.flags(&self.directory);
        let provenance = self.provenance.clone();
        self.whitebox_report(name, results).with_provenance(provenance.with_verify(verify(
            &self.directory,
            &proof,
            &flags,
        )))
    }

    /// The report on what is broken: by what clients saw, or by the database's own word where only that
    /// shows it.
    pub(super) fn broken_report<'o>(&'o self, name: &'o str) -> Report<'o> {
        let is_violated =
            |results: &[LevelResult]| results.iter().any(|result| result.verdict.is_violated());
        let mut own = self.whitebox.iter().flat_map(Whitebox::answers);
        match own.find(|(_, results)| is_violated(results)) {
            Some((basis, results))
                if self.lost.is_none() && self.examination.judgement() != Judgement::Violated =>
            {
                self.own_word_report(name, basis, results)
            }
            _ => self.report(name),
        }
    }

    /// Whether the database does not give a level that it claims, or that was asked of it, or has lost
    /// commits.
    pub fn is_broken(&self) -> bool {
        self.judgement() == Judgement::Violated
    }

    /// Whether nothing is violated but the order that the database promises.
    fn is_only_out_of_order(&self) -> bool {
        let Some(own) = &self.whitebox else { return false };
        let violated = own.by_order.iter().filter(|result| result.verdict.is_violated()).count();
        violated > 0
            && own.not_as_promised(&self.examination).len() == violated
            && self.examination.judgement() != Judgement::Violated
            && !own.by_versions.iter().any(|result| result.verdict.is_violated())
    }

    /// Whether the database kept its promise, or what else was asked of it.
    pub fn promise(&self) -> Promise {
        let Examination { named, claim, results, .. } = &self.examination;
        // What a database keeps until it is gone is no kept promise.
        let judgement = match (self.judgement(), self.record.stopped) {
            (Judgement::Satisfied, StopReason::Database) => Judgement::NotDecidable,
            (judgement, _) => judgement,
        };
        let own = self.whitebox.iter().flat_map(|own| own.by_versions.iter().chain(&own.by_order));
        let all: Vec<LevelResult> = results.iter().chain(own).cloned().collect();
        let is =
            |level: &Level, kind| known(&all, *level).is_some_and(|known| known.verdict == kind);
        let asked: Vec<Level> = claim.iter().chain(named).copied().collect();
        // A sentence that accuses names nothing but what is violated.
        let mut levels = asked.clone();
        levels.retain(|level| match judgement {
            Judgement::Violated => is(level, VerdictKind::Violated),
            Judgement::Undecided | Judgement::NotDecidable => !is(level, VerdictKind::Satisfied),
            _ => true,
        });
        Promise {
            database: self.record.database_version.clone(),
            is_promise: named.is_empty() && !claim.is_empty(),
            levels: if levels.is_empty() { asked } else { levels },
            judgement,
            not_as_promised: self.is_only_out_of_order(),
            committed: self.record.counts.committed,
            lost: self.record.lost_commits,
        }
    }
}

/// Where a run's reports come from: its proof lies beside its history.
pub(super) fn provenance(record: &RunRecord, directory: &Path, history: &History) -> Provenance {
    Provenance::new()
        .with_unix_s(record.began_unix_s)
        .with_digest(Digest::of(history).to_string())
        .with_verify(verify(directory, PROOF, ""))
}

/// The command that verifies a proof.
fn verify(directory: &Path, proof: &str, flags: &str) -> String {
    let file = |name: &str| shell_word(&directory.join(name).display().to_string());
    format!("isolario verify {} {} {flags}", file(HISTORY), file(proof)).trim_end().to_owned()
}

/// Whether a database kept its promise in a run. As text, it is one plain sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promise {
    /// The product and its version.
    pub database: String,
    /// Whether the levels are the database's own claim; else somebody asked for them.
    pub is_promise: bool,
    /// The levels that the sentence is about: those violated, those left undecided, or else all; none
    /// where nothing was promised and nothing was asked for.
    pub levels: Vec<Level>,
    /// What came of it.
    pub judgement: Judgement,
    /// Whether they are satisfied, but not by the order that the database promises.
    pub not_as_promised: bool,
    /// How many transactions committed.
    pub committed: u64,
    /// How many of them were lost in a fault.
    pub lost: u64,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Promise { database, is_promise, .. } = self;
        let levels: Vec<_> = self.levels.iter().map(|level| in_words(*level)).collect();
        let levels = levels.join(" and ");
        let run = format!("in this run of {} transactions", grouped(self.committed));
        if self.judgement == Judgement::NothingToCheck {
            return write!(
                f,
                "{database} committed nothing in this run, so there is nothing to check"
            );
        }
        if self.lost > 0 {
            let lost = grouped(self.lost);
            return write!(f, "{database} lost {lost} of the transactions it acknowledged {run}");
        }
        match (self.judgement, self.levels.is_empty()) {
            (Judgement::Violated, true) if self.not_as_promised => {
                write!(f, "{database} did not keep to the order that it promises {run}")
            }
            (Judgement::Violated, true) => {
                write!(
                    f,
                    "{database} promises nothing here, and gave not even the weakest level {run}"
                )
            }
            (_, true) => {
                write!(f, "{database} promises nothing here, so it broke no promise {run}")
            }
            (Judgement::Satisfied, _) if *is_promise => {
                write!(f, "{database} kept its promise, {levels}, {run}")
            }
            (Judgement::Satisfied, _) => write!(f, "{database} gave {levels} {run}"),
            (Judgement::Violated, _) if self.not_as_promised => {
                write!(f, "{database} gave {levels}, but not in the order that it promises, {run}")
            }
            (Judgement::Violated, _) if *is_promise => {
                write!(f, "{database} broke its promise, {levels}, {run}")
            }
            (Judgement::Violated, _) => write!(f, "{database} did not give {levels} {run}"),
            (_, _) => {
                let verb = if *is_promise { "kept its promise" } else { "gave what was asked for" };
                write!(f, "Whether {database} {verb}, {levels}, could not be decided {run}")
            }
        }
    }
}

/// What a level is called in a sentence.
fn in_words(level: Level) -> &'static str {
    match level {
        Level::ReadUncommitted => "read uncommitted (PL-1)",
        Level::StrongReadUncommitted => "strong read uncommitted (PL-1 in real time)",
        Level::AdyaReadCommitted => "Adya's read committed",
        Level::StrongAdyaReadCommitted => "Adya's read committed in real time",
        Level::ReadCommitted => "read committed",
        Level::CutIsolation => "cut isolation",
        Level::ReadAtomic => "read atomicity",
        Level::Causal => "causal consistency",
        Level::ConsistentView => "consistent view (PL-2+)",
        Level::ParallelSnapshotIsolation => "parallel snapshot isolation",
        Level::Prefix => "prefix consistency",
        Level::SnapshotIsolation => "snapshot isolation",
        Level::StrongSnapshotIsolation => "strong snapshot isolation",
        Level::RepeatableRead => "Adya's repeatable read",
        Level::StrongRepeatableRead => "Adya's repeatable read in real time",
        Level::Serializable => "serializability",
        Level::StrictSerializable => "strict serializability",
        Level::Linearizable => "linearizability",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(judgement: Judgement, is_promise: bool, levels: &[Level], committed: u64) -> String {
        let (database, levels) = ("SQLite 3.50.2".to_owned(), levels.to_vec());
        let not_as_promised = false;
        Promise { database, is_promise, levels, judgement, not_as_promised, committed, lost: 0 }
            .to_string()
    }

    #[test]
    fn a_run_ends_with_one_plain_sentence() {
        let strict = [Level::StrictSerializable];
        assert_eq!(
            said(Judgement::Satisfied, true, &strict, 10_000),
            "SQLite 3.50.2 kept its promise, strict serializability, in this run of 10,000 \
             transactions"
        );
        assert_eq!(
            said(Judgement::Violated, true, &[Level::CutIsolation, Level::ReadAtomic], 999),
            "SQLite 3.50.2 broke its promise, cut isolation and read atomicity, in this run of 999 \
             transactions"
        );
        assert_eq!(
            said(Judgement::NotDecidable, true, &strict, 1_234_567),
            "Whether SQLite 3.50.2 kept its promise, strict serializability, could not be decided in \
             this run of 1,234,567 transactions"
        );
        assert_eq!(
            said(Judgement::NothingToCheck, true, &strict, 0),
            "SQLite 3.50.2 committed nothing in this run, so there is nothing to check"
        );
    }
}
