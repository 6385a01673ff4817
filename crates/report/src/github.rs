//! Reports for GitHub Actions: workflow commands, which GitHub shows beside the files they name.
//!
//! GitHub shows no more than ten annotations of a kind per step; the limit on anomalies shown in
//! full is the same by default.

use std::fmt;
use std::io;

use isolario_model::{Level, LevelResult};

use crate::finding::Finding;
use crate::human::finding_text;
use crate::meaning::{Judgement, deciding};
use crate::names::{Names, counted, listed};
use crate::report::{HistoryName, Renderer, Report};
use crate::sentences::{began, breaks, why_no_answer};
use crate::summary::Summary;

/// Renders reports as annotations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Github;

impl Renderer for Github {
    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let names = Names::new(report.history);
        let (found, began) = (report.found(), began(report.history));
        let shown = found.in_full(report.max_anomalies);
        for finding in shown {
            // A violation of what was not asked for is reported, and fails nothing.
            let command = if report.counts(finding) { "error" } else { "notice" };
            write_finding(command, names, report.file, finding, began, out)?;
        }
        let hidden = found.reported - shown.len();
        if hidden > 0 {
            let text = format!("{} not shown", counted(hidden as u64, "more anomaly"));
            annotation("notice", report.file, &[("title", "Isolario")], &text, out)?;
        }
        without_answer(report, names, out)?;
        conclusion(report, out)
    }

    fn failure(
        &mut self,
        name: HistoryName<'_>,
        error: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        annotation("error", name.file, &[("title", "history not checked")], error, out)
    }

    /// Nothing: each history has said what it comes to.
    fn summary(&mut self, _summary: &Summary, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

fn write_finding(
    command: &str,
    names: Names<'_>,
    file: Option<&str>,
    finding: &Finding<'_>,
    began: i64,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let kind = finding.kind();
    let title = format!("{} ({kind}) {}", kind.title(), breaks(kind, finding.rules_out));
    let line = finding.involved.iter().find_map(|part| names.history().line(part.txn));
    let line = line.map(|line| line.to_string());
    let mut properties = vec![("title", title.as_str())];
    properties.splice(0..0, line.as_deref().filter(|_| file.is_some()).map(|line| ("line", line)));
    annotation(command, file, &properties, finding_text(names, finding, began).trim_end(), out)
}

/// The levels that should have had an answer and have none.
fn without_answer(
    report: &Report<'_>,
    names: Names<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for result in report.results {
        let (command, title) = match report.meaning(result) {
            Judgement::Undecided => ("warning", format!("{} is undecided", result.level)),
            Judgement::NotDecidable => ("error", format!("{} does not apply", result.level)),
            _ => continue,
        };
        let why = why_no_answer(names, &result.verdict).unwrap_or_default();
        annotation(command, report.file, &[("title", &title)], &why, out)?;
    }
    Ok(())
}

/// What the history comes to, in a line: the levels that were asked for and their answers, or else
/// what it satisfies, and which level counts.
fn conclusion(report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    if report.results.is_empty() {
        return Ok(());
    }
    let lost = report.lost.map_or(0, |lost| lost.total());
    let lost = match lost {
        0 => String::new(),
        lost => format!("{} lost; ", counted(lost, "commit")),
    };
    let text = if report.asked.weakest_only {
        without_question(report)
    } else {
        let answer = |result: &LevelResult| {
            format!("{}: {}", result.level, result.verdict.name().replace('-', " "))
        };
        report.results.iter().map(answer).collect::<Vec<_>>().join("; ")
    };
    annotation("notice", report.file, &[("title", "Isolario")], &format!("{lost}{text}"), out)
}

fn without_question(report: &Report<'_>) -> String {
    let list = |levels: &[Level]| {
        listed(&levels.iter().map(|level| level.name().to_owned()).collect::<Vec<_>>())
    };
    let mut text = match &report.strongest()[..] {
        [] => "satisfies none of the levels".to_owned(),
        strongest => format!("satisfies {}", list(strongest)),
    };
    let violated = report.weakest_violated();
    if !violated.is_empty() {
        text.push_str(&format!("; violates {}", list(&violated)));
    }
    if let Some(deciding) = deciding(report.results) {
        text.push_str(&format!("; no level was asked for: the step follows {}", deciding.level));
    }
    text
}

fn annotation(
    command: &str,
    file: Option<&str>,
    properties: &[(&str, &str)],
    message: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let file = file.map(|file| ("file", file));
    let properties: Vec<String> = (file.iter().chain(properties))
        .map(|(name, value)| format!("{name}={}", Encoded { text: value, in_property: true }))
        .collect();
    let message = Encoded { text: message, in_property: false };
    writeln!(out, "::{command} {}::{message}", properties.join(","))
}

/// A text in a workflow command. What would end the command is written in percent.
struct Encoded<'a> {
    text: &'a str,
    in_property: bool,
}

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.chars().try_for_each(|c| match c {
            '%' => f.write_str("%25"),
            '\r' => f.write_str("%0D"),
            '\n' => f.write_str("%0A"),
            ':' if self.in_property => f.write_str("%3A"),
            ',' if self.in_property => f.write_str("%2C"),
            c => write!(f, "{c}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isolario_model::{
        Anomaly, AnomalyKind, Attempt, Evidence, Findings, Inapplicable, Limit, OpId, Undecided,
        Verdict, Witness,
    };

    use super::*;
    use crate::testing::{History as Builder, r, text};

    fn thin_air() -> Verdict {
        let anomaly = |read| {
            Anomaly::new(
                AnomalyKind::ThinAirRead,
                Evidence::Read { read: OpId(read), saw: None, instead: None },
            )
        };
        let anomalies = vec![anomaly(0), anomaly(1)];
        Verdict::Violated(Findings::new(anomalies, true))
    }

    fn written(report: &Report<'_>) -> String {
        let mut out = Vec::new();
        Github.report(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn results(verdicts: impl IntoIterator<Item = (Level, Verdict)>) -> Vec<LevelResult> {
        let result = |(level, verdict)| LevelResult { level, decided_by: Attempt::Rule, verdict };
        verdicts.into_iter().map(result).collect()
    }

    #[test]
    fn a_command_is_one_line_whatever_the_names_are() {
        let history =
            Builder::new().named(text("evil\n::error::"), &[r("x", 7), r("100%", 8)]).build();
        let results = results([
            (Level::ReadCommitted, thin_air()),
            (
                Level::Prefix,
                Verdict::Undecided(Undecided::new(Limit::Time(Duration::from_secs(60)))),
            ),
            (Level::Serializable, Verdict::NotApplicable(Inapplicable::NoTimes)),
        ]);
        let report = Report::new("dir,a:b/h.txt", &history, &results)
            .with_max_anomalies(1)
            .with_named(&[Level::Serializable]);
        let text = written(&report);
        assert!(text.lines().all(|line| line.starts_with("::")), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_nobody_asked_for_is_a_notice() {
        let history = Builder::new().txn(&[r("x", 7), r("y", 8)]).build();
        let results = results([
            (Level::ReadCommitted, Verdict::Satisfied(Witness::Empty)),
            (Level::Causal, thin_air()),
        ]);
        let report = Report::new("-", &history, &results);
        let open = written(&report.clone().with_weakest_only(true));
        assert!(!open.contains("::error") && !open.contains("file="), "{open}");
        assert!(open.contains("::satisfies read-committed; violates causal"), "{open}");
        assert_eq!(written(&report).matches("::error ").count(), 2);
    }
}
