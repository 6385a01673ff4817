//! What is left of findings when they are simplified: which of them are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use isolario_db::DbError;
use isolario_model::RunRecord;
use isolario_sql::Script;

use super::Observer;
use super::directory::Directory;
use super::findings::{Finding, FindingKind};
use super::script_file;
use super::simplify::{Simplified, Wanted, parts_of, simplify};
use super::site::Site;
use crate::run::{Handle, RunError};

/// How many times as long the first script of a kind may take: without any, nobody sees what was found.
const FIRST: u32 = 3;

/// Simplified findings, each that differs from the others once.
pub(super) struct Catalogue<'s> {
    site: &'s Site<'s>,
    directory: &'s Directory,
    /// The run in which they were found.
    pub(super) run: RunRecord,
    pub(super) entries: Vec<Simplified>,
    /// How long has been spent on each kind at each isolation level.
    spent: BTreeMap<(FindingKind, String), Duration>,
    pub(super) unwritten: Vec<RunError>,
}

impl<'s> Catalogue<'s> {
    pub(super) fn new(
        site: &'s Site<'s>,
        directory: &'s Directory,
        run: RunRecord,
    ) -> Catalogue<'s> {
        let (entries, unwritten) = (Vec::new(), Vec::new());
        Catalogue { site, directory, run, entries, spent: BTreeMap::new(), unwritten }
    }

    /// Simplifies findings, each with its round as a script, and returns how many there was time for. All findings
    /// of a kind at an isolation level share the budget, and nothing is begun after the deadline. The first of each
    /// kind comes first, and parts of rounds come before whole ones, which take long.
    pub(super) fn add_all(
        &mut self,
        found: &[(Finding, Rc<Script>)],
        budget: Duration,
        deadline: Option<Instant>,
        handle: &Handle,
        observer: &mut dyn Observer,
    ) -> Result<usize, DbError> {
        let rank =
            |at: usize| found[..at].iter().filter(|(other, _)| other.is_like(&found[at].0)).count();
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by_cached_key(|at| rank(*at));
        let mut looked_at = BTreeSet::new();
        for in_whole in [false, true] {
            let mut left = Vec::new();
            for at in order {
                let (finding, round) = &found[at];
                let is_first = !self.entries.iter().any(|entry| entry.is_of(finding));
                let budget = budget * if is_first { FIRST } else { 1 };
                let of_kind = budget.saturating_sub(*self.spent(finding));
                let in_all = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                let time = in_all.map_or(of_kind, |in_all| in_all.min(of_kind));
                if time.is_zero() || handle.is_interrupted() {
                    continue;
                }
                observer.simplifying(finding);
                let scripts = match in_whole {
                    true => vec![(**round).clone()],
                    false => parts_of(round, finding),
                };
                looked_at.insert(at);
                if !self.add(finding, &scripts, time, handle)? {
                    left.push(at);
                }
            }
            order = left;
        }
        Ok(looked_at.len())
    }

    /// Simplifies a finding, and tells whether one of the scripts shows it.
    fn add(
        &mut self,
        finding: &Finding,
        scripts: &[Script],
        time: Duration,
        handle: &Handle,
    ) -> Result<bool, DbError> {
        let begun = Instant::now();
        let wanted =
            Wanted { kind: finding.kind, isolation: &finding.isolation, round: finding.round };
        let found = simplify(self.site, &wanted, scripts, time, handle)?;
        *self.spent(finding) += begun.elapsed();
        Ok(found.map(|found| self.enter(found)).is_some())
    }

    /// How long has been spent on findings of this kind at its isolation level.
    fn spent(&mut self, finding: &Finding) -> &mut Duration {
        self.spent.entry((finding.kind, finding.isolation.clone())).or_default()
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
        let written = script_file::write(self.directory, &found, &self.site.product, &self.run);
        self.unwritten.extend(written);
        self.entries.push(found);
    }
}
