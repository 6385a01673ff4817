//! What rounds found, by isolation level and kind of anomaly.

use std::collections::BTreeMap;

use isolario_model::{Anomaly, AnomalyKind, History, Level, ValueRef};
use isolario_report::involved;
use isolario_sql::{RecordedTxn, Round, StatementKind};
use serde::Serialize;

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

/// An anomaly that a round showed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the round.
    pub round: u64,
    /// The isolation level of the round.
    pub isolation: String,
    /// What it is called.
    pub kind: AnomalyKind,
    /// The transactions of the round that it takes.
    pub txns: Vec<u32>,
    /// The statements of these transactions: what is the same in two findings makes them one (IsoRel,
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

    pub(super) fn of(
        anomaly: &Anomaly,
        history: &History,
        round: &Round,
        number: u64,
        isolation: &str,
    ) -> Finding {
        let names = involved(history, anomaly).into_iter();
        let mut txns: Vec<u32> = names
            .filter_map(|involved| match history.txn_name(involved.txn) {
                Some(ValueRef::Int(id)) => u32::try_from(id).ok(),
                _ => None,
            })
            .collect();
        txns.sort_unstable();
        txns.dedup();
        let pattern = pattern(round, &txns);
        Finding {
            round: number,
            isolation: isolation.to_owned(),
            kind: anomaly.kind,
            txns,
            pattern,
            breaks_claim: false,
        }
    }
}

/// The kinds of the statements of transactions, in their order: `SELECT, UPDATE | UPDATE`. Which of
/// the transactions came first makes no difference.
pub(super) fn pattern(round: &Round, txns: &[u32]) -> String {
    let kinds = |txn: &RecordedTxn| {
        let kinds = txn.statements.iter().filter(|statement| statement.holds());
        let kinds = kinds.map(|statement| statement.kind);
        let names: Vec<&str> =
            kinds.filter(|kind| *kind != StatementKind::Other).map(StatementKind::name).collect();
        names.join(", ")
    };
    let of = |txn: &&RecordedTxn| txns.contains(&txn.id) && !txn.is_final;
    let mut patterns: Vec<String> = round.transactions.iter().filter(of).map(kinds).collect();
    patterns.sort_unstable();
    patterns.join(" | ")
}

/// A row of the table of findings: an isolation level.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// How many rounds were run at it.
    pub rounds: u64,
    /// How many transactions committed.
    pub committed: u64,
    /// How many of the rounds broke what they had to satisfy.
    pub broken: u64,
    /// Anomalies by name: how many, and how many different ones.
    pub anomalies: BTreeMap<&'static str, Count>,
}

/// How many anomalies of a kind there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Count {
    /// In all.
    pub total: u64,
    /// By the paper's criterion of what is unique.
    pub unique: u64,
}

/// The table of findings, by isolation level.
pub(super) fn table(rounds: &[(String, u64, bool)], findings: &[Finding]) -> BTreeMap<String, Row> {
    let mut table: BTreeMap<String, Row> = BTreeMap::new();
    for (isolation, committed, is_broken) in rounds {
        let row = table.entry(isolation.clone()).or_default();
        row.rounds += 1;
        row.committed += committed;
        row.broken += u64::from(*is_broken);
    }
    let mut seen = std::collections::BTreeSet::new();
    for finding in findings {
        let row = table.entry(finding.isolation.clone()).or_default();
        let count = row.anomalies.entry(finding.kind.name()).or_default();
        count.total += 1;
        let is_new = seen.insert((&finding.isolation, finding.kind, &finding.pattern));
        count.unique += u64::from(is_new);
    }
    table
}
