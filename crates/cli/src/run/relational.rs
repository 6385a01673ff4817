//! `isolario run --workload sql`: rounds of random SQL over random schemas.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};
use isolario::db::DbUrl;
use isolario::report::{grouped, printable, shell_word};
use isolario::run::relational::{
    Figures, Finding, Observer, Outcome as Found, Row, Settings, ShrinkRun, ShrunkRun, Simplified,
    run, shrink_run,
};
use isolario::run::{Handle, Judgement};

use super::args::RunArgs;
use super::remedy;
use super::settings::{any_seed, ask};
use crate::args::ReportForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::workload_flags::SQL;

/// What the SQL workload alone has.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "SQL workload")]
pub(crate) struct SqlArgs {
    /// Number of transactions in a round; each round has a schema of its own [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) round: Option<u32>,

    /// Maximum number of tables in a schema [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) tables: Option<u32>,

    /// Maximum number of columns in a table [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) columns: Option<u32>,

    /// Maximum number of rows in a table at the start of a round [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) rows: Option<u32>,

    /// Maximum nesting depth of conditions [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub(crate) depth: Option<u32>,

    /// Run the scripts DIR/*.sql first, at every isolation level; then generate similar
    /// transactions
    #[arg(long, value_name = "DIR")]
    pub(crate) templates: Option<PathBuf>,

    /// Also read all tables with each statement, to record predicate dependencies (PostgreSQL;
    /// SQLite; MariaDB and MySQL at repeatable-read)
    #[arg(long)]
    pub(crate) predicates: bool,

    /// Keep the schema of the last round in the database
    #[arg(long)]
    pub(crate) keep: bool,
}

/// A run of the SQL workload.
pub(crate) struct Relational {
    settings: Settings,
    form: ReportForm,
}

impl Relational {
    /// Whether the flags ask for it.
    pub(crate) fn is_meant(args: &RunArgs) -> bool {
        args.shape.workload.as_deref() == Some(SQL)
    }

    pub(crate) fn build(args: RunArgs, form: ReportForm) -> Result<Relational, Failure> {
        if matches!(form, ReportForm::Junit | ReportForm::Github) {
            return Err(Failure::new(
                "--output junit and github have no effect on the sql workload",
            )
            .with_hint("use --output human or --output json"));
        }
        let parse = |text: &String| DbUrl::parse(text).map_err(|error| Failure::new(error.message));
        let urls: Result<Vec<_>, _> = args.db.iter().map(parse).collect();
        let mut settings = Settings::new(urls?);
        settings.isolation = args.isolation;
        settings.ask = ask(&args.check)?;
        settings.check_timeout = args.timeout;
        settings.out = args.out;
        settings.sessions = args.shape.sessions;
        settings.duration = args.shape.duration;
        settings.txns = match (args.shape.txns, args.shape.duration) {
            (None, None) => Some(1000),
            (txns, _) => txns,
        };
        settings.seed = args.shape.seed.unwrap_or_else(any_seed);
        settings.statement_timeout = args.drive.statement_timeout;
        settings.stop_on_violation = args.drive.stop_on_violation;
        settings.keep = args.sql.keep;
        settings.predicates = args.sql.predicates;
        settings.templates = args.sql.templates.clone();
        settings.aim = args.shape.aim;
        if args.shrink {
            (settings.simplify, settings.grace) = (Some(Duration::from_secs(3600)), None);
        } else if args.no_shrink {
            settings.simplify = None;
        }
        if let Some(mix) = &args.shape.mix {
            settings.style.mix =
                mix.parse().map_err(|error| Failure::new(format!("--mix: {error}")))?;
        }
        settings.round = args.sql.round.unwrap_or(settings.round);
        if let Some(statements) = args.shape.ops {
            settings.style.statements = statements as usize;
        }
        if let Some(depth) = args.sql.depth {
            settings.style.depth = depth as usize;
        }
        let (SqlArgs { tables, columns, rows, .. }, bounds) = (&args.sql, &mut settings.bounds);
        for (given, bound) in
            [(tables, &mut bounds.tables), (columns, &mut bounds.columns), (rows, &mut bounds.rows)]
        {
            *bound = given.map_or(*bound, |given| given as usize);
        }
        Ok(Relational { settings, form })
    }

    pub(crate) fn run(&self, console: &mut Console) -> Result<Outcome, Failure> {
        let handle = Handle::new();
        Interrupt::listen(console.quiet)?.run(&handle);
        let found = run(&self.settings, &handle, &mut Watch { console, bar: None });
        let found = found.map_err(|error| remedy::failure(&error))?;
        match self.form {
            ReportForm::Json => found.json(console.out())?,
            _ => tell(&found, console.out())?,
        }
        for error in &found.unwritten {
            console.error(&remedy::failure(error));
        }
        if found.judgement == Judgement::NothingToCheck {
            let why = "no transaction that reads or writes was committed";
            console.error(&Failure::new(format!("nothing to check: {why}")));
        }
        Ok(if found.unwritten.is_empty() { found.judgement.into() } else { Outcome::Error })
    }
}

/// Says how it goes.
struct Watch<'c> {
    console: &'c mut Console,
    bar: Option<ProgressBar>,
}

impl Observer for Watch<'_> {
    fn opened(&mut self, version: &str, directory: &Path) {
        self.console.info(&format!("{version}; recording to {}", directory.display()));
        self.bar = spinner(self.console);
    }

    fn simplifying(&mut self, finding: &Finding) {
        if let Some(bar) = &self.bar {
            let (kind, isolation) = (finding.kind.name(), &finding.isolation);
            bar.set_message(format!("simplifying {kind} at {isolation}"));
            bar.tick();
        }
    }

    fn round(&mut self, figures: &Figures) {
        if let Some(bar) = &self.bar {
            let (rounds, committed) = (grouped(figures.rounds), grouped(figures.committed));
            let anomalies = grouped(figures.anomalies);
            bar.set_message(format!(
                "round {rounds}, {committed} committed, {anomalies} anomalies"
            ));
            bar.tick();
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The result for people.
fn tell(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let Figures { rounds, committed, aborted, unknown, statements, refused, .. } = found.figures;
    let seconds = found.elapsed.as_secs_f64();
    writeln!(out, "{}, sql workload", printable(&found.version))?;
    let rate = grouped((committed as f64 / seconds.max(0.001)) as u64);
    let (rounds, committed) = (grouped(rounds), grouped(committed));
    writeln!(
        out,
        "  committed   {committed} in {rounds} rounds, {seconds:.1} s: {rate} per second"
    )?;
    writeln!(out, "  aborted     {}; unknown {}", grouped(aborted), grouped(unknown))?;
    let (sent, no) = (grouped(statements), grouped(refused));
    writeln!(out, "  statements  {sent}, of which the database refused {no}")?;
    for (code, (count, message)) in &found.errors {
        let message = message.lines().next().unwrap_or_default();
        writeln!(out, "              {} {code}: {}", grouped(*count), printable(message))?;
    }
    let Figures { seen, uninstrumented, partial, .. } = found.figures;
    let (seen, partial, none) = (grouped(seen), grouped(partial), grouped(uninstrumented));
    writeln!(out, "  seen        {seen} rows; {partial} statements in part, {none} not at all")?;
    for (why, count) in &found.refusals {
        writeln!(out, "              {} {}", grouped(*count), printable(why))?;
    }
    let Figures { compared, not_compared, .. } = found.figures;
    if found.figures.certified > 0 {
        let known = grouped(found.figures.certified);
        writeln!(out, "  predicates  the dependencies of {known} rounds by predicate are known")?;
    }
    if compared + not_compared > 0 {
        let (compared, left) = (grouped(compared), grouped(not_compared));
        writeln!(
            out,
            "  compared    {compared} rounds with their transactions one by one; not {left}"
        )?;
    }
    writeln!(out, "\nAnomalies that Adya's level of the same name forbids:")?;
    tell_table(&found.table, &found.asked, out)?;
    tell_scripts(&found.simplified, out)?;
    writeln!(out, "\n  directory   {}", found.directory.display())?;
    let is_cut_short = found.simplified.iter().any(|found| found.is_cut_short);
    if is_cut_short || found.figures.not_simplified > 0 {
        let seconds = found.simplified_in.as_secs_f64();
        let left = match found.figures.not_simplified {
            0 => String::new(),
            left => format!(", with {} findings left", grouped(left)),
        };
        let directory = shell_word(&found.directory.display().to_string());
        writeln!(
            out,
            "  simplification stopped after {seconds:.0} s{left}: `isolario shrink {directory}` finishes it"
        )?;
    }
    writeln!(out, "\nRepeat it with\n  {}", found.replay)
}

/// The table of findings.
fn tell_table(
    table: &BTreeMap<String, Row>,
    asked: &BTreeMap<String, String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (isolation, row) in table {
        let (rounds, committed) = (grouped(row.rounds), grouped(row.committed));
        writeln!(out, "  {isolation}: {rounds} rounds, {committed} committed")?;
        let asked = asked.get(isolation).map_or("", String::as_str);
        match row.broken {
            0 => writeln!(out, "    held ({asked})")?,
            1 => writeln!(out, "    BROKEN in 1 round ({asked})")?,
            broken => writeln!(out, "    BROKEN in {} rounds ({asked})", grouped(broken))?,
        }
        for (name, count) in &row.anomalies {
            write!(out, "    {name:<28} {:>6}", grouped(count.total))?;
            match (count.simplified, grouped(count.unique)) {
                (0, _) => writeln!(out, " ({} different)", grouped(count.patterns))?,
                (some, unique) => {
                    writeln!(out, " ({unique} different among {} simplified)", grouped(some))?;
                }
            }
            for (cause, count) in &count.causes {
                writeln!(out, "      {:<36} {}", cause.words(), grouped(*count))?;
            }
        }
    }
    Ok(())
}

/// The smallest scripts.
fn tell_scripts(simplified: &[Simplified], out: &mut dyn Write) -> io::Result<()> {
    for found in simplified {
        let ((txns, statements), (times, trials)) = (found.size(), found.shown);
        let statements = match statements {
            1 => "1 statement each".to_owned(),
            many => format!("at most {many} statements each"),
        };
        let cut = if found.is_cut_short { "; time was up" } else { "" };
        writeln!(
            out,
            "  {}.sql: {txns} transactions, {statements}; showed {times} of {trials} times{cut}",
            found.name
        )?;
    }
    Ok(())
}

/// The findings of a run of the SQL workload, simplified by running them again.
pub(crate) struct ShrinkSql {
    pub(crate) what: ShrinkRun,
}

impl ShrinkSql {
    pub(crate) fn run(&self, console: &mut Console) -> Result<Outcome, Failure> {
        let handle = Handle::new();
        Interrupt::listen(console.quiet)?.run(&handle);
        let bar = spinner(console);
        let shrunk = shrink_run(&self.what, &handle, &mut Watch { console, bar });
        let shrunk = shrunk.map_err(|error| remedy::failure(&error))?;
        if shrunk.findings == 0 {
            return Err(Failure::new("nothing to shrink: the run has no such finding").with_hint(
                "either the run found nothing, or its findings are not of the kind that --anomaly names",
            ));
        }
        let out = console.out();
        let ShrunkRun { version, findings, gone, simplified, table, .. } = &shrunk;
        writeln!(out, "{}: {findings} findings run again", printable(version))?;
        if *gone > 0 {
            writeln!(out, "  {gone} of them could not be brought about again")?;
        }
        tell_table(table, &BTreeMap::new(), out)?;
        tell_scripts(simplified, out)?;
        for error in &shrunk.unwritten {
            console.error(&remedy::failure(error));
        }
        Ok(if shrunk.unwritten.is_empty() { Outcome::Done } else { Outcome::Error })
    }
}

fn spinner(console: &Console) -> Option<ProgressBar> {
    (!console.quiet).then(|| {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar
    })
}
