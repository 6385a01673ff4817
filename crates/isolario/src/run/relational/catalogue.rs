//! What is left of findings when they are simplified: which of them are the same.

use std::time::{Duration, Instant};

use isolario_db::DbError;
use isolario_sql::Script;

use super::directory::Directory;
use super::findings::Finding;
use super::folder;
use super::simplify::{Simplified, Wanted, scripts_of, simplify};
use super::site::Site;
use crate::run::RunError;

/// Simplified findings, each that differs from the others once.
pub(super) struct Catalogue<'s> {
    site: &'s Site<'s>,
    directory: &'s Directory,
    pub(super) entries: Vec<Simplified>,
    /// How long has been spent on each kind at each isolation level, by its first finding.
    spent: Vec<(Finding, Duration)>,
    pub(super) unwritten: Vec<RunError>,
}

impl<'s> Catalogue<'s> {
    pub(super) fn new(site: &'s Site<'s>, directory: &'s Directory) -> Catalogue<'s> {
        let (entries, spent, unwritten) = (Vec::new(), Vec::new(), Vec::new());
        Catalogue { site, directory, entries, spent, unwritten }
    }

    /// Simplifies a finding, whose round this is as a script. All findings of a kind at an isolation
    /// level share the time; the first one gets what it needs of it. Tells whether there was time.
    pub(super) fn add(
        &mut self,
        finding: &Finding,
        round: &Script,
        budget: Duration,
    ) -> Result<bool, DbError> {
        let at = self.spent.iter().position(|(first, _)| first.is_like(finding));
        let at = at.unwrap_or_else(|| {
            self.spent.push((finding.clone(), Duration::ZERO));
            self.spent.len() - 1
        });
        let left = budget.saturating_sub(self.spent[at].1);
        if left.is_zero() {
            return Ok(false);
        }
        let begun = Instant::now();
        let wanted =
            Wanted { kind: finding.kind, isolation: &finding.isolation, round: finding.round };
        let found = simplify(self.site, &wanted, &scripts_of(round, finding), left)?;
        self.spent[at].1 += begun.elapsed();
        if let Some(found) = found {
            self.enter(found);
        }
        Ok(true)
    }

    fn enter(&mut self, mut found: Simplified) {
        let is_like = |other: &&mut Simplified| {
            other.kind == found.kind && other.isolation == found.isolation
        };
        let mut alike = self.entries.iter_mut().filter(is_like);
        if let Some(same) = alike.find(|other| other.pattern == found.pattern) {
            same.findings += 1;
            return;
        }
        let number = 1 + self.entries.iter_mut().filter(is_like).count();
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        found.name = format!("{}-{}{suffix}", found.isolation, found.kind);
        let (product, version) = (&self.site.product, &self.site.version);
        self.unwritten.extend(folder::write_script(self.directory, &found, product, version));
        self.entries.push(found);
    }
}
