//! The shapes of mini-transactions (MTC, Definition 8).

/// One operation: a read or a write of the first or the second key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MiniOp {
    /// Read the first (0) or the second (1) key.
    R(usize),
    /// Write it.
    W(usize),
}

use MiniOp::{R, W};

/// The read-only shapes.
pub(crate) const READ_ONLY: &[&[MiniOp]] = &[&[R(0)], &[R(0), R(1)], &[R(0), R(0)]];

/// The shapes that write. Reading or writing a key twice is among them: some anomalies need it.
pub(crate) const UPDATES: &[&[MiniOp]] = &[
    &[R(0), W(0)],
    &[R(0), W(0), W(0)],
    &[R(0), W(0), R(0)],
    &[R(0), W(0), R(1)],
    &[R(0), R(1), W(0)],
    &[R(0), R(1), W(1)],
    &[R(0), W(0), R(1), W(1)],
    &[R(0), R(1), W(0), W(1)],
    &[R(0), R(1), W(1), W(0)],
];

/// The read-only shape of slow transactions: they have a second key.
pub(crate) const SLOW_READ_ONLY: &[&[MiniOp]] = &[&[R(0), R(1)]];

/// The shapes of slow transactions that write. They do not write the second key, which others have written
/// by then: most databases would have to refuse them.
pub(crate) const SLOW_UPDATES: &[&[MiniOp]] = &[&[R(0), W(0), R(1)], &[R(0), R(1), W(0)]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_a_mini_transaction() {
        let shapes = [READ_ONLY, UPDATES, SLOW_READ_ONLY, SLOW_UPDATES];
        for shape in shapes.into_iter().flatten() {
            let reads = shape.iter().filter(|step| matches!(step, R(_))).count();
            assert!((1..=2).contains(&reads) && shape.len() - reads <= 2, "{shape:?}");
            for (at, step) in shape.iter().enumerate() {
                if let W(key) = step {
                    assert!(shape[..at].contains(&R(*key)), "{shape:?}");
                }
            }
        }
    }
}
