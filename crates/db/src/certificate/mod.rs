//! Version certificates: what a database itself says about a run, from its own log.
//!
//! A [`Capture`] is started before the clients and stopped after them. It gives a [`CommitLog`]: the changes
//! of every transaction that committed, in the order of the log. The clients bring
//! [sightings](crate::StateReport): which state an operation saw, in the database's words. [`assemble`]
//! puts the two together with the history: who committed at which place, in which order the versions
//! of each row came, and which versions every operation by predicate met.
//!
//! A log that does not fit the history proves nothing about the database. Then there is a [`LogMismatch`],
//! and no certificate.
//!
//! Nothing here depends on timing, and nothing is decoded while clients run.

mod assemble;
mod visibility;

use isolario_model::{Level, Stamp};

use crate::error::DbError;

pub use assemble::{Certificate, LogMismatch, assemble};

/// A capture that has begun.
pub trait Capture: Send {
    /// Ends it: reads the log, and removes what was made for it, also if something goes wrong. All
    /// clients are gone.
    fn stop(self: Box<Self>) -> Result<CommitLog, DbError>;
}

/// What a database's log says about the table of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitLog {
    /// The transactions that committed and changed the table, in the order of the log.
    pub commits: Vec<LoggedCommit>,
    /// How clients name the states that they saw.
    pub snapshots: SnapshotNaming,
    /// Whether updates and deletes by predicate see a snapshot. Where they work on the newest rows
    /// instead, there is no set of versions that they met.
    pub writes_see_snapshots: bool,
    /// The level that the database gives in the very order of its log, if it promises an order.
    pub promised: Option<Level>,
}

impl CommitLog {
    /// A log that tells when versions came, and not which transactions wrote them.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn of_versions(versions: impl Iterator<Item = (Stamp, RowChange)>) -> CommitLog {
        let commit = |(at, change)| LoggedCommit { number: 0, at: Some(at), changes: vec![change] };
        CommitLog { commits: versions.map(commit).collect(), ..CommitLog::default() }
    }

    /// Without the names of snapshots and the order of transactions: the order of versions alone.
    #[must_use]
    pub fn without_order(self) -> CommitLog {
        CommitLog { snapshots: SnapshotNaming::None, promised: None, ..self }
    }
}

/// A transaction in a log; where the log does not tell which changes belong together, a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedCommit {
    /// Its number: what [`SnapshotNaming`] speak of.
    pub number: u64,
    /// When it took effect, by the clock whose timestamps clients are told, too. It is the order of
    /// commits then.
    pub at: Option<Stamp>,
    /// What it did, in that order.
    pub changes: Vec<RowChange>,
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The key of the row.
    pub row: i64,
    /// The version that was there; none if there was no row, and in logs that do not tell.
    pub before: Option<i64>,
    /// The version that is there now; none if the row is gone.
    pub after: Option<i64>,
}

/// Where the logs of the nodes of a cluster first differ, in words: all nodes have to apply the same
/// changes in the same order.
pub fn difference(logs: &[CommitLog]) -> Option<String> {
    let (first, others) = logs.split_first()?;
    others.iter().enumerate().find_map(|(number, other)| {
        let changes = |log: &'_ CommitLog, at: usize| log.commits.get(at).map(|commit| commit.changes.clone());
        let length = first.commits.len().max(other.commits.len());
        let at = (0..length).find(|at| changes(first, *at) != changes(other, *at))?;
        let words = |log| changes(log, at).map_or_else(|| "nothing more".to_owned(), |it| told(&it));
        let (one, two) = (words(first), words(other));
        Some(format!(
            "the logs of two nodes differ at commit {}: the first node has {one}, node {} has {two}",
            at + 1,
            number + 2
        ))
    })
}

/// What a transaction did to the first row that it changed, in words.
fn told(changes: &[RowChange]) -> String {
    match changes.first() {
        None => "no change".to_owned(),
        Some(RowChange { row, after: Some(version), .. }) => {
            format!("version {version} of row {row}")
        }
        Some(RowChange { row, after: None, .. }) => format!("the deletion of row {row}"),
    }
}

/// How a state is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotNaming {
    /// Not at all.
    #[default]
    None,
    /// As PostgreSQL prints it, `xmin:xmax:list`: what committed and is below the first number, or
    /// below the second and not in the list.
    InProgress,
    /// A place in the log: what committed up to there.
    Positions,
    /// By the timestamp with which a transaction started, as its client was told.
    Starts,
    /// By the timestamp of a transaction's own commit: it saw what committed before.
    Commits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_of_two_logs_is_told() {
        let commit = |number, row, after| LoggedCommit {
            number,
            at: None,
            changes: vec![RowChange { row, before: None, after }],
        };
        let log = |commits: &[LoggedCommit]| CommitLog {
            commits: commits.to_vec(),
            ..CommitLog::default()
        };
        let [one, two, gone] = [commit(5, 1, Some(10)), commit(9, 2, Some(20)), commit(9, 2, None)];
        // Each node has places of its own.
        let elsewhere = LoggedCommit { number: 70, ..one.clone() };
        let same = [log(&[one.clone(), two.clone()]), log(&[elsewhere, two.clone()])];
        assert_eq!(difference(&same), None);
        let swapped = log(&[two.clone(), one.clone()]);
        assert_eq!(
            difference(&[same[0].clone(), same[1].clone(), swapped]).unwrap(),
            "the logs of two nodes differ at commit 1: the first node has version 10 of row 1, node 3 \
             has version 20 of row 2"
        );
        assert_eq!(
            difference(&[log(std::slice::from_ref(&one)), log(&[one.clone(), gone])]).unwrap(),
            "the logs of two nodes differ at commit 2: the first node has nothing more, node 2 has the \
             deletion of row 2"
        );
    }
}
