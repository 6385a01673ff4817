//! The store: transactions, step by step, under the rules of one level.

mod chains;
mod clock;
mod replicas;
mod rules;
mod txn;

use isolario_model::{Level, Stamp};
use isolario_workload::Rng;

use chains::{Chains, Version};
use clock::Clock;
use replicas::Replicas;
use rules::{Conflicts, Logs, Rules, Snapshots};
pub use txn::Txn;

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It only reads.
    Read,
    /// It may write.
    Update,
}

/// A transaction cannot commit, since it missed a commit that it must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transaction conflicts with a commit that it did not see")]
pub struct Conflict;

/// A store of registers and lists that gives its clients a chosen level.
#[derive(Debug)]
pub struct Store {
    rules: Rules,
    replicas: Replicas,
    chains: Chains,
    sessions: Vec<Session>,
    /// The number of the last commit.
    sequence: u64,
    /// How many transactions that wrote nothing have committed.
    read_only: u64,
    /// Commits that are in every snapshot, present and future. Old, but cheap: it is brought up to
    /// date once in a while.
    everybody_has: Clock,
    until_update: u64,
}

/// What the store knows of a session.
#[derive(Clone, Debug, Default)]
struct Session {
    /// What it has seen or committed.
    seen: Clock,
    /// The snapshot of its running transaction.
    running: Option<Clock>,
}

impl Store {
    /// Whether it has rules that give this level and none that is stronger. Other levels get the
    /// rules of a stronger one.
    pub fn has_rules_for(level: Level) -> bool {
        Rules::are_own(level)
    }

    /// An empty store for this many sessions, which gives at least this level.
    pub fn new(level: Level, sessions: u32) -> Store {
        let rules = Rules::of(level);
        Store {
            rules,
            replicas: Replicas::new(rules.logs, sessions),
            chains: Chains::default(),
            sessions: vec![Session::default(); sessions as usize],
            sequence: 0,
            read_only: 0,
            everybody_has: Clock::default(),
            until_update: 0,
        }
    }

    /// Begins a transaction of a session.
    pub fn begin(&mut self, txn: &mut Txn, session: u32, intent: Intent, rng: &mut Rng) {
        txn.clear();
        txn.session = session as usize;
        // Only where each read uses a new snapshot may a session change its replica.
        txn.replica = match self.rules.snapshots {
            Snapshots::PerRead => rng.below(self.replicas.count() as u64) as usize,
            _ => txn.session % self.replicas.count(),
        };
        self.replicas.deliver(txn.replica, rng);
        let fresh = match self.rules.snapshots {
            Snapshots::Fresh => true,
            Snapshots::FreshForWriters => intent == Intent::Update,
            Snapshots::PerRead | Snapshots::AtBegin => false,
        };
        if fresh {
            txn.snapshot = self.replicas.all();
        } else {
            txn.snapshot = self.replicas.have(txn.replica);
            if self.rules.logs == Logs::Shared {
                txn.snapshot.join(&self.sessions[txn.session].seen);
            }
        }
        self.sessions[txn.session].running = Some(txn.snapshot);
    }

    /// Begins a transaction again after a conflict, with everything that is committed. If it runs
    /// to its end before anybody else commits, there is no further conflict.
    pub fn restart(&mut self, txn: &mut Txn) {
        txn.clear();
        self.replicas.catch_up(txn.replica);
        txn.snapshot = self.replicas.all();
        self.sessions[txn.session].running = Some(txn.snapshot);
    }

    /// Reads a register; nothing is there at first.
    #[inline]
    pub fn read(&mut self, txn: &mut Txn, key: u64, rng: &mut Rng) -> Option<i64> {
        if let Some(own) = txn.own(key) {
            return Some(own);
        }
        self.refresh(txn, rng);
        let version = self.chains.latest_in(key, &txn.snapshot);
        if self.rules.conflicts == Conflicts::Reads {
            txn.pins.push((key, sequence_of(version)));
        }
        version.map(|version| version.value)
    }

    /// What a client might know of a register when its transaction begins. No part of the
    /// transaction.
    pub fn peek(&self, txn: &Txn, key: u64) -> Option<i64> {
        self.chains.latest_in(key, &txn.snapshot).map(|version| version.value)
    }

    /// Reads a list: how many [elements](Store::elements) it shows before the transaction's own.
    pub fn read_list(&mut self, txn: &mut Txn, key: u64, rng: &mut Rng) -> usize {
        self.refresh(txn, rng);
        let version = self.chains.latest_in(key, &txn.snapshot);
        if self.rules.conflicts == Conflicts::Reads || txn.has_appended(key) {
            txn.pins.push((key, sequence_of(version)));
        }
        version.map_or(0, |version| version.value as usize)
    }

    /// The committed elements of a list. Every read showed a beginning of them.
    pub fn elements(&self, key: u64) -> &[i64] {
        self.chains.elements(key)
    }

    /// Writes a register.
    pub fn write(&self, txn: &mut Txn, key: u64, value: i64) {
        txn.writes.push((key, value));
    }

    /// Appends to a list.
    pub fn append(&self, txn: &mut Txn, key: u64, element: i64) {
        txn.appends.push((key, element));
    }

    /// Commits, and tells the transaction's place in the true commit order. Or says that another
    /// commit is in the way; then the transaction goes on and may be restarted or rolled back.
    pub fn commit(&mut self, txn: &mut Txn) -> Result<Stamp, Conflict> {
        if txn.is_read_only() {
            self.sessions[txn.session].seen.join(&txn.snapshot);
            self.sessions[txn.session].running = None;
            self.read_only += 1;
            let physical = self.snapshot(txn).map_or(self.sequence, |snapshot| snapshot.physical);
            return Ok(Stamp { physical, logical: self.read_only });
        }
        if !self.may_commit(txn) {
            return Err(Conflict);
        }
        self.sequence += 1;
        let (sequence, dot) = (self.sequence, self.replicas.commit(txn.replica, txn.snapshot));
        for (key, value) in txn.last_writes() {
            let version = Version { sequence, dot, value };
            self.chains.write(key, version, &self.everybody_has);
        }
        for (key, element) in &txn.appends {
            self.chains.append(*key, *element, sequence, dot, &self.everybody_has);
        }
        let session = &mut self.sessions[txn.session];
        session.seen.join(&txn.snapshot);
        session.seen.add(dot);
        session.running = None;
        self.update_everybody_has();
        Ok(Stamp { physical: sequence, logical: 0 })
    }

    /// The snapshot of a transaction: those that wrote something are in it if their place in the
    /// commit order is not after this. None where replicas may have any set of commits.
    pub fn snapshot(&self, txn: &Txn) -> Option<Stamp> {
        let is_prefix = self.rules.logs == Logs::Shared;
        is_prefix.then_some(Stamp { physical: txn.snapshot.0[0], logical: 0 })
    }

    /// Gives a transaction up.
    pub fn rollback(&mut self, txn: &mut Txn) {
        txn.clear();
        self.sessions[txn.session].running = None;
    }

    /// Forgets all keys below one: nobody will use them again.
    pub fn forget_below(&mut self, key: u64) {
        self.chains.forget_below(key);
    }

    /// The snapshot of the next read.
    fn refresh(&mut self, txn: &mut Txn, rng: &mut Rng) {
        if self.rules.snapshots == Snapshots::PerRead {
            self.replicas.deliver(txn.replica, rng);
            txn.snapshot = self.replicas.have(txn.replica);
        }
    }

    fn may_commit(&self, txn: &Txn) -> bool {
        let pinned = |(key, read): &(u64, u64)| sequence_of(self.chains.latest(*key)) == *read;
        let seen = |(key, _): &(u64, i64)| {
            self.chains.latest(*key).is_none_or(|version| txn.snapshot.contains(version.dot))
        };
        txn.pins.iter().all(pinned)
            && (self.rules.conflicts != Conflicts::Writes
                || txn.writes.iter().chain(&txn.appends).all(seen))
    }

    /// Once per round of commits, finds what is in every snapshot: every replica has it, since
    /// future snapshots are at least what a replica has, and so has every running transaction.
    fn update_everybody_has(&mut self) {
        if self.until_update > 0 {
            self.until_update -= 1;
            return;
        }
        self.until_update = self.sessions.len() as u64;
        let running = self.sessions.iter().filter_map(|session| session.running);
        self.everybody_has = running.fold(self.replicas.everywhere(), |mut common, snapshot| {
            common.meet(&snapshot);
            common
        });
        self.replicas.forget_dependencies();
    }
}

/// The number of a version's commit; 0 for what was there at first.
fn sequence_of(version: Option<&Version>) -> u64 {
    version.map_or(0, |version| version.sequence)
}

#[cfg(test)]
mod tests;
