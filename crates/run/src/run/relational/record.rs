//! What stands in `findings.json`: what a run came to, for programs, and for a later
//! `isolario shrink`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use isolario_sql::Element;
use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::findings::{Finding, FindingKind, Row};
use super::outcome::Figures;
use super::simplify::Simplified;

/// The table of findings, and what else a run came to.
pub(super) const FINDINGS: &str = "findings.json";

const SCHEMA: &str = "isolario.relational/1";

#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    schema: String,
    pub(super) database: String,
    pub(super) version: String,
    pub(super) figures: Figures,
    pub(super) table: BTreeMap<String, Row>,
    pub(super) asked: BTreeMap<String, String>,
    pub(super) errors: BTreeMap<String, (u64, String)>,
    #[serde(default)]
    pub(super) refusals: BTreeMap<String, u64>,
    findings: Vec<Told>,
    simplified: Vec<ToldScript>,
}

/// A finding.
#[derive(Serialize, Deserialize)]
struct Told {
    round: u64,
    isolation: String,
    anomaly: String,
    transactions: Vec<u32>,
    /// Each as the number of its transaction and its own, `7.3`.
    #[serde(default)]
    statements: Vec<String>,
    #[serde(default)]
    before: Vec<String>,
    pattern: String,
    breaks_claim: bool,
}

/// A script that shows some of them.
#[derive(Serialize, Deserialize)]
struct ToldScript {
    file: String,
    isolation: String,
    anomaly: String,
    round: u64,
    findings: u64,
    transactions: usize,
    statements: usize,
    pattern: String,
    cause: Cause,
    tried: u32,
    shown: (u32, u32),
    cut_short: bool,
}

impl Record {
    /// A record without any finding yet.
    pub(super) fn new(database: &str, version: &str, figures: Figures) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            database: database.to_owned(),
            version: version.to_owned(),
            figures,
            table: BTreeMap::new(),
            asked: BTreeMap::new(),
            errors: BTreeMap::new(),
            refusals: BTreeMap::new(),
            findings: Vec::new(),
            simplified: Vec::new(),
        }
    }

    pub(super) fn tell_findings(&mut self, findings: &[Finding]) {
        let names = |elements: &[Element]| elements.iter().map(ToString::to_string).collect();
        let told = |finding: &Finding| Told {
            round: finding.round,
            isolation: finding.isolation.clone(),
            anomaly: finding.kind.name().to_owned(),
            transactions: finding.txns.clone(),
            statements: names(&finding.statements),
            before: names(&finding.before),
            pattern: finding.pattern.clone(),
            breaks_claim: finding.breaks_claim,
        };
        self.findings = findings.iter().map(told).collect();
    }

    pub(super) fn tell_simplified(&mut self, simplified: &[Simplified]) {
        let told = |found: &Simplified| {
            let (transactions, statements) = found.size();
            ToldScript {
                file: format!("{}.sql", found.name),
                isolation: found.isolation.clone(),
                anomaly: found.kind.name().to_owned(),
                round: found.round,
                findings: found.findings,
                transactions,
                statements,
                pattern: found.pattern.clone(),
                cause: found.cause,
                tried: found.tried,
                shown: found.shown,
                cut_short: found.is_cut_short,
            }
        };
        self.simplified = simplified.iter().map(told).collect();
    }

    /// The findings, as far as their names are known.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let elements =
            |names: &[String]| names.iter().filter_map(|name| name.parse().ok()).collect();
        let finding = |told: &Told| {
            Some(Finding {
                round: told.round,
                isolation: told.isolation.clone(),
                kind: FindingKind::find(&told.anomaly)?,
                txns: told.transactions.clone(),
                statements: elements(&told.statements),
                before: elements(&told.before),
                pattern: told.pattern.clone(),
                breaks_claim: told.breaks_claim,
            })
        };
        self.findings.iter().filter_map(finding).collect()
    }

    /// Writes it on one line.
    pub(super) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// The record in the directory of a run.
    pub(super) fn read(directory: &Path) -> io::Result<Record> {
        let file = File::open(directory.join(FINDINGS))?;
        let record: Record = serde_json::from_reader(BufReader::new(file))?;
        match record.schema == SCHEMA {
            true => Ok(record),
            false => Err(io::Error::other(format!("it is {}, and not {SCHEMA}", record.schema))),
        }
    }
}
