//! What the answers about a history come to and what stands behind each, in half a sentence.

use isolario_model::{Level, LevelResult, PatternResult, Verdict};

use super::no_answer::why_no_answer;
use crate::finding::ReportFindings;
use crate::names::{Names, counted, grouped, listed};
use crate::report::{LostCommitsResult, Report};
use crate::sentences::summary;

/// What the answers come to: `violates serializable; satisfies no more than snapshot-isolation`.
/// Nothing where no level was asked for.
pub fn verdict(report: &Report<'_>) -> Option<String> {
    if report.results.is_empty() {
        return None;
    }
    let names = |levels: &[Level]| listed(levels);
    let verdict = match (&report.strongest()[..], &report.weakest_violated()[..]) {
        ([], []) => "no level was decided".to_owned(),
        (strongest, []) => format!("satisfies {}", names(strongest)),
        ([], weakest) => format!("violates {}", names(weakest)),
        (strongest, weakest) => {
            format!("violates {}; satisfies no more than {}", names(weakest), names(strongest))
        }
    };
    Some(match report.lost.map_or(0, |lost| lost.total()) {
        0 => verdict,
        lost => format!("shows {}; {verdict}", counted(lost, "lost commit")),
    })
}

/// What the answer on lost commits says, in half a sentence.
pub(crate) fn lost_in_words(report: &Report<'_>, lost: LostCommitsResult<'_>) -> String {
    let first = lost.result.verdict.anomalies().first();
    match (lost.total(), first) {
        (0, _) | (_, None) => {
            "what was acknowledged before the server was down is there".to_owned()
        }
        (total, Some(first)) => {
            let are = if total == 1 { "commit is" } else { "commits are" };
            let example = summary(Names::new(report.history), first);
            format!("{} acknowledged {are} missing: {example}", grouped(total))
        }
    }
}

/// What stands behind the answer for a level: how many anomalies and which, or why there is no answer.
pub(crate) fn behind(
    report: &Report<'_>,
    found: &ReportFindings<'_>,
    result: &LevelResult,
    most: usize,
) -> String {
    let Verdict::Violated(findings) = &result.verdict else {
        return why_no_answer(Names::new(report.history), &result.verdict).unwrap_or_default();
    };
    let count = counted(found.count_of(result), "anomaly");
    let count = format!("{}{count}", at_least(findings.exact));
    let kinds = found.kinds_of_level(result.level);
    let mut named: Vec<String> = kinds.iter().take(most).map(ToString::to_string).collect();
    if kinds.len() > most {
        named.push(format!("{} more", kinds.len() - most));
    }
    if named.is_empty() { count } else { format!("{count}: {}", listed(&named)) }
}

/// How often an anomaly that was looked for was found, or why there is no answer.
pub(crate) fn how_often(report: &Report<'_>, result: &PatternResult) -> String {
    let Verdict::Violated(findings) = &result.verdict else {
        return why_no_answer(Names::new(report.history), &result.verdict).unwrap_or_default();
    };
    let at_least = at_least(findings.exact);
    match findings.total {
        1 => format!("{at_least}once"),
        total => format!("{at_least}{} times", grouped(total)),
    }
}

/// What stands before a number that may be too small.
pub(crate) fn at_least(exact: bool) -> &'static str {
    if exact { "" } else { "at least " }
}
