//! A column that costs nothing until something is put into it.

/// Per-row facts that most histories do not have. Rows never set read as missing.
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    rows: Vec<Option<T>>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column { rows: Vec::new() }
    }
}

impl<T: Copy> Column<T> {
    /// Sets a row. Setting a row to missing allocates nothing.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: Option<T>) {
        if value.is_none() && row >= self.rows.len() {
            return;
        }
        if row >= self.rows.len() {
            self.rows.resize(row + 1, None);
        }
        self.rows[row] = value;
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        self.rows.get(row).copied().flatten()
    }

    /// Whether no row was ever set.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
