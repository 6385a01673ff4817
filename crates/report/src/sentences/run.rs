//! What befell a live run.

use isolario_model::{
    AnomalyKind, Level, RunRecord, RunVerdict, StopCause, StopReason, VerdictKind,
};

use super::naming::level_name;
use crate::finding::Finding;
use crate::implied::known;
use crate::meaning::Judgement;
use crate::names::{grouped, listed};
use crate::report::Report;

/// What was tested and what the answers come to, as a heading and as a judgement:
/// `PostgreSQL 15.4 at repeatable read: claim kept`.
pub(crate) fn headline(report: &Report<'_>, run: &RunRecord) -> (String, Judgement) {
    let judgement = report.judgement_of_run(run);
    let lost = report.lost.map_or(0, |lost| lost.total());
    let result = match judgement {
        Judgement::Violated if lost > 0 => {
            let commits = if lost == 1 { "commit" } else { "commits" };
            format!(" lost {} {commits}", grouped(lost))
        }
        _ if report.results.is_empty() && !report.patterns.is_empty() => looked_for(report),
        Judgement::Violated => violated(report, run),
        Judgement::Satisfied => satisfied(report, run),
        Judgement::NothingToCheck => ": nothing to check".to_owned(),
        _ if run.stopped == StopReason::Database && report.judgement() == Judgement::Satisfied => {
            ": ended early, claim kept until then".to_owned()
        }
        _ => ": not decided".to_owned(),
    };
    (format!("{}{result}", tested(run)), judgement)
}

/// The database and its setting: `PostgreSQL 15.4 at repeatable read`.
pub fn tested(run: &RunRecord) -> String {
    let isolation = run.isolation.replace('-', " ");
    let setting = if isolation.is_empty() { String::new() } else { format!(" at {isolation}") };
    format!("{}{setting}", product(run))
}

/// What was tested, by a name that is the same in every run: without the version, the time and the seed.
pub fn test_name(run: &RunRecord) -> String {
    let parts = [&run.database, &run.isolation, &run.workload.kind].map(String::as_str);
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The database and its version, as it calls itself.
pub fn product(run: &RunRecord) -> String {
    let (name, version) = (&run.database, &run.database_version);
    if version.is_empty() { name.clone() } else { version.clone() }
}

/// The answers by the database's own word.
pub(crate) fn own_word(run: &RunRecord) -> impl Iterator<Item = &RunVerdict> {
    run.whitebox.iter().flat_map(|own| own.by_versions.iter().chain(&own.by_order))
}

fn looked_for(report: &Report<'_>) -> String {
    let is_found = |verdict: VerdictKind| verdict == VerdictKind::Violated;
    let found = report.patterns.iter().filter(|result| is_found(result.verdict.kind()));
    let found: Vec<&str> = found.map(|result| result.kind.title()).collect();
    match found.is_empty() {
        true => ": none of the anomalies that were looked for".to_owned(),
        false => format!(": {}", listed(&found)),
    }
}

/// What is violated, and by what: the weakest level that counts, and the first finding.
fn violated(report: &Report<'_>, run: &RunRecord) -> String {
    let counts = |result: &&isolario_model::LevelResult| {
        report.meaning(result) == Judgement::Violated && result.verdict.is_violated()
    };
    let found = report.found();
    let first = found.findings.first().filter(|first| report.counts(first));
    let own = own_word(run).filter(|answer| answer.verdict == VerdictKind::Violated);
    let own = own.min_by_key(|answer| answer.level);
    let (level, kind) = match (report.results.iter().find(counts), own, &run.whitebox) {
        (Some(result), ..) => (result.level, first.map(Finding::kind)),
        (None, Some(own), Some(record)) => {
            if let Some(level) = record.not_as_promised.last().filter(|level| **level == own.level)
            {
                let level = level_name(*level);
                return format!(": {level} satisfied, but not by the order that it promises");
            }
            (own.level, own.anomalies.first().copied())
        }
        (None, _, Some(record)) if record.disagreement.is_some() => {
            return ": the logs of its nodes differ".to_owned();
        }
        _ => return " broke its claim".to_owned(),
    };
    let kind = kind.map(plain_title);
    match run.claim.iter().any(|claim| *claim == level || claim.is_ruled_out_by(level)) {
        true => {
            format!(" broke its claim{}", kind.map_or(String::new(), |kind| format!(": {kind}")))
        }
        false => {
            let kind = kind.map_or(String::new(), |kind| format!(" ({kind})"));
            format!(": {} violated{kind}", level_name(level))
        }
    }
}

fn satisfied(report: &Report<'_>, run: &RunRecord) -> String {
    let is_kept = |claim: &Level| {
        let by_clients = known(report.results, *claim);
        by_clients.is_some_and(|known| known.verdict == VerdictKind::Satisfied)
            || own_word(run).any(|answer| is_satisfied_by(*claim, answer))
    };
    if !run.claim.is_empty() && run.claim.iter().all(is_kept) {
        return ": claim kept".to_owned();
    }
    match report.results.iter().rfind(|result| result.verdict.is_satisfied()) {
        Some(strongest) => format!(": {} satisfied", level_name(strongest.level)),
        None => ": not decided".to_owned(),
    }
}

/// Whether an answer shows that a level is satisfied.
pub(crate) fn is_satisfied_by(level: Level, answer: &RunVerdict) -> bool {
    answer.verdict == VerdictKind::Satisfied
        && (answer.level == level || answer.level.implies(level))
}

/// The title of a kind, in the middle of a sentence.
fn plain_title(kind: AnomalyKind) -> String {
    let mut letters = kind.title().chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// What ended a run before its time. The node is named where there are several.
pub fn stopped_because(cause: &StopCause, urls: &[String]) -> String {
    let error = match (&cause.message, &cause.code) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message.clone(),
        (None, _) => String::new(),
    };
    let node = cause.node.and_then(|node| urls.get(node)).filter(|_| urls.len() > 1);
    match (cause.stalled_ms, node) {
        (Some(ms), _) if error.is_empty() => format!("nothing has committed for {}", seconds(ms)),
        (Some(ms), None) => {
            format!("nothing has committed for {}; the last error: {error}", seconds(ms))
        }
        (Some(ms), Some(node)) => {
            format!("nothing has committed for {}; the last error, of {node}: {error}", seconds(ms))
        }
        (None, Some(node)) => format!("{node}: {error}"),
        (None, None) => error,
    }
}

fn seconds(ms: f64) -> String {
    format!("{:.0} s", ms / 1e3)
}

#[cfg(test)]
mod tests {
    use isolario_model::{
        Anomaly, Attempt, Evidence, Findings, History, KeyId, LevelResult, Limit, OpId,
        PatternResult, Undecided, Verdict, WhiteboxRecord, Witness,
    };

    use super::*;
    use crate::meaning::RequestedLevels;
    use crate::report::LostCommitsResult;
    use crate::testing::{History as Builder, r, w};

    fn history() -> History {
        Builder::new().txn(&[r("x", 0), w("x", 1)]).txn(&[r("x", 7)]).build()
    }

    fn result(level: Level, verdict: VerdictKind) -> LevelResult {
        let verdict = match verdict {
            VerdictKind::Satisfied => Verdict::Satisfied(Witness::Empty),
            VerdictKind::Violated => {
                let evidence = Evidence::Read { read: OpId(2), saw: None, instead: None };
                let anomalies = vec![Anomaly::new(AnomalyKind::ThinAirRead, evidence)];
                Verdict::Violated(Findings::new(anomalies, true))
            }
            _ => Verdict::Undecided(Undecided::new(Limit::Steps)),
        };
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    fn postgres() -> RunRecord {
        RunRecord {
            database: "postgres".to_owned(),
            database_version: "PostgreSQL 15.4".to_owned(),
            isolation: "repeatable-read".to_owned(),
            claim: vec![Level::SnapshotIsolation],
            ..RunRecord::default()
        }
    }

    /// The heading, by the claim where no level is named.
    fn heading(run: &RunRecord, named: &[Level], verdicts: &[(Level, VerdictKind)]) -> String {
        let history = history();
        let results: Vec<_> = verdicts.iter().map(|(level, kind)| result(*level, *kind)).collect();
        let claim = if named.is_empty() { &run.claim[..] } else { &[] };
        let asked = RequestedLevels { named, claim, weakest_only: false };
        Report::new("h", &history, &results).with_asked(asked).headline(run)
    }

    #[test]
    fn the_heading_of_a_run_says_what_was_tested_and_what_came_of_it() {
        use Level::{ReadCommitted, Serializable, SnapshotIsolation};
        use VerdictKind::{Satisfied, Undecided, Violated};
        for (named, verdicts, text) in [
            (&[][..], &[(SnapshotIsolation, Satisfied)][..], ": claim kept"),
            (&[], &[(SnapshotIsolation, Violated)], " broke its claim: thin-air read"),
            (&[], &[(ReadCommitted, Violated)], " broke its claim: thin-air read"),
            (&[], &[(SnapshotIsolation, Satisfied), (Serializable, Violated)], ": claim kept"),
            (&[], &[(SnapshotIsolation, Undecided)], ": not decided"),
            (
                &[Serializable],
                &[(Serializable, Violated)],
                ": serializable violated (thin-air read)",
            ),
            (&[ReadCommitted], &[(ReadCommitted, Satisfied)], ": read-committed satisfied"),
            (
                &[SnapshotIsolation, Serializable],
                &[(SnapshotIsolation, Satisfied), (Serializable, Violated)],
                ": serializable violated (thin-air read)",
            ),
        ] {
            let heading = heading(&postgres(), named, verdicts);
            assert_eq!(
                heading,
                format!("PostgreSQL 15.4 at repeatable read{text}"),
                "{verdicts:?}"
            );
        }
    }

    #[test]
    fn lost_commits_outweigh_whatever_the_levels_say() {
        let history = history();
        let evidence =
            Evidence::Lost { key: KeyId(0), write: OpId(1), down: [1, 2], found: OpId(2) };
        let anomalies = vec![Anomaly::new(AnomalyKind::LostCommit, evidence)];
        let verdict = Verdict::Violated(Findings::new(anomalies, false));
        let lost = PatternResult { kind: AnomalyKind::LostCommit, verdict };
        let results = [result(Level::SnapshotIsolation, VerdictKind::Satisfied)];
        let report = Report::new("h", &history, &results)
            .with_lost(Some(LostCommitsResult { result: &lost, durability: "" }));
        let heading = report.headline(&postgres());
        assert_eq!(heading, "PostgreSQL 15.4 at repeatable read lost 1 commit");
    }

    #[test]
    fn the_heading_of_a_run_heeds_the_database_s_own_word() {
        use VerdictKind::{Satisfied, Undecided, Violated};
        let verdict = |verdict| {
            vec![RunVerdict { level: Level::Serializable, verdict, anomalies: Vec::new() }]
        };
        let own = |clients, versions, order, not_as_promised: &[Level]| {
            let run = RunRecord {
                database: "mariadb".to_owned(),
                claim: vec![Level::Serializable],
                whitebox: Some(WhiteboxRecord {
                    by_versions: verdict(versions),
                    by_order: verdict(order),
                    not_as_promised: not_as_promised.to_vec(),
                    ..WhiteboxRecord::default()
                }),
                ..RunRecord::default()
            };
            heading(&run, &[], &[(Level::Serializable, clients)])
        };
        assert_eq!(own(Undecided, Satisfied, Satisfied, &[]), "mariadb: claim kept");
        assert_eq!(own(Satisfied, Violated, Violated, &[]), "mariadb broke its claim");
        assert_eq!(
            own(Satisfied, Satisfied, Violated, &[Level::Serializable]),
            "mariadb: serializable satisfied, but not by the order that it promises"
        );
    }

    #[test]
    fn the_node_that_failed_is_named_where_there_are_several() {
        let nodes = ["mysql://n1/t".to_owned(), "mysql://n2/t".to_owned()];
        let no_right = StopCause {
            node: Some(1),
            code: Some("1142".to_owned()),
            message: Some("no right".to_owned()),
            stalled_ms: None,
        };
        let stalled = StopCause { stalled_ms: Some(30_000.0), ..no_right.clone() };
        let silent = StopCause { stalled_ms: Some(30_000.0), ..StopCause::default() };
        assert_eq!(stopped_because(&no_right, &nodes), "mysql://n2/t: no right (1142)");
        assert_eq!(stopped_because(&no_right, &nodes[1..]), "no right (1142)");
        assert_eq!(
            stopped_because(&stalled, &nodes),
            "nothing has committed for 30 s; the last error, of mysql://n2/t: no right (1142)"
        );
        assert_eq!(stopped_because(&silent, &nodes), "nothing has committed for 30 s");
    }
}
