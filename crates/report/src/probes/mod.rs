//! What scripted interleavings showed of a database: which anomalies can happen at which of its
//! isolation levels.
//!
//! A [`ProbeTable`] is written as text for a terminal, as JSON and as a page; the transcript of a
//! single probe as text.

#[cfg(feature = "html")]
mod html;
mod human;
#[cfg(feature = "json")]
mod json;
mod transcript;

use std::fmt;

use isolario_model::{AnomalyKind, Level};

pub use transcript::{Transcript, TranscriptLine};

/// The results of probes, at every isolation level of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeTable {
    /// The product and its version.
    pub database: String,
    /// The URLs of its nodes.
    pub urls: Vec<String>,
    /// The isolation levels, by the database's own names, weakest first.
    pub settings: Vec<ProbeSetting>,
    /// The probes.
    pub probes: Vec<Probe>,
}

/// An isolation level of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSetting {
    /// The database's own name for it.
    pub isolation: String,
    /// The strongest levels that it claims to give; none where it claims nothing.
    pub claims: Vec<Level>,
    /// Where that is from.
    pub claim_source: String,
    /// The strongest levels that no probe rules out whose sessions stay at their node.
    pub in_effect: Vec<Level>,
    /// The same of sessions that move between nodes, if some did.
    pub moving: Option<MovingSessions>,
}

/// What sessions are given that go on at another node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovingSessions {
    /// What is claimed of them: levels in real time, which order what one session does wherever it does
    /// it.
    pub claims: Vec<Level>,
    /// The strongest levels that no probe rules out.
    pub in_effect: Vec<Level>,
}

/// A probe, and what came of it at each of the [settings](ProbeTable::settings).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The name of its script.
    pub name: String,
    /// What a person calls it.
    pub title: String,
    /// What happens in it.
    pub about: String,
    /// The anomaly that it would show.
    pub anomaly: Option<AnomalyKind>,
    /// The weakest levels that forbid that.
    pub forbidden_by: Vec<Level>,
    /// One per setting.
    pub results: Vec<ProbeResult>,
}

/// What came of a probe at one isolation level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResult {
    /// Whether it went as written, and if not, what prevented it.
    pub outcome: ProbeOutcome,
    /// Whether the database claims a level that forbids it.
    pub is_forbidden: bool,
    /// The levels that the recorded history violates; none where it cannot be checked.
    pub violated: Vec<Level>,
    /// The anomalies that were found in the recorded history.
    pub anomalies: Vec<AnomalyKind>,
    /// Where script and checkers contradict each other: that is a bug of ours.
    pub disagreement: Option<String>,
    /// Why the checkers have no say in it, where that is so.
    pub note: Option<String>,
    /// Who did what when.
    pub transcript: Transcript,
}

impl ProbeResult {
    /// Whether the database does not keep what it claims, beyond doubt.
    pub fn breaks_claim(&self) -> bool {
        self.is_forbidden && self.outcome == ProbeOutcome::Happens && self.disagreement.is_none()
    }
}

/// Whether a probe went as written, and if not, what prevented it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeOutcome {
    /// It went as written: it can happen.
    Happens,
    /// Prevented by waiting.
    Waits,
    /// Prevented by refusing a transaction.
    Aborts {
        /// The database's own code.
        code: Option<String>,
    },
    /// Prevented, and nobody had to wait or was refused: it did not show.
    #[default]
    NotObserved,
    /// Not tried.
    NotRun {
        /// Why not.
        why: String,
    },
}

impl ProbeOutcome {
    /// Its name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            ProbeOutcome::Happens => "happens",
            ProbeOutcome::Waits => "waits",
            ProbeOutcome::Aborts { .. } => "aborts",
            ProbeOutcome::NotObserved => "not-shown",
            ProbeOutcome::NotRun { .. } => "not-run",
        }
    }

    /// In a cell of a table.
    fn cell(&self) -> String {
        match self {
            ProbeOutcome::Happens => "can happen".to_owned(),
            ProbeOutcome::Waits => "waits".to_owned(),
            ProbeOutcome::Aborts { code: Some(code) } => format!("aborts {code}"),
            ProbeOutcome::Aborts { code: None } => "aborts".to_owned(),
            ProbeOutcome::NotObserved => "not shown".to_owned(),
            ProbeOutcome::NotRun { .. } => "-".to_owned(),
        }
    }
}

impl fmt::Display for ProbeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeOutcome::Happens => f.write_str("it can happen"),
            ProbeOutcome::Waits => f.write_str("prevented by waiting"),
            ProbeOutcome::Aborts { code: Some(code) } => write!(f, "prevented by abort ({code})"),
            ProbeOutcome::Aborts { code: None } => f.write_str("prevented by abort"),
            ProbeOutcome::NotObserved => f.write_str("prevented: it does not show"),
            ProbeOutcome::NotRun { why } => write!(f, "not run: {why}"),
        }
    }
}

impl ProbeTable {
    /// Each result with its probe and its setting.
    pub fn results(&self) -> impl Iterator<Item = (&Probe, &ProbeSetting, &ProbeResult)> {
        self.probes.iter().flat_map(|probe| {
            let cells = probe.results.iter().zip(&self.settings);
            cells.map(move |(result, setting)| (probe, setting, result))
        })
    }

    /// Why the checkers have no say in some results, in words: each reason once.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for (probe, _, result) in self.results() {
            let words = result.note.as_ref().map(|note| format!("{}: {note}", probe.name));
            notes.extend(words.filter(|words| !notes.contains(words)));
        }
        notes
    }

    /// Where the database does not keep what it claims, in words.
    pub fn broken_claims(&self) -> Vec<String> {
        let broken = self.results().filter(|(_, _, result)| result.breaks_claim());
        broken
            .map(|(probe, setting, _)| {
                format!(
                    "{} can happen at {}, which claims {}",
                    probe.title,
                    setting.isolation,
                    named(&setting.claims)
                )
            })
            .collect()
    }
}

/// Levels by name; a dash where there are none.
fn named(levels: &[Level]) -> String {
    match levels {
        [] => "-".to_owned(),
        levels => levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests;
