//! Orders of versions: what a database or a user says, beside a history, about the order of writes.
//!
//! A JSON object per line, with a key and its values, or the names of their writers, earlier ones
//! first: `{"key": "x", "values": [1, 2]}` or `{"key": "x", "writers": ["T1", "T2"]}`. Neighbours
//! mean *before*, not *immediately before*, and any version may be missing. Keys, values and names
//! are spelled as in the JSON lines format of histories.

mod names;
mod read;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

pub use read::{Statements, Unknown, read};

/// Versions of a key that stand on one line. Memory grows with keys, not with versions.
const PER_LINE: usize = 64;

/// Writes the order of versions while they come into being, those of all keys interleaved.
///
/// A key gets as many lines as it takes. Each begins with the last version of the one before, so
/// that the lines of a key state one order.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    lines: FxHashMap<u64, Vec<i64>>,
}

impl<W: Write> Writer<W> {
    /// A writer to a file.
    pub fn new(out: W) -> Self {
        Writer { out, lines: FxHashMap::default() }
    }

    /// Adds the next version of a key.
    pub fn version(&mut self, key: u64, value: i64) -> io::Result<()> {
        let versions = self.lines.entry(key).or_default();
        versions.push(value);
        if versions.len() == PER_LINE {
            write_line(&mut self.out, key, versions)?;
            versions.clear();
            versions.push(value);
        }
        Ok(())
    }

    /// Writes what is left, by key, and gives back the file. A line of one version would state
    /// nothing.
    pub fn finish(mut self) -> io::Result<W> {
        let mut left: Vec<(u64, Vec<i64>)> = self.lines.into_iter().collect();
        left.sort_unstable();
        for (key, versions) in left.iter().filter(|(_, versions)| versions.len() > 1) {
            write_line(&mut self.out, *key, versions)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn write_line(out: &mut impl Write, key: u64, versions: &[i64]) -> io::Result<()> {
    write!(out, "{{\"key\":{key},\"values\":[")?;
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
        let mut writer = Writer::new(Vec::new());
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
}
