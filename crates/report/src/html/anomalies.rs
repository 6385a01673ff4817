//! The anomalies: each with its names, what happened, who took part, and the argument.

use std::io::{self, Write};

use isolario_model::{Anomaly, Edge, Evidence, Outcome, Reason};

use crate::explain::Topic;
use crate::involved::{Involved, involved};
use crate::names::{Names, counted};
use crate::picture::Shown;
use crate::report::Report;
use crate::svg;
use crate::words::{Step, happened, other_names, rules_out, summary, told};
use crate::xml::Escaped;

/// How many anomalies beyond those in full are listed with one sentence.
const MOST_IN_SHORT: usize = 500;
const MOST_CASES: usize = 20;

pub(super) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let names = Names::new(report.history);
    let all = report.anomalies();
    writeln!(out, "<section id=\"anomalies\" aria-labelledby=\"anomalies-title\">")?;
    writeln!(out, "<h2 id=\"anomalies-title\">Anomalies</h2>")?;
    if all.is_empty() {
        writeln!(out, "<p>None.</p>")?;
    }
    let (full, short) = all.split_at(all.len().min(report.max_anomalies));
    for (number, anomaly) in (1..).zip(full) {
        one(names, number, anomaly, out)?;
    }
    in_short(names, short, out)?;
    writeln!(out, "</section>")
}

fn one(names: Names<'_>, number: usize, anomaly: &Anomaly, out: &mut dyn Write) -> io::Result<()> {
    let kind = anomaly.kind;
    let others = other_names(kind);
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"aka\">{}</span>", Escaped(&others.join(", ")))
    };
    writeln!(out, "<article class=\"anomaly\" id=\"a{number}\" data-kind=\"{kind}\">")?;
    writeln!(out, "<h3>{number}. {kind}{others}</h3>")?;
    writeln!(out, "<p class=\"rules-out\">{}</p>", Escaped(&rules_out(kind)))?;
    writeln!(out, "<p class=\"happened\">{}</p>", Escaped(&happened(names, anomaly)))?;
    writeln!(out, "<div class=\"graph\">")?;
    svg::figure(names, anomaly, Shown::Relevant, out)?;
    svg::figure(names, anomaly, Shown::All, out)?;
    writeln!(out, "</div>")?;
    transactions(names, &involved(names.history(), anomaly), out)?;
    argument(names, &anomaly.evidence, out)?;
    for paragraph in Topic::Anomaly(kind).page().look_at {
        writeln!(out, "<p><strong>Where to look:</strong> {}</p>", Escaped(&paragraph))?;
    }
    writeln!(out, "</article>")
}

fn transactions(names: Names<'_>, involved: &[Involved], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<table class=\"transactions\">\n<caption>Transactions</caption>\n<tr><th scope=\"col\">\
         Transaction</th><th scope=\"col\">Session</th><th scope=\"col\">Operations that matter</th></tr>"
    )?;
    for part in involved {
        let history = names.history();
        let line = history.line(part.txn).map_or(String::new(), |line| format!(", line {line}"));
        let outcome = match history.outcome(part.txn) {
            Outcome::Committed => "",
            Outcome::Aborted => ", aborted",
            Outcome::Unknown => ", outcome unknown",
        };
        let place = format!("{}{line}{outcome}", names.session(part.txn));
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            Escaped(&names.txn(part.txn)),
            Escaped(&place),
            operations(names, part)
        )?;
    }
    writeln!(out, "</table>")
}

fn operations(names: Names<'_>, part: &Involved) -> String {
    let shown = part.ops.iter().map(|op| format!("<code>{}</code>", Escaped(&names.op(*op))));
    let mut shown: Vec<String> = shown.collect();
    if part.omitted > 0 {
        let more = if shown.is_empty() { "operation" } else { "more operation" };
        shown.push(format!("<span class=\"aka\">{}</span>", counted(part.omitted as u64, more)));
    }
    shown.join(" ")
}

fn argument(names: Names<'_>, evidence: &Evidence, out: &mut dyn Write) -> io::Result<()> {
    match evidence {
        Evidence::Cases { cycles } => {
            for (number, cycle) in (1..).zip(cycles.iter().take(MOST_CASES)) {
                writeln!(out, "<h4>Case {number} of {}</h4>", cycles.len())?;
                circle(names, cycle, out)?;
            }
            match cycles.len().saturating_sub(MOST_CASES) as u64 {
                0 => Ok(()),
                more => writeln!(out, "<p>… and {}.</p>", counted(more, "more case")),
            }
        }
        Evidence::Cycle { edges } => {
            writeln!(out, "<h4>Why this is impossible</h4>")?;
            circle(names, edges, out)
        }
        evidence if evidence.edges().is_empty() => Ok(()),
        evidence => {
            writeln!(out, "<h4>Why this is impossible</h4>")?;
            steps(names, &told(names, evidence.edges()), out)
        }
    }
}

fn circle(names: Names<'_>, edges: &[Edge], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = edges.first() else { return Ok(()) };
    let (edges, conclusion) = match &first.reason {
        // Nobody needs to be told that the beginning comes first.
        Reason::Initial => {
            (&edges[1..], format!("So {} comes before the initial state.", names.txn(first.to)))
        }
        _ => (edges, format!("So {} comes before itself.", names.txn(first.from))),
    };
    steps(names, &told(names, edges), out)?;
    writeln!(out, "<p class=\"contradiction\">{}</p>", Escaped(&conclusion))
}

/// Numbered steps; what they rest on can be folded away. As deep as `told` goes, which is not far.
fn steps(names: Names<'_>, steps_of: &[Step], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<ol class=\"argument\">")?;
    for step in steps_of {
        let about = step.key.map_or(String::new(), |key| format!(" {}", names.key(key)));
        let label = format!("{}{about}", step.kind.name());
        writeln!(
            out,
            "<li><span class=\"edge {}\">{} → {} <span class=\"kind\">{}</span></span> {}",
            step.kind.name(),
            Escaped(&names.txn(step.from)),
            Escaped(&names.txn(step.to)),
            Escaped(&label),
            Escaped(&step.sentence)
        )?;
        if !step.because.is_empty() {
            writeln!(out, "<details open><summary>Why</summary>")?;
            steps(names, &step.because, out)?;
            if let Some(conclusion) = &step.conclusion {
                writeln!(out, "<p class=\"contradiction\">{}.</p>", Escaped(conclusion))?;
            }
            writeln!(out, "</details>")?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ol>")
}

/// What is not shown in full: a line each.
fn in_short(names: Names<'_>, anomalies: &[&Anomaly], out: &mut dyn Write) -> io::Result<()> {
    if anomalies.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h3>More, in short</h3>\n<ul class=\"in-short\">")?;
    for anomaly in anomalies.iter().take(MOST_IN_SHORT) {
        let (kind, summary) = (anomaly.kind, summary(names, anomaly));
        writeln!(out, "<li data-kind=\"{kind}\"><b>{kind}</b>: {}</li>", Escaped(&summary))?;
    }
    writeln!(out, "</ul>")?;
    match anomalies.len().saturating_sub(MOST_IN_SHORT) as u64 {
        0 => Ok(()),
        more => writeln!(out, "<p>… and {}.</p>", counted(more, "more anomaly")),
    }
}
