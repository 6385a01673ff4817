//! Choices that an order of the nodes leaves open.
//!
//! An order of all nodes settles every choice where it puts the edges of one alternative forward.
//! Where it does for all of them it is a solution, whichever choices were ever written down.

use isolario_model::KeyId;
use rayon::prelude::*;

use super::order::Order;
use super::problem::{Precedes, Problem};
use crate::resolved::Version;

/// Keys per task.
const KEYS_PER_TASK: usize = 256;

/// The choices about these keys that the order leaves open, as it orders the commits.
pub(crate) fn undecided_pairs(
    problem: &Problem,
    order: &Order<'_>,
    keys: &[KeyId],
) -> Vec<Precedes> {
    let found: Vec<Vec<Precedes>> = keys
        .par_chunks(KEYS_PER_TASK)
        .map(|keys| {
            let mut finder = Finder { problem, order, versions: Vec::new(), found: Vec::new() };
            keys.iter().for_each(|key| finder.look_at(*key));
            finder.found
        })
        .collect();
    found.concat()
}

struct Finder<'a> {
    problem: &'a Problem,
    order: &'a Order<'a>,
    /// The versions of the key with the places where they appear.
    versions: Vec<(u32, Version)>,
    found: Vec<Precedes>,
}

impl Finder<'_> {
    fn look_at(&mut self, key: KeyId) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let place = |version| self.order.rank(layout.commit(versions.writer(version)));
        self.versions.clear();
        self.versions.extend(versions.of(key).map(|version| (place(version), version)));
        self.versions.sort_unstable();
        let begin = self.found.len();
        for at in 0..self.versions.len() {
            self.late_readers(at);
            if layout.is_exclusive() {
                self.overlapping(at);
            }
        }
        self.found[begin..].sort_unstable();
    }

    /// Readers of a version that come after later versions.
    fn late_readers(&mut self, at: usize) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let (_, first) = self.versions[at];
        let starts = versions.readers(first).iter().map(|r| self.order.rank(layout.start(r.txn)));
        let Some(last) = starts.max() else { return };
        let missed = self.versions[at + 1..].iter().take_while(|(place, _)| *place < last);
        self.found.extend(missed.map(|(_, second)| Precedes { first, second: *second }));
    }

    /// Earlier writers that had not committed when the writer of a version started.
    fn overlapping(&mut self, at: usize) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let (_, second) = self.versions[at];
        let start = self.order.rank(layout.start(versions.writer(second)));
        let open = self.versions[..at].iter().rev().take_while(|(place, _)| *place > start);
        self.found.extend(open.map(|(_, first)| Precedes { first: *first, second }));
    }
}
