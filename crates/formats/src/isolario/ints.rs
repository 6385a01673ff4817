//! Columns of integers, made to be read fast and to compress well.
//!
//! A column is what remains of each number after subtracting the smallest one (or, where it is
//! narrower, of each difference to the number before), cut to as few bytes as the widest needs
//! and stored byte by byte: first the lowest byte of every row, then the next one of every row.
//! Bytes that are noise stay apart from bytes that hardly change: the compressor passes over the
//! former and squeezes the latter, and both ways the loops here are straight enough to vectorise.
//!
//! Every row takes at least one byte, also where all rows are equal. So a count that lies is found
//! by comparing it with the bytes that are there, before anything is allocated for it, and the
//! compressor makes nothing of the zeros.

use super::bytes::{Cursor, put_varint};
use crate::Problem;

/// Added to the width where rows hold differences.
const DELTA: u8 = 0x10;

/// How many rows are put together at a time: what stays in the fastest cache.
const ROWS_AT_ONCE: usize = 2048;

/// Writes the number of rows and the column.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    put_varint(out, values.len() as u64);
    let Some(first) = values.first() else { return };
    let plain = Range::of(values.iter().copied());
    let delta = Range::of(differences(values));
    if delta.width() < plain.width() {
        out.push(delta.width() as u8 | DELTA);
        out.extend_from_slice(&delta.least.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        // The first row is the first number itself: its place holds the least difference.
        let rows = std::iter::once(delta.least).chain(differences(values));
        put_planes(rows, values.len(), delta, out);
    } else {
        out.push(plain.width() as u8);
        out.extend_from_slice(&plain.least.to_le_bytes());
        put_planes(values.iter().copied(), values.len(), plain, out);
    }
}

fn differences(values: &[i64]) -> impl Iterator<Item = i64> {
    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]))
}

#[derive(Clone, Copy)]
struct Range {
    least: i64,
    greatest: i64,
}

impl Range {
    fn of(mut values: impl Iterator<Item = i64>) -> Range {
        let first = values.next().unwrap_or(0);
        values.fold(Range { least: first, greatest: first }, |range, value| Range {
            least: range.least.min(value),
            greatest: range.greatest.max(value),
        })
    }

    /// How many bytes the widest remainder needs, at least one.
    fn width(self) -> usize {
        let span = self.greatest.wrapping_sub(self.least) as u64;
        (64 - span.leading_zeros() as usize).div_ceil(8).max(1)
    }
}

fn put_planes(rows: impl Iterator<Item = i64>, count: usize, range: Range, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + count * range.width(), 0);
    for (row, value) in rows.enumerate() {
        let remainder = value.wrapping_sub(range.least).to_le_bytes();
        for (plane, byte) in remainder.iter().take(range.width()).enumerate() {
            out[start + plane * count + row] = *byte;
        }
    }
}

/// Reads what [`encode`] wrote, in the place of what was there.
pub(super) fn decode(cursor: &mut Cursor<'_>, values: &mut Vec<i64>) -> Result<(), Problem> {
    values.clear();
    let rows = cursor.count("the rows of a column of numbers")?;
    if rows == 0 {
        return Ok(());
    }
    let form = cursor.byte("the form of a column")?;
    let width = usize::from(form & !DELTA);
    if !(1..=8).contains(&width) {
        return Err(Problem::malformed("the width of a column, 1 to 8", width));
    }
    let least = i64::from_le_bytes(cursor.array("the least number of a column")?);
    let first = match form & DELTA {
        0 => None,
        _ => Some(i64::from_le_bytes(cursor.array("the first number of a column")?)),
    };
    let len = rows.saturating_mul(width);
    let planes = cursor.take(len, "a column of numbers")?;
    values.resize(rows, least);
    join_planes(planes, values);
    if let Some(mut value) = first {
        values[0] = value;
        for row in &mut values[1..] {
            value = value.wrapping_add(*row);
            *row = value;
        }
    }
    Ok(())
}

/// Adds to each row what the planes hold of it.
fn join_planes(planes: &[u8], values: &mut [i64]) {
    let rows = values.len();
    for (stretch, values) in values.chunks_mut(ROWS_AT_ONCE).enumerate() {
        let start = stretch * ROWS_AT_ONCE;
        for (shift, plane) in (0..).step_by(8).zip(planes.chunks_exact(rows)) {
            for (value, byte) in values.iter_mut().zip(&plane[start..]) {
                *value = value.wrapping_add(i64::from(*byte) << shift);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[i64]) -> usize {
        let mut out = Vec::new();
        encode(values, &mut out);
        let mut cursor = Cursor::new(&out);
        let mut decoded = vec![7; 3];
        decode(&mut cursor, &mut decoded).unwrap();
        assert_eq!(decoded, values);
        assert!(cursor.is_empty());
        out.len()
    }

    #[test]
    fn extremes_and_long_columns_come_back() {
        round_trip(&[]);
        round_trip(&[i64::MIN]);
        round_trip(&[i64::MIN, i64::MAX, 0, -1]);
        round_trip(&[i64::MAX, i64::MIN, i64::MAX]);
        round_trip(&(0..10_000).map(|i| i * i * 7919).collect::<Vec<_>>());
    }

    #[test]
    fn a_row_takes_no_more_bytes_than_it_needs() {
        let head = 2 + 1 + 8;
        assert_eq!(round_trip(&vec![1 << 40; 1000]), head + 1000);
        assert_eq!(round_trip(&(0..1000).map(|i| i * 1000).collect::<Vec<_>>()), head + 8 + 1000);
        assert_eq!(round_trip(&(0..1000).map(|i| i % 7 * 100).collect::<Vec<_>>()), head + 2000);
    }

    #[test]
    fn lying_counts_and_widths_are_refused() {
        for bytes in [&[200, 1][..], &[2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], &[1, 0], &[1, 1, 0]] {
            let decoded = decode(&mut Cursor::new(bytes), &mut Vec::new());
            assert!(decoded.is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_column_comes_back(values in prop::collection::vec(any::<i64>(), 0..50)) {
            round_trip(&values);
        }
    }
}
