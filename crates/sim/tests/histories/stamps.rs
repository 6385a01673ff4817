//! Long histories against the orders and snapshots that the store tells.

use std::collections::BTreeMap;

use isolario_model::{History, KeyId, Level, Op, OpId, SessionId, Stamp, TxnId, ValueId};
use isolario_sim::{Config, Kind};

use crate::replay::{Replay, State, initial};
use crate::support::{history, random_config};

fn stamped(level: Level, kind: Kind, seed: u64) -> History {
    history(&Config { stamps: true, ..random_config(level, kind, 2000, seed) })
}

/// What committed, in the true commit order.
fn in_commit_order(history: &History) -> Vec<TxnId> {
    let mut order: Vec<TxnId> =
        history.txns().filter(|txn| history.db_commit(*txn).is_some()).collect();
    order.sort_by_key(|txn| history.db_commit(*txn));
    order
}

#[test]
fn serializable_histories_can_be_replayed_in_their_commit_order() {
    for level in [Level::Serializable, Level::StrictSerializable] {
        for (kind, seed) in Kind::KEYED.into_iter().flat_map(|kind| (0..5).map(move |s| (kind, s)))
        {
            let history = stamped(level, kind, seed);
            let replay = Replay::new(&history, level == Level::StrictSerializable);
            let order = in_commit_order(&history);
            let mut state = State::new();
            let mut ops = order.iter().flat_map(|txn| history.txn_ops(*txn));
            assert!(ops.all(|op| replay.replay(op, &mut state)), "{level} {kind} {seed}");
            // Whoever comes much earlier finished long ago.
            let earlier = |at: usize| order[..at].iter().rev().take(50);
            let wrong = |at: &usize| earlier(*at).any(|txn| replay.precedes(order[*at], *txn));
            assert_eq!((0..order.len()).find(wrong), None, "{level} {kind} {seed}");
        }
    }
}

/// Transactions in commit order against their snapshots.
struct Snapshots<'h> {
    history: &'h History,
    level: Level,
    /// Per key, its versions with their commits.
    versions: BTreeMap<KeyId, Vec<(Stamp, ValueId)>>,
    /// Per session, its last commit.
    sessions: BTreeMap<SessionId, Stamp>,
}

impl Snapshots<'_> {
    fn next(&mut self, txn: TxnId) {
        let snapshot = self.history.db_start(txn).unwrap();
        let commit = self.history.db_commit(txn).unwrap();
        let before = self.sessions.insert(self.history.session_of(txn), commit);
        assert!(before.is_none_or(|before| before.physical <= snapshot.physical), "{txn:?}");
        let mut own = BTreeMap::new();
        for op in self.history.txn_ops(txn) {
            self.check(op, snapshot, &mut own);
        }
        for (key, value) in own {
            self.versions.entry(key).or_default().push((commit, value));
        }
    }

    /// Reads see the snapshot and the transaction's own writes; under snapshot isolation, nobody
    /// else wrote the same key since the snapshot.
    fn check(&self, op: OpId, snapshot: Stamp, own: &mut BTreeMap<KeyId, ValueId>) {
        let versions = |key| self.versions.get(&key).map_or(&[][..], Vec::as_slice);
        match self.history.op(op) {
            Op::Read { key, value: Some(value) } => {
                let seen = versions(key).iter().rev().find(|(commit, _)| *commit <= snapshot);
                let seen = seen.map(|(_, value)| *value).or(initial(self.history));
                assert_eq!(own.get(&key).copied().or(seen), Some(value), "{op:?}");
            }
            Op::Write { key, value } => {
                let is_first = versions(key).last().is_none_or(|(commit, _)| *commit <= snapshot);
                assert!(is_first || self.level == Level::Prefix, "{op:?}");
                own.insert(key, value);
            }
            _ => {}
        }
    }
}

#[test]
fn reads_see_the_snapshot_and_the_first_committer_wins() {
    for level in [Level::Prefix, Level::SnapshotIsolation, Level::StrongSnapshotIsolation] {
        for seed in 0..10 {
            let history = &stamped(level, Kind::General, seed);
            let (versions, sessions) = Default::default();
            let mut snapshots = Snapshots { history, level, versions, sessions };
            in_commit_order(history).into_iter().for_each(|txn| snapshots.next(txn));
        }
    }
}
