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

/// A column as [`encode`] wrote it.
#[derive(Clone, Copy, Default)]
pub(super) struct Packed<'b> {
    rows: usize,
    least: i64,
    /// The first number, where rows hold differences.
    first: Option<i64>,
    /// A plane for each byte of a row.
    planes: &'b [u8],
}

impl<'b> Packed<'b> {
    pub(super) fn get(cursor: &mut Cursor<'b>) -> Result<Packed<'b>, Problem> {
        let rows = cursor.count("the rows of a column of numbers")?;
        if rows == 0 {
            return Ok(Packed::default());
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
        Ok(Packed { rows, least, first, planes })
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// The numbers, some at a time.
    pub(super) fn numbers(self) -> Numbers<'b> {
        Numbers { column: self, taken: 0, last: 0 }
    }
}

/// Takes the numbers of a column one after the other. Whoever goes through several columns at once takes so
/// few at a time that they stay in the fastest cache.
pub(super) struct Numbers<'b> {
    column: Packed<'b>,
    taken: usize,
    /// The number before the next one.
    last: i64,
}

impl Numbers<'_> {
    /// Puts the next ones in the place of what was there. There are fewer at the end.
    pub(super) fn take(&mut self, count: usize, numbers: &mut Vec<i64>) {
        let Packed { rows, first, planes, .. } = self.column;
        numbers.clear();
        let count = count.min(rows - self.taken);
        if count == 0 {
            return;
        }
        match planes.len() / rows {
            1 => self.join::<1>(count, numbers),
            2 => self.join::<2>(count, numbers),
            3 => self.join::<3>(count, numbers),
            4 => self.join::<4>(count, numbers),
            5 => self.join::<5>(count, numbers),
            6 => self.join::<6>(count, numbers),
            7 => self.join::<7>(count, numbers),
            _ => self.join::<8>(count, numbers),
        }
        if let Some(first) = first {
            let is_first = self.taken == 0;
            // Whatever stands in its place: it is the first number itself.
            self.last = if is_first { first.wrapping_sub(numbers[0]) } else { self.last };
            for number in numbers.iter_mut() {
                self.last = self.last.wrapping_add(*number);
                *number = self.last;
            }
        }
        self.taken += count;
    }

    /// Puts the next rows together from `WIDTH` planes.
    fn join<const WIDTH: usize>(&self, count: usize, numbers: &mut Vec<i64>) {
        let Packed { rows, least, planes, .. } = self.column;
        let plane = |plane: usize| &planes[plane * rows + self.taken..][..count];
        let planes: [&[u8]; WIDTH] = std::array::from_fn(plane);
        numbers.extend((0..count).map(|row| {
            let bytes = planes.iter().rev().fold(0, |sum, plane| sum << 8 | i64::from(plane[row]));
            least.wrapping_add(bytes)
        }));
    }
}

/// Reads what [`encode`] wrote, in the place of what was there.
pub(super) fn decode(cursor: &mut Cursor<'_>, values: &mut Vec<i64>) -> Result<(), Problem> {
    let column = Packed::get(cursor)?;
    column.numbers().take(column.rows, values);
    Ok(())
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
        let mut numbers = Packed::get(&mut Cursor::new(&out)).unwrap().numbers();
        for some in values.chunks(3) {
            numbers.take(3, &mut decoded);
            assert_eq!(decoded, some);
        }
        numbers.take(3, &mut decoded);
        assert!(decoded.is_empty());
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
