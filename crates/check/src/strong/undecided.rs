//! Choices that an order of the nodes leaves open.
//!
//! An order of all nodes settles every choice where it puts the edges of one alternative forward.
//! Where it does for all of them it is a solution, whichever choices were ever written down.

use isolario_model::KeyId;
use rayon::prelude::*;

use super::order::Order;
use super::problem::{Precedes, Problem};
use super::sources::Candidate;
use crate::resolved::Version;

/// Keys per task.
const KEYS_PER_TASK: usize = 256;

/// What is taken for a read with several candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing is asked of it: its transaction is not there.
    NotAsked,
    /// Its candidates are not variables yet.
    Nothing,
    Candidate(Candidate),
}

/// Choices that are open.
#[derive(Default)]
pub(crate) struct Undecided {
    /// As the order has the commits.
    pub(crate) orders: Vec<Precedes>,
    pub(crate) reads: Vec<u32>,
}

/// The choices about these keys that the order leaves open. What is taken for reads, and which of the
/// transactions that may not be there are, is for the caller to say.
pub(crate) fn undecided(
    problem: &Problem,
    order: &Order<'_>,
    keys: &[KeyId],
    taken: &(dyn Fn(u32) -> Taken + Sync),
    is_there: &(dyn Fn(u32) -> bool + Sync),
) -> Undecided {
    let found: Vec<Undecided> = keys
        .par_chunks(KEYS_PER_TASK)
        .map(|keys| {
            let (versions, found) = (Vec::new(), Undecided::default());
            let mut finder = Finder { problem, order, taken, is_there, versions, found };
            keys.iter().for_each(|key| finder.look_at(*key));
            finder.found
        })
        .collect();
    let mut all = Undecided::default();
    for Undecided { orders, reads } in found {
        all.orders.extend(orders);
        all.reads.extend(reads);
    }
    all
}

struct Finder<'a> {
    problem: &'a Problem,
    order: &'a Order<'a>,
    taken: &'a (dyn Fn(u32) -> Taken + Sync),
    is_there: &'a (dyn Fn(u32) -> bool + Sync),
    /// The versions of the key with the places where they appear.
    versions: Vec<(u32, Version)>,
    found: Undecided,
}

impl Finder<'_> {
    fn look_at(&mut self, key: KeyId) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let place = |version| self.order.rank(layout.commit(versions.writer(version)));
        self.versions.clear();
        self.versions.extend(versions.of(key).map(|version| (place(version), version)));
        self.versions.sort_unstable();
        let begin = self.found.orders.len();
        for at in 0..self.versions.len() {
            self.late_readers(at);
            if layout.is_exclusive() {
                self.overlapping(at);
            }
        }
        for read in self.problem.sources.of_key(key) {
            self.open_read(*read);
        }
        let orders = &mut self.found.orders;
        orders[begin..].sort_unstable();
        if !self.problem.sources.is_empty() {
            let mut found = orders.split_off(begin);
            found.dedup();
            orders.append(&mut found);
        }
    }

    /// A read is right where the order has one of its candidates as the last version before it, whatever
    /// is taken for it. Else something has to be taken; and once it is, what comes in between must go.
    fn open_read(&mut self, read: u32) {
        let (layout, sources) = (self.problem.layout, &self.problem.sources);
        let taken = (self.taken)(read);
        let start = self.order.rank(layout.start(sources.read(read).reader));
        let before = self.versions.partition_point(|(place, _)| *place < start);
        let last = self.versions[..before].last().map(|(_, version)| *version);
        let explains = |candidate: Candidate| {
            let is_there = sources.writer_if_there(candidate).is_none_or(|n| (self.is_there)(n));
            sources.version(candidate) == last && is_there
        };
        if taken == Taken::NotAsked || sources.candidates(read).any(explains) {
            return;
        }
        let Taken::Candidate(candidate) = taken else {
            self.found.reads.push(read);
            return;
        };
        let Some(first) = sources.version(candidate) else { return };
        let after = self.versions[..before].iter().rev().take_while(|(_, other)| *other != first);
        let missed = after.map(|(_, second)| Precedes { first, second: *second });
        self.found.orders.extend(missed);
    }

    /// Readers of a version that come after later versions.
    fn late_readers(&mut self, at: usize) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let (_, first) = self.versions[at];
        let starts = versions.readers(first).iter().map(|r| self.order.rank(layout.start(r.txn)));
        let Some(last) = starts.max() else { return };
        let missed = self.versions[at + 1..].iter().take_while(|(place, _)| *place < last);
        self.found.orders.extend(missed.map(|(_, second)| Precedes { first, second: *second }));
    }

    /// Earlier writers that had not committed when the writer of a version started.
    fn overlapping(&mut self, at: usize) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let (_, second) = self.versions[at];
        let start = self.order.rank(layout.start(versions.writer(second)));
        let open = self.versions[..at].iter().rev().take_while(|(place, _)| *place > start);
        let orders = open.map(|(_, first)| Precedes { first: *first, second });
        self.found.orders.extend(orders.filter(|precedes| self.problem.exclude(*precedes)));
    }
}
