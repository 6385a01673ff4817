//! Windows: the parts of a history that are not in order by themselves.

/// The ranks that an edge which leads back spans, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Spans that do not touch each other, in order. Every cycle lies inside one of them.
#[derive(Debug, Default)]
pub(crate) struct Windows(Vec<Span>);

impl Windows {
    /// Joins the spans that overlap. Transactions of equal rank are not told apart, so those that meet in one rank
    /// do overlap.
    pub(crate) fn join(mut spans: Vec<Span>) -> Windows {
        spans.sort_unstable();
        let mut windows: Vec<Span> = Vec::new();
        for span in spans {
            match windows.last_mut() {
                Some(window) if span.first <= window.last => {
                    window.last = window.last.max(span.last)
                }
                _ => windows.push(span),
            }
        }
        Windows(windows)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the window that a rank is in.
    pub(crate) fn of(&self, rank: i64) -> Option<usize> {
        let at = self.0.partition_point(|window| window.last < rank);
        self.0.get(at).is_some_and(|window| window.first <= rank).then_some(at)
    }

    /// From the first rank in a window to the last one.
    pub(crate) fn whole(&self) -> Option<Span> {
        Some(Span { first: self.0.first()?.first, last: self.0.last()?.last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(spans: &[(i64, i64)]) -> Windows {
        Windows::join(
            spans.iter().map(|(first, last)| Span { first: *first, last: *last }).collect(),
        )
    }

    #[test]
    fn spans_that_meet_are_one_window() {
        let windows = join(&[(7, 9), (1, 3), (3, 4), (2, 2), (12, 12)]);
        assert_eq!(windows.0, join(&[(1, 4), (7, 9), (12, 12)]).0);
        let of = [0, 1, 4, 5, 8, 9, 10, 12, 13].map(|rank| windows.of(rank));
        assert_eq!(of, [None, Some(0), Some(0), None, Some(1), Some(1), None, Some(2), None]);
        assert_eq!(windows.whole(), Some(Span { first: 1, last: 12 }));
    }

    #[test]
    fn no_spans_are_no_windows() {
        assert_eq!((join(&[]).of(0), join(&[]).whole()), (None, None));
    }
}
