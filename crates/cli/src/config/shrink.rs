//! What `shrink` is asked: which anomaly to keep, and what to write.

use std::path::PathBuf;
use std::time::Duration;

use isolario::db::DbUrl;
use isolario::model::AnomalyKind;
use isolario::run::relational::{FindingKind, ShrinkRun};
use isolario::shrink::Settings;

use super::check::{find_level, semantics};
use super::{InputFormat, find_format, output_format};
use crate::args::ShrinkArgs;
use crate::clashes::Files;
use crate::failure::Failure;
use crate::output::Output;
use crate::run::ShrinkSql;
use crate::run_directory::{history_of, record_in, refuse_masked};
use crate::suggest::AnomalyFlag;
use crate::workload_flags::SQL;

/// How long it may take, if nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the form that is no format of histories.
const RUST: &str = "rust";

pub(crate) struct Shrink {
    pub(crate) history: PathBuf,
    pub(crate) format: InputFormat,
    pub(crate) settings: Settings,
    pub(crate) to: Written,
    pub(crate) proof: Option<PathBuf>,
}

/// What becomes of the part.
pub(crate) enum Written {
    /// A history.
    History(Output),
    /// A test in Rust; to standard output, if no file is named.
    RustTest { path: Option<PathBuf>, force: bool },
}

impl Shrink {
    pub(super) fn build(args: ShrinkArgs) -> Result<Shrink, Failure> {
        let stdout = PathBuf::from("-");
        let file = args.file.clone().filter(|path| *path != stdout);
        let history = history_of(args.history);
        Files::reading([history.as_path()])
            .writing("-o", file.as_ref())
            .writing("--proof", args.proof.as_ref())
            .refuse_clashes()?;
        let options = semantics(&args.semantics);
        let mut settings = Settings::default()
            .with_timeout(args.timeout.unwrap_or(PATIENCE))
            .with_options(options);
        settings.level = args.level.as_deref().map(find_level).transpose()?;
        settings.anomaly = args.anomaly.as_deref().map(find_anomaly).transpose()?;
        let is_test = args.to.as_deref() == Some(RUST)
            || args.to.is_none()
                && file.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "rs"));
        let to = match (is_test, file) {
            (true, path) => Written::RustTest { path, force: args.force },
            (false, Some(path)) => {
                let format = output_format("--to", args.to.as_deref(), &path)?;
                Written::History(Output { path, format, flag: "--to", force: args.force })
            }
            (false, None) => {
                let format = find_format("--to", args.to.as_deref().unwrap_or("text"))?;
                Written::History(Output { path: stdout, format, flag: "--to", force: args.force })
            }
        };
        Ok(Shrink {
            format: InputFormat::build("--format", &args.format, &args.times)?,
            history,
            settings,
            to,
            proof: args.proof,
        })
    }
}

/// What a run of the SQL workload is asked for: there is no history to shrink, but statements to run
/// again.
pub(super) fn of_sql_run(args: &ShrinkArgs) -> Result<Option<ShrinkSql>, Failure> {
    let record = record_in(&args.history).filter(|record| record.workload.kind == SQL);
    let Some(record) = record else { return Ok(None) };
    let urls = if args.db.is_empty() { &record.urls } else { &args.db };
    refuse_masked(urls.iter().map(String::as_str))?;
    let parse = |text: &String| DbUrl::parse(text).map_err(|error| Failure::new(error.message));
    let urls = urls.iter().map(parse).collect::<Result<_, _>>()?;
    let mut what = ShrinkRun::new(args.history.clone(), urls);
    what.kind = match args.anomaly.as_deref() {
        Some(name) => Some(match FindingKind::find(name) {
            Some(kind) => kind,
            None => FindingKind::Anomaly(find_anomaly(name)?),
        }),
        None => None,
    };
    what.budget = args.timeout.unwrap_or(what.budget);
    Ok(Some(ShrinkSql { what }))
}

fn find_anomaly(name: &str) -> Result<AnomalyKind, Failure> {
    let keeping =
        AnomalyFlag { done: "kept", with: AnomalyKind::all().collect(), refusal: "", words: &[] };
    keeping.find(name)
}
