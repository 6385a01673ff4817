//! The store: transactions on a table, step by step, under the rules of one level.
//!
//! # Why they get their level
//!
//! Commits are numbered, and the versions of a row are ordered by the commits that made them. What
//! an operation sees, item or range, is what was committed at a moment: its snapshot, and the
//! transaction's own writes on top. So nobody reads what was not committed, and all dependencies
//! (write-write, write-read, and write-predicate-read) lead from an earlier commit to a later one.
//! What is left to each level are the anti-dependencies.
//!
//! **read-committed**: every operation has a new snapshot, later than those before it. Nothing more is
//! asked for.
//!
//! **repeatable-read**: as read-committed, and a transaction commits only if every row that it read
//! (by key, or as part of a range, absent ones included where they were read by key) still has the
//! version that it read. So whoever overwrites a row that a transaction read commits after it, and
//! item anti-dependencies lead to a later commit, too: every cycle has an anti-dependency of a
//! predicate. It is what long locks on rows and short ones on ranges give.
//!
//! **snapshot-isolation**: one snapshot per transaction, taken when it begins, and the first
//! committer wins: a transaction commits only if the last version of each row it writes is in its
//! snapshot.
//!
//! **serializable**: one snapshot per transaction. One that writes commits only if the rows it read
//! still have the versions it read, and no commit since its snapshot has brought a row into one
//! of its ranges, taken one out, or changed one within: all that it saw is as it was, and it might
//! have run at its commit. One that writes nothing stands at its snapshot.

use std::collections::VecDeque;

use isolario_model::{Level, Stamp};
use isolario_workload::{Rng, RowValues, ValueRange};

use super::config::TableDefect;
use crate::store::Conflict;

/// What a transaction may not have missed, and which snapshots it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    /// Whether every operation has a snapshot of its own.
    snapshot_per_operation: bool,
    /// Whether rows that were read must not have changed.
    pins_rows: bool,
    /// Whether ranges that were read must not have changed.
    guards_ranges: bool,
    /// Whether rows that are written must not have changed.
    first_committer_wins: bool,
}

impl Rules {
    /// The weakest rules that give the level.
    fn of(level: Level) -> Rules {
        let none = Rules {
            snapshot_per_operation: false,
            pins_rows: false,
            guards_ranges: false,
            first_committer_wins: false,
        };
        if Level::ReadCommitted == level || Level::ReadCommitted.implies(level) {
            Rules { snapshot_per_operation: true, ..none }
        } else if Level::StrongSnapshotIsolation == level
            || Level::StrongSnapshotIsolation.implies(level)
        {
            Rules { first_committer_wins: true, ..none }
        } else if matches!(level, Level::RepeatableRead | Level::StrongRepeatableRead) {
            Rules { snapshot_per_operation: true, pins_rows: true, ..none }
        } else {
            Rules { pins_rows: true, guards_ranges: true, ..none }
        }
    }
}

/// A version of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    /// The number of the commit that made it; 0 for the absent row that was there at first.
    sequence: u64,
    /// What it holds; none if the row is absent.
    held: Option<RowValues>,
}

/// What a commit did to a row.
#[derive(Clone, Copy, Debug)]
struct Change {
    sequence: u64,
    before: Option<RowValues>,
    after: Option<RowValues>,
}

/// A transaction in progress. Its buffers are reused when it begins again.
#[derive(Clone, Debug, Default)]
pub struct TableTxn {
    session: usize,
    snapshot: u64,
    writes: Vec<(u32, Option<RowValues>)>,
    /// Rows that were read, with the number of the version.
    pins: Vec<(u32, u64)>,
    /// Ranges that were read, with the snapshot.
    guards: Vec<(ValueRange, u64)>,
}

impl TableTxn {
    fn own(&self, key: u32) -> Option<Option<RowValues>> {
        self.writes.iter().rev().find(|(written, _)| *written == key).map(|(_, held)| *held)
    }

    /// Of each row that it wrote, what it holds last.
    pub(super) fn last_writes(&self) -> impl Iterator<Item = (u32, Option<RowValues>)> + '_ {
        let is_last = |at: usize| {
            let later = &self.writes[at + 1..];
            later.iter().all(|(key, _)| *key != self.writes[at].0)
        };
        let last = self.writes.iter().enumerate().filter(move |(at, _)| is_last(*at));
        last.map(|(_, write)| *write)
    }

    fn clear(&mut self) {
        self.writes.clear();
        self.pins.clear();
        self.guards.clear();
    }
}

/// How many commits a stale scan may be behind.
const STALE: u64 = 8;

/// A store with one table.
#[derive(Debug)]
pub struct TableStore {
    rules: Rules,
    defect: Option<TableDefect>,
    /// Per key, the last version. Apart from the others, since almost every look-up ends here.
    latest: Vec<Version>,
    /// Per key, the versions before it that somebody may still read, the oldest first.
    older: Vec<Vec<Version>>,
    /// The changes since the oldest snapshot.
    recent: VecDeque<Change>,
    /// Per session, the snapshot of its transaction.
    running: Vec<Option<u64>>,
    /// The number of the last commit.
    sequence: u64,
    /// How many transactions that wrote nothing have committed.
    read_only: u64,
}

impl TableStore {
    /// A store that gives a level to this many sessions, with a defect or without.
    pub fn new(level: Level, sessions: u32, defect: Option<TableDefect>) -> TableStore {
        TableStore {
            rules: Rules::of(level),
            defect,
            latest: Vec::new(),
            older: Vec::new(),
            recent: VecDeque::new(),
            running: vec![None; sessions as usize],
            sequence: 0,
            read_only: 0,
        }
    }

    /// Begins a transaction of a session, or begins it again after a conflict. If it then runs to
    /// its end before anybody else commits, there is no further conflict.
    pub fn begin(&mut self, txn: &mut TableTxn, session: u32) {
        txn.clear();
        txn.session = session as usize;
        txn.snapshot = self.sequence;
        self.running[txn.session] = Some(txn.snapshot);
    }

    /// Reads a row.
    pub fn read(&mut self, txn: &mut TableTxn, key: u32) -> Option<RowValues> {
        self.refresh(txn);
        if let Some(own) = txn.own(key) {
            return own;
        }
        let version = self.version_at(key, txn.snapshot);
        if self.rules.pins_rows {
            txn.pins.push((key, version.sequence));
        }
        version.held
    }

    /// Reads the rows of a range, by key, and tells the snapshot.
    pub fn scan(
        &mut self,
        txn: &mut TableTxn,
        range: ValueRange,
        rng: &mut Rng,
    ) -> (Vec<(u32, RowValues)>, Stamp) {
        self.refresh(txn);
        let snapshot = self.scan_snapshot(txn, rng);
        let mut found = Vec::new();
        let last_key = txn.writes.iter().map(|(key, _)| *key + 1).max().unwrap_or(0);
        for key in 0..last_key.max(self.latest.len() as u32) {
            let own = if txn.writes.is_empty() { None } else { txn.own(key) };
            let version = self.version_at(key, snapshot);
            let held = own.unwrap_or(version.held);
            if let (true, Some(held)) = (range.matches(held), held) {
                found.push((key, held));
                // Whoever forgets that a snapshot is old does not compare it with what is new.
                if self.rules.pins_rows && own.is_none() && snapshot == txn.snapshot {
                    txn.pins.push((key, version.sequence));
                }
            }
        }
        if self.rules.guards_ranges && self.defect != Some(TableDefect::PredicateLock) {
            txn.guards.push((range, txn.snapshot));
        }
        (found, Stamp { physical: snapshot, logical: 0 })
    }

    /// Writes a row, or deletes it.
    pub fn write(&self, txn: &mut TableTxn, key: u32, held: Option<RowValues>) {
        txn.writes.push((key, held));
    }

    /// The snapshot of a transaction, where it has one.
    pub fn snapshot(&self, txn: &TableTxn) -> Option<Stamp> {
        let has_one = !self.rules.snapshot_per_operation;
        has_one.then_some(Stamp { physical: txn.snapshot, logical: 0 })
    }

    /// Commits, and tells the transaction's place in the true commit order.
    pub fn commit(&mut self, txn: &mut TableTxn, rng: &mut Rng) -> Result<Stamp, Conflict> {
        let at_snapshot = txn.writes.is_empty() && !self.rules.snapshot_per_operation;
        if !at_snapshot && !self.may_commit(txn) {
            return Err(Conflict);
        }
        self.running[txn.session] = None;
        if txn.writes.is_empty() {
            self.read_only += 1;
            let physical = if at_snapshot { txn.snapshot } else { self.sequence };
            return Ok(Stamp { physical, logical: self.read_only });
        }
        self.sequence += 1;
        let oldest = self.oldest_snapshot();
        for (key, held) in txn.last_writes() {
            let is_lost =
                held.is_none() && self.defect == Some(TableDefect::LostDelete) && rng.below(4) == 0;
            if !is_lost {
                self.install(key, held, oldest);
            }
        }
        while self.recent.front().is_some_and(|change| change.sequence <= oldest) {
            self.recent.pop_front();
        }
        Ok(Stamp { physical: self.sequence, logical: 0 })
    }

    /// Gives a transaction up.
    pub fn rollback(&mut self, txn: &mut TableTxn) {
        txn.clear();
        self.running[txn.session] = None;
    }

    fn refresh(&mut self, txn: &mut TableTxn) {
        if self.rules.snapshot_per_operation {
            txn.snapshot = self.sequence;
            self.running[txn.session] = Some(txn.snapshot);
        }
    }

    fn scan_snapshot(&self, txn: &TableTxn, rng: &mut Rng) -> u64 {
        if self.defect == Some(TableDefect::StaleScan) && rng.below(4) == 0 {
            return txn.snapshot.saturating_sub(1 + rng.below(STALE));
        }
        txn.snapshot
    }

    /// The last version of a row at a snapshot.
    #[inline]
    fn version_at(&self, key: u32, snapshot: u64) -> Version {
        match self.latest.get(key as usize) {
            None => Version::default(),
            Some(latest) if latest.sequence <= snapshot => *latest,
            Some(_) => {
                let older = self.older[key as usize].iter().rev();
                older.copied().find(|version| version.sequence <= snapshot).unwrap_or_default()
            }
        }
    }

    fn may_commit(&self, txn: &TableTxn) -> bool {
        let unchanged = |(key, read): &(u32, u64)| {
            self.latest.get(*key as usize).map_or(0, |latest| latest.sequence) == *read
        };
        let seen = |(key, _): &(u32, Option<RowValues>)| {
            self.latest.get(*key as usize).is_none_or(|latest| latest.sequence <= txn.snapshot)
        };
        let unmoved = |(range, snapshot): &(ValueRange, u64)| {
            let since = self.recent.iter().rev().take_while(|c| c.sequence > *snapshot);
            since.into_iter().all(|c| !range.matches(c.before) && !range.matches(c.after))
        };
        txn.pins.iter().all(unchanged)
            && txn.guards.iter().all(unmoved)
            && (!self.rules.first_committer_wins || txn.writes.iter().all(seen))
    }

    /// Puts a version in its place. Versions that nobody can read any more go.
    fn install(&mut self, key: u32, held: Option<RowValues>, oldest: u64) {
        let at = key as usize;
        if at >= self.latest.len() {
            self.latest.resize_with(at + 1, Version::default);
            self.older.resize_with(at + 1, Vec::new);
        }
        let version = Version { sequence: self.sequence, held };
        let before = std::mem::replace(&mut self.latest[at], version);
        let older = &mut self.older[at];
        older.push(before);
        // One at the oldest snapshot or before it is still seen.
        let hidden = older.iter().rposition(|version| version.sequence <= oldest).unwrap_or(0);
        older.drain(..hidden);
        self.recent.push_back(Change { sequence: self.sequence, before: before.held, after: held });
    }

    /// The oldest snapshot that anybody has or may get.
    fn oldest_snapshot(&self) -> u64 {
        let running = self.running.iter().flatten().copied();
        let oldest = running.min().unwrap_or(self.sequence);
        let stale = if self.defect == Some(TableDefect::StaleScan) { STALE } else { 0 };
        oldest.saturating_sub(stale)
    }
}
