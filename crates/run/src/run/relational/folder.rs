//! What a relational run leaves in its directory.

use std::io;

use isolario_formats::{self as formats, OutputTarget};
use isolario_model::{Counts, History, LevelResult, RunRecord, RunShape};
use isolario_report::{Json, Renderer, Report, html};
use isolario_sql::{Product, Script};
use isolario_verify::proof;

use super::course::Examined;
use super::outcome::Outcome;
use super::record::FINDINGS;
use super::settings::Settings;
use super::site::Site;
use crate::run::RunError;
use crate::run::directory::{Directory, HISTORY, PROOF, unix_seconds};
use crate::run::replay::{CommandLine, span};

/// The statements of a round, in the order in which they were sent.
pub(super) const STATEMENTS: &str = "statements.sql";

/// The folder of a round.
pub(super) fn of_round(number: u64) -> String {
    format!("round-{number:04}")
}

/// How much a round leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Its statements.
    Statements,
    /// Also its history, the verdict and the proof.
    History,
    /// Also a report.
    Report,
}

/// Writes the folder of a round in which something was found.
pub(super) fn write(
    directory: &Directory,
    examined: &Examined,
    script: &Script,
    product: &Product,
    detail: Detail,
) -> Vec<RunError> {
    let folder = match Directory::create(directory.file(&of_round(examined.number))) {
        Ok(folder) => folder,
        Err(error) => return vec![error],
    };
    let sql = script.to_sql(product, Some(&examined.round));
    let statements = folder.write(STATEMENTS, |out| out.write_all(sql.as_bytes()));
    if detail < Detail::History {
        return statements.err().into_iter().collect();
    }
    let results = all_results(examined);
    let history = &examined.history;
    let report = Report::new(HISTORY, history, &results);
    let read_as = isolario_verify::VerifyOptions::default();
    let written = [
        statements,
        write_history(&folder, HISTORY, &examined.history),
        folder.write("verdict.json", |out| Json.report(&report, out)),
        folder.write(PROOF, |out| proof::write(history, &results, &read_as, HISTORY, out)),
    ];
    written.into_iter().filter_map(Result::err).collect()
}

/// Writes the report on a round whose folder is there already. To draw it takes longer than the round itself did.
pub(super) fn write_report(directory: &Directory, examined: &Examined) -> Result<(), RunError> {
    let folder = Directory::existing(directory.file(&of_round(examined.number)));
    let results = all_results(examined);
    let report = Report::new(HISTORY, &examined.history, &results);
    folder.write("report.html", |out| html::write(&report, None, out))
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

/// Writes a history into a file of a folder.
pub(super) fn write_history(
    folder: &Directory,
    name: &str,
    history: &History,
) -> Result<(), RunError> {
    let path = folder.file(name);
    let write = || {
        let format = formats::find("isolario").ok_or_else(|| io::Error::other("no such format"))?;
        let mut writer = format.writer(OutputTarget::Path(path.clone()))?;
        history.replay(&mut *writer)?;
        writer.finish()
    };
    write().map_err(|error| RunError::Recording { path: path.clone(), error })
}

/// What is known of a run when it begins.
pub(super) fn record(settings: &Settings, site: &Site<'_>) -> RunRecord {
    RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        isolario: env!("CARGO_PKG_VERSION").to_owned(),
        began_unix_s: unix_seconds(),
        urls: settings.urls.iter().map(ToString::to_string).collect(),
        database: site.name.clone(),
        database_version: site.version.clone(),
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
        replay: command(settings),
        ..RunRecord::default()
    }
}

/// Writes `run.json`, as every run has it, and `findings.json`.
pub(super) fn write_record(
    directory: &Directory,
    begun: RunRecord,
    outcome: &Outcome,
) -> Result<(), RunError> {
    let figures = outcome.figures;
    let record = RunRecord {
        stopped: outcome.stopped,
        counts: Counts {
            committed: figures.committed,
            aborted: figures.aborted,
            unknown: figures.unknown,
            operations: figures.statements,
            ..Counts::default()
        },
        run_ms: outcome.elapsed.as_secs_f64() * 1e3,
        ..begun
    };
    directory.write_record(&record)?;
    directory.write(FINDINGS, |out| outcome.json(out))
}

/// The command that repeats a run.
fn command(settings: &Settings) -> String {
    let usual = Settings::new(Vec::new());
    let mut line = CommandLine::new(&settings.urls);
    line.flag("workload", "sql");
    line.any("isolation", settings.isolation.as_ref());
    line.ask(&settings.ask);
    line.any("sessions", settings.sessions);
    line.any("txns", settings.txns);
    line.any("duration", settings.duration.map(span));
    line.any("aim", settings.aim.as_ref());
    line.any("templates", settings.templates.as_ref().map(|path| path.display()));
    line.switch("predicates", settings.predicates);
    line.switch("keep", settings.keep);
    line.switch("stop-on-violation", settings.stop_on_violation);
    let (style, bounds) = (&settings.style, &settings.bounds);
    line.any("mix", Some(&style.mix).filter(|mix| **mix != usual.style.mix));
    let timeout = settings.statement_timeout;
    line.any(
        "statement-timeout",
        Some(timeout).filter(|one| *one != usual.statement_timeout).map(span),
    );
    for (name, bound, default) in [
        ("tables", bounds.tables, usual.bounds.tables),
        ("columns", bounds.columns, usual.bounds.columns),
        ("rows", bounds.rows, usual.bounds.rows),
        ("depth", style.depth, usual.style.depth),
        ("round", settings.round as usize, usual.round as usize),
    ] {
        line.any(name, Some(bound).filter(|bound| *bound != default));
    }
    line.flag("ops", style.statements);
    line.seeded(settings.seed)
}
