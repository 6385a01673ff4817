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
mod own_word;
mod pack;
mod run;
mod scripts;
mod smallest;
mod summary;
mod transactions;
mod untimed;

use std::io::{self, Write};

use isolario_model::RunRecord;

use crate::marks::Part;
use crate::meaning::Judgement;
use crate::names::grouped;
use crate::report::Report;
use crate::sentences::headline;
use crate::xml::Escaped;
use anomalies::Chosen;
use embed::{Embedded, PAGE};

pub use collection::ReportCollection;

const PICTURE_STYLE: &str = include_str!("assets/picture.css");
const STYLE: &str = include_str!("assets/report.css");

/// Writes the report on a history, and on the run that recorded it where there was one.
///
/// A report without answers is fine: it says that nothing was decided. So whoever is interrupted can
/// still write what there is.
pub fn write(report: &Report<'_>, run: Option<&RunRecord>, out: &mut dyn Write) -> io::Result<()> {
    let script = scripts::script();
    let (class, heading) = heading(report, run);
    let mut top = Vec::new();
    head(&heading, &scripts::policy(&script), &mut top)?;
    header(report, run, (class, &heading), &mut top)?;
    let taken = top.len() + script.len();
    out.write_all(&top)?;
    writeln!(out, "<main class=\"part\" data-part=\"\">")?;
    part(report, run, Part(0), PAGE.saturating_sub(taken), out)?;
    writeln!(out, "</main>\n<script type=\"module\">{script}</script>\n</body>\n</html>")
}

/// Everything about one history, in a page of its own or among others. Addresses within it begin with the
/// name of the part.
fn part(
    report: &Report<'_>,
    run: Option<&RunRecord>,
    part: Part,
    room: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let chosen = Chosen::of(report);
    let mut top = Vec::new();
    summary::write(report, part, &mut top)?;
    if let Some(excerpt) = &report.excerpt {
        smallest::write(report, excerpt, run, part, &mut top)?;
    }
    if let Some(run) = run {
        run::write(run, part, &mut top)?;
    }
    // How much of the history fits depends on how large the rest is; the anomalies' own timelines
    // need to know where their transactions are in it.
    let taken = top.len() + anomalies::estimate(report, &chosen, part)?;
    let all = chosen.all();
    let shown = &all[..chosen.full().len()];
    let embedded = Embedded::of(report, run, shown, &all, room.saturating_sub(taken))?;
    out.write_all(&top)?;
    anomalies::write(report, &chosen, Some(&embedded), part, out)?;
    history::write(report, &embedded, part, out)
}

/// The beginning of a section. Among several histories it stands below the name of its own, and is no
/// landmark: there would be many of the same name.
fn section(id: &str, title: &str, part: Part, out: &mut dyn Write) -> io::Result<()> {
    match part {
        Part(0) => writeln!(
            out,
            "<section class=\"{id}\" id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 \
             id=\"{id}-title\">{title}</h2>"
        ),
        part => writeln!(out, "<section class=\"{id}\" id=\"{part}{id}\">\n<h3>{title}</h3>"),
    }
}

/// What was tested and what came of it: how that looks, and in words.
fn heading(report: &Report<'_>, run: Option<&RunRecord>) -> (&'static str, String) {
    if let Some(run) = run {
        let (text, judgement) = headline(report, run);
        return (class_of(judgement), text);
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
fn class_of(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Satisfied => "satisfied",
        Judgement::Violated => "violated",
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

/// The beginning of a page that is not about a history: it has no scripts.
pub(crate) fn frame(
    heading: &str,
    class: &str,
    style: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    head(heading, policy, out)?;
    let heading = Escaped(heading);
    writeln!(
        out,
        "<style>\n{style}\n</style>\n<header>\n<p class=\"brand\">Isolario report</p>\n\
         <h1 class=\"{class}\"><bdi>{heading}</bdi></h1>\n</header>\n<main>"
    )
}

/// And its end.
pub(crate) fn framed_end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</main>\n</body>\n</html>")
}

fn header(
    report: &Report<'_>,
    run: Option<&RunRecord>,
    (class, heading): (&str, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    let found = grouped(report.found().total() as u64);
    let name = Escaped(heading);
    let to_smallest = match report.excerpt {
        Some(_) => "<a href=\"#smallest\">Smallest part</a> ",
        None => "",
    };
    let to_run = if run.is_some() { "<a href=\"#run\">Run</a> " } else { "" };
    writeln!(
        out,
        "<header>\n<a class=\"skip\" href=\"#anomalies\">Skip to the anomalies</a>\n\
         <p class=\"brand\">Isolario report</p>\n<h1 class=\"{class}\"><bdi>{name}</bdi></h1>\n\
         <nav aria-label=\"Sections\"><a href=\"#summary\">Summary</a> {to_smallest}{to_run}\
         <a href=\"#anomalies\">Anomalies ({found})</a> <a href=\"#history\">History</a>\n\
         <button type=\"button\" id=\"theme\" hidden>Colours: as the system has it</button></nav>\n\
         </header>"
    )
}

#[cfg(test)]
mod tests;
