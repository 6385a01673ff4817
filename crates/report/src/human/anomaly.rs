//! One anomaly in full: its names, what happened, who took part, the argument, and where to look.

use std::io;

use isolario_model::{Anomaly, Edge, Evidence, TxnId};

use super::palette::Palette;
use crate::finding::Finding;
use crate::involved::InvolvedTxn;
use crate::names::{Names, counted};
use crate::printable::printable;
use crate::sentences::{
    ArgumentStep, HOW_TO_READ_CASES, advice, alike, asked_for, breaks, capitalised, case, happened,
    in_time, other_names_of_finding, refutation, supposed, title_of, told,
};
use crate::txn_facts::TxnFacts;
use crate::wrap::wrap;

/// How much of a large anomaly is spelt out. A person reads no further; JSON has it all.
const MOST_TXNS: usize = 20;
const MOST_CASES: usize = 5;
const MOST_STEPS: usize = 30;
/// Of an argument that is longer, how many steps its end keeps.
const LAST_STEPS: usize = 5;
/// How advice begins.
const WHERE: &str = "Where to look:";

/// `began` is when the history did.
pub(super) fn write(
    names: Names<'_>,
    finding: &Finding<'_>,
    began: i64,
    with_advice: bool,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let anomaly = finding.anomaly;
    title(finding, palette, out)?;
    let happened = wrap(&happened(names, anomaly), palette.width, "  ", "  ");
    writeln!(out, "\n{happened}\n")?;
    let mut involved = finding.involved.clone();
    // Few are easier to find in the order of the history, many in that of the argument.
    if involved.len() <= MOST_TXNS {
        involved.sort_by_key(|part| part.txn);
    }
    transactions(names.about(&finding.keys), &involved, began, palette, out)?;
    if let Some(durability) = finding.durability {
        let text = format!("{}.", asked_for(durability));
        writeln!(out, "\n{}", wrap(&printable(&text), palette.width, "  ", "    "))?;
    }
    let txns: Vec<TxnId> = involved.iter().map(|part| part.txn).collect();
    let in_time = in_time(names, &txns);
    if !in_time.is_empty() {
        let text = format!("{}.", in_time.join("; "));
        writeln!(out, "\n{}", wrap(&text, palette.width, "  In time: ", "    "))?;
    }
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
        Evidence::Cases { cycles } if cycles.len() > 1 => cases(names, cycles, palette, out),
        Evidence::Cycle { .. } | Evidence::Cases { .. } => {
            let edges = anomaly.evidence.edges();
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
        let text = wrap(&paragraph, palette.width, &format!("  {WHERE} "), "  ");
        writeln!(out, "\n{}", text.replacen(WHERE, &palette.heading(WHERE), 1))?;
    }
    Ok(())
}

fn title(finding: &Finding<'_>, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let name = finding.kind().title();
    let text = wrap(&title_of(finding.anomaly), palette.width, "", "  ");
    writeln!(out, "{}{}", palette.bad(name), text.strip_prefix(name).unwrap_or_default())?;
    let names = other_names_of_finding(finding).join(", ");
    let text = format!("{names}; {}", breaks(finding.kind(), finding.rules_out));
    writeln!(out, "{}", palette.dim(&wrap(&text, palette.width, "  ", "  ")))
}

fn transactions(
    names: Names<'_>,
    involved: &[InvolvedTxn],
    began: i64,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let listed = &involved[..involved.len().min(MOST_TXNS)];
    let heads: Vec<(String, TxnFacts<'_>)> = listed
        .iter()
        .map(|part| (names.txn(part.txn), TxnFacts::of(names, part.txn, began)))
        .collect();
    let name_width = heads.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let where_width =
        heads.iter().map(|(_, facts)| facts.origin.chars().count()).max().unwrap_or(0);
    for (part, (name, facts)) in listed.iter().zip(&heads) {
        let place = &facts.origin;
        let first = format!("  {name:name_width$}  {place:where_width$}  ");
        let rest = " ".repeat(first.chars().count());
        let text = wrap(&operations(names, part), palette.width, &first, &rest);
        let text = text.replacen(place.as_str(), &palette.dim(place), 1);
        writeln!(out, "{text}")?;
        notes(facts, &" ".repeat(name_width + 4), palette, out)?;
    }
    if involved.len() > listed.len() {
        let more = counted((involved.len() - listed.len()) as u64, "more transaction");
        writeln!(out, "  … and {more}")?;
    }
    Ok(())
}

/// What else is known of a transaction, below it.
fn notes(
    facts: &TxnFacts<'_>,
    indent: &str,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let notes = facts.notes().into_iter().map(|(label, text)| match label {
        "time" => text,
        label => format!("{label}: {text}"),
    });
    let statements = facts.sql.iter().map(|(_, sql)| printable(sql).into_owned());
    for note in notes.chain(statements) {
        let text = wrap(&note, palette.width, indent, &format!("{indent}  "));
        writeln!(out, "{}", palette.dim(&text))?;
    }
    Ok(())
}

fn operations(names: Names<'_>, part: &InvolvedTxn) -> String {
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
    let Some((argument, conclusion)) = refutation(names, edges) else { return Ok(()) };
    steps(names, &argument, "  ", palette, out)?;
    writeln!(out, "  {}", palette.heading(&format!("… so {conclusion}.")))
}

fn cases(
    names: Names<'_>,
    cycles: &[Vec<Edge>],
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    writeln!(out, "\n{}", wrap(HOW_TO_READ_CASES, palette.width, "  ", "  "))?;
    let supposed = supposed(names, cycles);
    let mut told = 0;
    for alike in alike(cycles).iter().take(MOST_CASES) {
        let case = format!("{}:", case(told + 1, alike, cycles.len(), &supposed[alike.case]));
        writeln!(out, "\n{}", wrap(&case, palette.width, "  ", "  "))?;
        cycle_steps(names, &cycles[alike.case], palette, out)?;
        if let Some(likewise) = alike.likewise(names) {
            let text = format!("{}.", capitalised(&likewise));
            writeln!(out, "{}", wrap(&text, palette.width, "  ", "  "))?;
        }
        told += alike.count();
    }
    if cycles.len() > told {
        let more = counted((cycles.len() - told) as u64, "more case");
        writeln!(out, "\n  … and {more}")?;
    }
    Ok(())
}

/// Numbered steps; what they rest on stands below them, further in. As deep as `argument` goes,
/// which is not far.
fn steps(
    names: Names<'_>,
    steps_of: &[ArgumentStep],
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
        let text = wrap(&text, palette.width, &first, &rest);
        writeln!(out, "{}", text.replacen(&arrow, &palette.heading(&arrow), 1))?;
        steps(names, &step.because, &rest, palette, out)?;
        if let Some(conclusion) = &step.conclusion {
            writeln!(out, "{}", wrap(&format!("… {conclusion}"), palette.width, &rest, &rest))?;
        }
    }
    Ok(())
}
