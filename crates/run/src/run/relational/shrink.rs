//! The findings of a run that is over, simplified by running them again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use isolario_db::DbUrl;
use isolario_sql::Script;

use super::catalogue::Catalogue;
use super::findings::{Finding, FindingKind, Row, count_simplified};
use super::folder::{self, STATEMENTS, of_round};
use super::record::{FINDINGS, Record};
use super::settings::Settings;
use super::simplify::Simplified;
use super::site::Site;
use super::{Observer, directory::Directory};
use crate::run::{Handle, RunError};

/// What is to be simplified. Fields are set directly.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShrinkRun {
    /// The directory of the run.
    pub directory: PathBuf,
    /// The database, by its nodes.
    pub urls: Vec<DbUrl>,
    /// What to simplify; everything without.
    pub kind: Option<FindingKind>,
    /// How long it may take for each kind at each isolation level.
    pub budget: Duration,
}

impl ShrinkRun {
    /// Everything that a run has found, for as long as it takes.
    pub fn new(directory: PathBuf, urls: Vec<DbUrl>) -> ShrinkRun {
        ShrinkRun { directory, urls, kind: None, budget: super::LONG }
    }
}

/// What is left of the findings of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShrunkRun {
    /// The product and its version, as it is now.
    pub version: String,
    /// How many findings were looked at.
    pub findings: usize,
    /// How many of them could not be brought about again.
    pub gone: usize,
    /// The smallest scripts, each that differs once.
    pub simplified: Vec<Simplified>,
    /// The table of findings.
    pub table: BTreeMap<String, Row>,
    /// Files that could not be written.
    pub unwritten: Vec<RunError>,
}

/// Simplifies the findings of a run by running them again. The scripts go to the run's directory, in place
/// of earlier ones.
pub fn shrink_run(
    what: &ShrinkRun,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<ShrunkRun, RunError> {
    let unread = |error| RunError::Read { path: what.directory.join(FINDINGS), error };
    let mut record = Record::read(&what.directory).map_err(unread)?;
    let settings = Settings::new(what.urls.clone());
    let site = Site::open(&settings)?;
    let directory = Directory::existing(what.directory.clone());
    let run = directory.record().unwrap_or_else(|| folder::record(&settings, &site));
    let mut catalogue = Catalogue::new(&site, &directory, run);
    let wanted = |finding: &Finding| what.kind.is_none_or(|kind| finding.kind == kind);
    let findings: Vec<Finding> = record.findings().into_iter().filter(wanted).collect();
    let mut found = Vec::new();
    for finding in findings {
        let path = what.directory.join(of_round(finding.round)).join(STATEMENTS);
        let text = fs::read_to_string(&path);
        let script = text.and_then(|text| {
            Script::read(&text, &site.product).map_err(|error| io::Error::other(error.to_string()))
        });
        let script = script.map_err(|error| RunError::Read { path, error })?;
        found.push((finding, Rc::new(script)));
    }
    let url = what.urls.first().cloned();
    let looked_at = (catalogue.add_all(&found, what.budget, None, handle, observer))
        .map_err(|error| RunError::Database { url, error })?;
    let Catalogue { entries: simplified, mut unwritten, .. } = catalogue;
    let shown: u64 = simplified.iter().map(|found| found.findings).sum();
    count_simplified(&mut record.table, &simplified);
    record.tell_simplified(&simplified);
    unwritten.extend(directory.write(FINDINGS, |out| record.write(out)).err());
    Ok(ShrunkRun {
        version: site.version.clone(),
        findings: looked_at,
        gone: looked_at.saturating_sub(usize::try_from(shown).unwrap_or(usize::MAX)),
        simplified,
        table: record.table,
        unwritten,
    })
}
