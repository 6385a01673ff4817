//! A distribution of counts.

use rayon::slice::ParallelSliceMut;

/// How counts are distributed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// The smallest; zero where there are none.
    pub min: usize,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: usize,
    /// The average.
    pub mean: f64,
    /// The histogram, from the first bucket that holds something to the last one.
    pub histogram: Vec<Bucket>,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bucket {
    /// The smallest count that falls into it.
    pub from: usize,
    /// The largest one.
    pub to: usize,
    /// How many do.
    pub count: usize,
}

/// Up to here every count has a bucket of its own; then buckets double: 9 to 16, 17 to 32.
const EXACT: usize = 8;

impl Distribution {
    pub(super) fn of(mut counts: Vec<usize>) -> Distribution {
        counts.par_sort_unstable();
        let (Some(min), Some(max)) = (counts.first().copied(), counts.last().copied()) else {
            return Distribution::default();
        };
        let middle = counts.len() / 2;
        let median = if counts.len() % 2 == 1 {
            counts[middle] as f64
        } else {
            (counts[middle - 1] as f64 + counts[middle] as f64) / 2.0
        };
        let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        Distribution { min, median, max, mean, histogram: histogram(&counts) }
    }
}

/// The buckets of counts in ascending order.
fn histogram(sorted: &[usize]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut rest = sorted;
    while let Some(smallest) = rest.first() {
        let (from, to) = match buckets.last() {
            Some(last) => range_of(last.to + 1),
            None => range_of(*smallest),
        };
        let count = rest.partition_point(|n| *n <= to);
        buckets.push(Bucket { from, to, count });
        rest = &rest[count..];
    }
    buckets
}

/// The range of the bucket that a count falls into.
fn range_of(count: usize) -> (usize, usize) {
    if count <= EXACT {
        return (count, count);
    }
    let to = count.checked_next_power_of_two().unwrap_or(usize::MAX);
    (to / 2 + 1, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(distribution: &Distribution) -> Vec<(usize, usize, usize)> {
        distribution.histogram.iter().map(|b| (b.from, b.to, b.count)).collect()
    }

    #[test]
    fn small_counts_have_exact_buckets_and_large_ones_double() {
        let found = Distribution::of(vec![20, 7, 9, 7, 16, 8, 70]);
        assert_eq!((found.min, found.median, found.max), (7, 9.0, 70));
        assert_eq!(found.mean, 137.0 / 7.0);
        let expected = [(7, 7, 2), (8, 8, 1), (9, 16, 2), (17, 32, 1), (33, 64, 0), (65, 128, 1)];
        assert_eq!(buckets(&found), expected);
    }

    #[test]
    fn an_even_number_of_counts_has_two_in_the_middle() {
        let found = Distribution::of(vec![4, 0, 1, 2]);
        assert_eq!((found.min, found.median, found.max, found.mean), (0, 1.5, 4, 1.75));
        assert_eq!(buckets(&found), [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 0), (4, 4, 1)]);
    }

    #[test]
    fn no_counts_and_one_count() {
        assert_eq!(Distribution::of(vec![]), Distribution::default());
        let one = Distribution::of(vec![16]);
        assert_eq!((one.median, buckets(&one)), (16.0, vec![(9, 16, 1)]));
    }
}
