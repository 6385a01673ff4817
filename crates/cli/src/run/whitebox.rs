//! What is said about answers that rest on the database's own log.

use std::io::{self, Write};

use isolario::model::{Level, LevelResult, VerdictKind};
use isolario::report::{HistoryName, Renderer, grouped};
use isolario::run::{RunOutcome, VERSION_ORDER, Whitebox};

use super::summary::seconds;

/// The answers in full, after those from what clients saw alone.
pub(super) fn report(
    outcome: &RunOutcome,
    name: HistoryName<'_>,
    renderer: &mut dyn Renderer,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(Whitebox { by_versions, by_order, .. }) = &outcome.whitebox else { return Ok(()) };
    by_basis(name, [by_versions, by_order], |name, results| {
        renderer.report(&outcome.whitebox_report(name, results), out)
    })
}

/// Reports the answers that there are by the order of versions, and by that which the database promises,
/// each by a name of its own.
pub(crate) fn by_basis<E>(
    name: HistoryName<'_>,
    results: [&[LevelResult]; 2],
    mut report: impl FnMut(HistoryName<'_>, &[LevelResult]) -> Result<(), E>,
) -> Result<(), E> {
    for (results, what) in results.into_iter().zip([BY_VERSIONS, BY_ORDER]) {
        if !results.is_empty() {
            let (shown, test) =
                (format!("{}, {what}", name.name), format!("{}, {what}", name.test));
            report(HistoryName { name: &shown, test: &test, ..name }, results)?;
        }
    }
    Ok(())
}

const BY_VERSIONS: &str = "by the order of versions in the database's log";
const BY_ORDER: &str = "by the order that the database promises";

/// The answers in short.
pub(super) fn lines(whitebox: &Whitebox, not_as_promised: &[Level]) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&'static str, String)> =
        whitebox.disagreement.iter().map(|words| ("whitebox", words.clone())).collect();
    if let Some(certificate) = &whitebox.certificate {
        let count = |count: usize| grouped(count as u64);
        let settled = match certificate.settled {
            0 => String::new(),
            settled => format!("; {} unknown outcomes were commits", count(settled)),
        };
        lines.push((
            "whitebox",
            format!(
                "{} versions of rows; the versions that {} of {} operations by predicate met{settled}",
                count(certificate.versions),
                count(certificate.sets),
                count(certificate.predicates)
            ),
        ));
        if certificate.shadows > 0 {
            let shadows = count(certificate.shadows);
            lines.push((
                "",
                format!("{shadows} shadow transactions saw these versions, and no others"),
            ));
        }
        let took = seconds(whitebox.assembled);
        lines.push(("", format!("assembled in {took}, into {VERSION_ORDER} and the history")));
    }
    let answers = |results: &[LevelResult], what: &str| -> Vec<(&'static str, String)> {
        let line = |result: &LevelResult| {
            let answer = match what {
                BY_ORDER if not_as_promised.contains(&result.level) => "satisfied, but not",
                _ => word(result.verdict.kind()),
            };
            let label = if whitebox.certificate.is_some() { "" } else { "whitebox" };
            (label, format!("{}: {answer} {what}", result.level))
        };
        results.iter().map(line).collect()
    };
    lines.extend(answers(&whitebox.by_versions, BY_VERSIONS));
    lines.extend(answers(&whitebox.by_order, BY_ORDER));
    lines
}

fn word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Satisfied => "satisfied",
        VerdictKind::Violated => "violated",
        VerdictKind::Undecided => "undecided",
        _ => "not decided",
    }
}
