//! Logs that tell when each version of a row came, by the clock whose timestamps clients are told, too,
//! and not which versions belong to one transaction.
//!
//! Versions tell who wrote them. A deletion has none: it belongs to the client who deleted that row and
//! was told to have committed at that moment. Two transactions may have the same moment, and equal
//! timestamps are no order: whoever saw the state of a moment at which somebody else committed may
//! have seen that commit or not, and is given no set of versions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isolario_model::{Outcome, Stamp, TxnId};

use super::{Certificate, Clients, LogMismatch, is_committed, nothing_is_lost};
use crate::certificate::{CommitLog, LoggedCommit, RowChange, SnapshotNaming};

/// Makes a certificate from such a log.
pub(super) fn assemble(clients: &Clients<'_>, log: &CommitLog) -> Result<Certificate, LogMismatch> {
    let (log, owners) = by_transaction(clients, log)?;
    nothing_is_lost(clients, &log, &owners)?;
    one_at_a_time(&log.commits)?;
    let history = clients.history;
    let moments = log.commits.iter().filter_map(|commit| commit.at);
    let mut certificate = Certificate::of_commits(history, &log, &owners, moments.clone());
    let in_log: BTreeSet<TxnId> = owners.iter().copied().collect();
    let mut commits_at: BTreeMap<Stamp, usize> = BTreeMap::new();
    moments.for_each(|at| *commits_at.entry(at).or_default() += 1);
    for txn in history.txns().filter(|txn| is_committed(history, &in_log, *txn)) {
        let commit = certificate.commits[txn.index()].or(history.db_commit(txn));
        let (seen, own) = match log.snapshots {
            SnapshotNaming::Starts => (history.db_start(txn), 0),
            SnapshotNaming::Commits => (commit, usize::from(in_log.contains(&txn))),
            _ => (None, 0),
        };
        let is_clear = |at: &Stamp| commits_at.get(at).copied().unwrap_or_default() == own;
        certificate.starts[txn.index()] = seen.filter(is_clear).map(|at| match log.snapshots {
            SnapshotNaming::Commits => just_before(at),
            _ => at,
        });
        certificate.meet(history, txn, &log, &HashMap::new());
    }
    Ok(certificate)
}

/// The moment before another. The logical part of these clocks has 32 bits.
fn just_before(at: Stamp) -> Stamp {
    match at.logical {
        0 => Stamp { physical: at.physical.saturating_sub(1), logical: u64::from(u32::MAX) },
        logical => Stamp { logical: logical - 1, ..at },
    }
}

/// Puts the changes of each transaction together, in the order of their moments.
fn by_transaction(
    clients: &Clients<'_>,
    log: &CommitLog,
) -> Result<(CommitLog, Vec<TxnId>), LogMismatch> {
    let deleters = Deleters::of(clients);
    let mut moments: BTreeMap<TxnId, Stamp> = BTreeMap::new();
    let mut changes: BTreeMap<(Stamp, TxnId), Vec<RowChange>> = BTreeMap::new();
    for commit in &log.commits {
        let at = commit.at.unwrap_or_default();
        for change in &commit.changes {
            let row = change.row;
            let txn = match change.after {
                Some(version) => clients.writers.get(&version).copied(),
                None => Some(deleters.of_row(row, at)?),
            };
            let version = change.after.unwrap_or_default();
            let txn = txn.ok_or(LogMismatch::Stranger { row, version })?;
            if clients.history.outcome(txn) == Outcome::Aborted {
                return Err(LogMismatch::Revived { txn: clients.label(txn) });
            }
            let told = *moments.entry(txn).or_insert(clients.history.db_commit(txn).unwrap_or(at));
            if told != at {
                let (told, logged) = (moment(told), moment(at));
                return Err(LogMismatch::OtherTimestamp { txn: clients.label(txn), told, logged });
            }
            changes.entry((at, txn)).or_default().push(*change);
        }
    }
    let owners = changes.keys().map(|(_, txn)| *txn).collect();
    let commits = changes
        .into_iter()
        .map(|((at, _), changes)| LoggedCommit { number: 0, at: Some(at), changes })
        .collect();
    Ok((CommitLog { commits, ..log.clone() }, owners))
}

fn moment(Stamp { physical, logical }: Stamp) -> String {
    format!("{physical}.{logical:010}")
}

/// Who deleted a row and left it so.
struct Deleters {
    /// Those who were told when they committed.
    told: BTreeMap<(i64, Stamp), Vec<TxnId>>,
    /// Those who were not.
    others: BTreeMap<i64, Vec<TxnId>>,
}

impl Deleters {
    fn of(clients: &Clients<'_>) -> Deleters {
        let mut deleters = Deleters { told: BTreeMap::new(), others: BTreeMap::new() };
        let deletes = clients.last.iter().filter(|(_, version)| version.is_none());
        for ((txn, row), _) in deletes {
            match (clients.history.outcome(*txn), clients.history.db_commit(*txn)) {
                (Outcome::Aborted, _) => {}
                (_, Some(at)) => deleters.told.entry((*row, at)).or_default().push(*txn),
                (_, None) => deleters.others.entry(*row).or_default().push(*txn),
            }
        }
        deleters
    }

    fn of_row(&self, row: i64, at: Stamp) -> Result<TxnId, LogMismatch> {
        match self.told.get(&(row, at)).or(self.others.get(&row)).map(Vec::as_slice) {
            Some([txn]) => Ok(*txn),
            _ => Err(LogMismatch::AmbiguousDelete { row }),
        }
    }
}

/// No two versions of a row have the same moment.
fn one_at_a_time(commits: &[LoggedCommit]) -> Result<(), LogMismatch> {
    let mut last: HashMap<i64, Option<Stamp>> = HashMap::new();
    for commit in commits {
        for RowChange { row, .. } in &commit.changes {
            if last.insert(*row, commit.at) == Some(commit.at) {
                return Err(LogMismatch::SameTimestamp { row: *row });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(all(feature = "postgres", feature = "sim"))]
mod tests {
    use std::time::Duration;

    use isolario_check::{CheckOptions, check};
    use isolario_formats::{Source, read, version_order};
    use isolario_model::{
        Batch, History, Level, Op, PromisedOrder, TupleParts, TxnEnd, TxnSink, TxnStart, ValueRef,
    };
    use isolario_workload::{DefaultRun, Kind, Planner};

    use super::*;
    use crate::TABLE;
    use crate::postgres::changefeed::Decoder;
    use isolario_db::{DbUrl, Layout, Settings, open};
    use isolario_run::driver::{Control, RunPlan, run};

    /// A run on the simulated store, whose serial order is that of its commits.
    fn simulated() -> History {
        let url = DbUrl::parse("sim:serializable").unwrap();
        let databases = [open(&url, &Settings { evidence: true, ..Settings::default() }).unwrap()];
        let workload = DefaultRun::of(Kind::Predicate).workload;
        databases[0].prepare(&Layout::new(Kind::Predicate, workload.keys)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.iso");
        let plan = RunPlan {
            databases: &databases,
            generator: &Planner::new(&workload, 4, 7).unwrap().with_attempts(4),
            sessions: 4,
            txns: Some(300),
            duration: None,
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries: 3,
            patience: Duration::from_secs(60),
            history: Some(&path),
            memory: 0,
        };
        run(&plan, &Control::new(), &mut |_| {}).unwrap();
        read(&path).unwrap().history
    }

    /// What a changefeed would have said of a history: keys and values.
    fn messages(history: &History) -> Vec<(String, String)> {
        let last = Clients::new(history).last;
        let committed = last.iter().filter_map(|((txn, row), version)| {
            let at = moment(history.db_commit(*txn)?);
            let after = match version {
                Some(version) => format!(r#"{{"id": {row}, "v": {version}, "w": null}}"#),
                None => "null".to_owned(),
            };
            let value =
                format!(r#"{{"after": {after}, "mvcc_timestamp": "{at}", "updated": "{at}"}}"#);
            Some((format!("[{row}]"), value))
        });
        committed.collect()
    }

    fn log(messages: &[(String, String)]) -> CommitLog {
        let mut decoder = Decoder::default();
        for (key, value) in messages {
            decoder.take(Some(key.as_bytes()), value.as_bytes()).unwrap();
        }
        let end = Stamp { physical: u64::MAX, logical: 0 };
        CommitLog {
            snapshots: SnapshotNaming::Commits,
            writes_see_snapshots: true,
            promised: Some(Level::Serializable),
            ..decoder.log(end)
        }
    }

    #[test]
    fn a_changefeed_and_commit_timestamps_make_a_certificate() {
        let history = simulated();
        let log = log(&messages(&history));
        let certificate = super::super::assemble(&history, &log, &[]).unwrap();
        assert!(certificate.predicates > 100, "{}", certificate.predicates);
        assert_eq!(certificate.sets, certificate.predicates);
        let mut batch = Batch::new();
        certificate.replay(&history, &mut batch).unwrap();
        let history = batch.build().unwrap();
        let mut file = Vec::new();
        certificate.write_version_order(&mut file).unwrap();
        let source = Source::from_bytes("order", file).unwrap();
        let stated = version_order::read(&source, &history).unwrap();
        let by_versions = CheckOptions::default()
            .with_version_order(stated.orders)
            .with_trusted_version_order(true)
            .with_version_sets(stated.sets);
        let by_order =
            CheckOptions::default().with_promised_order(PromisedOrder::of_stamps(&history));
        for options in [by_versions, by_order] {
            let result = check(&history, &[Level::Serializable], &options).remove(0);
            assert!(result.verdict.is_satisfied(), "{:?}", result.verdict);
        }
    }

    #[test]
    fn nothing_is_missed_in_a_changefeed() {
        let history = simulated();
        let with = |change: &dyn Fn(&mut Vec<LoggedCommit>)| {
            let mut log = log(&messages(&history));
            change(&mut log.commits);
            super::super::assemble(&history, &log, &[]).unwrap_err()
        };
        let lost = with(&|commits| drop(commits.remove(3)));
        assert!(matches!(lost, LogMismatch::Lacks { .. }), "{lost}");
        for either in ["the log is filtered", "lost a transaction that it acknowledged"] {
            assert!(lost.to_string().contains(either), "{lost}");
        }
        let moved = with(&|commits| commits[3].at = Some(Stamp { physical: 1, logical: 1 }));
        let is_moved = matches!(
            moved,
            LogMismatch::OtherTimestamp { .. } | LogMismatch::AmbiguousDelete { .. }
        );
        assert!(is_moved, "{moved}");
        let stranger = with(&|commits| commits[3].changes[0].after = Some(i64::MAX));
        assert!(matches!(stranger, LogMismatch::Stranger { .. }), "{stranger}");
    }

    /// Transactions of one row: what they leave there, and when they committed, if they were told.
    fn of_one_row(txns: &[(Option<i64>, Option<u64>)]) -> History {
        let mut batch = Batch::new();
        for (name, (version, at)) in txns.iter().enumerate() {
            let id = Some(ValueRef::Int(name as i64));
            let session = ValueRef::Int(name as i64);
            batch.begin(&TxnStart { session, id, line: None }).unwrap();
            let key = TupleParts { table: TABLE, columns: &[("id", 1_i64.into())] };
            let columns = [("v", version.unwrap_or_default().into())];
            let held = TupleParts { table: "", columns: &columns };
            let value = version.map_or(ValueRef::Nil, |_| (&held).into());
            batch.op(&Op::Write { key: (&key).into(), value }).unwrap();
            let db_commit = at.map(|physical| Stamp { physical, logical: 0 });
            batch.end(&TxnEnd { db_commit, ..TxnEnd::new(Outcome::Committed) }).unwrap();
        }
        batch.build().unwrap()
    }

    fn versions(of_row: &[(u64, Option<i64>)]) -> CommitLog {
        CommitLog::of_versions(of_row.iter().map(|(physical, after)| {
            (
                Stamp { physical: *physical, logical: 0 },
                RowChange { row: 1, before: None, after: *after },
            )
        }))
    }

    #[test]
    fn a_deletion_belongs_to_whoever_committed_then() {
        let [insert, delete] = [Some(7), None];
        let told = of_one_row(&[(insert, Some(5)), (delete, Some(6)), (delete, Some(8))]);
        let log = versions(&[(5, insert), (6, delete), (8, delete)]);
        let certificate = super::super::assemble(&told, &log, &[]).unwrap();
        assert_eq!(certificate.order, [(1, 0), (1, 1), (1, 2)]);
        // Who was not told may be found because nobody else is left.
        let one = of_one_row(&[(insert, Some(5)), (delete, None)]);
        let log = versions(&[(5, insert), (6, delete)]);
        assert!(super::super::assemble(&one, &log, &[]).is_ok());
        let two = of_one_row(&[(insert, Some(5)), (delete, None), (delete, None)]);
        let found = super::super::assemble(&two, &log, &[]);
        assert_eq!(found.unwrap_err(), LogMismatch::AmbiguousDelete { row: 1 });
    }

    #[test]
    fn equal_timestamps_are_no_order() {
        let history = of_one_row(&[(Some(7), Some(5)), (Some(8), Some(5))]);
        let found = super::super::assemble(&history, &versions(&[(5, Some(7)), (5, Some(8))]), &[]);
        assert_eq!(found.unwrap_err(), LogMismatch::SameTimestamp { row: 1 });
        assert_eq!(
            just_before(Stamp { physical: 5, logical: 0 }),
            Stamp { physical: 4, logical: u64::from(u32::MAX) }
        );
    }
}
