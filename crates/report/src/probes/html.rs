//! The table as a page of its own, with the transcript of every probe.

use std::io::{self, Write};

use super::{Probe, ProbeOutcome, ProbeResult, ProbeTable, Transcript, named};
use crate::html::{frame, framed_end};
use crate::xml::Escaped;

const STYLE: &str = "\
.probes td { white-space: nowrap; }
.probes td a { color: inherit; text-decoration: none; }
.probes td a:hover { text-decoration: underline; }
.probes td.happens { color: var(--bad); font-weight: 600; }
.probes td.broken { background: var(--bad-paper); }
.probes td.waits, .probes td.aborts, .probes td.not-shown { color: var(--good); }
.probes td.not-run { color: var(--faint); }
.wide { overflow-x: auto; }
.transcript td { padding-top: 1px; padding-bottom: 1px; }
.transcript td.surprise { color: var(--open); }
details { margin: 0.4rem 0; }
summary { cursor: pointer; }";

impl ProbeTable {
    /// Writes it as one page that needs nothing else.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        let broken = self.broken_claims();
        let class = if broken.is_empty() { "satisfied" } else { "violated" };
        let heading = format!("{}: which anomalies can happen", self.database);
        frame(&heading, class, STYLE, out)?;
        self.summary(&broken, out)?;
        self.table(out)?;
        writeln!(out, "<h2>Transcripts</h2>")?;
        for (number, probe) in self.probes.iter().enumerate() {
            self.details(number, probe, out)?;
        }
        framed_end(out)
    }

    fn summary(&self, broken: &[String], out: &mut dyn Write) -> io::Result<()> {
        for words in broken {
            writeln!(out, "<p class=\"verdict violated\">{}</p>", Escaped(words))?;
        }
        let cells = ["Isolation level", "Claims", "Because", "No probe rules out"];
        writeln!(out, "<div class=\"wide\"><table>\n<tr>{}</tr>", heads(&cells))?;
        for setting in &self.settings {
            writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                Escaped(&setting.isolation),
                named(&setting.claims),
                Escaped(&setting.claim_source),
                named(&setting.in_effect)
            )?;
        }
        writeln!(out, "</table></div>")?;
        if self.settings.iter().any(|setting| setting.moving.is_some()) {
            self.moving(out)?;
        }
        Ok(())
    }

    fn moving(&self, out: &mut dyn Write) -> io::Result<()> {
        let cells = ["Sessions that move between nodes", "Claims", "No probe rules out"];
        writeln!(out, "<div class=\"wide\"><table>\n<tr>{}</tr>", heads(&cells))?;
        for setting in &self.settings {
            let Some(moving) = &setting.moving else { continue };
            writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
                Escaped(&setting.isolation),
                named(&moving.claims),
                named(&moving.in_effect)
            )?;
        }
        writeln!(out, "</table></div>")
    }

    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<h2>Anomalies</h2>\n<p>An anomaly is prevented by waiting, by abort, or because nobody \
             sees it. Where it can happen although the claim forbids it, the cell is filled.</p>\n\
             <div class=\"wide\"><table class=\"probes\">"
        )?;
        let names = self.settings.iter().map(|setting| setting.isolation.as_str());
        let cells: Vec<&str> = std::iter::once("").chain(names).collect();
        writeln!(out, "<tr>{}</tr>", heads(&cells))?;
        for (number, probe) in self.probes.iter().enumerate() {
            let title = Escaped(&probe.title);
            write!(out, "<tr><th scope=\"row\"><a href=\"#p{number}\">{title}</a></th>")?;
            for result in &probe.results {
                write!(out, "{}", cell(number, result))?;
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</table></div>")
    }

    fn details(&self, number: usize, probe: &Probe, out: &mut dyn Write) -> io::Result<()> {
        let title = Escaped(&probe.title);
        writeln!(out, "<h3 id=\"p{number}\">{title}</h3>\n<p>{}</p>", Escaped(&probe.about))?;
        let forbidden = named(&probe.forbidden_by);
        writeln!(
            out,
            "<p class=\"hint\">Forbidden from: {forbidden}. <code>{}</code></p>",
            Escaped(&probe.name)
        )?;
        for (result, setting) in probe.results.iter().zip(&self.settings) {
            let (isolation, words) = (Escaped(&setting.isolation), result.outcome.to_string());
            let words = Escaped(&words);
            writeln!(out, "<details><summary>{isolation}: {words}</summary>")?;
            if let Some(disagreement) = &result.disagreement {
                writeln!(out, "<p class=\"verdict open\">{}</p>", Escaped(disagreement))?;
            }
            if let Some(note) = &result.note {
                let note = Escaped(note);
                writeln!(out, "<p class=\"hint\">Judged by the script alone: {note}.</p>")?;
            }
            transcript(&result.transcript, out)?;
            writeln!(out, "</details>")?;
        }
        Ok(())
    }
}

fn heads(names: &[&str]) -> String {
    names.iter().map(|name| format!("<th scope=\"col\">{}</th>", Escaped(name))).collect()
}

fn cell(number: usize, result: &ProbeResult) -> String {
    let broken = if result.breaks_claim() { " broken" } else { "" };
    let why = match &result.outcome {
        ProbeOutcome::NotRun { why } => format!(" title=\"{}\"", Escaped(why)),
        _ => String::new(),
    };
    let (name, words) = (result.outcome.name(), result.outcome.cell());
    let words = Escaped(&words);
    format!("<td class=\"{name}{broken}\"{why}><a href=\"#p{number}\">{words}</a></td>")
}

fn transcript(transcript: &Transcript, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = transcript.sessions.iter().map(String::as_str).collect();
    writeln!(out, "<div class=\"wide\"><table class=\"transcript\">\n<tr>{}</tr>", heads(&names))?;
    for line in &transcript.lines {
        let class = if line.is_surprise { " class=\"surprise\"" } else { "" };
        let words = Escaped(&line.text);
        let before = "<td></td>".repeat(line.session);
        let after = "<td></td>".repeat(names.len().saturating_sub(line.session + 1));
        writeln!(out, "<tr>{before}<td{class}><code>{words}</code></td>{after}</tr>")?;
    }
    writeln!(out, "</table></div>")
}
