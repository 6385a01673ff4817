//! The first page: what was tested, and what it comes to.

use std::io::{self, Write};

use isolario_model::{Level, Verdict};

use super::{lattice, section};
use crate::marks::Part;
use crate::meaning::Judgement;
use crate::names::{counted, grouped, listed};
use crate::report::Report;
use crate::sentences::{behind, how_often, lost_in_words, stated};
use crate::xml::Escaped;

pub(super) fn write(report: &Report<'_>, part: Part, out: &mut dyn Write) -> io::Result<()> {
    section("summary", "Summary", part, out)?;
    conclusion(report, out)?;
    for sentence in stated(report) {
        writeln!(out, "<p>{}</p>", with_code(&sentence))?;
    }
    if !report.results.is_empty() {
        lattice::write(report, part, out)?;
    }
    writeln!(out, "<div class=\"columns\">\n<div>")?;
    if !report.results.is_empty() {
        levels(report, out)?;
    }
    if !report.patterns.is_empty() {
        patterns(report, out)?;
    }
    writeln!(out, "</div>\n<div>")?;
    size(report, out)?;
    writeln!(out, "</div>\n</div>\n</section>")
}

/// The verdict, in the largest letters of the page.
fn conclusion(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (class, text) = verdict(report);
    writeln!(out, "<p class=\"verdict {class}\">{}</p>", Escaped(&text))
}

/// What the answers come to: how it looks, and in words.
pub(super) fn verdict(report: &Report<'_>) -> (&'static str, String) {
    let names = |levels: &[Level]| {
        listed(&levels.iter().map(|level| level.name().to_owned()).collect::<Vec<_>>())
    };
    let (strongest, weakest) = (report.strongest(), report.weakest_violated());
    let found = report.found().total() as u64;
    let lost = report.lost.map_or(0, |lost| lost.total());
    let (class, text) = match (&strongest[..], &weakest[..]) {
        _ if report.results.is_empty() && found > 0 => {
            ("violated", format!("{} found.", counted(found, "anomaly")))
        }
        _ if report.results.is_empty() && !report.patterns.is_empty() => {
            ("satisfied", "None of the anomalies that were looked for was found.".to_owned())
        }
        ([], []) => ("open", "No level was decided.".to_owned()),
        (strongest, []) => ("satisfied", format!("Satisfies {}.", names(strongest))),
        ([], weakest) => ("violated", format!("Violates {}.", names(weakest))),
        (strongest, weakest) => (
            "violated",
            format!("Violates {}; satisfies no more than {}.", names(weakest), names(strongest)),
        ),
    };
    let claim = report.asked.claim;
    match report.judgement() {
        _ if lost > 0 => ("violated", format!("{} lost. {text}", counted(lost, "commit"))),
        // What is violated beyond the claim breaks nothing.
        Judgement::Satisfied if class == "violated" && !claim.is_empty() => {
            ("satisfied", format!("Gives what is claimed, {}. {text}", names(claim)))
        }
        _ => (class, text),
    }
}

fn levels(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let head = "<tr><th scope=\"col\">Level</th><th scope=\"col\">Verdict</th>\
                <th scope=\"col\">Why</th></tr>";
    writeln!(out, "<table class=\"verdicts\">\n<caption>Verdict per level</caption>\n{head}")?;
    let found = report.found();
    if let Some(lost) = report.lost {
        let word = if lost.total() > 0 { "found" } else { "not found" };
        let verdict = lost.result.verdict.name();
        row(lost.result.kind.name(), verdict, word, &lost_in_words(report, lost), out)?;
    }
    for result in report.results {
        let (level, verdict) = (result.level.name(), result.verdict.name());
        let why = behind(report, &found, result, usize::MAX);
        row(level, verdict, &verdict.replace('-', " "), &why, out)?;
    }
    writeln!(out, "</table>")
}

fn patterns(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let head = "<tr><th scope=\"col\">Anomaly</th><th scope=\"col\">Answer</th>\
                <th scope=\"col\">Why</th></tr>";
    writeln!(out, "<table class=\"verdicts\">\n<caption>What was looked for</caption>\n{head}")?;
    for result in report.patterns {
        let word = match result.verdict {
            Verdict::Violated(_) => "found",
            Verdict::Satisfied(_) => "not found",
            _ => "open",
        };
        let verdict = result.verdict.name();
        row(result.kind.name(), verdict, word, &how_often(report, result), out)?;
    }
    writeln!(out, "</table>")
}

fn row(name: &str, class: &str, word: &str, why: &str, out: &mut dyn Write) -> io::Result<()> {
    let (name, why) = (Escaped(name), Escaped(why));
    let mark = lattice::mark(class);
    writeln!(
        out,
        "<tr><th scope=\"row\">{name}</th><td class=\"{class}\"><span aria-hidden=\"true\">{mark}\
         </span> {word}</td><td>{why}</td></tr>"
    )
}

fn size(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let size = &report.size;
    let mut facts = vec![
        ("History", report.name.to_owned()),
        ("Sessions", grouped(size.sessions)),
        (
            "Transactions",
            format!(
                "{} ({} committed, {} aborted, {} unknown)",
                grouped(size.transactions),
                grouped(size.committed),
                grouped(size.aborted),
                grouped(size.unknown)
            ),
        ),
        ("Operations", format!("{} on {}", grouped(size.operations), counted(size.keys, "key"))),
    ];
    if !report.timing.check.is_zero() {
        let (load, check) = (report.timing.load, report.timing.check);
        facts.push(("Time", format!("read in {load:.1?}, checked in {check:.1?}")));
    }
    facts.extend(report.provenance.facts());
    facts_list("What was checked", &facts, out)
}

/// A text in which commands stand between backquotes.
fn with_code(text: &str) -> String {
    let parts = text.split('`').map(|part| Escaped(part).to_string());
    let parts: Vec<String> = parts.collect();
    // Without a closing one, a backquote is a backquote.
    if parts.len().is_multiple_of(2) {
        return parts.join("`");
    }
    let one = |(at, part): (usize, &String)| match at % 2 {
        0 => part.clone(),
        _ => format!("<code class=\"line\">{part}</code>"),
    };
    parts.iter().enumerate().map(one).collect()
}

/// Names and what they stand for.
pub(super) fn facts_list(
    title: &str,
    facts: &[(&str, String)],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "<h3>{title}</h3>\n<dl class=\"facts\">")?;
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", with_code(fact))?;
    }
    writeln!(out, "</dl>")
}
