//! What a relational run leaves in its directory.

use std::io;

use isolario_formats::{self as formats, Target};
use isolario_model::{Counts, LevelResult, RunRecord, RunShape};
use isolario_report::{Json, Renderer, Report, bug_report, html, shell_word};
use isolario_sql::{Product, Script};
use isolario_verify::proof;
use serde::Serialize;

use super::settings::Settings;
use super::{Examined, Finding, Outcome, Simplified};
use crate::run::RunError;
use crate::run::directory::{Directory, HISTORY, PROOF, unix_seconds};

/// The table of findings, and what else a run came to.
pub(crate) const FINDINGS: &str = "findings.json";
/// The statements of a round, in the order in which they were sent.
const STATEMENTS: &str = "statements.sql";

/// Writes the folder of a round in which something was found: the statements, the history, and what
/// it was found to satisfy.
pub(super) fn write(
    directory: &Directory,
    examined: &Examined,
    product: &Product,
) -> Vec<RunError> {
    let path = directory.path().join(format!("round-{:04}", examined.number));
    let folder = match Directory::create(path) {
        Ok(folder) => folder,
        Err(error) => return vec![error],
    };
    let results = all_results(examined);
    let history = &examined.history;
    let report = Report::new(HISTORY, history, &results);
    let script = Script::of(&examined.round, &examined.schema);
    let sql = script.to_sql(product, Some(&examined.round));
    let read_as = isolario_verify::Options::default();
    let written = [
        folder.write(STATEMENTS, |out| out.write_all(sql.as_bytes())),
        write_history(&folder, examined),
        folder.write("verdict.json", |out| Json.report(&report, out)),
        folder.write(PROOF, |out| proof::write(history, &results, &read_as, HISTORY, out)),
        folder.write("report.html", |out| html::write(&report, None, out)),
    ];
    written.into_iter().filter_map(Result::err).collect()
}

/// Writes the smallest script that shows an anomaly, and a bug report with it.
pub(super) fn write_script(
    directory: &Directory,
    found: &Simplified,
    product: &Product,
    version: &str,
) -> Vec<RunError> {
    let name = format!("{}-{}", found.isolation, found.kind.name());
    let script = found.script.to_sql(product, Some(&found.replayed));
    let results = std::slice::from_ref(&found.result);
    let report = Report::new(HISTORY, &found.history, results);
    let title = found.kind.names().title;
    let (times, trials) = found.shown;
    let written = [
        directory.write(&format!("{name}.sql"), |out| {
            writeln!(out, "-- {title}: {version}, {}.", found.isolation)?;
            writeln!(out, "-- Replayed {trials} times, it showed {times} times.\n")?;
            out.write_all(script.as_bytes())
        }),
        directory.write(&format!("{name}.md"), |out| {
            bug_report::write(&report, None, out)?;
            writeln!(out, "\n## The statements\n")?;
            writeln!(out, "On {version} at {}, in this order:\n", found.isolation)?;
            writeln!(out, "```sql\n{script}```")
        }),
    ];
    written.into_iter().filter_map(Result::err).collect()
}

/// The answers for what was asked and for the level beside, weakest level first.
fn all_results(examined: &Examined) -> Vec<LevelResult> {
    let mut results = examined.examination.results.clone();
    if !results.iter().any(|result| result.level == examined.beside.level) {
        results.push(examined.beside.clone());
    }
    results.sort_by_key(|result| result.level);
    results
}

fn write_history(folder: &Directory, examined: &Examined) -> Result<(), RunError> {
    let path = folder.history();
    let write = || {
        let format = formats::find("isolario").ok_or_else(|| io::Error::other("no such format"))?;
        let mut writer = format.writer(Target::Path(path.clone()))?;
        examined.history.replay(&mut *writer)?;
        writer.finish()
    };
    write().map_err(|error| RunError::Recording { path: path.clone(), error })
}

/// What stands in `findings.json`.
#[derive(Serialize)]
struct Told<'o> {
    schema: &'static str,
    database: &'o str,
    version: &'o str,
    figures: super::Figures,
    table: &'o std::collections::BTreeMap<String, super::Row>,
    asked: &'o std::collections::BTreeMap<String, String>,
    errors: &'o std::collections::BTreeMap<String, (u64, String)>,
    findings: Vec<ToldFinding<'o>>,
    simplified: Vec<ToldScript<'o>>,
}

#[derive(Serialize)]
struct ToldFinding<'o> {
    round: u64,
    isolation: &'o str,
    anomaly: &'static str,
    transactions: &'o [u32],
    pattern: &'o str,
    breaks_claim: bool,
}

#[derive(Serialize)]
struct ToldScript<'o> {
    isolation: &'o str,
    anomaly: &'static str,
    round: u64,
    transactions: usize,
    statements: usize,
    pattern: &'o str,
    tried: u32,
    shown: (u32, u32),
    cut_short: bool,
}

impl<'o> From<&'o Simplified> for ToldScript<'o> {
    fn from(found: &'o Simplified) -> ToldScript<'o> {
        let (transactions, statements) = found.size();
        ToldScript {
            isolation: &found.isolation,
            anomaly: found.kind.name(),
            round: found.round,
            transactions,
            statements,
            pattern: &found.pattern,
            tried: found.tried,
            shown: found.shown,
            cut_short: found.is_cut_short,
        }
    }
}

impl<'o> From<&'o Finding> for ToldFinding<'o> {
    fn from(finding: &'o Finding) -> ToldFinding<'o> {
        ToldFinding {
            round: finding.round,
            isolation: &finding.isolation,
            anomaly: finding.kind.name(),
            transactions: &finding.txns,
            pattern: &finding.pattern,
            breaks_claim: finding.breaks_claim,
        }
    }
}

/// The outcome of a run as JSON, on one line.
pub(super) fn json(outcome: &Outcome, out: &mut dyn io::Write) -> io::Result<()> {
    let told = Told {
        schema: "isolario.relational/1",
        database: &outcome.database,
        version: &outcome.version,
        figures: outcome.figures,
        table: &outcome.table,
        asked: &outcome.asked,
        errors: &outcome.errors,
        findings: outcome.findings.iter().map(ToldFinding::from).collect(),
        simplified: outcome.simplified.iter().map(ToldScript::from).collect(),
    };
    serde_json::to_writer(&mut *out, &told)?;
    writeln!(out)
}

/// Writes `run.json`, as every run has it, and `findings.json`.
pub(super) fn write_record(
    directory: &Directory,
    settings: &Settings,
    outcome: &Outcome,
) -> Result<(), RunError> {
    let figures = outcome.figures;
    let record = RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        isolario: env!("CARGO_PKG_VERSION").to_owned(),
        began_unix_s: unix_seconds().saturating_sub(outcome.elapsed.as_secs()),
        urls: settings.urls.iter().map(ToString::to_string).collect(),
        database: outcome.database.clone(),
        database_version: outcome.version.clone(),
        isolation: settings.isolation.clone().unwrap_or_else(|| "any".to_owned()),
        workload: RunShape {
            kind: "sql".to_owned(),
            sessions: settings.sessions.unwrap_or_default(),
            ops: u32::try_from(settings.style.statements).unwrap_or(u32::MAX),
            txns: settings.txns,
            duration_ms: settings.duration.map(|duration| duration.as_secs_f64() * 1e3),
            ..RunShape::default()
        },
        seed: settings.seed.to_string(),
        replay: outcome.replay.clone(),
        stopped: outcome.stopped,
        counts: Counts {
            committed: figures.committed,
            aborted: figures.aborted,
            unknown: figures.unknown,
            operations: figures.statements,
            ..Counts::default()
        },
        run_ms: outcome.elapsed.as_secs_f64() * 1e3,
        ..RunRecord::default()
    };
    directory.write_record(&record)?;
    directory.write(FINDINGS, |out| json(outcome, out))
}

/// The command that repeats a run. Passwords are left out.
pub(super) fn command(settings: &Settings) -> String {
    let mut words = vec!["isolario run --workload sql".to_owned()];
    let mut flag =
        |name: &str, value: String| words.push(format!("--{name} {}", shell_word(&value)));
    for url in &settings.urls {
        flag("db", url.to_string());
    }
    if let Some(isolation) = &settings.isolation {
        flag("isolation", isolation.clone());
    }
    if let Some(sessions) = settings.sessions {
        flag("sessions", sessions.to_string());
    }
    if let Some(txns) = settings.txns {
        flag("txns", txns.to_string());
    }
    if let Some(duration) = settings.duration {
        flag("duration", format!("{}ms", duration.as_millis()));
    }
    flag("ops", settings.style.statements.to_string());
    flag("seed", settings.seed.to_string());
    words.join(" ")
}
