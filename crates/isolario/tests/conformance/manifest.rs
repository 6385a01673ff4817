//! The tables that say what the corpus holds: tab separated, with a header line.

use std::fs;
use std::path::Path;

/// A table in memory.
pub struct Manifest {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row of it.
#[derive(Clone, Copy)]
pub struct Row<'m> {
    header: &'m [String],
    fields: &'m [String],
}

impl Manifest {
    pub fn open(path: &Path) -> Manifest {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect());
        let header = lines.next().unwrap_or_else(|| panic!("{path:?} is empty"));
        Manifest { header, rows: lines.collect() }
    }

    pub fn rows(&self) -> Vec<Row<'_>> {
        self.rows.iter().map(|fields| Row { header: &self.header, fields }).collect()
    }
}

impl<'m> Row<'m> {
    /// The text of a column; empty where the row says nothing.
    pub fn text(self, column: &str) -> &'m str {
        let at = self.header.iter().position(|name| name == column);
        let at = at.unwrap_or_else(|| panic!("the manifest has no column {column}"));
        self.fields.get(at).map_or("", String::as_str)
    }

    /// The number in a column, where the row states one.
    pub fn count(self, column: &str) -> Option<u64> {
        let text = self.text(column);
        let number = || text.parse().unwrap_or_else(|_| panic!("{column} is {text:?}"));
        (!text.is_empty()).then(number)
    }

    pub fn path(self) -> &'m str {
        self.text("path")
    }

    /// The directory under which the summary counts the row.
    pub fn group(self) -> &'m str {
        self.path().split('/').next().unwrap_or_default()
    }
}
