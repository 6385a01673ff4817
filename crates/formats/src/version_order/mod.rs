//! Orders of versions: what a database or a user says, beside a history, about the order of writes.
//!
//! A JSON object per line, with a key and its values, or the names of their writers, earlier ones
//! first: `{"key": "x", "values": [1, 2]}` or `{"key": "x", "writers": ["T1", "T2"]}`. Neighbours
//! mean *before*, not *immediately before*, and any version may be missing. Keys, values and names
//! are spelled as in the JSON lines format of histories.
//!
//! Of tables, the file may also say which versions an operation by predicate met, matching or not:
//! by the database's timestamp, `{"txn": "T7", "op": 2, "snapshot": 15}`, or one by one,
//! `{"txn": "T7", "op": 2, "versions": [[key, "T5"]]}`, where rows that are not named had their
//! initial version. Operations are counted from 0.

mod names;
mod read;
mod sets;

use std::io::{self, Write};

use isolario_model::Stamp;
use rustc_hash::FxHashMap;

pub use read::{UnknownNames, VersionStatements, read};

/// Versions of a key that stand on one line. Memory grows with keys, not with versions.
const PER_LINE: usize = 64;

/// Writes the order of versions while they come into being, those of all keys interleaved.
///
/// A key gets as many lines as it takes. Each begins with the last version of the one before, so
/// that the lines of a key state one order.
#[derive(Debug)]
pub struct VersionOrderWriter<W> {
    out: W,
    lines: FxHashMap<u64, Vec<i64>>,
    /// The table and its key, where versions are those of rows.
    rows: Option<(&'static str, &'static str)>,
}

impl<W: Write> VersionOrderWriter<W> {
    /// A writer to a file. Keys are numbers, and versions are named by their values.
    pub fn new(out: W) -> Self {
        VersionOrderWriter { out, lines: FxHashMap::default(), rows: None }
    }

    /// A writer to a file. Keys are rows of a table, by the number in this column, and versions are
    /// named by their writers: a delete leaves no value to name it by.
    pub fn of_rows(out: W, table: &'static str, column: &'static str) -> Self {
        VersionOrderWriter { rows: Some((table, column)), ..VersionOrderWriter::new(out) }
    }

    /// Adds the next version of a key.
    pub fn version(&mut self, key: u64, value: i64) -> io::Result<()> {
        let versions = self.lines.entry(key).or_default();
        versions.push(value);
        if versions.len() == PER_LINE {
            write_line(&mut self.out, key, versions, self.rows)?;
            versions.clear();
            versions.push(value);
        }
        Ok(())
    }

    /// States that an operation met what was committed at a moment of the database's clock.
    pub fn snapshot(&mut self, txn: u64, op: usize, at: Stamp) -> io::Result<()> {
        let Stamp { physical, logical } = at;
        match logical {
            0 => writeln!(self.out, r#"{{"txn":{txn},"op":{op},"snapshot":{physical}}}"#),
            _ => {
                writeln!(self.out, r#"{{"txn":{txn},"op":{op},"snapshot":[{physical},{logical}]}}"#)
            }
        }
    }

    /// States that an operation met these versions, by table, key and writer, and no others.
    pub fn versions(&mut self, txn: u64, op: usize, set: &[(&str, u64, u64)]) -> io::Result<()> {
        let (_, column) = self.rows.unwrap_or(("", "key"));
        write!(self.out, r#"{{"txn":{txn},"op":{op},"versions":["#)?;
        for (at, (table, id, writer)) in set.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(
                self.out,
                r#"{comma}[{{"table":"{table}","row":{{"{column}":{id}}}}},{writer}]"#
            )?;
        }
        self.out.write_all(b"]}\n")
    }

    /// Writes what is left, by key, and gives back the file. A line of one version would state
    /// nothing.
    pub fn finish(mut self) -> io::Result<W> {
        let mut left: Vec<(u64, Vec<i64>)> = self.lines.into_iter().collect();
        left.sort_unstable();
        for (key, versions) in left.iter().filter(|(_, versions)| versions.len() > 1) {
            write_line(&mut self.out, *key, versions, self.rows)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn write_line(
    out: &mut impl Write,
    key: u64,
    versions: &[i64],
    rows: Option<(&str, &str)>,
) -> io::Result<()> {
    match rows {
        None => write!(out, r#"{{"key":{key},"values":["#)?,
        Some((table, column)) => {
            write!(out, r#"{{"key":{{"table":"{table}","row":{{"{column}":{key}}}}},"writers":["#)?;
        }
    }
    for (at, value) in versions.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{value}")?;
    }
    out.write_all(b"]}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_key_overlap_and_come_by_key_at_the_end() {
        let mut writer = VersionOrderWriter::new(Vec::new());
        for value in 1..=PER_LINE as i64 + 1 {
            writer.version(7, value).unwrap();
        }
        for (key, value) in [(3, 100), (1, 200), (3, 101)] {
            writer.version(key, value).unwrap();
        }
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with(r#"{"key":7,"values":[1,2,3,"#) && lines[0].ends_with(",64]}")
        );
        assert_eq!(
            lines[1..],
            [r#"{"key":3,"values":[100,101]}"#, r#"{"key":7,"values":[64,65]}"#]
        );
    }

    #[test]
    fn rows_are_named_by_their_writers_and_sets_by_their_operations() {
        let mut writer = VersionOrderWriter::of_rows(Vec::new(), "t", "id");
        for writer_of_row in [3, 5] {
            writer.version(7, writer_of_row).unwrap();
        }
        writer.snapshot(5, 1, Stamp { physical: 4, logical: 0 }).unwrap();
        writer.versions(6, 0, &[("p", 1, 5), ("p", 2, 3)]).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                r#"{"txn":5,"op":1,"snapshot":4}"#,
                r#"{"txn":6,"op":0,"versions":[[{"table":"p","row":{"id":1}},5],[{"table":"p","row":{"id":2}},3]]}"#,
                r#"{"key":{"table":"t","row":{"id":7}},"writers":[3,5]}"#,
            ]
        );
    }
}
