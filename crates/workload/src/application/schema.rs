//! The tables of an application: what their rows are called, and what they hold.
//!
//! One description serves every form in which rows are kept. As registers, a row has a number and a
//! name. In an SQL database it has a primary key and columns, from which all statements follow.

use std::fmt;

use super::Application;
use crate::rng::Rng;
use crate::shape::Workload;

/// The tables of an application at a scale, and its rows in them. All rows are numbered through, one
/// table after the other: such a number is the key of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    application: Application,
    scale: u64,
}

/// A table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns of its primary key. They count from 1, each within one of the column before it.
    pub key: &'static [KeyColumn],
    /// What else a row holds: numbers, every one of which [follows](Table::held) from the version.
    pub columns: &'static [&'static str],
    /// Where its rows come from.
    pub rows: Rows,
}

/// A column of a primary key.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeyColumn {
    /// Its name.
    pub name: &'static str,
    /// How many numbers it has; the first column of tables that grow with the scale has so many times more.
    pub count: u64,
}

/// Where the rows of a table come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rows {
    /// They are there from the beginning, and as many at every scale.
    Standing,
    /// They are there from the beginning: so many times as many as the scale.
    Scaled,
    /// Transactions insert them. Those that are long past are replaced.
    Inserted,
}

impl Table {
    pub(super) const fn new(
        name: &'static str,
        rows: Rows,
        key: &'static [KeyColumn],
        columns: &'static [&'static str],
    ) -> Table {
        Table { name, key, columns, rows }
    }

    /// How many rows it has, or may have.
    fn count(&self, scale: u64) -> u64 {
        let times = if self.rows == Rows::Scaled { scale } else { 1 };
        self.key.iter().map(|column| column.count).product::<u64>() * times
    }

    /// The primary key of a row: one number per column, the last of which counts fastest.
    fn key_of(&self, mut row: u64) -> Vec<i64> {
        let mut key = vec![0; self.key.len()];
        for (at, column) in self.key.iter().enumerate().rev() {
            // The first column takes whatever is left.
            let within = if at == 0 { u64::MAX } else { column.count };
            key[at] = (1 + row % within) as i64;
            row /= within;
        }
        key
    }

    /// What the columns of a row of this version hold. A row whose columns do not belong together was
    /// put together from several versions.
    pub fn held(&self, version: i64) -> impl Iterator<Item = i64> {
        let numbers = 0..self.columns.len() as u64;
        numbers.map(move |column| Rng::derive(version as u64, &[column]).below(MOST_HELD) as i64)
    }
}

/// Columns hold numbers below this.
const MOST_HELD: u64 = 10_000;

/// A column of a primary key.
pub(super) const fn key(name: &'static str, count: u64) -> KeyColumn {
    KeyColumn { name, count }
}

/// A row, wherever it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowName {
    /// The number of its table.
    pub table: usize,
    /// The name of its table.
    pub table_name: &'static str,
    /// Its primary key.
    pub key: Vec<i64>,
}

/// `stock/1/17`: a name that no form of history has to quote.
impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table_name)?;
        self.key.iter().try_for_each(|number| write!(f, "/{number}"))
    }
}

impl Schema {
    /// That of a workload, if it plays an application.
    pub fn of(workload: &Workload) -> Option<Schema> {
        let application = workload.application?;
        Some(Schema { application, scale: workload.scale.into() })
    }

    pub(super) fn new(application: Application, scale: u64) -> Schema {
        Schema { application, scale }
    }

    /// Whose tables these are.
    pub fn application(self) -> Application {
        self.application
    }

    /// The tables.
    pub fn tables(self) -> &'static [Table] {
        self.application.tables()
    }

    /// How many rows each table has, or may have.
    pub fn counts(self) -> impl Iterator<Item = u64> {
        self.tables().iter().map(move |table| table.count(self.scale))
    }

    /// How many rows there are in all.
    pub fn rows(self) -> u64 {
        self.counts().sum()
    }

    /// The row of a number, if there is one.
    pub fn row(self, number: u64) -> Option<RowName> {
        let mut row = number;
        for (at, (table, count)) in self.tables().iter().zip(self.counts()).enumerate() {
            if row < count {
                let key = table.key_of(row);
                return Some(RowName { table: at, table_name: table.name, key });
            }
            row -= count;
        }
        None
    }

    /// The rows of a table that are there from the beginning, by their primary keys.
    pub fn standing(self, table: &'static Table) -> impl Iterator<Item = Vec<i64>> {
        let count = if table.rows == Rows::Inserted { 0 } else { table.count(self.scale) };
        (0..count).map(|row| table.key_of(row))
    }

    /// What all rows are called.
    pub fn names(self) -> KeyNames {
        let mut names = KeyNames::default();
        (0..self.rows()).filter_map(|number| self.row(number)).for_each(|row| names.push(&row));
        names
    }
}

/// Names of keys, from the first one on, close together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNames {
    text: String,
    /// Where each name ends.
    ends: Vec<usize>,
}

impl KeyNames {
    /// Names the next key.
    pub fn push(&mut self, name: &dyn fmt::Display) {
        self.text.push_str(&name.to_string());
        self.ends.push(self.text.len());
    }

    /// What a key is called; nothing for one without a name.
    pub fn get(&self, key: u64) -> Option<&str> {
        let at = usize::try_from(key).ok()?;
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        Some(&self.text[start..end])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        for application in Application::ALL {
            let schema = Schema::new(application, 2);
            let names = schema.names();
            let mut seen = HashSet::new();
            for number in 0..schema.rows() {
                let name = names.get(number).unwrap();
                assert_eq!(name, schema.row(number).unwrap().to_string());
                assert!(seen.insert(name.to_owned()), "{application}: {name}");
            }
            assert_eq!((schema.row(schema.rows()), names.get(schema.rows())), (None, None));
        }
    }

    #[test]
    fn rows_are_called_by_their_table_and_key() {
        let schema = Schema::new(Application::Tpcc, 2);
        let first = |table: usize| schema.counts().take(table).sum::<u64>();
        let name = |table: usize, row: u64| schema.row(first(table) + row).unwrap().to_string();
        assert_eq!(name(0, 1), "warehouse/2");
        assert_eq!(name(1, 13), "district/2/4");
        assert_eq!(name(2, 30), "customer/1/2/1");
        assert_eq!(name(6, 16), "order_line/2/1");
        assert_eq!(name(8, 1016), "stock/2/17");
    }

    #[test]
    fn only_rows_that_nobody_inserts_are_there_from_the_beginning() {
        let schema = Schema::new(Application::Tpcc, 2);
        let standing: Vec<usize> =
            schema.tables().iter().map(|table| schema.standing(table).count()).collect();
        assert_eq!(standing, [2, 20, 600, 0, 0, 0, 0, 1000, 2000]);
    }

    #[test]
    fn what_a_row_holds_follows_from_its_version() {
        for table in Application::ALL.iter().flat_map(|application| application.tables()) {
            let held = |version| table.held(version).collect::<Vec<i64>>();
            assert_eq!(held(7).len(), table.columns.len());
            assert_eq!(held(7), held(7));
            assert_ne!(held(7), held(8), "{}", table.name);
        }
    }
}
