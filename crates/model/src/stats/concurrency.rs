//! How many transactions ran at a time.

use rayon::slice::ParallelSliceMut;

use super::Share;
use crate::History;

/// How many transactions ran at a time.
///
/// A transaction runs from its start to its finish, both included: of two that touch, neither
/// finished strictly before the other started.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Concurrency {
    /// The most that ran at one moment.
    pub max: usize,
    /// The average over the time from the first start to the last finish. Where times are only
    /// an order of events, each step of that order weighs the same.
    pub mean: f64,
    /// The transactions this is about: those with a start and a finish.
    pub measured: Share,
}

impl Concurrency {
    pub(super) fn of(history: &History) -> Option<Concurrency> {
        if !history.has_times() {
            return None;
        }
        let interval = |txn| Some((history.start(txn)?, history.finish(txn)?));
        let (mut starts, mut finishes): (Vec<i64>, Vec<i64>) =
            history.txns().filter_map(interval).unzip();
        rayon::join(|| starts.par_sort_unstable(), || finishes.par_sort_unstable());
        Some(Concurrency {
            max: most_overlapping(&starts, &finishes),
            mean: mean_overlapping(&starts, &finishes)?,
            measured: Share { part: starts.len(), whole: history.txn_count() },
        })
    }
}

/// Sweeps over the moments in order. Both are sorted, so neither knows its other end any more:
/// how many have started and not finished does not depend on which.
fn most_overlapping(starts: &[i64], finishes: &[i64]) -> usize {
    let (mut most, mut finished) = (0, 0);
    for (before, start) in starts.iter().enumerate() {
        while finishes[finished] < *start {
            finished += 1;
        }
        most = most.max(before + 1 - finished);
    }
    most
}

/// The time spent in all transactions over the time that passed. Where none passed, all of them
/// share one moment.
fn mean_overlapping(starts: &[i64], finishes: &[i64]) -> Option<f64> {
    let total = |times: &[i64]| times.iter().map(|t| i128::from(*t)).sum::<i128>();
    let span = i128::from(*finishes.last()?) - i128::from(*starts.first()?);
    if span == 0 {
        return Some(starts.len() as f64);
    }
    Some((total(finishes) - total(starts)) as f64 / span as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, history, timed, txn};

    fn of(txns: &[Txn<'_>]) -> Option<(usize, f64)> {
        Concurrency::of(&history(txns)).map(|c| (c.max, c.mean))
    }

    #[test]
    fn overlaps_by_hand() {
        // 0 1 2 3 4 5 6 7 8
        // a───────a a─────a
        //     b───────b
        //       c─c
        let txns = [timed("a", 0, 4), timed("a", 5, 8), timed("b", 2, 6), timed("c", 3, 4)];
        assert_eq!(of(&txns), Some((3, 12.0 / 8.0)));
        // Idle time counts.
        assert_eq!(of(&[timed("a", 0, 1), timed("a", 3, 4)]), Some((1, 0.5)));
    }

    #[test]
    fn transactions_that_touch_overlap() {
        assert_eq!(of(&[timed("a", 0, 5), timed("b", 5, 10)]), Some((2, 1.0)));
        assert_eq!(of(&[timed("a", 0, 5), timed("b", 6, 10)]), Some((1, 0.9)));
    }

    #[test]
    fn transactions_of_one_moment_share_it() {
        assert_eq!(of(&[timed("a", 7, 7), timed("b", 7, 7)]), Some((2, 2.0)));
    }

    #[test]
    fn the_whole_range_of_times_is_fine() {
        let txns = [timed("a", i64::MIN, i64::MAX), timed("b", i64::MIN, i64::MAX)];
        assert_eq!(of(&txns), Some((2, 2.0)));
    }

    #[test]
    fn transactions_without_a_proper_interval_are_left_out_and_counted() {
        let open = Txn { finish: None, ..timed("b", 1, 0) };
        let found = Concurrency::of(&history(&[timed("a", 0, 4), open, timed("c", 3, 2)])).unwrap();
        assert_eq!((found.max, found.mean), (1, 1.0));
        assert_eq!(found.measured, Share { part: 1, whole: 3 });
        assert_eq!(of(&[txn(&[])]), None);
        assert_eq!(of(&[open]), None);
    }
}
