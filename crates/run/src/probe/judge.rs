//! What a play means: by its script, and by the checkers, who know nothing of scripts.

use crate::script::{Script, ScriptRun};
use isolario_check::{CheckOptions, check};
use isolario_model::{AnomalyKind, History, Level, LevelSet};
use isolario_report::ProbeOutcome;

use super::record::{NoHistory, history};

/// What a play came to.
#[derive(Default)]
pub(super) struct Judged {
    /// What the script says.
    pub(super) outcome: ProbeOutcome,
    /// What the checkers say of the recorded history.
    pub(super) violated: Vec<Level>,
    satisfied: Vec<Level>,
    pub(super) anomalies: Vec<AnomalyKind>,
    /// Why the script alone can judge it, if that is so.
    pub(super) note: Option<String>,
    pub(super) disagreement: Option<String>,
}

pub(super) fn judge(script: &Script, play: &ScriptRun) -> Judged {
    let mut judged = Judged::default();
    match history(script, play) {
        Ok(history) if history.has_evidence() => judged.examine(&history),
        Ok(_) => {}
        Err(NoHistory::Untold(why)) => judged.note = Some(why),
        Err(NoHistory::Refused(error)) => {
            judged.disagreement = Some(format!("the play cannot be recorded: {error}"));
        }
    }
    judged.outcome = judged.outcome_of(script, play);
    judged.disagreement = judged.disagreement.take().or_else(|| judged.contradiction(script));
    judged.note = judged.note.take().or_else(|| judged.silence(script));
    judged
}

impl Judged {
    fn examine(&mut self, history: &History) {
        // Linearizability is about single operations, and no level of transactions implies it.
        let levels: Vec<Level> =
            Level::decided().filter(|level| *level != Level::Linearizable).collect();
        for result in check(history, &levels, &CheckOptions::default()) {
            if result.verdict.is_satisfied() {
                self.satisfied.push(result.level);
            }
            if result.verdict.is_violated() {
                self.violated.push(result.level);
            }
            self.anomalies.extend(result.verdict.anomalies().iter().map(|anomaly| anomaly.kind));
        }
        self.anomalies.sort_unstable();
        self.anomalies.dedup();
    }

    /// What was found of the script's own anomaly.
    fn found(&self, script: &Script) -> Option<AnomalyKind> {
        script.anomaly.filter(|kind| self.anomalies.contains(kind))
    }

    /// Whoever was refused had often waited before: the refusal counts. Where steps are sent at the
    /// same time, the anomaly may come about in another way than the one that is written; then the
    /// checkers have the last word.
    fn outcome_of(&self, script: &Script, play: &ScriptRun) -> ProbeOutcome {
        if play.went_as_written(script) || (script.is_race() && self.found(script).is_some()) {
            return ProbeOutcome::Happens;
        }
        match play.refusal(script) {
            Some(error) => ProbeOutcome::Aborts { code: error.code.clone() },
            None if play.waited() => ProbeOutcome::Waits,
            None => ProbeOutcome::NotObserved,
        }
    }

    /// If the anomaly happened, no level that forbids it can hold. If it did not, nobody else can
    /// have found it. (Another anomaly may have been found: a script is about one of them.)
    fn contradiction(&self, script: &Script) -> Option<String> {
        let name = &script.name;
        if self.outcome == ProbeOutcome::Happens {
            let level = self.satisfied.iter().find(|level| forbids(**level, script))?;
            return Some(format!(
                "{name} went as written, which {level} forbids, but the checkers accept the \
                 recorded history at {level}"
            ));
        }
        let kind = self.found(script)?;
        Some(format!(
            "{name} did not go as written, but the checkers find {kind} in the recorded history"
        ))
    }

    /// What happened, and no level is decided that could tell. Of rows that were not returned, the
    /// weak levels say nothing.
    fn silence(&self, script: &Script) -> Option<String> {
        let is_told = self.violated.iter().any(|level| forbids(*level, script));
        let is_claimed = self.outcome == ProbeOutcome::Happens && !script.forbidden_by.is_empty();
        let is_silent = is_claimed && !is_told && self.disagreement.is_none();
        is_silent.then(|| "the checkers decide none of the levels that forbid it".to_owned())
    }
}

/// Whether a level rules out what a script shows.
fn forbids(level: Level, script: &Script) -> bool {
    script.forbidden_by.iter().any(|forbidden_by| level.implies(*forbidden_by))
}

/// What all probes together say about an isolation level.
#[derive(Default)]
pub(super) struct Evidence {
    /// Levels that some history satisfied: those that can be decided at all.
    seen: LevelSet,
    ruled_out: LevelSet,
}

impl Evidence {
    pub(super) fn add(&mut self, script: &Script, judged: &Judged) {
        for level in judged.satisfied.iter().chain(&judged.violated) {
            self.seen.insert(*level);
        }
        for level in &judged.violated {
            self.ruled_out.insert(*level);
        }
        // Where the checkers do not decide a level, the script's word counts.
        if judged.outcome == ProbeOutcome::Happens {
            let is_open = |level: &&Level| !judged.satisfied.contains(level);
            for level in script.forbidden_by.iter().filter(is_open) {
                self.ruled_out.insert(*level);
            }
        }
    }

    /// What both say together.
    pub(super) fn and(mut self, other: &Evidence) -> Evidence {
        other.seen.iter().for_each(|level| self.seen.insert(level));
        other.ruled_out.iter().for_each(|level| self.ruled_out.insert(level));
        self
    }

    /// The strongest levels that nothing rules out.
    pub(super) fn in_effect(&self) -> Vec<Level> {
        let ruled_out = self.ruled_out.and_stronger();
        let mut left = LevelSet::default();
        for level in self.seen.iter().filter(|level| !ruled_out.contains(*level)) {
            left.insert(level);
        }
        left.strongest().iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::script::ScriptRunner;
    use isolario_db::{DbUrl, Settings, open};

    use super::*;

    /// Plays a script on an engine that gives strict serializability.
    fn judged(text: &str) -> Judged {
        let script = Script::parse("test", text).unwrap();
        let url = DbUrl::parse("sqlite:").unwrap();
        let nodes = [open(&url, &Settings::default()).unwrap()];
        let play = ScriptRunner::new(&nodes).unwrap().play(&script).unwrap();
        judge(&script, &play)
    }

    #[test]
    fn what_goes_as_written_and_is_no_anomaly_is_a_contradiction() {
        let harmless =
            judged("anomaly LostUpdate\nT1: begin\nT1: write x 1\nT1: read x --> 1\nT1: commit");
        assert_eq!(harmless.outcome, ProbeOutcome::Happens);
        let words = harmless.disagreement.unwrap();
        assert!(words.contains("went as written, which") && words.contains("accept"), "{words}");
    }

    #[test]
    fn what_the_checkers_find_and_the_script_does_not_is_a_contradiction() {
        let (kind, text) =
            (AnomalyKind::LostUpdate, "anomaly LostUpdate\nT1: begin\nT1: read x\nT1: commit");
        let script = Script::parse("test", text).unwrap();
        let judged = Judged { anomalies: vec![kind], ..Judged::default() };
        let words = judged.contradiction(&script).unwrap();
        assert!(words.contains("the checkers find LostUpdate"), "{words}");
        let another = Judged { anomalies: vec![AnomalyKind::ReadSkew], ..Judged::default() };
        assert_eq!(another.contradiction(&script), None);
    }

    #[test]
    fn levels_are_ruled_out_by_histories_and_without_one_by_the_script() {
        let text = "anomaly PredicateWriteSkew\nsetup: INSERT INTO isolario_register VALUES (1, 1)\n\
                    T1: begin\nT1: SELECT k FROM isolario_register --> (1)\nT1: commit";
        let script = Script::parse("test", text).unwrap();
        let mut evidence = Evidence::default();
        let plain = judged("T1: begin\nT1: read x\nT1: write x 1\nT1: commit");
        assert_eq!(plain.disagreement, None);
        evidence.add(&script, &plain);
        assert_eq!(evidence.in_effect(), [Level::StrictSerializable]);
        evidence.add(&script, &judged(text));
        assert!(!evidence.in_effect().iter().any(|level| level.implies(Level::Serializable)));
        assert!(evidence.in_effect().iter().any(|level| level.implies(Level::SnapshotIsolation)));
    }
}
