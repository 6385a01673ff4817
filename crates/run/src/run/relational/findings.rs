//! What rounds found, by isolation level and kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use isolario_model::{AnomalyKind, Level};
use isolario_sql::{Element, RecordedTxn, Round, StatementKind};
use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::simplify::Simplified;

/// Adya's level of the same name as a setting: what the setting is held against, beside what the
/// database claims for it.
pub fn level_of_name(isolation: &str) -> Level {
    match isolation {
        "read-uncommitted" => Level::ReadUncommitted,
        "read-committed" => Level::AdyaReadCommitted,
        "repeatable-read" | "innodb-snapshot-isolation" => Level::RepeatableRead,
        _ => Level::Serializable,
    }
}

/// What is wrong with a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Its dependencies show an anomaly.
    Anomaly(AnomalyKind),
    /// A transaction reads a version of a row that it has overwritten itself: that of its snapshot, where its write
    /// was based on a newer one.
    OldVersion,
    /// Its dependencies are in order, but no order of its transactions, one after the other, gives
    /// the same answers.
    WrongResult,
}

impl FindingKind {
    /// Those that are no anomaly of a history, by name.
    const OTHERS: [FindingKind; 2] = [FindingKind::OldVersion, FindingKind::WrongResult];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Anomaly(kind) => kind.name(),
            FindingKind::OldVersion => "OldVersionBesideOwnWrite",
            FindingKind::WrongResult => "WrongResult",
        }
    }

    /// Its name as a title.
    pub fn title(self) -> &'static str {
        match self {
            FindingKind::Anomaly(kind) => kind.names().title,
            FindingKind::OldVersion => "Old version of a row beside the transaction's own write",
            FindingKind::WrongResult => "Wrong result, no wrong dependency",
        }
    }

    /// The kind of this name, as `findings.json` has it.
    pub fn find(name: &str) -> Option<FindingKind> {
        let other = FindingKind::OTHERS.into_iter().find(|kind| kind.name() == name);
        other.or_else(|| AnomalyKind::find(name).map(FindingKind::Anomaly))
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that is wrong with a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the round.
    pub round: u64,
    /// The isolation level of the round.
    pub isolation: String,
    /// What it is.
    pub kind: FindingKind,
    /// The transactions of the round that it takes, as far as that is known.
    pub txns: Vec<u32>,
    /// The statements of these that read or wrote what it is about, as far as that is known.
    pub statements: Vec<Element>,
    /// Those that had written the same rows before.
    pub before: Vec<Element>,
    /// The statements of its transactions by kind: what is the same in two findings makes them one (IsoRel,
    /// Section 5.1).
    pub pattern: String,
    /// Whether it breaks what the round had to satisfy.
    pub breaks_claim: bool,
}

impl Finding {
    /// Whether two findings are of one kind at one isolation level.
    pub fn is_like(&self, other: &Finding) -> bool {
        self.kind == other.kind && self.isolation == other.isolation
    }
}

/// The kinds of the statements of transactions, in their order: `SELECT, UPDATE | UPDATE`. Which of
/// the transactions came first makes no difference.
pub(super) fn pattern(round: &Round, txns: &[u32]) -> String {
    let kinds = |txn: &RecordedTxn| {
        let kinds = txn.kinds().filter(|kind| *kind != StatementKind::Other);
        kinds.map(StatementKind::name).collect::<Vec<_>>().join(", ")
    };
    let of = |txn: &&RecordedTxn| txns.contains(&txn.id) && !txn.is_final;
    let mut patterns: Vec<String> = round.transactions.iter().filter(of).map(kinds).collect();
    patterns.sort_unstable();
    patterns.join(" | ")
}

/// A row of the table of findings: an isolation level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// How many rounds were run at it.
    pub rounds: u64,
    /// How many transactions committed.
    pub committed: u64,
    /// How many of the rounds broke what they had to satisfy.
    pub broken: u64,
    /// Findings by name.
    pub anomalies: BTreeMap<String, Count>,
}

/// How many findings of a kind there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Count {
    /// In all.
    pub total: u64,
    /// Different ones by the statements of their transactions, before anything is taken from them.
    pub patterns: u64,
    /// How many were simplified.
    pub simplified: u64,
    /// Different ones by the statements that are left then: the paper's criterion of what is unique.
    pub unique: u64,
    /// What these come from.
    pub causes: BTreeMap<Cause, u64>,
}

/// Counts rounds and findings, by isolation level.
pub(super) fn table(rounds: &[(String, u64, bool)], findings: &[Finding]) -> BTreeMap<String, Row> {
    let mut table: BTreeMap<String, Row> = BTreeMap::new();
    for (isolation, committed, is_broken) in rounds {
        let row = table.entry(isolation.clone()).or_default();
        row.rounds += 1;
        row.committed += committed;
        row.broken += u64::from(*is_broken);
    }
    let mut seen = BTreeSet::new();
    for finding in findings {
        let count = count_of(&mut table, &finding.isolation, finding.kind);
        count.total += 1;
        let is_new = seen.insert((&finding.isolation, finding.kind, &finding.pattern));
        count.patterns += u64::from(is_new);
    }
    table
}

/// Counts what was simplified, in place of an earlier count.
pub(super) fn count_simplified(table: &mut BTreeMap<String, Row>, simplified: &[Simplified]) {
    for count in table.values_mut().flat_map(|row| row.anomalies.values_mut()) {
        (count.simplified, count.unique) = (0, 0);
        count.causes.clear();
    }
    for found in simplified {
        let count = count_of(table, &found.isolation, found.kind);
        count.simplified += found.findings;
        count.unique += 1;
        *count.causes.entry(found.cause).or_default() += 1;
    }
}

fn count_of<'t>(
    table: &'t mut BTreeMap<String, Row>,
    isolation: &str,
    kind: FindingKind,
) -> &'t mut Count {
    let row = table.entry(isolation.to_owned()).or_default();
    row.anomalies.entry(kind.name().to_owned()).or_default()
}
