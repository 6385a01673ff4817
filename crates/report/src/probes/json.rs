//! The table for programs.

use std::io;

use isolario_model::{AnomalyKind, Level};
use serde::Serialize;

use super::{Probe, ProbeOutcome, ProbeResult, ProbeSetting, ProbeTable};
use crate::json::write_line;

const SCHEMA: &str = "isolario.probe/1";

impl ProbeTable {
    /// Writes it as one line of JSON.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        write_line(
            &Object {
                schema: SCHEMA,
                database: &self.database,
                urls: &self.urls,
                settings: self.settings.iter().map(Setting::of).collect(),
                probes: self.probes.iter().map(|probe| Row::of(probe, &self.settings)).collect(),
            },
            out,
        )
    }
}

#[derive(Serialize)]
struct Object<'a> {
    schema: &'static str,
    database: &'a str,
    urls: &'a [String],
    settings: Vec<Setting<'a>>,
    probes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Setting<'a> {
    isolation: &'a str,
    claims: Vec<&'static str>,
    claim_words: &'a str,
    in_effect: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moving_sessions: Option<Moving>,
}

#[derive(Serialize)]
struct Moving {
    claims: Vec<&'static str>,
    in_effect: Vec<&'static str>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    anomaly: Option<&'static str>,
    forbidden_by: Vec<&'static str>,
    results: Vec<Cell<'a>>,
}

#[derive(Serialize)]
struct Cell<'a> {
    isolation: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    forbidden_by_claim: bool,
    violated: Vec<&'static str>,
    anomalies: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    transcript: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    what: &'a str,
    surprise: bool,
}

impl<'a> Setting<'a> {
    fn of(setting: &'a ProbeSetting) -> Setting<'a> {
        Setting {
            isolation: &setting.isolation,
            claims: levels(&setting.claims),
            claim_words: &setting.claim_source,
            in_effect: levels(&setting.in_effect),
            moving_sessions: setting.moving.as_ref().map(|moving| Moving {
                claims: levels(&moving.claims),
                in_effect: levels(&moving.in_effect),
            }),
        }
    }
}

impl<'a> Row<'a> {
    fn of(probe: &'a Probe, settings: &'a [ProbeSetting]) -> Row<'a> {
        let cells = probe.results.iter().zip(settings);
        Row {
            name: &probe.name,
            title: &probe.title,
            anomaly: probe.anomaly.map(AnomalyKind::name),
            forbidden_by: levels(&probe.forbidden_by),
            results: cells.map(|(result, setting)| Cell::of(result, setting)).collect(),
        }
    }
}

impl<'a> Cell<'a> {
    fn of(result: &'a ProbeResult, setting: &'a ProbeSetting) -> Cell<'a> {
        let transcript = &result.transcript;
        let session = |at: usize| transcript.sessions.get(at).map_or("", String::as_str);
        let lines = transcript.lines.iter();
        Cell {
            isolation: &setting.isolation,
            outcome: result.outcome.name(),
            code: match &result.outcome {
                ProbeOutcome::Aborts { code } => code.as_deref(),
                _ => None,
            },
            why: match &result.outcome {
                ProbeOutcome::NotRun { why } => Some(why),
                _ => None,
            },
            forbidden_by_claim: result.is_forbidden,
            violated: levels(&result.violated),
            anomalies: result.anomalies.iter().map(|kind| kind.name()).collect(),
            disagreement: result.disagreement.as_deref(),
            note: result.note.as_deref(),
            transcript: lines
                .map(|line| Line {
                    session: session(line.session),
                    what: &line.text,
                    surprise: line.is_surprise,
                })
                .collect(),
        }
    }
}

fn levels(levels: &[Level]) -> Vec<&'static str> {
    levels.iter().map(|level| level.name()).collect()
}
