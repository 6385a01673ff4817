//! Reports for programs: one JSON object per history, one per line.
//!
//! The form is a contract (schema `isolario.verdict/2`): fields may be added, and never change
//! their meaning.

mod explain;
mod op;
mod show;
mod stats;
mod summary;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Level, LevelResult, Outcome, PatternResult, SessionId,
    TxnId, ValueRef, Verdict,
};
use serde::Serialize;

use crate::finding::{Finding, FindingGroup, ReportFindings};
use crate::involved::InvolvedTxn;
use crate::meaning::deciding;
use crate::names::Names;
use crate::not_ruled_out::not_ruled_out;
use crate::provenance::{Provenance, Utc};
use crate::report::{HistoryName, HistorySize, LostCommitsResult, Renderer, Report};
use crate::sentences::{ArgumentStep, argument, in_time, stated, summary, why_no_answer};
use crate::summary::Summary;
use crate::txn_facts::TxnFacts;
use op::{JsonOp, JsonValue};
use summary::JsonSummary;

const SCHEMA: &str = "isolario.verdict/2";

/// Renders reports as lines of JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Json {
    /// What was found, in numbers, as it is in the object on a history.
    pub fn findings<'h>(report: &Report<'h>) -> impl Serialize + use<'h> {
        JsonTotals::of(Names::new(report.history), &report.found(), report.max_anomalies)
    }
}

impl Renderer for Json {
    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        write_line(&JsonReport::of(report), out)
    }

    fn failure(
        &mut self,
        name: HistoryName<'_>,
        error: &str,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        write_line(&JsonFailure { schema: SCHEMA, history: name.name, error }, out)
    }

    fn summary(&mut self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        write_line(&JsonSummary::of(summary), out)
    }
}

/// Writes an object and ends its line.
pub(crate) fn write_line(object: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    writeln!(out)
}

#[derive(Serialize)]
struct JsonFailure<'a> {
    schema: &'static str,
    history: &'a str,
    error: &'a str,
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: &'static str,
    history: &'a str,
    size: HistorySize,
    strongest: Vec<&'static str>,
    /// Where no level was asked for: the one that the exit code follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code_follows: Option<&'static str>,
    /// Where the question is what the database claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<JsonClaim>,
    results: Vec<JsonResult<'a>>,
    /// Where single anomalies were asked for instead of levels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patterns: Vec<JsonPattern<'a>>,
    /// Everything that was found, each bug once: the numbers of all reports.
    findings: JsonTotals<'a>,
    /// Kinds that may be in the history as well, by the level whose search would find them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_ruled_out: Vec<JsonOpen>,
    /// How many transactions began before the first one of an anomaly.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_counterexample: Option<u64>,
    /// What the answers owe to the database's own word, where that is part of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    stated: Option<JsonStated>,
    /// What was acknowledged before the server was down and is missing since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_commits: Option<JsonLost<'a>>,
    timing: JsonTiming,
    provenance: JsonProvenance<'a>,
}

#[derive(Serialize)]
struct JsonClaim {
    levels: Vec<&'static str>,
    judgement: &'static str,
}

#[derive(Serialize)]
struct JsonLost<'a> {
    total: u64,
    /// One of them, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
    /// The settings by which the server was to keep what it acknowledges.
    #[serde(skip_serializing_if = "str::is_empty")]
    durability: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    anomalies: Vec<JsonAnomaly<'a>>,
}

#[derive(Serialize)]
struct JsonStated {
    /// Of the violated levels, what they come to without it.
    otherwise: Vec<JsonOtherwise>,
    operations_without_set: u64,
    /// The same in words.
    summary: Vec<String>,
}

#[derive(Serialize)]
struct JsonOtherwise {
    level: &'static str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct JsonTotals<'a> {
    total: u64,
    exact: bool,
    /// How many are shown in full where people read.
    shown: u64,
    groups: Vec<JsonGroup<'a>>,
}

#[derive(Serialize)]
struct JsonGroup<'a> {
    name: &'static str,
    key: Option<JsonValue<'a>>,
    count: u64,
}

#[derive(Serialize)]
struct JsonOpen {
    level: &'static str,
    names: Vec<&'static str>,
}

#[derive(Serialize)]
struct JsonProvenance<'a> {
    isolario: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    /// The command that verifies the proof, where one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonTiming {
    load_ms: f64,
    check_ms: f64,
    peak_rss_bytes: Option<u64>,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    level: &'static str,
    verdict: &'static str,
    decided_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    findings: Option<JsonFindings<'a>>,
}

#[derive(Serialize)]
struct JsonPattern<'a> {
    name: &'static str,
    pattern: Option<String>,
    /// Null where that could not be decided.
    occurs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    findings: Option<JsonFindings<'a>>,
}

#[derive(Serialize)]
struct JsonFindings<'a> {
    anomalies_total: u64,
    anomalies_exact: bool,
    anomalies: Vec<JsonAnomaly<'a>>,
}

#[derive(Serialize)]
struct JsonAnomaly<'a> {
    name: &'static str,
    pattern: Option<String>,
    mtc: Option<char>,
    adya: Option<&'static str>,
    /// Other names under which the same transactions were found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<&'static str>,
    summary: String,
    transactions: Vec<JsonTxn<'a>>,
    /// How they lie in time, where the history has times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_time: Vec<String>,
    edges: Vec<JsonEdge<'a>>,
    /// The other cycles, where each closes one case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    further_cases: Vec<Vec<JsonEdge<'a>>>,
}

#[derive(Serialize)]
struct JsonTxn<'a> {
    id: String,
    session: String,
    line: Option<u64>,
    outcome: &'static str,
    ops: Vec<JsonOp<'a>>,
    /// How many operations have no part in the anomaly.
    omitted_ops: usize,
    /// As the history has them: nanoseconds, or numbers of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
    /// The database's own stamps: physical and logical part.
    #[serde(skip_serializing_if = "Option::is_none")]
    db_start: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    db_commit: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sql: Vec<&'a str>,
}

#[derive(Serialize)]
struct JsonEdge<'a> {
    from: String,
    to: String,
    kind: &'static str,
    key: Option<JsonValue<'a>>,
    why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<JsonEdge<'a>>,
}

impl<'a> JsonReport<'a> {
    fn of(report: &'a Report<'a>) -> Self {
        let names = Names::new(report.history);
        let most = report.max_anomalies;
        let found = report.found();
        let open = |(level, kinds): (Level, Vec<AnomalyKind>)| JsonOpen {
            level: level.name(),
            names: kinds.into_iter().map(AnomalyKind::name).collect(),
        };
        JsonReport {
            schema: SCHEMA,
            history: report.name,
            size: report.size,
            strongest: report.strongest().iter().map(|level| level.name()).collect(),
            exit_code_follows: deciding(report.results)
                .filter(|_| report.asked.weakest_only)
                .map(|result| result.level.name()),
            claim: Some(report.asked.claim).filter(|claim| !claim.is_empty()).map(|claim| {
                let levels = claim.iter().map(|level| level.name()).collect();
                JsonClaim { levels, judgement: report.judgement().name() }
            }),
            results: (report.results.iter())
                .map(|result| JsonResult::of(names, &found, result, most))
                .collect(),
            patterns: report.patterns.iter().map(|p| JsonPattern::of(names, p, most)).collect(),
            findings: JsonTotals::of(names, &found, most),
            not_ruled_out: not_ruled_out(report, &found).into_iter().map(open).collect(),
            first_counterexample: report.first_counterexample(),
            stated: JsonStated::of(report),
            lost_commits: report.lost.map(|lost| JsonLost::of(names, &found, lost, most)),
            timing: JsonTiming {
                load_ms: milliseconds(report.timing.load),
                check_ms: milliseconds(report.timing.check),
                peak_rss_bytes: report.timing.peak_rss_bytes,
            },
            provenance: JsonProvenance {
                isolario: Provenance::VERSION,
                date: report.provenance.unix_s.map(|seconds| Utc::of(seconds).to_string()),
                digest: report.provenance.digest.as_deref(),
                verify: report.provenance.verify.as_deref(),
            },
        }
    }
}

impl<'a> JsonLost<'a> {
    fn of(
        names: Names<'a>,
        found: &ReportFindings<'a>,
        lost: LostCommitsResult<'a>,
        most: usize,
    ) -> Self {
        let is_lost = |finding: &&Finding<'a>| finding.kind() == AnomalyKind::LostCommit;
        let anomaly = |finding: &Finding<'a>| {
            let aliases = finding.anomalies().map(|other| other.kind);
            JsonAnomaly::of(names, finding.anomaly, aliases, finding.involved.clone())
        };
        let anomalies: Vec<_> =
            found.findings.iter().filter(is_lost).take(most).map(anomaly).collect();
        JsonLost {
            total: lost.total(),
            example: anomalies.first().map(|first| first.summary.clone()),
            durability: lost.durability,
            anomalies,
        }
    }
}

impl JsonStated {
    fn of(report: &Report<'_>) -> Option<Self> {
        let names = Names::new(report.history);
        let otherwise = |result: &LevelResult| JsonOtherwise {
            level: result.level.name(),
            verdict: result.verdict.name(),
            reason: why_no_answer(names, &result.verdict),
        };
        report.stated.map(|owed| JsonStated {
            otherwise: owed.otherwise.iter().map(otherwise).collect(),
            operations_without_set: owed.operations_without_set,
            summary: stated(report),
        })
    }
}

impl<'a> JsonTotals<'a> {
    fn of(names: Names<'a>, found: &ReportFindings<'_>, most: usize) -> Self {
        let group = |group: FindingGroup| JsonGroup {
            name: group.kind.name(),
            key: group.key.map(|key| JsonValue(names.history().key_name(key))),
            count: group.findings.len() as u64,
        };
        JsonTotals {
            total: found.total() as u64,
            exact: found.exact,
            shown: found.in_full(most).len() as u64,
            groups: found.groups().into_iter().map(group).collect(),
        }
    }
}

/// To the microsecond: more digits would be noise.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

impl<'a> JsonResult<'a> {
    fn of(names: Names<'a>, found: &ReportFindings<'a>, result: &LevelResult, most: usize) -> Self {
        let anomaly = |finding: &Finding<'a>| {
            let anomaly = finding.at(result.level);
            let aliases = finding.anomalies().map(|other| other.kind);
            JsonAnomaly::of(names, anomaly, aliases, finding.involved.clone())
        };
        let findings = match &result.verdict {
            Verdict::Violated(findings) => Some(JsonFindings {
                anomalies_total: found.count_of(result),
                anomalies_exact: findings.exact,
                anomalies: found.of_level(result.level).take(most).map(anomaly).collect(),
            }),
            _ => None,
        };
        JsonResult {
            level: result.level.name(),
            verdict: result.verdict.name(),
            decided_by: result.decided_by.name(),
            reason: why_no_answer(names, &result.verdict),
            findings,
        }
    }
}

impl<'a> JsonPattern<'a> {
    fn of(names: Names<'a>, result: &PatternResult, most: usize) -> Self {
        let anomaly = |anomaly: &Arc<Anomaly>| {
            let finding = Finding::alone(names.history(), anomaly);
            JsonAnomaly::of(names, anomaly, std::iter::empty(), finding.involved)
        };
        let findings = match &result.verdict {
            Verdict::Violated(findings) => Some(JsonFindings {
                anomalies_total: findings.total,
                anomalies_exact: findings.exact,
                anomalies: findings.anomalies.iter().take(most).map(anomaly).collect(),
            }),
            _ => None,
        };
        JsonPattern {
            name: result.kind.name(),
            pattern: result.kind.pattern(),
            occurs: match result.verdict {
                Verdict::Violated(_) => Some(true),
                Verdict::Satisfied(_) => Some(false),
                _ => None,
            },
            reason: why_no_answer(names, &result.verdict),
            findings,
        }
    }
}

impl<'a> JsonAnomaly<'a> {
    fn of(
        names: Names<'a>,
        anomaly: &Anomaly,
        aliases: impl Iterator<Item = AnomalyKind>,
        involved: Vec<InvolvedTxn>,
    ) -> Self {
        let kind = anomaly.kind.names();
        let mut aliases: Vec<&str> = aliases.map(AnomalyKind::name).collect();
        aliases.retain(|name| *name != kind.name);
        aliases.dedup();
        let txns: Vec<TxnId> = involved.iter().map(|part| part.txn).collect();
        let part = |part: InvolvedTxn| JsonTxn::of(names, &part);
        let edges = |edges| JsonEdge::list(names, argument(names, edges));
        let further = match &anomaly.evidence {
            Evidence::Cases { cycles } => cycles.get(1..).unwrap_or_default(),
            _ => &[],
        };
        JsonAnomaly {
            name: kind.name,
            pattern: anomaly.kind.pattern(),
            mtc: kind.mtc,
            // Adya's names do not speak of sessions.
            adya: kind.adya.filter(|_| !anomaly.evidence.needs_session_order()),
            aliases,
            summary: summary(names, anomaly),
            transactions: involved.into_iter().map(part).collect(),
            in_time: in_time(names, &txns),
            edges: edges(anomaly.evidence.edges()),
            further_cases: further.iter().map(|cycle| edges(cycle)).collect(),
        }
    }
}

impl<'a> JsonTxn<'a> {
    fn of(names: Names<'a>, part: &InvolvedTxn) -> Self {
        let history = names.history();
        let facts = TxnFacts::of(names, part.txn, 0);
        JsonTxn {
            id: history.txn_label(part.txn),
            session: session_label(history, history.session_of(part.txn)),
            line: history.line(part.txn),
            outcome: outcome_name(history.outcome(part.txn)),
            ops: part.ops.iter().map(|op| JsonOp::of(history, *op)).collect(),
            omitted_ops: part.omitted,
            start: history.start(part.txn),
            finish: history.finish(part.txn),
            error: facts.error,
            snapshot: facts.snapshot,
            db_start: facts.db_start.map(|stamp| [stamp.physical, stamp.logical]),
            db_commit: facts.db_commit.map(|stamp| [stamp.physical, stamp.logical]),
            sql: facts.sql.into_iter().map(|(_, sql)| sql).collect(),
        }
    }
}

/// The user's own name of a session.
fn session_label(history: &History, session: SessionId) -> String {
    match history.session_name(session) {
        ValueRef::Text(name) => name.to_owned(),
        name => name.to_string(),
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Committed => "committed",
        Outcome::Aborted => "aborted",
        Outcome::Unknown => "unknown",
    }
}

impl<'a> JsonEdge<'a> {
    fn list(names: Names<'a>, steps: Vec<ArgumentStep>) -> Vec<Self> {
        let id = |txn: TxnId| names.history().txn_label(txn);
        let edge = |step: ArgumentStep| JsonEdge {
            from: id(step.from),
            to: id(step.to),
            kind: step.kind.name(),
            key: step.key.map(|key| JsonValue(names.history().key_name(key))),
            why: step.sentence,
            because: JsonEdge::list(names, step.because),
        };
        steps.into_iter().map(edge).collect()
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{
        Aggregate, Attempt, Decimal, Findings, Inapplicable, KeyId, Limit, Op, OpId, Predicate,
        Reason, RowInput, TupleParts, Undecided, Witness,
    };

    use super::*;
    use crate::report::Timing;
    use crate::testing::{History as Builder, edge, int, r, text, w};

    fn lines(report: &Report<'_>) -> String {
        let mut out = Vec::new();
        Json.report(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn result(level: Level, verdict: Verdict) -> LevelResult {
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    #[test]
    fn a_report_is_one_line_in_the_order_of_the_contract() {
        let history = Builder::new()
            .txn(&[w("x", 1), r("y", 1)])
            .session()
            .txn(&[r("x", 1), w("y", 1), r("z", 0)])
            .build();
        let read = |key, read, write| Reason::Read {
            key: KeyId(key),
            read: OpId(read),
            write: Some(OpId(write)),
        };
        let edges = vec![edge(0, 1, read(0, 2, 0)), edge(1, 0, read(1, 1, 3))];
        let cycle = Anomaly::new(AnomalyKind::CyclicCo, Evidence::Cycle { edges });
        let findings = Findings::new(vec![cycle], true);
        let results = [
            result(Level::AdyaReadCommitted, Verdict::Violated(findings)),
            result(Level::CutIsolation, Verdict::Satisfied(Witness::Empty)),
            result(
                Level::Prefix,
                Verdict::Undecided(Undecided::new(Limit::Time(Duration::from_secs(60)))),
            ),
            result(Level::StrictSerializable, Verdict::NotApplicable(Inapplicable::NoTimes)),
        ];
        let timing = Timing {
            load: Duration::from_micros(1200),
            check: Duration::from_nanos(900_400),
            peak_rss_bytes: Some(12_345_678),
        };
        let report = Report::new("h.txt", &history, &results).with_timing(timing);
        let line = lines(&report);
        assert_eq!(line.lines().count(), 1);
        let pretty: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(pretty["results"][0]["anomalies"][0]["pattern"], "TAP-g");
        insta::assert_snapshot!(line.replace(",\"", ",\n\""));
    }

    #[test]
    fn failures_have_the_history_and_the_error() {
        let mut out = Vec::new();
        Json.failure("h.txt".into(), "line 3: no", &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"schema\":\"isolario.verdict/2\",\"history\":\"h.txt\",\"error\":\"line 3: no\"}\n"
        );
    }

    #[test]
    fn every_operation_and_value_has_its_json() {
        let x = text("x");
        let positive = Predicate::from_sql("v > 0");
        let rich = Predicate::from_sql("FROM accounts WHERE balance > 100");
        let account = TupleParts { table: "accounts", columns: &[("id", int(1))] };
        let price = Decimal::parse("1.50").unwrap();
        let held = TupleParts {
            table: "",
            columns: &[("balance", int(200)), ("price", ValueRef::Decimal(price.as_ref()))],
        };
        let accounts = [RowInput::new(&account, &held)];
        let rows = [RowInput::new(x, 1)];
        let (applied, seen) = (Some(false), Some(int(7)));
        let ops = [
            r("x", 1 << 53),
            r("x", (1 << 53) + 1),
            Op::Write { key: int(4), value: ValueRef::Uint(u64::MAX) },
            Op::Write { key: ValueRef::Keyword("k"), value: ValueRef::Keyword("v") },
            Op::Write { key: ValueRef::Bool(true), value: ValueRef::Nil },
            Op::Write { key: x, value: ValueRef::Other("1.5") },
            Op::Read { key: x, value: None },
            Op::Delete { key: x },
            Op::Append { key: x, element: int(3) },
            Op::ReadList { key: x, elements: Some(&[int(1), int(2)]) },
            Op::ReadList { key: x, elements: None },
            Op::InsertIfAbsent { key: x, value: int(1), applied: None, seen: None },
            Op::CompareAndSet { key: x, expected: int(1), new: int(2), applied, seen },
            Op::PredicateRead { predicate: &positive, rows: Some(&rows) },
            Op::PredicateWrite { predicate: &positive, rows: None },
            Op::Aggregate {
                function: &Aggregate::from_sql("sum(v)"),
                predicate: &positive,
                result: Some(int(2)),
            },
            Op::PredicateRead { predicate: &rich, rows: Some(&accounts) },
        ];
        let history = Builder::new().txn(&ops).build();
        let json = |op| serde_json::to_string(&JsonOp::of(&history, OpId::at(op))).unwrap();
        let shown: Vec<_> = (0..ops.len()).map(json).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn figures_are_one_line_with_what_is_odd() {
        let history = Builder::new().txn(&[r("x", 0), w("x", 1)]).txn(&[w("x", 1)]).build();
        let (stats, findings) = (isolario_model::Stats::of(&history), history.validate());
        let mut out = Vec::new();
        let report = crate::StatsReport::new("h.txt", &history, &stats, &findings);
        Json.stats(&report, &mut out).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.lines().count(), 1);
        insta::assert_snapshot!(line.replace(",\"", ",\n\""));
    }
}
