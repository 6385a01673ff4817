//! The answers by the database's own word, beside those by what clients saw.

use std::collections::BTreeSet;
use std::io::{self, Write};

use isolario_model::{Level, RunRecord, RunVerdict, VerdictKind, WhiteboxRecord};

use super::lattice;
use crate::names::{counted, grouped, listed};
use crate::xml::Escaped;

pub(super) fn write(run: &RunRecord, own: &WhiteboxRecord, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h3>The database's own word</h3>")?;
    if let Some(why) = &own.failure {
        return writeln!(out, "<p>No answer rests on it: {}.</p>", Escaped(why));
    }
    if let Some(words) = &own.disagreement {
        writeln!(out, "<p class=\"violated\">{}.</p>", Escaped(words))?;
    }
    for level in &own.not_as_promised {
        writeln!(
            out,
            "<p class=\"violated\">{level}: satisfied, but not by the order that the database \
             promises.</p>"
        )?;
    }
    table(run, own, out)?;
    if let Some(versions) = own.versions {
        let settled = match own.settled {
            0 => String::new(),
            settled => format!(" It shows that {} committed.", unknown(settled)),
        };
        writeln!(
            out,
            "<p>The log has {} of rows, and tells which versions {} of {} by predicate met.{settled}\
             </p>",
            counted(versions, "version"),
            grouped(own.version_sets),
            counted(own.predicates, "operation")
        )?;
    }
    pages(own, out)
}

fn unknown(count: u64) -> String {
    format!("{} of unknown outcome", counted(count, "transaction"))
}

/// A row per level, and a column for all that answers rest on.
fn table(run: &RunRecord, own: &WhiteboxRecord, out: &mut dyn Write) -> io::Result<()> {
    let columns = [
        ("By what clients saw", &run.verdicts),
        ("By the order of versions in its log", &own.by_versions),
        ("By the order that it promises", &own.by_order),
    ];
    let shown = || columns.iter().filter(|(_, answers)| !answers.is_empty());
    let levels: BTreeSet<Level> =
        shown().flat_map(|(_, answers)| answers.iter().map(|answer| answer.level)).collect();
    writeln!(
        out,
        "<table class=\"verdicts\">\n<caption>Verdicts side by side</caption>\n<tr><th \
         scope=\"col\">Level</th>"
    )?;
    for (title, _) in shown() {
        writeln!(out, "<th scope=\"col\">{title}</th>")?;
    }
    writeln!(out, "</tr>")?;
    for level in levels {
        writeln!(out, "<tr><th scope=\"row\">{}</th>", level.name())?;
        for (_, answers) in shown() {
            cell(answers.iter().find(|answer| answer.level == level), out)?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table>")
}

fn cell(answer: Option<&RunVerdict>, out: &mut dyn Write) -> io::Result<()> {
    let Some(RunVerdict { verdict, anomalies, .. }) = answer else {
        return writeln!(out, "<td></td>");
    };
    let class = verdict.name();
    let names: Vec<_> = anomalies.iter().map(|kind| kind.name()).collect();
    let why = match verdict {
        VerdictKind::Violated if !names.is_empty() => format!(": {}", listed(&names)),
        _ => String::new(),
    };
    writeln!(
        out,
        "<td class=\"{class}\"><span aria-hidden=\"true\">{}</span> {}{}</td>",
        lattice::mark(class),
        class.replace('-', " "),
        Escaped(&why)
    )
}

fn pages(own: &WhiteboxRecord, out: &mut dyn Write) -> io::Result<()> {
    let files = [("version-order.html", &own.by_versions), ("promised-order.html", &own.by_order)];
    let files = files.iter().filter(|(_, answers)| !answers.is_empty());
    let files: Vec<String> = files.map(|(file, _)| format!("<code>{file}</code>")).collect();
    match files.is_empty() {
        true => Ok(()),
        false => writeln!(
            out,
            "<p>In full they stand in the run directory, in {}, with proofs of their own.</p>",
            listed(&files)
        ),
    }
}
