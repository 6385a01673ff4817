//! Explains what a history proves, to people and to programs.
//!
//! A [`Report`] says what there is to say about one history; a [`Renderer`] says it. There is one
//! renderer per file: [`Human`] for a terminal, `Json` (with that feature) for programs, [`Junit`]
//! and [`Github`] for CI. Renderers know nothing of checkers, and take every sentence from [`sentences`].
//!
//! ```
//! use isolario_model::{Attempt, Batch, Level, LevelResult, Verdict, Witness};
//! use isolario_report::{Human, Renderer, Report};
//!
//! let history = Batch::new().build()?;
//! let results = [LevelResult {
//!     level: Level::ReadCommitted,
//!     decided_by: Attempt::Rule,
//!     verdict: Verdict::Satisfied(Witness::Empty),
//! }];
//! let mut out = Vec::new();
//! Human::default().report(&Report::new("h.txt", &history, &results), &mut out)?;
//! assert!(String::from_utf8(out)?.contains("read-committed"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "html")]
pub mod bug_report;
mod card;
#[cfg(feature = "html")]
pub mod dot;
#[cfg(feature = "html")]
mod excerpt;
pub mod explain;
mod finding;
mod github;
#[cfg(feature = "html")]
pub mod html;
mod human;
mod implied;
mod involved;
#[cfg(feature = "json")]
mod json;
mod junit;
mod markdown;
mod marks;
mod meaning;
mod names;
mod not_ruled_out;
#[cfg(feature = "html")]
mod picture;
mod printable;
mod probes;
mod provenance;
mod report;
#[cfg(feature = "html")]
mod schedule;
pub mod sentences;
mod show;
#[cfg(feature = "html")]
mod sql_script;
mod stats;
mod summary;
#[cfg(feature = "html")]
pub mod svg;
#[cfg(test)]
mod testing;
mod text;
mod txn_facts;
mod wrap;
mod xml;

pub use card::card;
#[cfg(feature = "html")]
pub use excerpt::Excerpt;
pub use finding::{Finding, FindingGroup, ReportFindings};
pub use github::Github;
pub use human::{Hints, Human, Style};
pub use implied::{KnownVerdict, known, levels_known};
pub use involved::{InvolvedTxn, first_counterexample, involved};
#[cfg(feature = "json")]
pub use json::Json;
pub use junit::Junit;
pub use meaning::{Judgement, RequestedLevels, deciding, overall_of_patterns};
pub use names::{Names, grouped};
pub use not_ruled_out::not_ruled_out;
pub use printable::{is_unprintable, printable};
pub use probes::{
    MovingSessions, Probe, ProbeOutcome, ProbeResult, ProbeSetting, ProbeTable, Transcript,
    TranscriptLine,
};
pub use provenance::{Provenance, Utc, shell_word};
pub use report::{
    HistoryName, HistorySize, LostCommitsResult, Renderer, Report, StatedOrderEffect, Timing,
};
pub use show::{KeyVersions, Subject, VersionSources, VersionUses};
pub use stats::StatsReport;
pub use summary::Summary;
pub use text::as_text;
pub use txn_facts::TxnFacts;
pub use wrap::wrap;
