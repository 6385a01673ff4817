//! A relational run on its way: round after round, and then what was found, simplified.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::driver::Control;
use isolario_check::{CheckOptions, Checker};
use isolario_db::DbError;
use isolario_model::{Anomaly, History, Level, LevelResult, Outcome as TxnOutcome, StopReason};
use isolario_report::{Report, deciding};
use isolario_sql::{Reading, Round, Schema, Script, history, old_versions};

use super::catalogue::Catalogue;
use super::certified::ByPredicate;
use super::findings::{self, Finding, FindingKind, level_of_name, pattern};
use super::folder::{self, Detail};
use super::models::Models;
use super::pipeline::{Driven, Rounds};
use super::serial::{self, Difference, Serially};
use super::settings::Settings;
use super::site::Site;
use super::trace::Trace;
use super::{Figures, Observer, Outcome};
use crate::run::directory::Directory;
use crate::run::examine::{Examination, Judgement, examine};
use crate::run::{Handle, RunError};

/// So many rounds of each kind of finding leave their history.
const HISTORIES: usize = 5;

/// A round that was driven and checked.
pub(super) struct Examined {
    pub(super) number: u64,
    pub(super) isolation: String,
    pub(super) schema: Schema,
    pub(super) round: Round,
    /// Why there is nothing in it, if its schema was refused.
    refused: Option<DbError>,
    pub(super) history: History,
    /// Against what it had to satisfy.
    pub(super) examination: Examination,
    /// Against Adya's level of the same name.
    pub(super) beside: LevelResult,
    /// With its dependencies by predicate, where they are known.
    pub(super) by_predicate: Option<ByPredicate>,
    /// Against its transactions one after the other, if that was tried.
    serially: Option<Serially>,
}

impl Examined {
    fn difference(&self) -> Option<&Difference> {
        match &self.serially {
            Some(Serially::Different(difference)) => Some(difference),
            _ => None,
        }
    }

    /// What it means for whoever asked. Wrong answers break any promise.
    fn judgement(&self) -> Judgement {
        let is_broken = self.by_predicate.as_ref().is_some_and(ByPredicate::is_broken);
        match self.difference().is_some() || is_broken {
            true => Judgement::Violated,
            false => self.examination.judgement(),
        }
    }
}

/// A run on its way.
pub(super) struct Course<'s> {
    settings: &'s Settings,
    models: &'s Models,
    site: &'s Site<'s>,
    directory: &'s Directory,
    begun: Instant,
    /// How long the rounds took.
    elapsed: Duration,
    figures: Figures,
    rounds: Vec<(String, u64, bool)>,
    /// What was found, each with its round as a script.
    found: Vec<(Finding, Rc<Script>)>,
    /// Rounds whose reports are drawn when all are over.
    reported: Vec<Examined>,
    catalogue: Catalogue<'s>,
    errors: BTreeMap<String, (u64, String)>,
    refusals: BTreeMap<String, u64>,
    asked: BTreeMap<String, String>,
    judgement: Judgement,
    stopped: StopReason,
    unwritten: Vec<RunError>,
}

impl<'s> Course<'s> {
    pub(super) fn new(
        settings: &'s Settings,
        models: &'s Models,
        site: &'s Site<'s>,
        directory: &'s Directory,
    ) -> Course<'s> {
        Course {
            settings,
            models,
            site,
            directory,
            begun: Instant::now(),
            elapsed: Duration::ZERO,
            figures: Figures::default(),
            rounds: Vec::new(),
            found: Vec::new(),
            reported: Vec::new(),
            catalogue: Catalogue::new(site, directory, folder::record(settings, site)),
            errors: BTreeMap::new(),
            refusals: BTreeMap::new(),
            asked: BTreeMap::new(),
            judgement: Judgement::NothingToCheck,
            stopped: StopReason::Done,
            unwritten: Vec::new(),
        }
    }

    pub(super) fn go_through(
        &mut self,
        handle: &Handle,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let Some(control) = handle.begin_driving() else { return Err(RunError::Interrupted) };
        let rounds = Rounds::new(self.settings, self.models, self.site, &control, self.begun);
        let options = CheckOptions::default().with_timeout(self.settings.check_timeout);
        rounds.examine_each(&mut |driven| {
            let examined = self.examine(driven, &options, &control)?;
            let is_broken = examined.judgement() == Judgement::Violated;
            self.take(examined);
            observer.round(&self.figures);
            if is_broken && self.settings.stop_on_violation {
                self.stopped = StopReason::Violation;
                return Ok(false);
            }
            Ok(true)
        })?;
        if control.is_stopped() && self.stopped == StopReason::Done {
            self.stopped = StopReason::Interrupted;
        }
        Ok(())
    }

    /// Draws the reports, and looks for the smallest scripts that show what was found.
    pub(super) fn tell(
        &mut self,
        handle: &Handle,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.elapsed = self.begun.elapsed();
        for examined in std::mem::take(&mut self.reported) {
            self.unwritten.extend(folder::write_report(self.directory, &examined).err());
        }
        let Some(budget) = self.settings.simplify else { return Ok(()) };
        let url = self.settings.urls.first().cloned();
        let (duration, grace) = (self.settings.duration, self.settings.grace);
        let deadline = duration.zip(grace).map(|(duration, grace)| self.begun + duration + grace);
        let simplified = (self.catalogue.add_all(&self.found, budget, deadline, handle, observer))
            .map_err(|error| RunError::Database { url, error })?;
        self.figures.not_simplified = (self.found.len() - simplified) as u64;
        Ok(())
    }

    /// Checks a round, and drops its schema.
    fn examine(
        &self,
        driven: Driven<'_>,
        options: &CheckOptions,
        control: &Control,
    ) -> Result<Examined, RunError> {
        let Driven { number, stage, schema, round, refused } = driven;
        let isolation = stage.isolation().to_owned();
        let database =
            |error| RunError::Database { url: self.settings.urls.first().cloned(), error };
        let recording = |error| RunError::Recording { path: self.directory.history(), error };
        let reading = Reading::of(&self.site.product, &isolation);
        let history = history(&round, reading).map_err(recording)?;
        let examination = examine(&history, &self.settings.ask, &stage.claim(), options);
        let beside = Checker::new(&history, options.clone()).check(level_of_name(&isolation));
        let by_predicate = ByPredicate::of(self.site, &stage, &isolation, &schema, &round, options)
            .map_err(recording)?;
        let is_compared = self.site.is_compared(&isolation)
            && self.settings.instrumented
            && !self.settings.keep
            && beside.verdict.is_satisfied();
        let begun = Instant::now();
        let stop = || control.is_stopped() || begun.elapsed() >= self.settings.check_timeout;
        let serially = match is_compared {
            true => {
                Some(serial::compare(self.site, &stage, &schema, &round, &stop).map_err(database)?)
            }
            false => None,
        };
        if !self.settings.keep {
            stage.clear().map_err(database)?;
        }
        Ok(Examined {
            number,
            isolation,
            schema,
            round,
            refused,
            history,
            examination,
            beside,
            by_predicate,
            serially,
        })
    }

    /// Counts a round in, and writes it down if something was found.
    fn take(&mut self, examined: Examined) {
        let before = self.figures;
        self.count(&examined);
        let judgement = examined.judgement();
        let is_broken = judgement == Judgement::Violated;
        self.figures.broken += u64::from(is_broken);
        let committed = self.figures.committed - before.committed;
        self.rounds.push((examined.isolation.clone(), committed, is_broken));
        self.judgement = worse(self.judgement, judgement);
        let levels = asked_levels(&examined.examination);
        self.asked.entry(examined.isolation.clone()).or_insert(levels);
        let script = Rc::new(Script::of(&examined.round, &examined.schema));
        let found = self.note_findings(&examined, &script, is_broken);
        if is_broken || found > 0 {
            let (directory, product) = (self.directory, &self.site.product);
            let breaks_claim = is_broken && !examined.examination.weakest_only;
            let earlier = self.least_seen(found);
            let detail = match earlier {
                0 => Detail::Report,
                // A claim may say more than the level of the setting's name.
                _ if breaks_claim && found == 0 => Detail::Report,
                _ if breaks_claim || earlier < HISTORIES => Detail::History,
                _ => Detail::Statements,
            };
            self.unwritten.extend(folder::write(directory, &examined, &script, product, detail));
            if detail == Detail::Report {
                self.reported.push(examined);
            }
        }
    }

    /// Notes what a round found, each bug once, and tells how many there are.
    fn note_findings(
        &mut self,
        examined: &Examined,
        script: &Rc<Script>,
        breaks_claim: bool,
    ) -> usize {
        let Examined { history, round, number, isolation, beside, .. } = examined;
        let bugs = Report::new("", history, std::slice::from_ref(beside)).found().findings;
        let of = |anomaly: &Anomaly, history: &History| {
            (FindingKind::Anomaly(anomaly.kind), Trace::of(anomaly, history, round))
        };
        let mut found: Vec<(FindingKind, Trace)> =
            bugs.iter().map(|bug| of(bug.anomaly, history)).collect();
        if let Some(known) = &examined.by_predicate {
            found.extend(known.anomalies().map(|anomaly| of(anomaly, &known.history)));
        }
        let reading = Reading::of(&self.site.product, isolation);
        let old = old_versions(round, reading).into_iter();
        found.extend(old.map(|old| (FindingKind::OldVersion, Trace::of_old_version(old, round))));
        self.figures.anomalies += found.len() as u64;
        if let Some(difference) = examined.difference() {
            let txns = difference.txn.into_iter().collect();
            found.push((FindingKind::WrongResult, Trace { txns, ..Trace::default() }));
        }
        let count = found.len();
        for (kind, Trace { txns, statements, before }) in found {
            let finding = Finding {
                round: *number,
                isolation: isolation.clone(),
                kind,
                pattern: pattern(round, &txns),
                txns,
                statements,
                before,
                breaks_claim,
            };
            self.found.push((finding, Rc::clone(script)));
        }
        count
    }

    /// How many findings like it there were before, for the rarest of the last ones.
    fn least_seen(&self, count: usize) -> usize {
        let (earlier, last) = self.found.split_at(self.found.len() - count);
        let like = |finding: &Finding| earlier.iter().filter(|(f, _)| f.is_like(finding)).count();
        last.iter().map(|(finding, _)| like(finding)).min().unwrap_or(usize::MAX)
    }

    fn count(&mut self, examined: &Examined) {
        self.figures.rounds += 1;
        if let Some(DbError { code: Some(code), message, .. }) = &examined.refused {
            self.errors.entry(code.clone()).or_insert_with(|| (0, message.clone())).0 += 1;
        }
        self.figures.certified += u64::from(examined.by_predicate.is_some());
        match examined.serially {
            Some(Serially::Same | Serially::Different(_)) => self.figures.compared += 1,
            Some(Serially::Open) => self.figures.not_compared += 1,
            None => {}
        }
        for txn in &examined.round.transactions {
            if !txn.is_final {
                match txn.outcome {
                    TxnOutcome::Committed => self.figures.committed += 1,
                    TxnOutcome::Aborted => self.figures.aborted += 1,
                    TxnOutcome::Unknown => self.figures.unknown += 1,
                }
            }
            self.figures.statements += txn.statements.len() as u64;
            for statement in &txn.statements {
                self.figures.seen += (statement.reads.len() + statement.deleted.len()) as u64;
                if let Some(refusal) = &statement.refusal {
                    self.figures.uninstrumented += 1;
                    let kind = statement.sql.split_whitespace().next().unwrap_or_default();
                    let why = format!("{}: {refusal}", kind.to_uppercase());
                    *self.refusals.entry(why).or_default() += 1;
                }
                self.figures.partial += u64::from(statement.is_partial);
                if let Some(failure) = &statement.failure {
                    self.figures.refused += 1;
                    let code = failure.code.clone().unwrap_or_else(|| "other".to_owned());
                    let count =
                        self.errors.entry(code).or_insert_with(|| (0, failure.message.clone()));
                    count.0 += 1;
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Outcome {
        let findings: Vec<Finding> = self.found.into_iter().map(|(finding, _)| finding).collect();
        let simplified = self.catalogue.entries;
        let mut table = findings::table(&self.rounds, &findings);
        findings::count_simplified(&mut table, &simplified);
        self.unwritten.extend(self.catalogue.unwritten);
        let mut outcome = Outcome {
            database: self.site.name.clone(),
            version: self.site.version.clone(),
            directory: self.directory.path().to_owned(),
            figures: self.figures,
            elapsed: self.elapsed,
            simplified_in: self.begun.elapsed().saturating_sub(self.elapsed),
            stopped: self.stopped,
            findings,
            simplified,
            table,
            errors: self.errors,
            refusals: self.refusals,
            asked: self.asked,
            judgement: self.judgement,
            unwritten: self.unwritten,
            replay: self.catalogue.run.replay.clone(),
        };
        let written = folder::write_record(self.directory, self.catalogue.run, &outcome);
        outcome.unwritten.extend(written.err());
        outcome
    }
}

/// What outweighs of two judgements. A round without anything to check says nothing.
fn worse(first: Judgement, second: Judgement) -> Judgement {
    match (first, second) {
        (Judgement::NothingToCheck, other) | (other, Judgement::NothingToCheck) => other,
        (Judgement::Violated, _) | (_, Judgement::Violated) => Judgement::Violated,
        (first, second) => first.max(second),
    }
}

/// The levels that a round had to satisfy, by name.
fn asked_levels(examination: &Examination) -> String {
    if examination.weakest_only {
        let weakest = deciding(&examination.results).map_or("", |result| result.level.name());
        return format!("nothing is claimed; weakest level: {weakest}");
    }
    let levels = examination.results.iter().map(|result| result.level);
    let asked =
        levels.filter(|level| examination.named.is_empty() || examination.named.contains(level));
    let mut names: Vec<&str> = asked.map(Level::name).collect();
    names.extend(examination.missing.iter().map(|level| level.name()));
    names.dedup();
    names.join(", ")
}
