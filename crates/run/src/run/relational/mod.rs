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
//! # let dir = tempfile::tempdir()?;
//! let mut settings = Settings::new(vec![DbUrl::parse("sqlite:")?]);
//! settings.txns = Some(60);
//! # settings.out = Some(dir.path().join("run"));
//! let outcome = run(&settings, &Handle::new(), &mut ())?;
//! assert_eq!(outcome.judgement, Judgement::Satisfied);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalogue;
mod cause;
mod certified;
mod client;
mod course;
mod findings;
mod folder;
mod models;
mod orders;
mod outcome;
mod pipeline;
mod record;
mod replay;
mod round;
mod script_file;
mod serial;
mod settings;
mod shrink;
mod simplify;
mod site;
mod trace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use isolario_model::History;
use isolario_sql::{Reading, Round, Script, history};

pub use cause::Cause;
pub use findings::{Count, Finding, FindingKind, Row, level_of_name};
pub use orders::{Answers, Orders};
pub use outcome::{Figures, Outcome};
pub use serial::Difference;
pub use settings::Settings;
pub use shrink::{ShrinkRun, ShrunkRun, shrink_run};
pub use simplify::Simplified;

use super::directory::{self, Directory, default_directory};
use super::{Handle, RunError, Stage};
use course::Course;
use models::Models;
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

/// Replays a script on a fresh schema, statement by statement in its order, and tells what came back and
/// the history of it.
pub fn replay_script(settings: &Settings, script: &Script) -> Result<(Round, History), RunError> {
    let site = Site::open(settings)?;
    let failed = |error| RunError::Database { url: settings.urls.first().cloned(), error };
    let isolation = site.isolations.last().cloned().unwrap_or_default();
    let stage = site.at(&isolation).map_err(failed)?;
    let round = replay::replay(&site, &stage, script).map_err(failed)?;
    stage.clear().map_err(failed)?;
    let reading = Reading::of(&site.product, &isolation);
    let history = history(&round, reading)
        .map_err(|error| RunError::Recording { path: PathBuf::new(), error })?;
    Ok((round, history))
}

/// Does something that a run consists of. A panic in it, or in a thread of it, is an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(RunError::Panicked))
}

/// As long as it takes.
const LONG: Duration = Duration::from_secs(86_400);

/// Looks for the smallest part of a script that shows a finding when it is replayed at the isolation
/// level of the settings; none if the script itself does not.
pub fn simplify_script(
    settings: &Settings,
    script: &Script,
    kind: FindingKind,
) -> Result<Option<Simplified>, RunError> {
    let site = Site::open(settings)?;
    let isolation = &site.isolations.last().cloned().unwrap_or_default();
    let wanted = Wanted { kind, isolation, round: 0 };
    let budget = settings.simplify.unwrap_or(LONG);
    simplify::simplify(&site, &wanted, std::slice::from_ref(script), budget, &Handle::new())
        .map_err(|error| RunError::Database { url: settings.urls.first().cloned(), error })
}

/// Runs rounds until there are enough transactions, the time is up, or it is interrupted.
///
/// When the time is up, each session ends the statement that it has sent, and reads all tables once; both take no longer
/// than the statement timeout allows. The round is checked, with a limit of its own, and what was found is simplified
/// until the [grace](Settings::grace) is over. An interruption ends the round likewise, and nothing is simplified
/// after it.
pub fn run(
    settings: &Settings,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    handle.enter(Stage::Opening);
    let outcome = guarded(|| {
        let models = Models::of(settings)?;
        let site = Site::open(settings)?;
        if handle.is_interrupted() {
            return Err(RunError::Interrupted);
        }
        let path = settings.out.clone().unwrap_or_else(|| default_directory(settings.seed));
        let directory = Directory::create(path)?;
        observer.opened(&site.version, directory.path());
        let mut course = Course::new(settings, &models, &site, &directory);
        let done = course.go_through(handle, observer);
        let done = done.and_then(|()| course.tell(handle, observer));
        if let Err(error) = site.confirm() {
            directory.discard();
            return Err(error);
        }
        done?;
        Ok(course.finish())
    });
    handle.enter(Stage::Idle);
    outcome
}
