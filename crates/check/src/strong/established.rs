//! What is known of a level that could not be decided.

use isolario_model::Verdict;

use super::limits::Limit;
use super::parts::Part;
use super::problem::Problem;

/// What was established before a limit was reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Established {
    /// How many pairs of versions of one key there are.
    pub(crate) pairs: u64,
    /// How many of them are in an order, if that is known.
    pub(crate) decided: Option<u64>,
    /// How many parts there are that can be solved apart, and how many are unsolved, if that is
    /// known.
    pub(crate) parts: Option<(usize, usize)>,
    /// How many transactions the largest unsolved part has.
    pub(crate) largest: usize,
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
        self.parts = Some((parts.len(), sizes.len()));
        self.largest = sizes.into_iter().max().unwrap_or(0);
    }

    /// The verdict, with what was established.
    pub(crate) fn undecided(self, limit: Option<Limit>) -> Verdict {
        let mut reason =
            limit.map_or_else(|| "a limit was reached".to_owned(), |limit| limit.to_string());
        if let Some(conflicts) = self.conflicts {
            reason += &format!(" after {conflicts} conflicts");
        }
        reason += &match self.decided {
            Some(decided) => {
                let left = self.pairs.saturating_sub(decided);
                format!(
                    "; of {} pairs of writes, {decided} are in an order, {left} are left",
                    self.pairs
                )
            }
            None => format!("; there are {} pairs of writes", self.pairs),
        };
        if let Some((parts, unsolved)) = self.parts {
            reason += &format!("; {unsolved} of {parts} independent parts are unsolved, ");
            reason += &format!("the largest of {} transactions", self.largest);
        }
        Verdict::Undecided { reason }
    }
}
