//! What the flags of `isolario run` mean: names are looked up and checked before any work is done.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolario::db::DbUrl;
use isolario::run::{Ask, Fault, Faults, Settings, Shrinking};
use isolario::workload::{Application, DefaultRun, Preset, Workload};

use super::args::{DriveArgs, RunArgs, ShapeArgs};
use crate::args::ReportForm;
use crate::config::Request;
use crate::failure::Failure;
use crate::suggest::no_such;
use crate::workload_flags::{
    Named, find_aim, find_distribution, find_mix, find_preset, find_workload,
};

/// A run, or several.
pub(crate) struct Run {
    pub(super) settings: Settings,
    /// How many, with one seed after the other.
    pub(super) repeat: u64,
    /// How long to go through shapes of workloads instead.
    pub(super) hunt: Option<Duration>,
    /// Whether its phases end with a crash.
    pub(super) crash: bool,
    /// The directory whose power fails then.
    pub(super) disk: Option<PathBuf>,
    /// The form of the result.
    pub(super) form: ReportForm,
}

impl Run {
    pub(crate) fn build(args: RunArgs, form: ReportForm) -> Result<Run, Failure> {
        if args.drive.host.is_some() && matches!(form, ReportForm::Junit | ReportForm::Github) {
            let message =
                "--output junit and github have no effect with --host: a part has no verdict";
            return Err(Failure::new(message)
                .with_hint("give it to `isolario check --join`, once all hosts are done"));
        }
        let parse = |text: &String| DbUrl::parse(text).map_err(|error| Failure::new(error.message));
        let urls: Result<Vec<_>, _> = args.db.iter().map(parse).collect();
        let kind = args.shape.workload.as_deref().and_then(|name| name.parse().ok());
        let find = |name| find_preset(name, kind);
        let preset = args.shape.preset.as_deref().map(find).transpose()?;
        let run = shape(&args.shape, preset)?;
        let mut settings = Settings::new(run.workload.kind);
        settings.urls = urls?;
        settings.isolation = args.isolation;
        settings.statement_timeout = args.drive.statement_timeout;
        settings.workload = run.workload;
        settings.sql_tables = args.shape.sql_tables;
        settings.preset = preset.map(|preset| preset.name);
        settings.sessions = run.sessions;
        settings.txns = match (args.shape.txns, args.shape.duration) {
            (None, None) => Some(run.txns),
            (txns, _) => txns,
        };
        settings.duration = args.shape.duration;
        settings.rate = args.drive.rate;
        settings.think = args.drive.think;
        settings.value_size = args.drive.value_size.unwrap_or(0);
        settings.max_retries = args.drive.max_retries;
        settings.seed = args.shape.seed.unwrap_or_else(any_seed);
        settings.ask = ask(&args.check)?;
        settings.check_timeout = args.timeout;
        settings.stop_on_violation = args.drive.stop_on_violation;
        settings.whitebox = args.whitebox;
        settings.shadow = args.shadow;
        settings.faults = faults(&args.drive)?;
        settings.out = args.out;
        settings.max_anomalies = args.max_anomalies;
        settings.shrink = match (args.shrink, args.no_shrink) {
            (true, _) => Shrinking::Thoroughly,
            (false, true) => Shrinking::Never,
            (false, false) => Shrinking::Briefly,
        };
        settings.host = args.drive.host;
        settings.to_be_killed = args.drive.to_be_killed.or_else(|| args.drive.crash.then(now));
        settings.planner().map_err(|error| Failure::new(error.to_string()))?;
        let DriveArgs { repeat, hunt, crash, disk, .. } = args.drive;
        if crash {
            refuse_without_path(&settings.urls)?;
            refuse_off_disk(&settings.urls, disk.as_deref())?;
        }
        Ok(Run { settings, repeat, hunt, crash, disk, form })
    }
}

/// A moment at which no earlier run began.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Refuses to crash what cannot be opened again.
fn refuse_without_path(urls: &[DbUrl]) -> Result<(), Failure> {
    match urls {
        [url] if !url.rest().is_empty() && !url.rest().starts_with("//") => Ok(()),
        _ => Err(Failure::new("--crash needs a single embedded store that is kept in a file")
            .with_hint("name its file, as in --db sqlite:FILE")),
    }
}

/// Refuses to take the power from a directory that the store is not in.
fn refuse_off_disk(urls: &[DbUrl], disk: Option<&Path>) -> Result<(), Failure> {
    let Some(disk) = disk else { return Ok(()) };
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_off = |url: &DbUrl| !absolute(Path::new(url.rest())).starts_with(absolute(disk));
    match urls.iter().find(|url| is_off(url)) {
        Some(url) => Err(Failure::new(format!("{url} is not in {}", disk.display()))
            .with_hint("--disk takes the directory that contains the store")),
        None => Ok(()),
    }
}

/// Which faults the server is to have.
fn faults(args: &DriveArgs) -> Result<Option<Faults>, Failure> {
    let names = || Fault::ALL.iter().map(|fault| fault.name());
    let find = |name: &String| {
        let found = Fault::ALL.into_iter().find(|fault| fault.name() == name.as_str());
        let there_are = || format!("faults: {}", names().collect::<Vec<_>>().join(", "));
        found.ok_or_else(|| no_such("fault", name, "--fault", names(), there_are()))
    };
    let kinds = args.fault.iter().map(find).collect::<Result<Vec<Fault>, _>>()?;
    refuse_power_without_disk(args, &kinds)?;
    if kinds.is_empty() {
        return Ok(None);
    }
    let of_server = kinds.iter().find(|fault| **fault != Fault::Partition);
    match (&args.server, &args.server_pid, of_server) {
        (Some(command), ..) => {
            let faults = Faults::new(kinds, command);
            let with_disk = args.disk.iter().fold(faults, Faults::with_disk);
            Ok(Some(with_disk))
        }
        (None, Some(file), _) => Ok(Some(Faults::by_pid_file(kinds, file))),
        (None, None, None) => Ok(Some(Faults::partitions())),
        (None, None, Some(fault)) => {
            let message = format!("--fault {} needs a server", fault.name());
            let hint = "give the command that starts it (--server), or the file with its process id \
                        (--server-pid)";
            Err(Failure::new(message).with_hint(hint))
        }
    }
}

/// Power fails for a directory, and a directory is for power to fail.
fn refuse_power_without_disk(args: &DriveArgs, kinds: &[Fault]) -> Result<(), Failure> {
    match (kinds.contains(&Fault::Power), &args.disk) {
        (true, None) => {
            Err(Failure::new("--fault power needs the directory of the server's files")
                .with_hint("name that directory with --disk DIR"))
        }
        (false, Some(_)) if !args.crash => {
            Err(Failure::new("--disk only applies to --fault power and --crash")
                .with_hint("add --fault power and --server, or --hunt and --crash"))
        }
        _ => Ok(()),
    }
}

/// What `--check` asks for; without it, the database's claim counts.
pub(super) fn ask(names: &[String]) -> Result<Ask, Failure> {
    if names.is_empty() {
        return Ok(Ask::Claim);
    }
    let Request { levels, named, .. } = Request::build(names)?;
    Ok(Ask::Levels { levels, named })
}

/// The default workload of a kind, or a preset, overridden by whatever was given.
fn shape(args: &ShapeArgs, preset: Option<&Preset>) -> Result<DefaultRun, Failure> {
    let named = match args.workload.as_deref().map(find_workload).transpose()? {
        Some(Named::Application(application)) => return Ok(played(args, application)),
        Some(Named::Kind(kind)) => Some(kind),
        None => None,
    };
    let base = preset.map(Preset::workload);
    let kind = named.or(base.as_ref().map(|base| base.kind)).unwrap_or_default();
    let mut run = DefaultRun::of(kind);
    if let (Some(base), Some(preset)) = (base, preset) {
        run.workload = Workload { kind, ..base };
        (run.sessions, run.txns) = (preset.sessions, preset.txns);
    }
    let distribution = args.distribution.as_deref().map(find_distribution).transpose()?;
    let mix = args.mix.as_deref().map(find_mix).transpose()?;
    let base = run.workload.clone();
    run.workload = Workload {
        ops: args.ops.unwrap_or(base.ops),
        keys: args.keys.unwrap_or(base.keys),
        absent_ratio: args.absent_ratio.unwrap_or(base.absent_ratio),
        slow_ratio: args.slow_ratio.unwrap_or(base.slow_ratio),
        read_ratio: args.read_ratio.unwrap_or(base.read_ratio),
        rmw_ratio: args.rmw_ratio.unwrap_or(base.rmw_ratio),
        distribution: distribution.unwrap_or(base.distribution),
        list_length: args.list_length.unwrap_or(base.list_length),
        mix: mix.unwrap_or(base.mix),
        ..base
    };
    run.sessions = args.sessions.unwrap_or(run.sessions);
    if let Some(aim) = args.aim.as_deref().map(find_aim).transpose()? {
        run.workload.aim = Some(aim);
        run.workload.keys = aim.keys(run.sessions);
    }
    Ok(run)
}

/// The transactions of an application.
fn played(args: &ShapeArgs, application: Application) -> DefaultRun {
    let mut run = DefaultRun::of_application(application, args.scale.unwrap_or(1));
    run.sessions = args.sessions.unwrap_or(run.sessions);
    run
}

/// Another seed each time, short enough to be typed.
pub(super) fn any_seed() -> u64 {
    isolario::workload::Rng::new(now()).below(1_000_000_000)
}
