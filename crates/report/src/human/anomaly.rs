//! One anomaly in full: its names, what happened, who took part, the argument, and where to look.

use std::io;

use isolario_model::{Anomaly, Edge, Evidence, Outcome, Reason};

use super::palette::Palette;
use crate::involved::{Involved, involved};
use crate::names::{Names, counted};
use crate::words::{self, Step, advice, happened, other_names_of, rules_out, told};
use crate::wrap::{WIDTH, wrap};

/// How much of a large anomaly is spelt out. A person reads no further; JSON has it all.
const MOST_TXNS: usize = 20;
const MOST_CASES: usize = 5;
const MOST_STEPS: usize = 30;
/// Of an argument that is longer, how many steps its end keeps.
const LAST_STEPS: usize = 5;
/// How advice begins.
const WHERE: &str = "Where to look:";

pub(super) fn write(
    names: Names<'_>,
    anomaly: &Anomaly,
    with_advice: bool,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    title(anomaly, palette, out)?;
    let happened = wrap(&happened(names, anomaly), WIDTH, "  ", "  ");
    writeln!(out, "\n{happened}\n")?;
    let mut involved = involved(names.history(), anomaly);
    // Few are easier to find in the order of the history, many in that of the argument.
    if involved.len() <= MOST_TXNS {
        involved.sort_by_key(|part| part.txn);
    }
    transactions(names, &involved, palette, out)?;
    the_argument(names, anomaly, palette, out)?;
    if with_advice { where_to_look(names, anomaly, palette, out) } else { Ok(()) }
}

fn the_argument(
    names: Names<'_>,
    anomaly: &Anomaly,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match &anomaly.evidence {
        Evidence::Cases { cycles } => cases(names, cycles, palette, out),
        Evidence::Cycle { edges } => {
            writeln!(out)?;
            cycle_steps(names, edges, palette, out)
        }
        evidence if evidence.edges().is_empty() => Ok(()),
        evidence => {
            writeln!(out)?;
            steps(names, &told(names, evidence.edges()), "  ", palette, out)
        }
    }
}

/// Which part of a database the pattern points to.
fn where_to_look(
    names: Names<'_>,
    anomaly: &Anomaly,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for paragraph in advice(names.history(), anomaly) {
        let text = wrap(&paragraph, WIDTH, &format!("  {WHERE} "), "  ");
        writeln!(out, "\n{}", text.replacen(WHERE, &palette.heading(WHERE), 1))?;
    }
    Ok(())
}

fn title(anomaly: &Anomaly, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let name = anomaly.kind.title();
    let text = wrap(&words::title(anomaly.kind), WIDTH, "", "  ");
    writeln!(out, "{}{}", palette.bad(name), text.strip_prefix(name).unwrap_or_default())?;
    let mut names = vec![anomaly.kind.name().to_owned()];
    names.extend(other_names_of(anomaly));
    let text = format!("{}; {}", names.join(", "), rules_out(anomaly.rules_out));
    writeln!(out, "{}", palette.dim(&wrap(&text, WIDTH, "  ", "  ")))
}

fn transactions(
    names: Names<'_>,
    involved: &[Involved],
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let listed = &involved[..involved.len().min(MOST_TXNS)];
    let heads: Vec<(String, String)> =
        listed.iter().map(|part| (names.txn(part.txn), whereabouts(names, part))).collect();
    let name_width = heads.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let where_width = heads.iter().map(|(_, place)| place.chars().count()).max().unwrap_or(0);
    for (part, (name, place)) in listed.iter().zip(&heads) {
        let first = format!("  {name:name_width$}  {place:where_width$}  ");
        let rest = " ".repeat(first.chars().count());
        let text = wrap(&operations(names, part), WIDTH, &first, &rest);
        let text = text.replacen(place.as_str(), &palette.dim(place), 1);
        writeln!(out, "{text}")?;
    }
    if involved.len() > listed.len() {
        let more = counted((involved.len() - listed.len()) as u64, "more transaction");
        writeln!(out, "  … and {more}")?;
    }
    Ok(())
}

fn whereabouts(names: Names<'_>, part: &Involved) -> String {
    let history = names.history();
    let line = history.line(part.txn).map_or(String::new(), |line| format!(", line {line}"));
    let outcome = match history.outcome(part.txn) {
        Outcome::Committed => "",
        Outcome::Aborted => ", aborted",
        Outcome::Unknown => ", outcome unknown",
    };
    format!("session {}{line}{outcome}", names.session(part.txn))
}

fn operations(names: Names<'_>, part: &Involved) -> String {
    let shown: Vec<_> = part.ops.iter().map(|op| names.op(*op)).collect();
    let shown = shown.join(", ");
    match (part.ops.len(), part.omitted as u64) {
        (0, 0) => "no operations".to_owned(),
        (_, 0) => shown,
        (0, omitted) => counted(omitted, "operation"),
        (_, omitted) => format!("{shown} … and {}", counted(omitted, "more operation")),
    }
}

/// The steps of a cycle, and the contradiction that they end in.
fn cycle_steps(
    names: Names<'_>,
    edges: &[Edge],
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Some(first) = edges.first() else { return Ok(()) };
    let conclusion = match &first.reason {
        // Nobody needs to be told that the beginning comes first.
        Reason::Initial => {
            steps(names, &told(names, &edges[1..]), "  ", palette, out)?;
            format!("… so {} comes before the initial state.", names.txn(first.to))
        }
        _ => {
            steps(names, &told(names, edges), "  ", palette, out)?;
            format!("… so {} comes before itself.", names.txn(first.from))
        }
    };
    writeln!(out, "  {}", palette.heading(&conclusion))
}

fn cases(
    names: Names<'_>,
    cycles: &[Vec<Edge>],
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for (number, cycle) in (1..).zip(cycles.iter().take(MOST_CASES)) {
        writeln!(out, "\n  Case {number} of {}:", cycles.len())?;
        cycle_steps(names, cycle, palette, out)?;
    }
    if cycles.len() > MOST_CASES {
        let more = counted((cycles.len() - MOST_CASES) as u64, "more case");
        writeln!(out, "\n  … and {more}")?;
    }
    Ok(())
}

/// Numbered steps; what they rest on stands below them, further in. As deep as `argument` goes,
/// which is not far.
fn steps(
    names: Names<'_>,
    steps_of: &[Step],
    indent: &str,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let hidden = match steps_of.len() {
        long if long > MOST_STEPS => MOST_STEPS - LAST_STEPS..long - LAST_STEPS,
        _ => 0..0,
    };
    for (index, step) in steps_of.iter().enumerate() {
        if hidden.contains(&index) {
            if index == hidden.start {
                writeln!(out, "{indent}… {}", counted(hidden.len() as u64, "more step"))?;
            }
            continue;
        }
        let number = index + 1;
        let first = format!("{indent}{number}. ");
        let rest = " ".repeat(first.chars().count());
        let arrow = format!("{} → {}", names.txn(step.from), names.txn(step.to));
        let about = step.key.map_or(String::new(), |key| format!(" {}", names.key(key)));
        let text = format!("{arrow} ({}{about}): {}", step.kind.name(), step.sentence);
        let text = wrap(&text, WIDTH, &first, &rest);
        writeln!(out, "{}", text.replacen(&arrow, &palette.heading(&arrow), 1))?;
        steps(names, &step.because, &rest, palette, out)?;
        if let Some(conclusion) = &step.conclusion {
            writeln!(out, "{}", wrap(&format!("… {conclusion}"), WIDTH, &rest, &rest))?;
        }
    }
    Ok(())
}
