//! Reports as one HTML file that needs nothing else: no network, no server, no other file.
//!
//! What matters is in the markup itself: verdicts, words and pictures can be read, printed and heard
//! without scripts. Scripts add what needs a hand: graphs to take apart, and the whole history.

mod anomalies;
mod chart;
mod collection;
mod embed;
mod facts;
mod history;
mod lattice;
mod pack;
mod run;
mod scripts;
mod summary;
mod transactions;
mod untimed;

use std::io::{self, Write};

use isolario_model::{RunRecord, VerdictKind};

use crate::names::grouped;
use crate::report::Report;
use crate::xml::Escaped;
use anomalies::Chosen;
use embed::Embedded;

pub use collection::Collection;

const PICTURE_STYLE: &str = include_str!("assets/picture.css");
const STYLE: &str = include_str!("assets/report.css");

/// Writes the report on a history, and on the run that recorded it where there was one.
///
/// A report without answers is fine: it says that nothing was decided. So whoever is interrupted can
/// still write what there is.
pub fn write(report: &Report<'_>, run: Option<&RunRecord>, out: &mut dyn Write) -> io::Result<()> {
    let script = scripts::script();
    let chosen = Chosen::of(report);
    let mut top = Vec::new();
    let (class, heading) = heading(report, run);
    head(&heading, &scripts::policy(&script), &mut top)?;
    body(report, run, &chosen, (class, &heading), &mut top)?;
    // How much of the history fits depends on how large the rest is; the anomalies' own timelines
    // need to know where their transactions are in it.
    let rough = anomalies::estimate(report, &chosen)?;
    let taken = top.len() + script.len() + rough;
    let embedded = {
        let all = chosen.all();
        Embedded::of(report, run, &all[..chosen.full().len()], &all, taken)?
    };
    out.write_all(&top)?;
    anomalies::write(report, &chosen, Some(&embedded), out)?;
    history::write(report, &embedded, out)?;
    writeln!(out, "</main>\n<script type=\"module\">{script}</script>\n</body>\n</html>")
}

/// What was tested and what came of it: how that looks, and in words.
fn heading(report: &Report<'_>, run: Option<&RunRecord>) -> (&'static str, String) {
    if let Some(run) = run {
        let (text, verdict) = report.headline(run);
        return (class_of(verdict), text);
    }
    let (class, verdict) = summary::verdict(report);
    // How much it satisfies stands below.
    let verdict = verdict.split(';').next().unwrap_or_default().trim_end_matches('.');
    let mut letters = verdict.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    let text = format!("{}: {}{}", report.name, first.unwrap_or_default(), letters.as_str());
    (class, text)
}

/// How an answer looks in a heading.
fn class_of(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Satisfied => "satisfied",
        VerdictKind::Violated => "violated",
        _ => "open",
    }
}

fn head(heading: &str, policy: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = Escaped(heading);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<title>{name}: Isolario</title>")?;
    writeln!(
        out,
        "<style id=\"picture-style\">\n{PICTURE_STYLE}</style>\n<style>\n{STYLE}</style>\n</head>\n<body>"
    )
}

fn body(
    report: &Report<'_>,
    run: Option<&RunRecord>,
    chosen: &Chosen<'_>,
    (class, heading): (&str, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    let found = grouped(chosen.found.total() as u64);
    let name = Escaped(heading);
    let to_run = if run.is_some() { "<a href=\"#run\">Run</a> " } else { "" };
    writeln!(
        out,
        "<header>\n<a class=\"skip\" href=\"#anomalies\">Skip to the anomalies</a>\n\
         <p class=\"brand\">Isolario report</p>\n<h1 class=\"{class}\"><bdi>{name}</bdi></h1>\n\
         <nav aria-label=\"Sections\"><a href=\"#summary\">Summary</a> {to_run}\
         <a href=\"#anomalies\">Anomalies ({found})</a> <a href=\"#history\">History</a>\n\
         <button type=\"button\" id=\"theme\" hidden>Colours: as the system has it</button></nav>\n\
         </header>\n<main>"
    )?;
    summary::write(report, out)?;
    match run {
        Some(run) => run::write(run, out),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
