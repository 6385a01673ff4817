//! What the flags mean: names are looked up and checked here, before anything is read.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use isolario::check::{Options, supported};
use isolario::formats::{self, FORMATS, HistoryFormat};
use isolario::model::Level;
use isolario::report::explain::{self, Found, Topic};

use crate::args::{Args, CheckArgs, Command as RawCommand, ConvertArgs, OutputForm, StatsArgs};
use crate::failure::Failure;
use crate::suggest::closest;

/// The format to read a history in.
#[derive(Clone, Copy)]
pub(crate) struct InputFormat {
    /// The one that was named; none where it is to be recognised.
    pub(crate) named: Option<&'static dyn HistoryFormat>,
    /// The flag that names it.
    pub(crate) flag: &'static str,
}

pub(crate) struct Config {
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) output: OutputForm,
    pub(crate) command: Command,
}

pub(crate) enum Command {
    Check(Check),
    Convert(Convert),
    Stats(Stats),
    Explain(Explain),
    Levels,
    Completions(Shell),
    Man(Option<PathBuf>),
}

pub(crate) struct Check {
    pub(crate) histories: Vec<PathBuf>,
    pub(crate) request: Request,
    pub(crate) format: InputFormat,
    pub(crate) options: Options,
    pub(crate) max_anomalies: usize,
}

/// Which levels to decide, and which of the answers matter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The levels, weakest first.
    pub(crate) levels: Vec<Level>,
    /// Those that were named: each of them must apply.
    pub(crate) named: Vec<Level>,
    /// Whether no level was asked for: then the weakest one that applies decides.
    pub(crate) open: bool,
}

pub(crate) struct Convert {
    pub(crate) from: PathBuf,
    pub(crate) from_format: InputFormat,
    pub(crate) to: PathBuf,
    pub(crate) to_format: &'static dyn HistoryFormat,
    pub(crate) force: bool,
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

impl Config {
    pub(crate) fn build(args: Args) -> Result<Config, Failure> {
        let output = if args.global.json { OutputForm::Json } else { args.global.output };
        let command = match args.command {
            RawCommand::Check(args) => Command::Check(Check::build(args)?),
            RawCommand::Convert(args) => Command::Convert(Convert::build(args)?),
            RawCommand::Stats(StatsArgs { history, format }) => {
                Command::Stats(Stats { history, format: InputFormat::build("--format", &format)? })
            }
            RawCommand::Explain { name } => Command::Explain(Explain::build(&name)?),
            RawCommand::Levels => Command::Levels,
            RawCommand::Completions { shell } => Command::Completions(shell),
            RawCommand::Man { dir } => Command::Man(dir),
        };
        Ok(Config { threads: args.global.threads, output, command })
    }
}

impl Check {
    fn build(args: CheckArgs) -> Result<Check, Failure> {
        let mut options = Options::default();
        options.session_order = !args.no_session_order;
        Ok(Check {
            histories: args.histories,
            request: Request::build(&args.level)?,
            format: InputFormat::build("--format", &args.format)?,
            options,
            max_anomalies: args.max_anomalies,
        })
    }
}

impl Request {
    fn build(names: &[String]) -> Result<Request, Failure> {
        let mut named = Vec::new();
        for name in names.iter().filter(|name| *name != "all") {
            named.push(find_level(name)?);
        }
        named.sort_unstable();
        named.dedup();
        let all = names.is_empty() || names.iter().any(|name| name == "all");
        let levels = if all { supported().to_vec() } else { named.clone() };
        Ok(Request { levels, named, open: names.is_empty() })
    }
}

fn find_level(name: &str) -> Result<Level, Failure> {
    let names: Vec<_> = supported().iter().map(|level| level.name()).collect();
    let there_are = format!("levels that can be checked: {}", names.join(", "));
    match Level::find(name) {
        Some(level) if supported().contains(&level) => Ok(level),
        Some(level) => {
            Err(Failure::new(format!("{level} cannot be checked yet")).with_hint(there_are))
        }
        None => {
            let hint = match closest(name, level_names().chain(["all"])) {
                Some(meant) if is_unsupported(meant) => {
                    format!("did you mean `{meant}`? It cannot be checked yet; {there_are}")
                }
                Some(meant) => format!("did you mean `{meant}`? {there_are}"),
                None => there_are,
            };
            Err(Failure::new(format!("there is no level `{name}`")).with_hint(hint))
        }
    }
}

/// The names and aliases of all levels, also of those that cannot be checked yet.
fn level_names() -> impl Iterator<Item = &'static str> {
    Level::all()
        .flat_map(|level| std::iter::once(level.name()).chain(level.aliases().iter().copied()))
}

fn is_unsupported(name: &str) -> bool {
    Level::find(name).is_some_and(|level| !supported().contains(&level))
}

impl InputFormat {
    fn build(flag: &'static str, name: &str) -> Result<InputFormat, Failure> {
        let named = if name == "auto" { None } else { Some(find_format(flag, name)?) };
        Ok(InputFormat { named, flag })
    }
}

fn find_format(flag: &str, name: &str) -> Result<&'static dyn HistoryFormat, Failure> {
    if let Some(format) = formats::find(name) {
        return Ok(format);
    }
    let names = || FORMATS.iter().map(|format| format.name());
    let there_are = format!("formats: {}", names().collect::<Vec<_>>().join(", "));
    let hint = match closest(name, names()) {
        Some(meant) => format!("did you mean `{flag} {meant}`? {there_are}"),
        None => there_are,
    };
    Err(Failure::new(format!("there is no format `{name}`")).with_hint(hint))
}

impl Convert {
    fn build(args: ConvertArgs) -> Result<Convert, Failure> {
        let to_format = match &args.to_format {
            Some(name) => Some(find_format("--to", name)?),
            None => by_extension(&args.to),
        };
        let to_format = to_format.ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
            Failure::new(format!("cannot tell the format to write to {}", args.to.display()))
                .with_hint(format!("name it with --to: {}", names.join(", ")))
        })?;
        Ok(Convert {
            from_format: InputFormat::build("--from", &args.from_format)?,
            from: args.from,
            to: args.to,
            to_format,
            force: args.force,
        })
    }
}

impl Explain {
    /// Names of several words need no quotes.
    fn build(words: &[String]) -> Result<Explain, Failure> {
        let name = words.join(" ");
        match explain::find(&name) {
            _ if words.is_empty() => Ok(Explain::Everything),
            Found::One(topic) => Ok(Explain::One(topic)),
            Found::Several(topics) => Ok(Explain::Several { name, topics }),
            Found::Nothing => Err(Failure::new(format!("there is no level or anomaly `{name}`"))
                .with_hint(suggestion(&name, &explain::all_names()))),
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

/// The format that files of such a name are usually in.
fn by_extension(path: &Path) -> Option<&'static dyn HistoryFormat> {
    let name = match path.extension()?.to_str()? {
        "iso" => "isolario",
        "jsonl" => "jsonl",
        "txt" => "text",
        "edn" => "elle-edn",
        "json" => "elle-json",
        _ => return None,
    };
    formats::find(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(names: &[&str]) -> Result<Request, Failure> {
        Request::build(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn no_level_and_all_mean_every_level_but_only_named_ones_must_apply() {
        let open = request(&[]).unwrap();
        assert_eq!(open.levels, supported());
        assert!(open.open && open.named.is_empty());
        let all = request(&["all"]).unwrap();
        assert_eq!(all.levels, supported());
        assert!(!all.open && all.named.is_empty());
        let both = request(&["all", "pl-2"]).unwrap();
        assert_eq!(both.levels, supported());
        assert_eq!(both.named, [Level::AdyaReadCommitted]);
    }

    #[test]
    fn a_level_named_twice_is_decided_once() {
        let twice = request(&["pl-2", "adya-read-committed"]).unwrap();
        assert_eq!(twice.levels, [Level::AdyaReadCommitted]);
    }
}
