//! Relational testing: rounds of random SQL over random schemas, instrumented so that the rows that
//! statements touch tell their dependencies.
//!
//! [`run`] goes through rounds. Each has a fresh schema in a namespace of the run's own, some sessions
//! with random transactions, and a history, which is checked against what the database claims (or what
//! was asked for) and, beside that, against Adya's level of the same name. What was found is an
//! [`Outcome`], with a table by isolation level and kind of anomaly. Rounds in which something was found
//! leave a folder in the run directory.
//!
//! ```
//! use isolario::db::DbUrl;
//! use isolario::run::relational::{Settings, run};
//! use isolario::run::{Handle, Judgement};
//!
//! # #[cfg(feature = "sqlite")] {
//! # let dir = tempfile::tempdir()?;
//! let mut settings = Settings::new(vec![DbUrl::parse("sqlite:")?]);
//! settings.txns = Some(60);
//! # settings.out = Some(dir.path().join("run"));
//! let outcome = run(&settings, &Handle::new(), &mut ())?;
//! assert_eq!(outcome.judgement, Judgement::Satisfied);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod findings;
mod folder;
mod replay;
mod round;
mod settings;
mod simplify;
mod site;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use isolario_check::{Checker, Options};
use isolario_model::{AnomalyKind, History, Level, LevelResult, Outcome as TxnOutcome, StopReason};
use isolario_report::Report;
use isolario_sql::{Aux, Instrument, Planner, Product, Reading, Round, Schema, Script, history};
use isolario_workload::Rng;

pub use findings::{Count, Finding, Row, level_of_name};
pub use settings::Settings;
pub use simplify::Simplified;

use super::directory::{Directory, default_directory};
use super::examine::{Examination, Judgement, examine};
use super::{Handle, RunError, Stage};
use client::Shared;
use round::Drive;
use simplify::Wanted;
use site::Site;

/// Is told how a relational run goes.
pub trait Observer {
    /// The database was opened, and rounds are about to begin.
    fn opened(&mut self, version: &str, directory: &std::path::Path) {
        let _ = (version, directory);
    }

    /// A round is over, and this is how the run stands.
    fn round(&mut self, figures: &Figures) {
        let _ = figures;
    }

    /// The smallest script that shows a finding is about to be looked for.
    fn simplifying(&mut self, finding: &Finding) {
        let _ = finding;
    }
}

/// Nobody is told.
impl Observer for () {}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Rounds.
    pub rounds: u64,
    /// Transactions that committed, the last looks of sessions left aside.
    pub committed: u64,
    /// Transactions that aborted, by themselves or because of an error.
    pub aborted: u64,
    /// Transactions of unknown outcome.
    pub unknown: u64,
    /// Statements that were sent.
    pub statements: u64,
    /// Statements that the database refused.
    pub refused: u64,
    /// Statements that could not be instrumented, and were sent as they are.
    pub uninstrumented: u64,
    /// Statements that read rows which they do not show.
    pub partial: u64,
    /// Rows that statements showed.
    pub seen: u64,
    /// Anomalies that Adya's level of the setting's name forbids.
    pub anomalies: u64,
    /// Rounds that broke what they had to satisfy.
    pub broken: u64,
}

/// What a relational run found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the database among the claims.
    pub database: String,
    /// The product and its version.
    pub version: String,
    /// The run directory.
    pub directory: PathBuf,
    /// How much was done.
    pub figures: Figures,
    /// How long the rounds took, checks included.
    pub elapsed: Duration,
    /// How the run ended.
    pub stopped: StopReason,
    /// Everything that was found.
    pub findings: Vec<Finding>,
    /// Of the first of each kind at each isolation level, the smallest script that shows it.
    pub simplified: Vec<Simplified>,
    /// The same by isolation level and kind.
    pub table: BTreeMap<String, Row>,
    /// Errors of statements by code: how often, and the first message.
    pub errors: BTreeMap<String, (u64, String)>,
    /// What rounds had to satisfy, by isolation level.
    pub asked: BTreeMap<String, String>,
    /// What it means for whoever asked: the worst of all rounds.
    pub judgement: Judgement,
    /// Files that could not be written.
    pub unwritten: Vec<RunError>,
    /// The command that repeats the run.
    pub replay: String,
}

impl Outcome {
    /// The outcome as JSON, on one line: what stands in `findings.json`.
    pub fn json(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        folder::json(self, out)
    }
}

/// A round that was driven and checked.
pub(crate) struct Examined {
    pub(crate) number: u64,
    pub(crate) isolation: String,
    pub(crate) schema: Schema,
    pub(crate) round: Round,
    pub(crate) history: History,
    /// Against what it had to satisfy.
    pub(crate) examination: Examination,
    /// Against Adya's level of the same name.
    pub(crate) beside: LevelResult,
}

/// Replays a script on a fresh schema, statement by statement in its order, and tells what came back and
/// the history of it.
pub fn replay_script(settings: &Settings, script: &Script) -> Result<(Round, History), RunError> {
    let site = Site::open(settings)?;
    let failed = |error| RunError::Database { url: settings.urls.first().cloned(), error };
    let isolation = site.isolations.last().cloned().unwrap_or_default();
    let stage = site.at(&isolation).map_err(failed)?;
    let round = replay::replay(&site, &stage, script).map_err(failed)?;
    stage.clear(&script.schema).map_err(failed)?;
    let reading = Reading { without_locking_reads: site.product.has_current_reads(&isolation) };
    let history = history(&round, reading)
        .map_err(|error| RunError::Recording { path: PathBuf::new(), error })?;
    Ok((round, history))
}

/// As long as it takes.
const LONG: Duration = Duration::from_secs(86_400);

/// Looks for the smallest part of a script that shows an anomaly when it is replayed at the isolation
/// level of the settings; none if the script itself does not.
pub fn simplify_script(
    settings: &Settings,
    script: &Script,
    kind: AnomalyKind,
) -> Result<Option<Simplified>, RunError> {
    let site = Site::open(settings)?;
    let isolation = &site.isolations.last().cloned().unwrap_or_default();
    let wanted = Wanted { kind, isolation, round: 0 };
    let budget = settings.simplify.unwrap_or(LONG);
    simplify::simplify(&site, &wanted, std::slice::from_ref(script), budget)
        .map_err(|error| RunError::Database { url: settings.urls.first().cloned(), error })
}

/// Runs rounds until there are enough transactions, the time is up, or somebody stops it.
pub fn run(
    settings: &Settings,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    handle.enter(Stage::Opening);
    let outcome = Site::open(settings).and_then(|site| {
        if handle.is_interrupted() {
            return Err(RunError::Interrupted);
        }
        let path = settings.out.clone().unwrap_or_else(|| default_directory(settings.seed));
        let directory = Directory::create(path)?;
        observer.opened(&site.version, directory.path());
        let mut course = Course::new(settings, &site, &directory);
        course.go_through(handle, observer)?;
        course.simplify(handle, observer)?;
        Ok(course.finish())
    });
    handle.enter(Stage::Idle);
    outcome
}

/// A run on its way.
struct Course<'s> {
    settings: &'s Settings,
    site: &'s Site<'s>,
    directory: &'s Directory,
    begun: Instant,
    figures: Figures,
    rounds: Vec<(String, u64, bool)>,
    findings: Vec<Finding>,
    /// The first finding of each kind at each isolation level, with its round.
    firsts: Vec<(Finding, Rc<Examined>)>,
    simplified: Vec<Simplified>,
    errors: BTreeMap<String, (u64, String)>,
    asked: BTreeMap<String, String>,
    judgement: Judgement,
    stopped: StopReason,
    unwritten: Vec<RunError>,
}

impl<'s> Course<'s> {
    fn new(settings: &'s Settings, site: &'s Site<'s>, directory: &'s Directory) -> Course<'s> {
        Course {
            settings,
            site,
            directory,
            begun: Instant::now(),
            figures: Figures::default(),
            rounds: Vec::new(),
            findings: Vec::new(),
            firsts: Vec::new(),
            simplified: Vec::new(),
            errors: BTreeMap::new(),
            asked: BTreeMap::new(),
            judgement: Judgement::NothingToCheck,
            stopped: StopReason::Done,
            unwritten: Vec::new(),
        }
    }

    fn is_time_up(&self) -> bool {
        self.settings.duration.is_some_and(|duration| self.begun.elapsed() >= duration)
    }

    /// Without any limit, one round is enough.
    fn is_done(&self) -> bool {
        let enough = match (self.settings.txns, self.settings.duration) {
            (Some(txns), _) => self.figures.committed >= txns,
            (None, Some(_)) => false,
            (None, None) => self.figures.rounds > 0,
        };
        // A database that commits nothing would go on for ever.
        let is_stuck = self.settings.duration.is_none()
            && self.figures.rounds >= 50
            && self.figures.committed == 0;
        enough || is_stuck || self.is_time_up()
    }

    fn go_through(&mut self, handle: &Handle, observer: &mut dyn Observer) -> Result<(), RunError> {
        let Some(control) = handle.begin_driving() else { return Err(RunError::Interrupted) };
        let options = Options::default().with_timeout(self.settings.check_timeout);
        for number in 0.. {
            if self.is_done() {
                break;
            }
            let deadline = self.settings.duration.map(|duration| self.begun + duration);
            let stop = || {
                control.is_stopped() || deadline.is_some_and(|deadline| Instant::now() >= deadline)
            };
            let examined = Rc::new(self.round(number, &stop, &options)?);
            self.take(&examined);
            observer.round(&self.figures);
            if control.is_stopped() {
                self.stopped = StopReason::Interrupted;
                break;
            }
            let is_broken = examined.examination.judgement() == Judgement::Violated;
            if is_broken && self.settings.stop_on_violation {
                self.stopped = StopReason::Violation;
                break;
            }
        }
        Ok(())
    }

    /// Looks for the smallest script of each kind of anomaly.
    fn simplify(&mut self, handle: &Handle, observer: &mut dyn Observer) -> Result<(), RunError> {
        let Some(budget) = self.settings.simplify else { return Ok(()) };
        for (finding, examined) in std::mem::take(&mut self.firsts) {
            if handle.is_interrupted() {
                break;
            }
            observer.simplifying(&finding);
            let (kind, isolation, round) = (finding.kind, &*finding.isolation, finding.round);
            let wanted = Wanted { kind, isolation, round };
            let scripts = simplify::scripts_of(&examined, &finding);
            let found = simplify::simplify(self.site, &wanted, &scripts, budget);
            let url = self.settings.urls.first().cloned();
            let found = found.map_err(|error| RunError::Database { url, error })?;
            if let Some(found) = found {
                let product = &self.site.product;
                let version = &self.site.version;
                self.unwritten.extend(folder::write_script(
                    self.directory,
                    &found,
                    product,
                    version,
                ));
                self.simplified.push(found);
            }
        }
        Ok(())
    }

    /// Drives and checks a round. Which isolation level and how many sessions it has follows from the
    /// seed.
    fn round(
        &self,
        number: u64,
        stop: &(dyn Fn() -> bool + Sync),
        options: &Options,
    ) -> Result<Examined, RunError> {
        let Settings { seed, bounds, style, .. } = self.settings;
        let mut rng = Rng::derive(*seed, &[number, 2]);
        let isolations = &self.site.isolations;
        let isolation = isolations[rng.below(isolations.len() as u64) as usize].clone();
        let sessions = self.settings.sessions.unwrap_or(2 + rng.below(4) as u32);
        let schema = Schema::random(*seed, number, bounds);
        let aux = Aux::avoiding(&schema);
        let failed = |error| RunError::Database { url: self.settings.urls.first().cloned(), error };
        let stage = self.site.at(&isolation).map_err(failed)?;
        let used = self.settings.instrumented.then_some(&aux);
        stage.make(&schema, used).map_err(failed)?;
        let product: &Product = &self.site.product;
        let instrument = used.map(|aux| Instrument { product, schema: &schema, aux });
        let shared = Shared::new(product, instrument);
        let planner = Planner { schema: &schema, product, style, seed: *seed, round: number };
        let txns = self.settings.round;
        let drive = Drive { stage: &stage, shared: &shared, planner, sessions, txns };
        let round = drive.round(stop).map_err(failed)?;
        if !self.settings.keep {
            stage.clear(&schema).map_err(failed)?;
        }
        let reading = Reading { without_locking_reads: product.has_current_reads(&isolation) };
        let history = history(&round, reading)
            .map_err(|error| RunError::Recording { path: self.directory.history(), error })?;
        let examination = examine(&history, &self.settings.ask, &stage.claim(), options);
        let beside = Checker::new(&history, options.clone()).check(level_of_name(&isolation));
        Ok(Examined { number, isolation, schema, round, history, examination, beside })
    }

    /// Counts a round in, and writes it down if something was found.
    fn take(&mut self, examined: &Rc<Examined>) {
        let before = self.figures;
        self.count(examined);
        let judgement = examined.examination.judgement();
        let is_broken = judgement == Judgement::Violated;
        self.figures.broken += u64::from(is_broken);
        let committed = self.figures.committed - before.committed;
        self.rounds.push((examined.isolation.clone(), committed, is_broken));
        self.judgement = worse(self.judgement, judgement);
        let levels = asked_levels(&examined.examination);
        self.asked.entry(examined.isolation.clone()).or_insert(levels);
        let found = self.note_findings(examined, is_broken);
        if is_broken || found > 0 && self.wants_folder(found) {
            self.unwritten.extend(folder::write(self.directory, examined, &self.site.product));
        }
    }

    /// Notes what a round found, each bug once, and tells how many there are.
    fn note_findings(&mut self, examined: &Rc<Examined>, is_broken: bool) -> usize {
        let Examined { history, round, number, isolation, beside, .. } = &**examined;
        let found = Report::new("", history, std::slice::from_ref(beside)).found().findings;
        self.figures.anomalies += found.len() as u64;
        for bug in &found {
            let mut finding = Finding::of(bug.anomaly, history, round, *number, isolation);
            finding.breaks_claim = is_broken;
            if !self.findings.iter().any(|other| other.is_like(&finding)) {
                self.firsts.push((finding.clone(), Rc::clone(examined)));
            }
            self.findings.push(finding);
        }
        found.len()
    }

    /// Whether the last findings are worth a folder: the first few of each kind are.
    fn wants_folder(&self, count: usize) -> bool {
        const EACH: usize = 5;
        let (earlier, last) = self.findings.split_at(self.findings.len() - count);
        last.iter()
            .any(|finding| earlier.iter().filter(|other| other.is_like(finding)).count() < EACH)
    }

    fn count(&mut self, examined: &Examined) {
        self.figures.rounds += 1;
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
                self.figures.uninstrumented += u64::from(statement.is_uninstrumented);
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

    fn finish(mut self) -> Outcome {
        let table = findings::table(&self.rounds, &self.findings);
        let mut outcome = Outcome {
            database: self.site.name.clone(),
            version: self.site.version.clone(),
            directory: self.directory.path().to_owned(),
            figures: self.figures,
            elapsed: self.begun.elapsed(),
            stopped: self.stopped,
            findings: std::mem::take(&mut self.findings),
            simplified: std::mem::take(&mut self.simplified),
            table,
            errors: std::mem::take(&mut self.errors),
            asked: std::mem::take(&mut self.asked),
            judgement: self.judgement,
            unwritten: std::mem::take(&mut self.unwritten),
            replay: folder::command(self.settings),
        };
        let written = folder::write_record(self.directory, self.settings, &outcome);
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
        return "nothing claimed".to_owned();
    }
    let levels = examination.results.iter().map(|result| result.level);
    let asked =
        levels.filter(|level| examination.named.is_empty() || examination.named.contains(level));
    let mut names: Vec<&str> = asked.map(Level::name).collect();
    names.extend(examination.missing.iter().map(|level| level.name()));
    names.dedup();
    names.join(", ")
}
