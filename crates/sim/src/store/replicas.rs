//! Replicas: who has which commits, and how commits get around.

use std::collections::VecDeque;

use isolario_workload::{Chance, Rng};

use super::clock::{Clock, Dot, REPLICAS};
use super::rules::Logs;

/// How many commits of a log a replica may lack. Far more than it usually does; a replica that
/// nobody visits must not keep old versions alive for ever.
const MAX_LAG: u64 = 256;

/// The commits that each replica has.
#[derive(Debug)]
pub(super) struct Replicas {
    logs: Logs,
    /// How often commits of a log arrive. Seldom enough for replicas to differ even in short
    /// histories, often enough for sessions to see each other's writes.
    arrival: Chance,
    /// Per replica, its set.
    have: Vec<Clock>,
    /// All commits.
    all: Clock,
    /// Per log, what its commits depend on, for those that some replica lacks. Only where commits
    /// wait for what they depend on.
    dependencies: [VecDeque<Clock>; REPLICAS],
    /// Per log, how many commits are no longer in `dependencies`.
    everywhere: Clock,
}

impl Replicas {
    pub(super) fn new(logs: Logs, sessions: u32) -> Replicas {
        let count = (sessions as usize).clamp(1, REPLICAS);
        Replicas {
            logs,
            arrival: Chance::new(0.25),
            have: vec![Clock::default(); count],
            all: Clock::default(),
            dependencies: std::array::from_fn(|_| VecDeque::new()),
            everywhere: Clock::default(),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.have.len()
    }

    /// What a replica has.
    pub(super) fn have(&self, replica: usize) -> Clock {
        self.have[replica]
    }

    /// All commits.
    pub(super) fn all(&self) -> Clock {
        self.all
    }

    /// What all replicas have.
    pub(super) fn everywhere(&self) -> Clock {
        self.have.iter().fold(self.all, |mut common, have| {
            common.meet(have);
            common
        })
    }

    /// Lets some commits arrive at a replica: of each log, once in a while, any number of those it
    /// lacks. So it lacks a few times as many as are made between two visits.
    pub(super) fn deliver(&mut self, replica: usize, rng: &mut Rng) {
        for log in 0..REPLICAS {
            let lacks = self.all.0[log] - self.have[replica].0[log];
            if lacks > 0 && rng.happens(self.arrival) {
                let target = self.have[replica].0[log] + 1 + rng.below(lacks);
                self.advance(replica, log, target);
            }
        }
    }

    /// Lets everything arrive at a replica.
    pub(super) fn catch_up(&mut self, replica: usize) {
        self.have[replica] = self.all;
    }

    /// Adds a commit made at a replica, which depends on a set of others.
    pub(super) fn commit(&mut self, replica: usize, depends_on: Clock) -> Dot {
        let log = match self.logs {
            Logs::Shared => 0,
            Logs::Causal => replica,
            Logs::DealtOut => self.all.0.iter().sum::<u64>() as usize % REPLICAS,
        };
        let dot = Dot { log, number: self.all.0[log] + 1 };
        self.all.add(dot);
        if self.logs == Logs::Causal {
            self.dependencies[log].push_back(depends_on);
        }
        if self.logs != Logs::Shared {
            self.have[replica].add(dot);
        }
        for late in 0..self.count() {
            if dot.number - self.have[late].0[log] > MAX_LAG {
                self.catch_up(late);
            }
        }
        dot
    }

    /// Forgets what commits depend on that every replica has.
    pub(super) fn forget_dependencies(&mut self) {
        let everywhere = self.everywhere();
        for (log, waiting) in self.dependencies.iter_mut().enumerate() {
            let done = (everywhere.0[log] - self.everywhere.0[log]) as usize;
            waiting.drain(..done.min(waiting.len()));
        }
        self.everywhere = everywhere;
    }

    /// Takes commits of a log in order up to a number, or up to the first that has to wait for
    /// what it depends on.
    fn advance(&mut self, replica: usize, log: usize, target: u64) {
        if self.logs != Logs::Causal {
            self.have[replica].0[log] = target;
            return;
        }
        while self.have[replica].0[log] < target {
            let next = (self.have[replica].0[log] - self.everywhere.0[log]) as usize;
            let depends_on = self.dependencies[log].get(next);
            if !depends_on.is_some_and(|set| self.have[replica].covers(set)) {
                return;
            }
            self.have[replica].0[log] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_for_what_it_depends_on() {
        let mut replicas = Replicas::new(Logs::Causal, 3);
        let cause = replicas.commit(0, Clock::default());
        let mut seen = Clock::default();
        seen.add(cause);
        replicas.advance(1, 0, 1);
        let effect = replicas.commit(1, seen);
        replicas.advance(2, 1, 1);
        assert!(!replicas.have(2).contains(effect));
        replicas.advance(2, 0, 1);
        replicas.advance(2, 1, 1);
        assert!(replicas.have(2).contains(cause) && replicas.have(2).contains(effect));
        replicas.advance(0, 1, 1);
        replicas.forget_dependencies();
        assert!(replicas.dependencies.iter().all(VecDeque::is_empty));
    }

    #[test]
    fn nobody_lags_without_bound() {
        let mut replicas = Replicas::new(Logs::Causal, 2);
        for _ in 0..10 * MAX_LAG {
            replicas.commit(0, replicas.have(0));
            replicas.forget_dependencies();
        }
        assert!(replicas.dependencies[0].len() as u64 <= MAX_LAG + 1);
    }
}
