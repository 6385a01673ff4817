//! What a level demands of the store, and why that is enough.
//!
//! Every commit gets the next number of one global sequence. That sequence is the commit order
//! `co` which the levels ask for: it respects session order and write-read, since a session
//! commits in order and nobody reads what is not committed. A read returns, of the versions of the
//! key that are in the reader's *snapshot*, the one with the highest number. So the axiom that all
//! levels share,
//!
//! > if t3 reads x from t1, and another transaction t2 that writes x is visible to t3, then t2
//! > commits before t1,
//!
//! holds as soon as everything that is visible to t3, in the sense of the level, is in the snapshot
//! its read used. (`init` is in every snapshot; its versions number 0.) The rules below see to that.
//!
//! Transactions that write nothing have no number. They may stand anywhere in `co` where session
//! order and write-read allow; below, "at p" means right after the commit with number p.
//!
//! **read-committed**: visible is what the transaction read from before. Each replica has its own
//! growing set of commits, and every read uses the current set of the transaction's replica: what
//! was read from before is still in it. Commits travel in several streams that know nothing of each
//! other. Sessions go to any replica for each transaction, so they may miss their own writes.
//!
//! **read-atomic**: visible is what the transaction reads from at any time, and its session. The
//! snapshot is the replica's set when the transaction began, used for all reads: whatever one of
//! them reads from was in it for all of them. A session stays at its replica, whose set gets the
//! session's commits at once. Commits arrive whole, but not with what they depend on.
//!
//! **causal**: visible is what the transaction depends on, through any number of sessions and
//! reads. As read-atomic, but each replica's commits are one stream, and a commit enters another
//! replica only after all before it in its stream and everything in the snapshot of its
//! transaction. So sets are closed under dependency, and snapshots are such sets.
//!
//! **prefix**: visible is whoever is read from or precedes in the session, and all that commits
//! before these. There is one log; a replica's set is a beginning of it, up to p, and the snapshot
//! also covers what the session has seen or committed before. A transaction without writes stands
//! at p. So its session's predecessors and the writers it reads from all stand at p or before, and
//! with them everything before these.
//!
//! **snapshot-isolation**: visible is, besides, whoever wrote a key that the transaction
//! overwrites, and all that commits before. As prefix, and a transaction commits only if the last
//! version of each key it writes is in its snapshot: first committer wins.
//!
//! **strong-snapshot-isolation**: real time counts as session order. Snapshots are as recent as
//! the log when the transaction begins, and so cover whatever finished before.
//!
//! **serializable**: visible is all that commits before. A transaction that writes commits only if
//! what it read is still the last version of each key, so that it might have run at its commit. One
//! that writes nothing stands at its snapshot, which covers what its session has seen or committed.
//!
//! **strict-serializable**: as before, with snapshots as recent as the log at the beginning. The
//! place of a transaction in `co`, its commit or its snapshot, lies between its start and finish, so
//! that real time agrees with `co`.
//!
//! **Lists.** A commit appends at the end of the one list of the key, and a read sees the beginning
//! of it up to the last commit in its snapshot. All reads of a list are then beginnings of one
//! sequence, whose order is that of `co`. A read that shows own appends, too, is right only if these
//! do end up directly after what it showed: the commit checks that, at every level.

use isolario_model::Level;

/// How commits travel between replicas. A replica has a beginning of each log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logs {
    /// In one log, which replicas follow at their own pace.
    Shared,
    /// In a log per replica, each commit after what it depends on.
    Causal,
    /// In several logs, to which commits are dealt out in turn.
    DealtOut,
}

/// Which snapshot reads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshots {
    /// The replica's set at the time of each read.
    PerRead,
    /// The replica's set when the transaction began, and what its session has seen.
    AtBegin,
    /// As [`Snapshots::AtBegin`] for transactions that only read; else everything committed. Old
    /// snapshots of writers would only lead to conflicts.
    FreshForWriters,
    /// Everything committed when the transaction began.
    Fresh,
}

/// What a transaction that writes must not have missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflicts {
    /// It may miss anything.
    None,
    /// A version of a key it writes.
    Writes,
    /// A version of a key it read.
    Reads,
}

/// The rules of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) logs: Logs,
    pub(super) snapshots: Snapshots,
    pub(super) conflicts: Conflicts,
}

impl Rules {
    /// The weakest rules that give the level. Levels without rules of their own get those of the
    /// next stronger one that has.
    pub(super) fn of(level: Level) -> Rules {
        use Level as L;
        let (logs, snapshots, conflicts) = match level {
            L::ReadUncommitted | L::AdyaReadCommitted | L::ReadCommitted => {
                (Logs::DealtOut, Snapshots::PerRead, Conflicts::None)
            }
            L::CutIsolation | L::ReadAtomic => {
                (Logs::DealtOut, Snapshots::AtBegin, Conflicts::None)
            }
            L::Causal => (Logs::Causal, Snapshots::AtBegin, Conflicts::None),
            L::Prefix => (Logs::Shared, Snapshots::AtBegin, Conflicts::None),
            L::SnapshotIsolation => (Logs::Shared, Snapshots::FreshForWriters, Conflicts::Writes),
            L::StrongSnapshotIsolation => (Logs::Shared, Snapshots::Fresh, Conflicts::Writes),
            L::RepeatableRead | L::Serializable => {
                (Logs::Shared, Snapshots::FreshForWriters, Conflicts::Reads)
            }
            // Strict serializability; of single operations, that is linearizability.
            _ => (Logs::Shared, Snapshots::Fresh, Conflicts::Reads),
        };
        Rules { logs, snapshots, conflicts }
    }

    /// Whether the level has rules of its own: no stronger one has the same.
    pub(super) fn are_own(level: Level) -> bool {
        let is_stronger = |other: &Level| *other != level && other.implies(level);
        Level::all().filter(is_stronger).all(|other| Rules::of(other) != Rules::of(level))
    }
}
