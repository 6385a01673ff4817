//! Tables of plain text.

use std::fmt;

/// On which side a column is even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table whose columns are as wide as they must be.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[(&str, Align)]) -> Table {
        Table {
            columns: headings.iter().map(|(_, align)| *align).collect(),
            rows: vec![headings.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
        }
    }

    /// Adds a row. Cells that are missing are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |row: &[String], at: usize| row.get(at).map_or("", String::as_str).to_owned();
        let width = |at| self.rows.iter().map(|row| cell(row, at).chars().count()).max();
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|at| width(at).unwrap_or_default()).collect();
        for row in &self.rows {
            let line = self.columns.iter().zip(&widths).enumerate().map(|(at, (align, &width))| {
                let cell = cell(row, at);
                match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                }
            });
            writeln!(f, "{}", line.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table =
            Table::new(&[("job", Align::Left), ("ms", Align::Right), ("", Align::Left)]);
        table.row(["count".to_owned(), "1.5".to_owned()]);
        table.row(["é".to_owned(), "1000.0".to_owned(), "MISSED".to_owned()]);
        let expected = "job        ms\ncount     1.5\né      1000.0  MISSED\n";
        assert_eq!(table.to_string(), expected);
    }
}
