//! Start-dependencies (Adya 1999): the transactions that a transaction's snapshot shows had committed when
//! it started.
//!
//! A version set that names rows one by one says what was observed of these rows. A snapshot says more:
//! every transaction that had committed by then is in it as a whole, even if the operation observed
//! none of its rows. Snapshot isolation lets a transaction start no earlier than its snapshot, so those are
//! before its start. It may start later: what a snapshot does not show may have committed before the start
//! all the same, if nothing that the transaction read is changed by it. So an engine that reads from a
//! snapshot and validates at commit gives snapshot isolation, too.
//!
//! A database may read as of its own commit, or later. Then what had committed before that commit is
//! in the snapshot, and nothing is said about other commits with the same timestamp.
//!
//! By the database's clock, a commit had ended when a snapshot was taken: an order of the same kind as
//! real time, and so a chain of the same kind.

use isolario_model::{History, OpId, Stamp, StatedSet, TxnId, VersionSet};

use crate::graph::RealTime;

/// The latest snapshot of each transaction, and the commits that it shows.
pub(super) struct Snapshots {
    of_txn: Vec<Option<(Stamp, OpId)>>,
    /// Commits by the database's clock, and per transaction the number of them that its snapshot shows.
    pub(super) chain: RealTime,
}

impl Snapshots {
    pub(super) fn new(
        history: &History,
        sets: &[StatedSet],
        is_kept: impl Fn(TxnId) -> bool,
    ) -> Snapshots {
        let mut of_txn: Vec<Option<(Stamp, OpId)>> = vec![None; history.txn_count()];
        for set in sets {
            let VersionSet::Snapshot(stamp) = set.versions else { continue };
            let txn = history.op_txn(set.op);
            if is_kept(txn) {
                let latest = &mut of_txn[txn.index()];
                *latest = (*latest).max(Some((stamp, set.op)));
            }
        }
        let stamped = |txn| Some((history.db_commit(txn).filter(|_| is_kept(txn))?, txn));
        let mut commits: Vec<(Stamp, TxnId)> = Vec::new();
        if of_txn.iter().any(Option::is_some) {
            commits.extend(history.txns().filter_map(stamped));
        }
        commits.sort_unstable();
        let shown = |(txn, snapshot): (usize, &Option<(Stamp, OpId)>)| {
            let Some((snapshot, _)) = snapshot else { return 0 };
            let own = history.db_commit(TxnId::at(txn));
            commits.partition_point(|(commit, _)| is_in(*commit, *snapshot, own)) as u32
        };
        let before = of_txn.iter().enumerate().map(shown).collect();
        let commits = commits.into_iter().map(|(_, txn)| txn).collect();
        Snapshots { of_txn, chain: RealTime::of_ends(commits, before) }
    }

    /// The snapshot of `to` that shows `from`, if it does.
    pub(super) fn shows(&self, history: &History, from: TxnId, to: TxnId) -> Option<(Stamp, OpId)> {
        let commit = history.db_commit(from)?;
        let own = history.db_commit(to);
        self.of_txn[to.index()].filter(|(snapshot, _)| is_in(commit, *snapshot, own))
    }

    /// Whether every transaction follows all transactions that its snapshot shows, by positions.
    pub(super) fn agree(&self, positions: &[u32]) -> bool {
        let mut latest = 0;
        let mut reached = vec![0];
        for txn in self.chain.finished() {
            latest = latest.max(positions[txn.index()] + 1);
            reached.push(latest);
        }
        (0..self.of_txn.len())
            .map(TxnId::at)
            .all(|txn| reached[self.chain.finished_before(txn)] <= positions[txn.index()])
    }
}

/// Whether a commit is in a snapshot of a transaction, given the commit of that one.
fn is_in(commit: Stamp, snapshot: Stamp, own: Option<Stamp>) -> bool {
    commit <= snapshot && own.is_none_or(|own| commit < own)
}
