//! What was found, per directory of the corpus.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use isolario::model::History;

use crate::conversions;
use crate::verdicts::Verdicts;

/// What came of one file.
#[derive(Default)]
pub struct FileResult {
    pub txns: u64,
    pub ops: u64,
    pub verdicts: Verdicts,
    pub time: Duration,
    /// Everything that is not as it should be.
    pub faults: Vec<String>,
}

impl FileResult {
    /// Notes the size of a history and what its conversion does to it.
    pub fn take(&mut self, history: &History) {
        self.txns = history.txn_count() as u64;
        self.ops = history.op_count() as u64;
        self.faults.extend(conversions::faults(history));
    }
}

#[derive(Default)]
struct Line {
    files: u64,
    txns: u64,
    ops: u64,
    verdicts: Verdicts,
    time: Duration,
    faulty: u64,
}

impl Line {
    fn add(&mut self, result: &FileResult) {
        self.files += 1;
        self.txns += result.txns;
        self.ops += result.ops;
        self.verdicts.add(&result.verdicts);
        self.time += result.time;
        self.faulty += u64::from(!result.faults.is_empty());
    }
}

/// One line per directory, and one for all.
#[derive(Default)]
pub struct Summary {
    lines: BTreeMap<String, Line>,
    all: Line,
}

impl Summary {
    pub fn add(&mut self, group: &str, result: &FileResult) {
        self.lines.entry(group.to_owned()).or_default().add(result);
        self.all.add(result);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<42}{:>6}{:>9}{:>10}{:>7}{:>7}{:>7}{:>7}{:>7}{:>8}{:>8}{:>8}{:>8}",
            "directory",
            "files",
            "txns",
            "ops",
            "rc ok",
            "ra ok",
            "cc ok",
            "si ok",
            "ser ok",
            "n/a",
            "proofs",
            "faulty",
            "seconds"
        )?;
        let lines = self.lines.iter().map(|(group, line)| (group.as_str(), line));
        for (group, line) in lines.chain([("all", &self.all)]) {
            let [rc, ra, cc, si, ser] = line.verdicts.agreed;
            let Verdicts { not_applicable, verified, .. } = line.verdicts;
            writeln!(
                f,
                "{group:<42}{:>6}{:>9}{:>10}{rc:>7}{ra:>7}{cc:>7}{si:>7}{ser:>7}{not_applicable:>8}{verified:>8}{:>8}{:>8.2}",
                line.files,
                line.txns,
                line.ops,
                line.faulty,
                line.time.as_secs_f64()
            )?;
        }
        Ok(())
    }
}
