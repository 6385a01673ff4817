//! The anomalies: each with its names, what happened, who took part, and the argument.

use std::collections::BTreeSet;
use std::io::{self, Write};

use isolario_model::{Anomaly, AnomalyKind, Edge, EdgeKind, Evidence, Level, Reason, Verdict};

use super::embed::Embedded;
use super::section;
use super::transactions::{self, MOST_OPEN};
use crate::card::card;
use crate::dot;
use crate::finding::{Finding, ReportFindings};
use crate::involved::InvolvedTxn;
use crate::marks::{Linked, Part};
use crate::names::{Names, counted, grouped};
use crate::picture::{Picture, Shown};
use crate::report::Report;
use crate::sentences::{
    ArgumentStep, HOW_TO_READ_CASES, advice, alike, asked_for, breaks, capitalised, case, happened,
    other_names_of_finding, summary, supposed, title, told,
};
use crate::svg;
use crate::xml::Escaped;

/// How many anomalies beyond those in full are listed with one sentence.
const MOST_IN_SHORT: usize = 2000;

/// What was found, and how much of it is shown in full.
pub(super) struct Chosen<'h> {
    pub(super) found: ReportFindings<'h>,
    full: usize,
}

impl<'h> Chosen<'h> {
    pub(super) fn of(report: &Report<'h>) -> Chosen<'h> {
        let found = report.found();
        let full = found.in_full(report.max_anomalies).len();
        Chosen { found, full }
    }

    /// Those with a card of their own.
    pub(super) fn full(&self) -> &[Finding<'h>] {
        &self.found.findings[..self.full]
    }

    /// The telling anomaly of each finding, in the order of their numbers on the page.
    pub(super) fn all(&self) -> Vec<&'h Anomaly> {
        self.found.findings.iter().map(|finding| finding.anomaly).collect()
    }
}

/// How large the section is without what scripts need.
pub(super) fn estimate(report: &Report<'_>, chosen: &Chosen<'_>, part: Part) -> io::Result<usize> {
    let mut text = Vec::new();
    write(report, chosen, None, part, &mut text)?;
    Ok(text.len() + 200 * chosen.full().len())
}

pub(super) fn write(
    report: &Report<'_>,
    chosen: &Chosen<'_>,
    embedded: Option<&Embedded>,
    part: Part,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page { report, names: Names::marked(report.history, part), embedded, part };
    section("anomalies", "Anomalies", part, out)?;
    if chosen.found.findings.is_empty() {
        writeln!(out, "<p>None.</p>")?;
    } else {
        page.filter(chosen, out)?;
        page.contents(chosen, out)?;
        kinds(out)?;
    }
    page.cards(chosen, out)?;
    writeln!(out, "</section>")
}

/// What every part of the section needs to know.
struct Page<'r, 'h> {
    report: &'r Report<'h>,
    names: Names<'h>,
    embedded: Option<&'r Embedded>,
    /// What keeps ids of several histories apart.
    part: Part,
}

impl Page<'_, '_> {
    fn cards(&self, chosen: &Chosen<'_>, out: &mut dyn Write) -> io::Result<()> {
        for (number, finding) in (1..).zip(chosen.full()) {
            self.one(number, finding, out)?;
        }
        self.in_short(chosen, out)
    }

    /// The violated levels that forbid an anomaly.
    fn levels(&self, kind: AnomalyKind) -> Vec<&'static str> {
        let results = self.report.results.iter();
        let violated = results.filter(|result| matches!(result.verdict, Verdict::Violated(_)));
        let levels = violated.map(|result| result.level);
        levels.filter(|level| kind.forbidden_at(*level)).map(Level::name).collect()
    }

    /// By what scripts filter.
    fn marks(&self, kind: AnomalyKind) -> String {
        format!("data-kind=\"{kind}\" data-levels=\"{}\"", self.levels(kind).join(" "))
    }

    fn filter(&self, chosen: &Chosen<'_>, out: &mut dyn Write) -> io::Result<()> {
        let kinds: BTreeSet<AnomalyKind> =
            chosen.found.findings.iter().map(Finding::kind).collect();
        let mut levels: Vec<&str> = kinds.iter().flat_map(|kind| self.levels(*kind)).collect();
        levels.sort_unstable();
        levels.dedup();
        let option = |name: &str| format!("<option>{name}</option>");
        let kinds: String = kinds.iter().map(|kind| option(kind.name())).collect();
        let levels: String = levels.iter().map(|level| option(level)).collect();
        writeln!(
            out,
            "<form class=\"filter\"><label>Pattern <select name=\"kind\"><option value=\"\">all\
             </option>{kinds}</select></label> <label>Level <select name=\"level\"><option value=\"\">\
             all</option>{levels}</select></label> <span class=\"count\" role=\"status\"></span></form>"
        )
    }

    fn contents(&self, chosen: &Chosen<'_>, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<ol class=\"contents\">")?;
        for (number, finding) in (1..).zip(chosen.full()) {
            let (kind, marks) = (finding.kind(), self.marks(finding.kind()));
            let text = summary(self.names, finding.anomaly);
            writeln!(
                out,
                "<li class=\"entry\" {marks}><a href=\"#{}a{number}\">{}</a>: {}</li>",
                self.part,
                kind.title(),
                Linked(&text)
            )?;
        }
        writeln!(out, "</ol>")
    }

    fn one(&self, number: usize, finding: &Finding<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (names, kind, anomaly) = (self.names, finding.kind(), finding.anomaly);
        let (part, marks) = (self.part, self.marks(kind));
        writeln!(out, "<article class=\"anomaly\" id=\"{part}a{number}\" {marks}>")?;
        writeln!(out, "<h3>{number}. {}</h3>", Escaped(&title(kind)))?;
        writeln!(
            out,
            "<p class=\"rules-out\">{}</p>\n<p class=\"aka\">{}</p>",
            Escaped(&breaks(kind, finding.rules_out)),
            Escaped(&other_names_of_finding(finding).join(", "))
        )?;
        writeln!(out, "<p class=\"happened\">{}</p>", Linked(&happened(names, anomaly)))?;
        if let Some(durability) = finding.durability {
            writeln!(out, "<p>{}.</p>", Escaped(&asked_for(durability)))?;
        }
        let mut involved = finding.involved.clone();
        involved.sort_by_key(|part| part.txn);
        self.shown(finding, &involved, out)?;
        for paragraph in advice(names.history(), anomaly) {
            writeln!(out, "<p><strong>Where to look:</strong> {}</p>", Escaped(&paragraph))?;
        }
        let markdown = card(Names::new(names.history()), finding);
        writeln!(out, "<pre class=\"markdown\" hidden>{}</pre>", Escaped(&markdown))?;
        self.around(number, out)?;
        writeln!(out, "</article>")
    }

    /// The pictures, who took part, and the argument.
    fn shown(
        &self,
        finding: &Finding<'_>,
        parts: &[InvolvedTxn],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let anomaly = finding.anomaly;
        let (names, plain) = (self.names, Names::new(self.report.history));
        let pictures = |shown| Picture::all_of(plain, anomaly, shown);
        let drawn = pictures(Shown::Relevant).into_iter().zip(pictures(Shown::All));
        let Evidence::Cases { cycles } = &anomaly.evidence else {
            drawn.into_iter().try_for_each(|(few, all)| graph(&few, &all, out))?;
            source(plain, anomaly, out)?;
            transactions::write(names.about(&finding.keys), parts, out)?;
            return argument(names, &anomaly.evidence, out);
        };
        source(plain, anomaly, out)?;
        transactions::write(names.about(&finding.keys), parts, out)?;
        writeln!(out, "<p>{HOW_TO_READ_CASES}</p>\n<div class=\"cases\">")?;
        let supposed = supposed(plain, cycles);
        let drawn: Vec<(Picture, Picture)> = drawn.collect();
        let mut told = 0;
        for alike in alike(cycles) {
            let Some((few, all)) = drawn.get(alike.case) else { break };
            let case = case(told + 1, &alike, cycles.len(), &supposed[alike.case]);
            writeln!(out, "<section class=\"case\">\n<h4>{}</h4>", Escaped(&case))?;
            graph(few, all, out)?;
            cycle_steps(names, &cycles[alike.case], out)?;
            if let Some(likewise) = alike.likewise(names) {
                writeln!(out, "<p>{}.</p>", Linked(&capitalised(&likewise)))?;
            }
            writeln!(out, "</section>")?;
            told += alike.count();
        }
        writeln!(out, "</div>")?;
        match (cycles.len() - told) as u64 {
            0 => Ok(()),
            more => writeln!(out, "<p>… and {}.</p>", counted(more, "more case")),
        }
    }

    /// A place for the timeline of the sessions around it.
    fn around(&self, number: usize, out: &mut dyn Write) -> io::Result<()> {
        if self.embedded.is_none() {
            return Ok(());
        }
        writeln!(
            out,
            "<h4>Sessions around it</h4>\n<div class=\"around\" data-number=\"{number}\"></div>"
        )
    }

    /// What is not shown in full: a line each, by kind and key.
    fn in_short(&self, chosen: &Chosen<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (total, full) = (chosen.found.total(), chosen.full);
        if total == full {
            return Ok(());
        }
        let count = counted((total - full) as u64, "more anomaly");
        writeln!(out, "<h3>In short: {count}, by kind and key</h3>")?;
        for group in chosen.found.groups() {
            let listed = |at: &&usize| (full..full + MOST_IN_SHORT).contains(*at);
            let listed: Vec<usize> = group.findings.iter().filter(listed).copied().collect();
            if listed.is_empty() {
                continue;
            }
            let key = group.key.map_or(String::new(), |key| format!(" on {}", self.names.key(key)));
            writeln!(
                out,
                "<details class=\"group\" data-count=\"{}\" {}><summary><b>{}</b>{}: {}</summary>\n<ol class=\"in-short\">",
                listed.len(),
                self.marks(group.kind),
                group.kind.title(),
                Linked(&key),
                grouped(listed.len() as u64)
            )?;
            for at in listed {
                let (id, number) = (format!("{}a{}", self.part, at + 1), at + 1);
                let text = summary(self.names, chosen.found.findings[at].anomaly);
                writeln!(out, "<li id=\"{id}\" value=\"{number}\">{}</li>", Linked(&text))?;
            }
            writeln!(out, "</ol></details>")?;
        }
        match (total - full).saturating_sub(MOST_IN_SHORT) as u64 {
            0 => Ok(()),
            more => writeln!(
                out,
                "<p>… and {}: <code>isolario check --json</code> has them all.</p>",
                counted(more, "more anomaly")
            ),
        }
    }
}

/// The graph in the language of Graphviz, for those who take it along.
fn source(names: Names<'_>, anomaly: &Anomaly, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    dot::one(names, anomaly, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    writeln!(out, "<pre class=\"dot\" hidden>{}</pre>", Escaped(&text))
}

/// What the arrows of graphs and arguments mean.
fn kinds(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<details>\n<summary>What the arrows mean</summary>\n<p>An arrow from A to B says that A comes \
         before B. Thick arrows are the cycle that makes the anomaly, thin ones are reasons, dashed \
         ones are inferred.</p>\n<dl class=\"kinds\">"
    )?;
    for (kind, meaning) in [
        (EdgeKind::WriteRead, "B read what A wrote"),
        (EdgeKind::WriteWrite, "B overwrote what A wrote"),
        (EdgeKind::ReadWrite, "A read what B then overwrote: A did not see B"),
        (EdgeKind::Session, "B follows A in the same session"),
        (EdgeKind::RealTime, "A had finished before B started"),
        (EdgeKind::CommitOrder, "by the rule of a level, A was committed before B"),
    ] {
        let name = kind.name();
        writeln!(out, "<dt class=\"{name}\">{name}</dt><dd>{meaning}</dd>")?;
    }
    writeln!(out, "</dl>\n</details>")
}

/// A graph in its two drawings: the operations that matter, and all.
fn graph(few: &Picture, all: &Picture, out: &mut dyn Write) -> io::Result<()> {
    let folded = if few.folded > 0 { " data-folded=\"true\"" } else { "" };
    writeln!(out, "<div class=\"graph\"{folded}>")?;
    svg::figure(few, Shown::Relevant, out)?;
    svg::figure(all, Shown::All, out)?;
    writeln!(out, "</div>")
}

fn argument(names: Names<'_>, evidence: &Evidence, out: &mut dyn Write) -> io::Result<()> {
    match evidence {
        Evidence::Cycle { edges } => {
            writeln!(out, "<h4>Why this is impossible</h4>")?;
            cycle_steps(names, edges, out)
        }
        evidence if evidence.edges().is_empty() => Ok(()),
        evidence => {
            writeln!(out, "<h4>Why this is impossible</h4>")?;
            steps(names, &told(names, evidence.edges()), out)
        }
    }
}

fn cycle_steps(names: Names<'_>, edges: &[Edge], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = edges.first() else { return Ok(()) };
    let (edges, conclusion) = match &first.reason {
        // Nobody needs to be told that the beginning comes first.
        Reason::Initial => {
            (&edges[1..], format!("So {} comes before the initial state.", names.txn(first.to)))
        }
        _ => (edges, format!("So {} comes before itself.", names.txn(first.from))),
    };
    steps(names, &told(names, edges), out)?;
    writeln!(out, "<p class=\"contradiction\">{}</p>", Linked(&conclusion))
}

/// Numbered steps. Of many, those in the middle are folded.
fn steps(names: Names<'_>, steps: &[ArgumentStep], out: &mut dyn Write) -> io::Result<()> {
    let count = steps.len();
    let (start, rest) = steps.split_at(if count > MOST_OPEN { MOST_OPEN / 2 } else { count });
    let (middle, end) = rest.split_at(rest.len() - rest.len().min(MOST_OPEN / 2));
    list(names, 1, start, out)?;
    if !middle.is_empty() {
        let folded = counted(middle.len() as u64, "more step");
        writeln!(out, "<details><summary>{folded}</summary>")?;
        list(names, start.len() + 1, middle, out)?;
        writeln!(out, "</details>")?;
    }
    if end.is_empty() { Ok(()) } else { list(names, count - end.len() + 1, end, out) }
}

/// What steps rest on can be folded away. As deep as `told` goes, which is not far.
fn list(
    names: Names<'_>,
    first: usize,
    steps_of: &[ArgumentStep],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "<ol class=\"argument\" start=\"{first}\">")?;
    for step in steps_of {
        let about = step.key.map_or(String::new(), |key| format!(" {}", names.key(key)));
        let label = format!("{}{about}", step.kind.name());
        writeln!(
            out,
            "<li><span class=\"edge {}\">{} → {} <span class=\"kind\">{}</span></span> {}",
            step.kind.name(),
            Linked(&names.txn(step.from)),
            Linked(&names.txn(step.to)),
            Linked(&label),
            Linked(&step.sentence)
        )?;
        if !step.because.is_empty() {
            writeln!(out, "<details open><summary>Why</summary>")?;
            steps(names, &step.because, out)?;
            if let Some(conclusion) = &step.conclusion {
                writeln!(out, "<p class=\"contradiction\">{}.</p>", Linked(conclusion))?;
            }
            writeln!(out, "</details>")?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ol>")
}
