//! What befell a live run.

use isolario_model::{
    AnomalyKind, Level, RunRecord, RunVerdict, StopCause, StopReason, VerdictKind,
};

use super::naming::level_name;
use crate::names::grouped;

/// What was tested and what came of it, as a heading: `PostgreSQL 15.4 at repeatable read: claim kept`.
pub fn headline(run: &RunRecord) -> String {
    headline_of(run, &run.verdicts).0
}

/// The same, by other answers than those of the run; and whether that is good.
pub(crate) fn headline_of(run: &RunRecord, verdicts: &[RunVerdict]) -> (String, VerdictKind) {
    let isolation = run.isolation.replace('-', " ");
    let setting = if isolation.is_empty() { String::new() } else { format!(" at {isolation}") };
    let titled = |kind: Option<AnomalyKind>| kind.map(plain_title);
    if run.lost_commits > 0 {
        let lost = grouped(run.lost_commits);
        let commits = if run.lost_commits == 1 { "commit" } else { "commits" };
        let words = format!("{}{setting} lost {lost} {commits}", product(run));
        return (words, VerdictKind::Violated);
    }
    let (verdict, result) = match came_to(run, &with_own_word(run, verdicts)) {
        Came::Broken(kind) => {
            let kind = titled(kind).map_or(String::new(), |kind| format!(": {kind}"));
            (VerdictKind::Violated, format!(" broke its claim{kind}"))
        }
        Came::NotAsPromised(level) => {
            let level = level_name(level);
            let words = format!(": {level} satisfied, but not by the order that it promises");
            (VerdictKind::Violated, words)
        }
        Came::Kept if run.stopped == StopReason::Database => {
            (VerdictKind::Undecided, ": ended early, claim kept until then".to_owned())
        }
        Came::Kept => (VerdictKind::Satisfied, ": claim kept".to_owned()),
        Came::Violated(level, kind) => {
            let kind = titled(kind).map_or(String::new(), |kind| format!(" ({kind})"));
            (VerdictKind::Violated, format!(": {} violated{kind}", level_name(level)))
        }
        Came::Satisfied(level) => {
            (VerdictKind::Satisfied, format!(": {} satisfied", level_name(level)))
        }
        Came::Open => (VerdictKind::Undecided, ": not decided".to_owned()),
    };
    (format!("{}{setting}{result}", product(run)), verdict)
}

/// The database and its version, as it calls itself.
pub fn product(run: &RunRecord) -> String {
    let (name, version) = (&run.database, &run.database_version);
    if version.is_empty() { name.clone() } else { version.clone() }
}

/// What came of a run.
enum Came {
    /// The claim was broken, by this.
    Broken(Option<AnomalyKind>),
    /// The level is satisfied, but not by the order that the database promises.
    NotAsPromised(Level),
    /// The claim was kept.
    Kept,
    /// Something was asked for that is no claim, and is violated.
    Violated(Level, Option<AnomalyKind>),
    /// Something was asked for that is no claim, and is satisfied.
    Satisfied(Level),
    /// No answer.
    Open,
}

/// Together with the answers by the database's own word, weakest level first.
fn with_own_word(run: &RunRecord, verdicts: &[RunVerdict]) -> Vec<RunVerdict> {
    let own = run.whitebox.iter().flat_map(|own| own.by_versions.iter().chain(&own.by_order));
    let mut all: Vec<RunVerdict> = verdicts.iter().chain(own).cloned().collect();
    all.sort_by_key(|verdict| verdict.level);
    all
}

fn came_to(run: &RunRecord, verdicts: &[RunVerdict]) -> Came {
    let violated = |verdict: &&RunVerdict| verdict.verdict == VerdictKind::Violated;
    let out_of_order = run.whitebox.as_ref().map_or(&[][..], |own| &own.not_as_promised[..]);
    if let Some(level) = out_of_order.last()
        && verdicts.iter().filter(violated).all(|verdict| out_of_order.contains(&verdict.level))
    {
        return Came::NotAsPromised(*level);
    }
    let breaks = |verdict: &&RunVerdict| {
        violated(verdict) && run.claim.iter().any(|claim| claim.is_ruled_out_by(verdict.level))
    };
    if let Some(verdict) = verdicts.iter().find(breaks) {
        return Came::Broken(verdict.anomalies.first().copied());
    }
    let satisfied = |level: Level| {
        let shows = |verdict: &RunVerdict| {
            let strongest = match verdict.level {
                // Of single operations, it is strict serializability.
                Level::Linearizable => Level::StrictSerializable,
                level => level,
            };
            verdict.verdict == VerdictKind::Satisfied
                && (verdict.level == level || strongest.implies(level))
        };
        verdicts.iter().any(shows)
    };
    if !run.claim.is_empty() && run.claim.iter().all(|level| satisfied(*level)) {
        return Came::Kept;
    }
    let mut right = verdicts.iter().filter(|verdict| verdict.verdict == VerdictKind::Satisfied);
    match (verdicts.iter().find(violated), right.next_back()) {
        (Some(first), _) => Came::Violated(first.level, first.anomalies.first().copied()),
        (None, Some(strongest)) => Came::Satisfied(strongest.level),
        (None, None) => Came::Open,
    }
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
    use isolario_model::WhiteboxRecord;

    use super::*;

    #[test]
    fn the_heading_of_a_run_says_what_was_tested_and_what_came_of_it() {
        let verdict = |level, verdict, anomalies: &[AnomalyKind]| RunVerdict {
            level,
            verdict,
            anomalies: anomalies.to_vec(),
        };
        let run = |verdicts: Vec<RunVerdict>| RunRecord {
            database: "postgres".to_owned(),
            database_version: "PostgreSQL 15.4".to_owned(),
            isolation: "repeatable-read".to_owned(),
            claim: vec![Level::SnapshotIsolation],
            verdicts,
            ..RunRecord::default()
        };
        use VerdictKind::{Satisfied, Undecided, Violated};
        let lost = [AnomalyKind::LostUpdate];
        for (verdicts, text) in [
            (vec![verdict(Level::SnapshotIsolation, Satisfied, &[])], ": claim kept"),
            (
                vec![verdict(Level::SnapshotIsolation, Violated, &lost)],
                " broke its claim: lost update",
            ),
            (
                vec![verdict(Level::Serializable, Violated, &lost)],
                ": serializable violated (lost update)",
            ),
            (vec![verdict(Level::ReadCommitted, Satisfied, &[])], ": read-committed satisfied"),
            (vec![verdict(Level::SnapshotIsolation, Undecided, &[])], ": not decided"),
        ] {
            let heading = headline(&run(verdicts));
            assert_eq!(heading, format!("PostgreSQL 15.4 at repeatable read{text}"));
        }
    }

    #[test]
    fn lost_commits_outweigh_whatever_the_levels_say() {
        let (database_version, isolation) = ("MariaDB 10.11".to_owned(), String::new());
        let run = RunRecord {
            database_version,
            isolation,
            lost_commits: 1986,
            claim: vec![Level::ReadAtomic],
            ..RunRecord::default()
        };
        assert_eq!(headline(&run), "MariaDB 10.11 lost 1,986 commits");
    }

    #[test]
    fn the_heading_of_a_run_heeds_the_database_s_own_word() {
        use VerdictKind::{Satisfied, Undecided, Violated};
        let verdict = |verdict| {
            vec![RunVerdict { level: Level::Serializable, verdict, anomalies: Vec::new() }]
        };
        let heading = |clients, versions, order, not_as_promised: &[Level]| {
            headline(&RunRecord {
                database: "mariadb".to_owned(),
                claim: vec![Level::Serializable],
                verdicts: verdict(clients),
                whitebox: Some(WhiteboxRecord {
                    by_versions: verdict(versions),
                    by_order: verdict(order),
                    not_as_promised: not_as_promised.to_vec(),
                    ..WhiteboxRecord::default()
                }),
                ..RunRecord::default()
            })
        };
        assert_eq!(heading(Undecided, Satisfied, Satisfied, &[]), "mariadb: claim kept");
        assert_eq!(heading(Satisfied, Violated, Violated, &[]), "mariadb broke its claim");
        assert_eq!(
            heading(Satisfied, Satisfied, Violated, &[Level::Serializable]),
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
