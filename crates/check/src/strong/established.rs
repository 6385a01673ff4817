//! What is known of a level that could not be decided.

use isolario_model::{Limit, Parts, SearchProgress, Undecided, Verdict};

use super::parts::Part;
use super::problem::Problem;

/// What was established before a limit was reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Established {
    /// How many pairs of versions of one key there are.
    pub(crate) pairs: u64,
    /// How many of them are in an order, if that is known.
    pub(crate) decided: Option<u64>,
    /// The parts that can be solved independently of each other, if they are known.
    pub(crate) parts: Option<Parts>,
    /// How many conflicts the search came to, if it began.
    pub(crate) conflicts: Option<u64>,
}

impl Established {
    /// Takes note of the parts, and of those that are unsolved.
    pub(crate) fn count(
        &mut self,
        problem: &Problem,
        parts: &[Part],
        is_unsolved: impl Fn(usize) -> bool,
    ) {
        let unsolved = (0..parts.len()).filter(|part| is_unsolved(*part));
        let sizes: Vec<usize> = unsolved.map(|part| parts[part].txns(problem)).collect();
        self.parts = Some(Parts {
            total: parts.len() as u64,
            unsolved: sizes.len() as u64,
            largest: sizes.into_iter().max().unwrap_or(0) as u64,
        });
    }

    /// The verdict, with what was established.
    pub(crate) fn undecided(self, limit: Limit) -> Verdict {
        let Established { pairs, decided, parts, conflicts } = self;
        let progress = SearchProgress::Writes { pairs, decided, parts, conflicts };
        Verdict::Undecided(Undecided::new(limit).with_progress(progress))
    }
}
