//! `isolario probe`: scripted anomalies at every isolation level of a live database.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use isolario::db::DbUrl;
use isolario::db::script::Script;
use isolario::probe::{Settings, probe};
use isolario::report::{ProbeOutcome, ProbeTable, printable, wrap};

use crate::args::OutputForm;
use crate::clashes::Files;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outfile::write_whole;
use crate::run::{db_help, failure};
use crate::suggest::no_such;
use crate::units::statement_timeout;

pub(crate) const EXAMPLES: &str = "\
Examples:
  isolario probe                              probe embedded SQLite
  isolario probe --db postgres://user@host/db show all probes at all isolation levels in a table
  isolario probe --db mysql://root@127.0.0.1/test --isolation repeatable-read,serializable
  isolario probe --db mysql://n1/t --db mysql://n2/t --db mysql://n3/t
                                              also probe across nodes
  isolario probe --db postgres://user@host/db --trace write-skew
                                              show one probe step by step
  isolario probe --db postgres://user@host/db --script transfer.probe
                                              run an interleaving of your own

Each probe is a script that interleaves transactions; if it runs as written, the anomaly has
happened. The recorded history is checked, too. Probes drop and recreate their tables, whose names
begin with isolario_.

Exit codes: 0 success; 1 an anomaly happened that the database claims to prevent; 2 an error;
3 interrupted.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ProbeArgs {
    #[arg(long, value_name = "URL", default_value = "sqlite:", help = db_help())]
    db: Vec<String>,

    /// Isolation levels, by the names that the database uses [default: all of them]
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',')]
    isolation: Vec<String>,

    /// Run this script instead of the built-in ones; repeat the flag for several scripts
    #[arg(long, value_name = "FILE")]
    script: Vec<PathBuf>,

    /// Show one probe step by step; NAME is the name of its script
    #[arg(long, value_name = "NAME")]
    trace: Option<String>,

    /// Write the table and all transcripts as an HTML page
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Time limit for the database to answer a statement, from 1ms to 24h
    #[arg(long, value_name = "D", value_parser = statement_timeout, default_value = "5s")]
    statement_timeout: Duration,
}

/// What to probe.
pub(crate) struct Probing {
    settings: Settings,
    /// Whether the scripts are the user's.
    is_own: bool,
    /// Whether to show a transcript in place of the table.
    is_trace: bool,
    report: Option<PathBuf>,
}

impl Probing {
    pub(crate) fn build(args: ProbeArgs) -> Result<Probing, Failure> {
        let scripts = args.script.iter().map(PathBuf::as_path);
        Files::reading(scripts).writing("--report", args.report.as_ref()).refuse_clashes()?;
        let parse = |text: &String| DbUrl::parse(text).map_err(|error| Failure::new(error.message));
        let urls = args.db.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let mut settings = Settings::new(urls);
        settings.isolations = args.isolation;
        settings.statement_timeout = args.statement_timeout;
        if !args.script.is_empty() {
            settings.scripts = args.script.iter().map(|p| read(p)).collect::<Result<_, _>>()?;
        }
        if let Some(name) = &args.trace {
            settings.scripts = vec![find(name, &settings.scripts)?];
        }
        Ok(Probing {
            settings,
            is_own: !args.script.is_empty(),
            is_trace: args.trace.is_some(),
            report: args.report,
        })
    }
}

const NO_FILE: &str = "--script takes a file; to run a built-in script, use --trace NAME";

/// Reads a script. It is called after its file.
fn read(path: &Path) -> Result<Script, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read {shown}: {error}")).with_hint(NO_FILE)
    })?;
    let name = path.file_stem().map(|name| name.to_string_lossy()).unwrap_or_default();
    Script::parse(&name, &text)
        .map_err(|error| Failure::new(format!("{shown}: {error}")).with_hint(error.remedy))
}

fn find(name: &str, scripts: &[Script]) -> Result<Script, Failure> {
    let names = || scripts.iter().map(|script| script.name.as_str());
    let found = scripts.iter().find(|script| script.name.eq_ignore_ascii_case(name));
    let there_are = || format!("probes: {}", names().collect::<Vec<_>>().join(", "));
    found.cloned().ok_or_else(|| no_such("probe", name, "--trace", names(), there_are()))
}

/// How wide text is where nobody says, and where a transcript has many columns.
const WIDTH: usize = 100;

pub(crate) fn run(
    what: &Probing,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::listen(console.quiet)?;
    let _stop = interrupt.stop();
    let mut isolation = String::new();
    let table = probe(&what.settings, &mut |at, _: &Script| {
        if isolation != at {
            console.detail(&format!("probing at {at}"));
            at.clone_into(&mut isolation);
        }
        match interrupt.happened() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let table = table.map_err(|error| failure(&error))?;
    if table.probes.is_empty() {
        return Err(nothing_to_play(&table));
    }
    match output {
        OutputForm::Json => table.write_json(console.out())?,
        OutputForm::Human if what.is_trace => trace(&table, console)?,
        OutputForm::Human => table.write_text(console.style, console.out())?,
    }
    if let Some(path) = &what.report {
        write_whole(path, |out| table.write_html(out))?;
        console.info(&format!("wrote {}", path.display()));
    }
    Ok(conclude(&table, what.is_own, interrupt.happened(), console))
}

fn nothing_to_play(table: &ProbeTable) -> Failure {
    Failure::new(format!("none of the scripts can run on {}", table.database)).with_hint(
        "a script may be limited to some databases (on), need several nodes (nodes), or be in SQL",
    )
}

/// One probe at every isolation level.
fn trace(table: &ProbeTable, console: &mut Console) -> Result<(), Failure> {
    let (style, width) = (console.style, console.columns.unwrap_or(WIDTH));
    let out = console.out();
    for (at, (probe, setting, result)) in table.results().enumerate() {
        if at == 0 {
            writeln!(out, "{}: {}", printable(&table.database), printable(&probe.title))?;
            if !probe.about.is_empty() {
                writeln!(out, "{}", wrap(&printable(&probe.about), width, "", ""))?;
            }
        }
        let outcome = result.outcome.to_string();
        writeln!(out, "\n{}: {}\n", setting.isolation, printable(&outcome))?;
        result.transcript.write(style, width, out)?;
        if !result.anomalies.is_empty() {
            let names: Vec<_> = result.anomalies.iter().map(|kind| kind.name()).collect();
            writeln!(out, "\n  found in the recorded history: {}", names.join(", "))?;
        }
        if let Some(note) = &result.note {
            writeln!(out, "\n  judged by the script alone: {}", printable(note))?;
        }
    }
    Ok(())
}

/// Says what is wrong, and makes an exit code of it.
fn conclude(
    table: &ProbeTable,
    is_own: bool,
    is_interrupted: bool,
    console: &mut Console,
) -> Outcome {
    let mut outcome = Outcome::Done;
    let mut reasons: Vec<String> = Vec::new();
    let mut is_anything_run = false;
    for (probe, setting, result) in table.results() {
        if let Some(disagreement) = &result.disagreement {
            let failure = Failure::new(format!(
                "the script and the checkers contradict each other at {}: {disagreement}",
                setting.isolation
            ));
            let bug = format!(
                "a bug of Isolario: please report it with the output of --json --trace {}",
                probe.name
            );
            console.error(&failure.with_hint(match is_own {
                true => {
                    format!("either the script does not show what it claims to, or this is {bug}")
                }
                false => format!("this is {bug}"),
            }));
            outcome = outcome.max(Outcome::Error);
        }
        match &result.outcome {
            ProbeOutcome::NotRun { why } => reasons.push(format!("{}: {why}", setting.isolation)),
            _ => is_anything_run = true,
        }
    }
    reasons.dedup();
    for broken in table.broken_claims() {
        console.warning(&broken);
        outcome = outcome.max(Outcome::Violated);
    }
    if is_interrupted {
        return outcome.max(Outcome::Undecided);
    }
    for reason in &reasons {
        match is_own || !is_anything_run {
            true => {
                console.error(&Failure::new(reason.as_str()));
                outcome = outcome.max(Outcome::Error);
            }
            false => console.warning(&format!("not run at {reason}")),
        }
    }
    outcome
}
