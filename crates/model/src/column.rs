//! A column that costs nothing until something is put into it.

/// Per-row facts that most histories do not have. Rows never set read as missing.
///
/// Whether a row is set is one bit apart from the values: an `Option` of a word takes two words,
/// and no value can be spared to stand for "missing".
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    rows: Vec<T>,
    /// The bits of the rows that are set, in words of [`BITS`].
    present: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column { rows: Vec::new(), present: Vec::new() }
    }
}

impl<T: Copy> Column<T> {
    /// Sets a row. Setting a row to missing allocates nothing.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: Option<T>) {
        let (word, bit) = (row / BITS, 1 << (row % BITS));
        match value {
            Some(value) if row < self.rows.len() => {
                self.rows[row] = value;
                self.present[word] |= bit;
            }
            Some(value) => {
                // Rows in between get a value that nobody sees, since their bits stay clear.
                self.rows.resize(row + 1, value);
                self.present.resize(word + 1, 0);
                self.present[word] |= bit;
            }
            None if row < self.rows.len() => self.present[word] &= !bit,
            None => {}
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        let value = self.rows.get(row)?;
        (self.present[row / BITS] >> (row % BITS) & 1 == 1).then_some(*value)
    }

    /// Whether no row was ever set.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_what_was_last_set_and_the_others_nothing() {
        let mut column = Column::default();
        column.set(3, None);
        assert!(column.is_empty());
        for row in [1, 63, 64, 130] {
            column.set(row, Some(row as u64));
        }
        column.set(63, None);
        column.set(63, None);
        column.set(1, Some(7));
        column.set(200, None);
        let set: Vec<_> = (0..300).filter_map(|row| Some((row, column.get(row)?))).collect();
        assert_eq!(set, [(1, 7), (64, 64), (130, 130)]);
    }
}
