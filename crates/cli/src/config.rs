//! What the flags mean: names are looked up and checked here, before anything is read.

mod check;
mod shrink;

use std::path::{Path, PathBuf};

use clap_complete::Shell;
use isolario::formats::{self, FORMATS, HistoryFormat};
use isolario::model::KeyAssumptions;
use isolario::report::explain::{self, Topic, TopicLookup};

use crate::args::{
    Args, BadTimesPolicy, Command as RawCommand, ConvertArgs, GlobalArgs, MatchesBy, OutputForm,
    ReportForm, ShowArgs, StatsArgs, TimesArgs, VerifyArgs,
};
use crate::clashes::Files;
use crate::failure::Failure;
use crate::generate::Generate;
use crate::output::Output;
use crate::probe::Probing;
use crate::run::{Relational, Run, ShrinkSql};
use crate::run_directory::{history_of, proof_in};
use crate::suggest::{closest, no_such};

pub(crate) use check::{Check, Follow, Question, Request, Spill};
pub(crate) use shrink::{Shrink, Written};

/// The format to read a history in.
#[derive(Clone, Copy)]
pub(crate) struct InputFormat {
    /// The one that was named; none where it is to be recognised.
    pub(crate) named: Option<&'static dyn HistoryFormat>,
    /// The flag that names it.
    pub(crate) flag: &'static str,
    /// Whether both times of transactions that finish before they start are left out; else they are refused.
    pub(crate) leaves_out_contradictory_times: bool,
    /// Number of lines of such transactions to name.
    pub(crate) most_lines: usize,
}

/// Number of lines that a message names where nobody wants all of them.
const FEW_LINES: usize = 10;

pub(crate) struct Config {
    pub(crate) threads: Option<u16>,
    pub(crate) output: OutputForm,
    pub(crate) command: Command,
}

pub(crate) enum Command {
    Check(Box<Check>),
    Convert(Convert),
    Gen(Generate),
    Run(Box<Run>),
    Probe(Probing),
    Relational(Box<Relational>),
    Stats(Stats),
    Show(Show),
    Shrink(Box<Shrink>),
    ShrinkSql(Box<ShrinkSql>),
    Explain(Explain),
    Verify(Verify),
    Levels,
    Completions(Shell),
    Man(Option<PathBuf>),
}

pub(crate) struct Convert {
    pub(crate) from: PathBuf,
    pub(crate) from_format: InputFormat,
    pub(crate) to: Output,
}

/// What to explain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Explain {
    /// Which names there are.
    Everything,
    /// One thing.
    One(Topic),
    /// What a name may mean.
    Several { name: String, topics: Vec<Topic> },
}

pub(crate) struct Stats {
    pub(crate) history: PathBuf,
    pub(crate) format: InputFormat,
}

pub(crate) struct Show {
    pub(crate) history: PathBuf,
    /// What to show.
    pub(crate) name: String,
    pub(crate) format: InputFormat,
}

pub(crate) struct Verify {
    pub(crate) history: PathBuf,
    pub(crate) proof: PathBuf,
    pub(crate) format: InputFormat,
    pub(crate) version_order: Option<PathBuf>,
    pub(crate) trust_version_order: bool,
    pub(crate) assume: KeyAssumptions,
    pub(crate) serialization_order: Option<SerializationOrder>,
    pub(crate) matches: Option<MatchesBy>,
    /// Memory limit for verification without loading the history.
    pub(crate) memory: Option<u64>,
    /// Whether the history need not be loaded, as far as the flags are concerned.
    pub(crate) can_go_by_pieces: bool,
}

/// Where the order is that a database promises for its transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SerializationOrder {
    /// In the history: the database's own timestamps.
    Timestamps,
    File(PathBuf),
}

impl SerializationOrder {
    /// By the value of the flag. A file of that name is given as `./timestamps`.
    fn of(flag: PathBuf) -> SerializationOrder {
        match flag.as_os_str() == "timestamps" {
            true => SerializationOrder::Timestamps,
            false => SerializationOrder::File(flag),
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match self {
            SerializationOrder::Timestamps => None,
            SerializationOrder::File(file) => Some(file),
        }
    }
}

impl Config {
    pub(crate) fn build(args: Args) -> Result<Config, Failure> {
        let form = report_form(&args.global)?;
        let command = match args.command {
            RawCommand::Check(args) => Command::Check(Box::new(Check::build(*args, form)?)),
            RawCommand::Convert(args) => Command::Convert(Convert::build(args)?),
            RawCommand::Gen(args) => Command::Gen(Generate::build(args)?),
            RawCommand::Run(args) if Relational::is_meant(&args) => {
                Command::Relational(Box::new(Relational::build(*args, form)?))
            }
            RawCommand::Run(args) => Command::Run(Box::new(Run::build(*args, form)?)),
            RawCommand::Probe(args) => Command::Probe(Probing::build(args)?),
            RawCommand::Stats(StatsArgs { history, format, times }) => {
                let format = InputFormat::build("--format", &format, &times)?;
                Command::Stats(Stats { history: history_of(history), format })
            }
            RawCommand::Show(ShowArgs { history, name, format, times }) => Command::Show(Show {
                history: history_of(history),
                name: name.join(" "),
                format: InputFormat::build("--format", &format, &times)?,
            }),
            RawCommand::Shrink(args) => match shrink::of_sql_run(&args)? {
                Some(what) => Command::ShrinkSql(Box::new(what)),
                None => Command::Shrink(Box::new(Shrink::build(*args)?)),
            },
            RawCommand::Explain { name } => Command::Explain(Explain::build(&name)?),
            RawCommand::Verify(args) => Command::Verify(Verify::build(args)?),
            RawCommand::Levels => Command::Levels,
            RawCommand::Completions { shell } => Command::Completions(shell),
            RawCommand::Man { dir } => Command::Man(dir),
        };
        let output = match form.plain() {
            Some(output) => output,
            // It has the form itself.
            None if matches!(command, Command::Check(_) | Command::Run(_)) => OutputForm::Human,
            None => return Err(only_for_verdicts()),
        };
        Ok(Config { threads: args.global.threads, output, command })
    }
}

/// `--json` is short for `--output json`, and contradicts any other.
fn report_form(args: &GlobalArgs) -> Result<ReportForm, Failure> {
    match (args.json, args.output) {
        (true, None | Some(ReportForm::Json)) => Ok(ReportForm::Json),
        (true, Some(_)) => Err(Failure::new("--json and --output ask for different forms")
            .with_hint("--json is the same as --output json: omit one of them")),
        (false, output) => Ok(output.unwrap_or(ReportForm::Human)),
    }
}

impl Verify {
    fn build(args: VerifyArgs) -> Result<Verify, Failure> {
        let format = InputFormat::build("--format", &args.format, &args.times)?;
        let VerifyArgs { history, version_order, trust_version_order, .. } = args;
        let proof = args.proof.or_else(|| proof_in(&history)).ok_or_else(|| {
            Failure::new(format!("no proof is given for {}", history.display()))
                .with_hint("give its file after the history; only a run directory contains a proof")
        })?;
        let history = history_of(history);
        let serialization_order = args.serialization_order.map(SerializationOrder::of);
        Ok(Verify {
            history,
            proof,
            format,
            version_order,
            trust_version_order,
            assume: args.assume.into_iter().collect(),
            serialization_order,
            matches: args.matches,
            memory: args.memory,
            can_go_by_pieces: args.can_go_by_pieces,
        })
    }
}

fn only_for_verdicts() -> Failure {
    Failure::new("--output junit and github only apply to `isolario check` and `isolario run`")
        .with_hint("use --output human or --output json")
}

impl InputFormat {
    fn build(flag: &'static str, name: &str, times: &TimesArgs) -> Result<InputFormat, Failure> {
        let named = if name == "auto" { None } else { Some(find_format(flag, name)?) };
        let leaves_out_contradictory_times = times.bad_times == Some(BadTimesPolicy::Unknown);
        Ok(InputFormat { named, flag, leaves_out_contradictory_times, most_lines: FEW_LINES })
    }
}

fn find_format(flag: &str, name: &str) -> Result<&'static dyn HistoryFormat, Failure> {
    if let Some(format) = formats::find(name) {
        return Ok(format);
    }
    let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
    let there_are = format!("formats: {}", names.join(", "));
    Err(no_such("format", name, flag, names, there_are))
}

impl Convert {
    fn build(args: ConvertArgs) -> Result<Convert, Failure> {
        let format = output_format("--to", args.to_format.as_deref(), &args.to)?;
        let to = (args.to.as_os_str() != "-").then_some(&args.to);
        Files::reading([args.from.as_path()]).writing("TO", to).refuse_clashes()?;
        let from_format = InputFormat::build("--from", &args.from_format, &args.times)?;
        Ok(Convert {
            from_format: InputFormat { most_lines: usize::MAX, ..from_format },
            from: history_of(args.from),
            to: Output { path: args.to, format, flag: "--to", force: args.force },
        })
    }
}

/// The format to write: the one that was named, else the one that the path's extension tells.
pub(crate) fn output_format(
    flag: &str,
    name: Option<&str>,
    path: &Path,
) -> Result<&'static dyn HistoryFormat, Failure> {
    if let Some(name) = name {
        return find_format(flag, name);
    }
    // What is written is not packed, so a name that says so does not tell.
    let is_packed = path.extension().is_some_and(|end| end == "gz" || end == "zst");
    let by_name = formats::by_extension(path).filter(|_| !is_packed);
    by_name.ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
        Failure::new(format!(
            "the format of {} is not given, and its extension does not determine it",
            path.display()
        ))
        .with_hint(format!("name it with {flag}: {}", names.join(", ")))
    })
}

impl Explain {
    /// Names of several words need no quotes.
    fn build(words: &[String]) -> Result<Explain, Failure> {
        let name = words.join(" ");
        match explain::find(&name) {
            _ if words.is_empty() => Ok(Explain::Everything),
            TopicLookup::One(topic) => Ok(Explain::One(topic)),
            TopicLookup::Several(topics) => Ok(Explain::Several { name, topics }),
            TopicLookup::Nothing => {
                Err(Failure::new(format!("there is no level or anomaly `{name}`"))
                    .with_hint(suggestion(&name, &explain::all_names())))
            }
        }
    }
}

/// The name that may have been meant, and where to find the others.
fn suggestion(typed: &str, names: &[String]) -> String {
    const LIST: &str = "`isolario explain` lists all names";
    match closest(typed, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`? {LIST}"),
        None => LIST.to_owned(),
    }
}
