//! Reports for CI servers: JUnit XML, a suite per history and a case per level.
//!
//! The form is what Jenkins, GitLab and their like have in common. A case fails where a level that
//! counts is violated, is in error where it could not be decided or had to apply, and is skipped
//! where its answer is for information only: so the page of the CI server agrees with the exit code.

use std::io;

use isolario_model::{AnomalyKind, Level, LevelResult, PatternResult, Verdict};

use crate::finding::{Finding, ReportFindings};
use crate::human::finding_text;
use crate::implied::{KnownVerdict, known};
use crate::meaning::Judgement;
use crate::names::{Names, counted};
use crate::printable::printable;
use crate::report::{HistoryName, Renderer, Report};
use crate::sentences::{at_least, began, summary, why_no_answer};
use crate::summary::Summary;
use crate::xml::Escaped;

/// Renders reports as JUnit XML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Junit;

impl Renderer for Junit {
    fn begin(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"isolario\">")
    }

    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let found = report.found();
        let lost = report.lost.map(|lost| no_lost_commit(report, &found, lost.result));
        let levels = report.results.iter().map(|result| level(report, &found, result));
        let patterns = report.patterns.iter().map(|result| pattern(report, result));
        let seconds = (report.timing.load + report.timing.check).as_secs_f64();
        let cases: Vec<Case> = lost.into_iter().chain(levels).chain(patterns).collect();
        suite(report.test, seconds, &cases, out)
    }

    fn failure(
        &mut self,
        name: HistoryName<'_>,
        error: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let message = error.to_owned();
        let end = End::Error { kind: "unreadable", message };
        suite(name.test, 0.0, &[Case { name: "read the history".to_owned(), end }], out)
    }

    /// Nothing: CI servers count for themselves.
    fn summary(&mut self, _summary: &Summary, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "</testsuites>")
    }
}

struct Case {
    name: String,
    end: End,
}

/// How a case ends, in the words of JUnit.
enum End {
    Passed,
    Failure { kind: &'static str, message: String, text: String },
    Error { kind: &'static str, message: String },
    Skipped { message: String },
}

fn level(report: &Report<'_>, found: &ReportFindings<'_>, result: &LevelResult) -> Case {
    let end = match report.meaning(result) {
        Judgement::Satisfied => End::Passed,
        Judgement::Violated => match known(report.results, result.level) {
            Some(KnownVerdict { follows_from: Some(source), .. }) => {
                let message = format!("violated, since {source} is, which it implies");
                End::Failure { kind: "implied", message, text: String::new() }
            }
            _ => {
                let findings: Vec<_> = found.of_level(result.level).collect();
                let total = found.count_of(result);
                failure(report, &findings, total, &result.verdict, Some(result.level))
            }
        },
        Judgement::Undecided => {
            End::Error { kind: "undecided", message: why(report, found, result) }
        }
        Judgement::NotDecidable => {
            End::Error { kind: "not-applicable", message: why(report, found, result) }
        }
        _ => {
            let why = why(report, found, result);
            End::Skipped { message: format!("{}: {why}", result.verdict.name()) }
        }
    };
    Case { name: result.level.name().to_owned(), end }
}

/// Whether what was acknowledged was there after the server had been down.
fn no_lost_commit(report: &Report<'_>, found: &ReportFindings<'_>, result: &PatternResult) -> Case {
    let findings = found.findings.iter().filter(|one| one.kind() == AnomalyKind::LostCommit);
    let findings: Vec<&Finding<'_>> = findings.collect();
    let end = match findings.len() as u64 {
        0 => End::Passed,
        total => failure(report, &findings, total, &result.verdict, None),
    };
    Case { name: format!("no {}", result.kind), end }
}

fn pattern(report: &Report<'_>, result: &PatternResult) -> Case {
    let names = Names::new(report.history);
    let end = match &result.verdict {
        Verdict::Violated(findings) => {
            let alone = |anomaly| Finding::alone(report.history, anomaly);
            let shown = findings.anomalies.iter().take(report.max_anomalies.max(1));
            let alone: Vec<Finding<'_>> = shown.map(|anomaly| alone(anomaly)).collect();
            let alone: Vec<&Finding<'_>> = alone.iter().collect();
            failure(report, &alone, findings.total, &result.verdict, None)
        }
        Verdict::Satisfied(_) => End::Passed,
        verdict => {
            let message = why_no_answer(names, verdict).unwrap_or_default();
            match verdict {
                Verdict::Undecided(_) => End::Error { kind: "undecided", message },
                _ => End::Skipped { message },
            }
        }
    };
    Case { name: format!("no {}", result.kind), end }
}

/// What stands behind a verdict that is not `satisfied`.
fn why(report: &Report<'_>, found: &ReportFindings<'_>, result: &LevelResult) -> String {
    let names = Names::new(report.history);
    if !result.verdict.is_violated() {
        return why_no_answer(names, &result.verdict).unwrap_or_default();
    }
    match found.of_level(result.level).next().map(|finding| finding.at(result.level)) {
        Some(first) => format!("{}: {}", first.kind, summary(names, first)),
        None => counted(found.count_of(result), "anomaly"),
    }
}

/// The first finding as the message, and as many as are shown in full as the text.
fn failure(
    report: &Report<'_>,
    findings: &[&Finding<'_>],
    total: u64,
    verdict: &Verdict,
    level: Option<Level>,
) -> End {
    let names = Names::new(report.history);
    let began = began(report.history);
    let shown = &findings[..findings.len().min(report.max_anomalies)];
    let mut text: Vec<String> =
        shown.iter().map(|finding| finding_text(names, finding, began)).collect();
    let hidden = total.saturating_sub(shown.len() as u64);
    if hidden > 0 {
        let is_exact = matches!(verdict, Verdict::Violated(findings) if findings.exact);
        let at_least = at_least(is_exact);
        text.push(format!("… and {at_least}{}\n", counted(hidden, "more anomaly")));
    }
    let first = findings.first().map(|first| level.map_or(first.anomaly, |level| first.at(level)));
    let (kind, message) = match first {
        Some(first) if first.kind == AnomalyKind::LostCommit => {
            let commits = counted(total, "commit");
            (first.kind.name(), format!("{commits} lost: {}", summary(names, first)))
        }
        Some(first) => (first.kind.name(), format!("{}: {}", first.kind, summary(names, first))),
        None => ("violated", counted(total, "anomaly")),
    };
    End::Failure { kind, message, text: text.join("\n") }
}

fn suite(name: &str, seconds: f64, cases: &[Case], out: &mut dyn io::Write) -> io::Result<()> {
    let count = |is: fn(&End) -> bool| cases.iter().filter(|case| is(&case.end)).count();
    let failures = count(|end| matches!(end, End::Failure { .. }));
    let errors = count(|end| matches!(end, End::Error { .. }));
    let skipped = count(|end| matches!(end, End::Skipped { .. }));
    let name = printable(name);
    let (name, tests) = (Escaped(&name), cases.len());
    writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{seconds:.3}\">"
    )?;
    for case in cases {
        write!(out, "    <testcase classname=\"{name}\" name=\"{}\"", Escaped(&case.name))?;
        match &case.end {
            End::Passed => writeln!(out, "/>")?,
            end => {
                writeln!(out, ">")?;
                write_end(end, out)?;
                writeln!(out, "    </testcase>")?;
            }
        }
    }
    writeln!(out, "  </testsuite>")
}

fn write_end(end: &End, out: &mut dyn io::Write) -> io::Result<()> {
    match end {
        End::Passed => Ok(()),
        End::Failure { kind, message, text } => {
            let (message, text) = (Escaped(message), Escaped(text));
            writeln!(out, "      <failure type=\"{kind}\" message=\"{message}\">{text}</failure>")
        }
        End::Error { kind, message } => {
            let message = printable(message);
            writeln!(out, "      <error type=\"{kind}\" message=\"{}\"/>", Escaped(&message))
        }
        End::Skipped { message } => {
            writeln!(out, "      <skipped message=\"{}\"/>", Escaped(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isolario_model::{
        Anomaly, Attempt, Evidence, Findings, Inapplicable, Limit, OpId, Undecided, Witness,
    };

    use super::*;
    use crate::testing::{History as Builder, r, text, w};

    fn thin_air(read: u32) -> Verdict {
        let evidence = Evidence::Read { read: OpId(read), saw: None, instead: None };
        let anomalies = vec![Anomaly::new(AnomalyKind::ThinAirRead, evidence)];
        Verdict::Violated(Findings::new(anomalies, false))
    }

    fn written(report: &Report<'_>) -> String {
        let mut out = Vec::new();
        Junit.begin(&mut out).unwrap();
        Junit.report(report, &mut out).unwrap();
        Junit.failure("missing<.txt".into(), "no such file", &mut out).unwrap();
        Junit.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn levels_are_cases_that_pass_fail_err_or_are_skipped() {
        let history = Builder::new().named(text("<b>"), &[r("x&", 7), w("y", 1)]).build();
        let results = [
            (Level::ReadCommitted, thin_air(0)),
            (Level::CutIsolation, Verdict::Satisfied(Witness::Empty)),
            (
                Level::Prefix,
                Verdict::Undecided(Undecided::new(Limit::Time(Duration::from_secs(60)))),
            ),
            (Level::Serializable, Verdict::NotApplicable(Inapplicable::NoVersionOrder)),
            (Level::StrictSerializable, Verdict::NotApplicable(Inapplicable::NoTimes)),
        ]
        .map(|(level, verdict)| LevelResult { level, decided_by: Attempt::Rule, verdict });
        let report = Report::new("h&.txt", &history, &results);
        insta::assert_snapshot!(written(&report.with_named(&[Level::Serializable])));
    }

    #[test]
    fn what_nobody_asked_for_is_skipped() {
        let history = Builder::new().txn(&[r("x", 7)]).build();
        let results = [
            (Level::ReadCommitted, Verdict::Satisfied(Witness::Empty)),
            (Level::Causal, thin_air(0)),
        ]
        .map(|(level, verdict)| LevelResult { level, decided_by: Attempt::Rule, verdict });
        let xml = written(&Report::new("h", &history, &results).with_weakest_only(true));
        assert!(xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{xml}");
        assert!(xml.contains("<skipped message=\"violated: ThinAirRead: T1 read x=7"), "{xml}");
    }

    #[test]
    fn anomalies_that_were_looked_for_are_cases() {
        let history = Builder::new().txn(&[r("x", 7)]).build();
        let verdicts = [
            (AnomalyKind::ThinAirRead, thin_air(0)),
            (AnomalyKind::AbortedRead, Verdict::Satisfied(Witness::Empty)),
        ];
        let patterns = verdicts.map(|(kind, verdict)| PatternResult { kind, verdict });
        let xml = written(&Report::of_patterns("h", &history, &patterns));
        assert!(xml.contains("name=\"no ThinAirRead\">\n      <failure"), "{xml}");
        assert!(xml.contains("name=\"no AbortedRead\"/>"), "{xml}");
    }
}
