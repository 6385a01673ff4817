//! The verdicts of a report: a line each, those that could not be given below, and what they come
//! to.

use std::io;

use isolario_model::{Level, LevelResult, Verdict};

use super::Palette;
use crate::finding::ReportFindings;
use crate::meaning::deciding;
use crate::names::{Names, counted, grouped, listed};
use crate::report::Report;
use crate::sentences::{behind, how_often, lost_in_words, stated, why_not_applicable};
use crate::wrap::wrap;

/// How many kinds of anomaly are named in a line.
const MOST_KINDS: usize = 3;

pub(super) fn write(
    report: &Report<'_>,
    found: &ReportFindings<'_>,
    how_to_ask: &str,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let level = |verdict: &Verdict| verdict.name().replace('-', " ");
    let applies = |verdict: &Verdict| !matches!(verdict, Verdict::NotApplicable(_));
    let applicable = report.results.iter().filter(|result| applies(&result.verdict));
    let rows = applicable.map(|result| Row {
        subject: result.level.name().to_owned(),
        word: level(&result.verdict),
        verdict: &result.verdict,
        detail: behind(report, found, result, MOST_KINDS),
    });
    let patterns = report.patterns.iter().map(|result| Row {
        subject: match result.kind.pattern() {
            Some(letter) => format!("{} ({letter})", result.kind),
            None => result.kind.to_string(),
        },
        word: match result.verdict {
            Verdict::Violated(_) => "found".to_owned(),
            Verdict::Satisfied(_) => "not found".to_owned(),
            _ => level(&result.verdict),
        },
        verdict: &result.verdict,
        detail: how_often(report, result),
    });
    let lost = report.lost.map(|lost| Row {
        subject: lost.result.kind.to_string(),
        word: if lost.total() > 0 { "found".to_owned() } else { "not found".to_owned() },
        verdict: &lost.result.verdict,
        detail: lost_in_words(report, lost),
    });
    table(&lost.into_iter().chain(rows).chain(patterns).collect::<Vec<_>>(), palette, out)?;
    not_applicable(report, palette, out)?;
    for sentence in stated(report) {
        writeln!(out, "\n{}", wrap(&sentence, palette.width, "  ", "  "))?;
    }
    // One level needs no summing up.
    if report.results.len() > 1 {
        conclusion(report, palette, out)?;
    }
    exit_code(report, how_to_ask, palette, out)?;
    match report.first_counterexample() {
        Some(before) => writeln!(
            out,
            "\n  The first counterexample starts after {} of {}.",
            grouped(before),
            counted(report.size.transactions, "transaction")
        ),
        None => Ok(()),
    }
}

/// A line of the table.
struct Row<'r> {
    /// What the verdict is about.
    subject: String,
    word: String,
    verdict: &'r Verdict,
    detail: String,
}

fn table(rows: &[Row<'_>], palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let subjects = rows.iter().map(|row| row.subject.len()).max().unwrap_or(0);
    let words = rows.iter().map(|row| row.word.len()).max().unwrap_or(0);
    let indent = " ".repeat(2 + subjects + 2 + words + 2);
    for Row { subject, word, verdict, detail } in rows {
        let detail = wrap(detail, palette.width, &indent, &indent);
        let gap = " ".repeat(words + 2 - word.len());
        let word = palette.verdict(verdict, word);
        let line = format!("  {subject:subjects$}  {word}{gap}{}", detail.trim_start());
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The levels that do not apply, those with the same reason together.
fn not_applicable(
    report: &Report<'_>,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for result in report.results {
        let Verdict::NotApplicable(why) = &result.verdict else { continue };
        let why = why_not_applicable(Names::new(report.history), why);
        let level = result.level.name().to_owned();
        match groups.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, levels)) => levels.push(level),
            None => groups.push((why, vec![level])),
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    if groups.iter().map(|(_, levels)| levels.len()).sum::<usize>() < report.results.len() {
        writeln!(out)?;
    }
    writeln!(out, "  {}", palette.dim("Not applicable:"))?;
    groups.iter().try_for_each(|(why, levels)| {
        let text = format!("{}: {why}", listed(levels));
        writeln!(out, "{}", wrap(&text, palette.width, "    ", "      "))
    })
}

/// Which answer counts, where no level was asked for.
fn exit_code(
    report: &Report<'_>,
    how_to_ask: &str,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let claim = report.asked.claim;
    let is_beyond = |result: &LevelResult| !claim.iter().any(|level| level.implies(result.level));
    if report.results.iter().any(is_beyond) && !claim.is_empty() {
        let text = format!("The exit code follows what is claimed, {}.", listed(claim));
        return writeln!(out, "\n{}", wrap(&text, palette.width, "  ", "    "));
    }
    let Some(deciding) = deciding(report.results).filter(|_| report.asked.weakest_only) else {
        return Ok(());
    };
    let mut text =
        format!("The exit code follows {}, the weakest level that applies", deciding.level);
    if !how_to_ask.is_empty() {
        text += &format!("; {how_to_ask}");
    }
    writeln!(out, "\n{}", wrap(&format!("{text}."), palette.width, "  ", "    "))
}

/// Which levels are satisfied, and where it begins to go wrong.
fn conclusion(report: &Report<'_>, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let names = |levels: &[Level]| {
        listed(&levels.iter().map(|level| level.name().to_owned()).collect::<Vec<_>>())
    };
    let (strongest, weakest) = (report.strongest(), report.weakest_violated());
    writeln!(out)?;
    if strongest.is_empty() && weakest.is_empty() {
        return writeln!(out, "  None of these levels could be decided.");
    }
    let mut lines = Vec::new();
    if strongest.is_empty() {
        lines.push("None of these levels is satisfied.".to_owned());
    } else {
        lines.push(format!("Strongest satisfied: {}.", names(&strongest)));
    }
    if !weakest.is_empty() {
        lines.push(format!("Weakest violated: {}.", names(&weakest)));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", wrap(line, palette.width, "  ", "    ")))
}
