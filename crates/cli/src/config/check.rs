//! What `check` is asked: levels or anomalies, and of which histories.

use std::path::PathBuf;
use std::time::Duration;

use isolario::check::{
    CheckOptions, Follower, is_decided_by_promise, supported, supported_patterns,
};
use isolario::model::{AnomalyKind, Level};

use super::{InputFormat, SerializationOrder, output_format};
use crate::args::{CheckArgs, MatchesBy, ReportForm, SemanticsArgs};
use crate::clashes::Files;
use crate::failure::Failure;
use crate::histories::expanded;
use crate::output::Output;
use crate::reports::ReportFiles;
use crate::suggest::{AnomalyFlag, closest};

/// How long a level that nobody named may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A clock skew that leaves no two transactions in order: any times are less than twice as far apart.
const FOR_EVER: u128 = u64::MAX as u128;

pub(crate) struct Check {
    pub(crate) histories: Vec<PathBuf>,
    /// Instead of them, the parts of one history.
    pub(crate) join: Option<Join>,
    /// Whether the one history is checked while it is written.
    pub(crate) follow: Option<Follow>,
    /// Whether histories are read from front to back, in bounded memory.
    pub(crate) spill: Option<Spill>,
    pub(crate) question: Question,
    pub(crate) format: InputFormat,
    pub(crate) options: CheckOptions,
    pub(crate) max_anomalies: usize,
    /// Whether a history with nothing to check is satisfied.
    pub(crate) allow_empty: bool,
    /// Where the proof goes; then there is one history.
    pub(crate) proof: Option<PathBuf>,
    /// Where orders of versions are stated.
    pub(crate) version_order: Option<PathBuf>,
    /// Where the order is that the database promises.
    pub(crate) serialization_order: Option<SerializationOrder>,
    /// Who says what predicates match that cannot be evaluated.
    pub(crate) matches: Option<MatchesBy>,
    /// The form of the result.
    pub(crate) form: ReportForm,
    /// The reports that go to files.
    pub(crate) reports: ReportFiles,
}

/// A history in parts.
pub(crate) struct Join {
    pub(crate) parts: Vec<PathBuf>,
    /// Where the whole goes, if it is to be kept.
    pub(crate) whole: Option<Output>,
    /// How far the clocks of the parts may be apart, where somebody says so.
    pub(crate) stated_skew: Option<u64>,
}

/// How a history is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Follow {
    /// The levels, all of which can be followed.
    pub(crate) levels: Vec<Level>,
    /// How long to wait for more.
    pub(crate) until_idle: Option<Duration>,
}

/// How histories are decided in bounded memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spill {
    /// Where they are sorted, if need be.
    pub(crate) directory: PathBuf,
    /// Only if more than so many bytes would be needed otherwise.
    pub(crate) only_above: Option<u64>,
}

/// What is asked of each history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Which levels it satisfies.
    Levels(Request),
    /// Which anomalies it shows.
    Patterns {
        kinds: Vec<AnomalyKind>,
        /// Whether they were named, so that each must apply.
        named: bool,
    },
}

/// Which levels to decide, and which of the answers matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The levels, weakest first.
    pub(crate) levels: Vec<Level>,
    /// Those that were named: each of them must apply.
    pub(crate) named: Vec<Level>,
    /// Whether no level was asked for: then the weakest one that applies decides.
    pub(crate) open: bool,
}

impl Check {
    pub(super) fn build(mut args: CheckArgs, form: ReportForm) -> Result<Check, Failure> {
        refuse_clashes(&args)?;
        let format = InputFormat::build("--format", &args.format, &args.times)?;
        if format.named.is_none() {
            args.histories = expanded(args.histories);
        }
        let join = Join::build(&args)?;
        if let Some(join) = &join {
            args.histories = vec![join.name()];
        }
        if args.proof.is_some() && args.histories.len() > 1 {
            let count = args.histories.len();
            let message = format!("--proof takes one history, but {count} are given");
            return Err(Failure::new(message).with_hint("check them one by one"));
        }
        let mut question = Question::build(&args.level, &args.pattern)?;
        let serialization_order = args.search.serialization_order.clone();
        let serialization_order = serialization_order.map(SerializationOrder::of);
        if let Some(order) = &serialization_order {
            question.ask_only_what_is_promised(*order == SerializationOrder::Timestamps);
        }
        let options = options(&args, &question);
        let follow = match args.follow {
            true => Some(Follow::build(&args, &question)?),
            false => None,
        };
        let spill = Spill::build(&args, &question)?;
        let reports = ReportFiles::of(args.reports, args.histories.len())?;
        Ok(Check {
            options,
            histories: args.histories,
            join,
            follow,
            spill,
            question,
            format,
            max_anomalies: args.max_anomalies,
            allow_empty: args.allow_empty,
            proof: args.proof,
            version_order: args.search.version_order,
            serialization_order,
            matches: args.search.matches,
            form,
            reports,
        })
    }
}

impl Join {
    fn build(args: &CheckArgs) -> Result<Option<Join>, Failure> {
        if args.join.is_empty() {
            return match args.joined {
                None => Ok(None),
                Some(_) => Err(Failure::new("--joined has no effect without --join")
                    .with_hint("omit it, or give the parts of a history with --join")),
            };
        }
        if args.proof.is_some() && args.joined.is_none() {
            return Err(Failure::new("a proof is about one file, but --join reads several")
                .with_hint("also write the joined history to a file, with --joined FILE"));
        }
        let whole = args.joined.clone().map(|path| {
            let format = output_format("--joined", None, &path)?;
            Ok::<_, Failure>(Output { path, format, flag: "--joined", force: false })
        });
        Ok(Some(Join {
            parts: args.join.clone(),
            whole: whole.transpose()?,
            stated_skew: args.semantics.clock_skew.map(|_| semantics(&args.semantics).clock_skew),
        }))
    }

    /// What reports call the history: its file, or its first part and how many there are.
    fn name(&self) -> PathBuf {
        match (&self.whole, &self.parts[..]) {
            (Some(whole), _) => whole.path.clone(),
            (None, [first, others @ ..]) if !others.is_empty() => {
                let more = others.len();
                PathBuf::from(format!("{} and {more} more", first.display()))
            }
            (None, parts) => parts.first().cloned().unwrap_or_default(),
        }
    }
}

impl Follow {
    fn build(args: &CheckArgs, question: &Question) -> Result<Follow, Failure> {
        let [history] = &args.histories[..] else {
            let count = args.histories.len();
            let message = format!("--follow takes one history, but {count} are given");
            return Err(
                Failure::new(message).with_hint("follow each of them in a process of its own")
            );
        };
        if history.as_os_str() == "-" {
            return Err(Failure::new("--follow reads a file, not standard input")
                .with_hint("write the history to a file, and follow the file"));
        }
        let levels = levels_to_follow("--follow", question)?;
        Ok(Follow { levels, until_idle: args.until_idle })
    }
}

impl Spill {
    fn build(args: &CheckArgs, question: &Question) -> Result<Option<Spill>, Failure> {
        let fits = levels_to_follow("--spill", question);
        if let Some(directory) = args.spill.clone() {
            fits?;
            if args.histories.iter().any(|history| history.as_os_str() == "-") {
                return Err(Failure::new("--spill reads files, not standard input")
                    .with_hint("write the history to a file"));
            }
            return Ok(Some(Spill { directory, only_above: None }));
        }
        let is_possible = fits.is_ok() && args.can_spill && args.proof.is_none();
        Ok(args
            .memory
            .filter(|_| is_possible)
            .map(|memory| Spill { directory: std::env::temp_dir(), only_above: Some(memory) }))
    }
}

/// The levels that were named, all of which can be followed.
fn levels_to_follow(flag: &str, question: &Question) -> Result<Vec<Level>, Failure> {
    let levels = match question {
        Question::Levels(request) if !request.named.is_empty() => request.named.clone(),
        _ => {
            return Err(Failure::new(format!("{flag} needs --level")).with_hint(can_be_followed()));
        }
    };
    match levels.iter().find(|level| !Follower::levels().contains(level)) {
        Some(level) => Err(Failure::new(format!("{level} cannot be decided with {flag}"))
            .with_hint(format!(
                "check the complete history without {flag}; {}",
                can_be_followed()
            ))),
        None => Ok(levels),
    }
}

fn can_be_followed() -> String {
    let names: Vec<_> = Follower::levels().iter().map(|level| level.name()).collect();
    format!("levels for --follow and --spill: {}", names.join(", "))
}

/// No output may be an input or another output.
fn refuse_clashes(args: &CheckArgs) -> Result<(), Failure> {
    let promised = args.search.serialization_order.clone().map(SerializationOrder::of);
    let promised = promised.as_ref().and_then(SerializationOrder::file);
    let inputs = args.histories.iter().chain(&args.join);
    let inputs = inputs.chain(&args.search.version_order).chain(promised);
    Files::reading(inputs.map(PathBuf::as_path))
        .writing("--joined", args.joined.as_ref())
        .writing("--report", args.reports.report.as_ref())
        .writing("--dot", args.reports.dot.as_ref())
        .writing("--svg", args.reports.svg.as_ref())
        .writing("--junit", args.reports.junit.as_ref())
        .writing("--bug-report", args.reports.bug_report.as_ref())
        .writing("--proof", args.proof.as_ref())
        .refuse_clashes()
}

/// How to read the histories, and what deciding may cost.
fn options(args: &CheckArgs, question: &Question) -> CheckOptions {
    let is_open = matches!(question, Question::Levels(request) if request.open);
    let mut options = semantics(&args.semantics);
    options.timeout = args.timeout.or(is_open.then_some(PATIENCE));
    options.memory = args.memory;
    options.trust_version_order = args.search.trust_version_order;
    options.assume = args.search.assume.iter().copied().collect();
    options.minimize = !args.search.no_minimize;
    options
}

/// What the order of a history means.
pub(super) fn semantics(args: &SemanticsArgs) -> CheckOptions {
    let skew = args.clock_skew.map_or(0, |skew| skew.as_nanos().min(FOR_EVER) as u64);
    CheckOptions::default().with_session_order(!args.no_session_order).with_clock_skew(skew)
}

impl Question {
    fn build(levels: &[String], patterns: &[String]) -> Result<Question, Failure> {
        if patterns.is_empty() {
            return Ok(Question::Levels(Request::build(levels)?));
        }
        if patterns.iter().any(|name| name == "all") {
            return Ok(Question::Patterns { kinds: supported_patterns().collect(), named: false });
        }
        let looking = AnomalyFlag {
            done: "searched for",
            with: supported_patterns().collect(),
            refusal: "cannot be searched for on its own yet",
            words: &["all"],
        };
        let kinds: Result<Vec<_>, _> = patterns.iter().map(|name| looking.find(name)).collect();
        let mut kinds = kinds?;
        kinds.sort_unstable();
        kinds.dedup();
        Ok(Question::Patterns { kinds, named: true })
    }
}

impl Question {
    /// Leaves out the levels that nobody named and that an order of transactions does not decide.
    fn ask_only_what_is_promised(&mut self, by_timestamps: bool) {
        if let Question::Levels(Request { levels, named, .. }) = self {
            levels.retain(|level| {
                named.contains(level) || is_decided_by_promise(*level, by_timestamps)
            });
        }
    }
}

impl Request {
    pub(crate) fn build(names: &[String]) -> Result<Request, Failure> {
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

/// A level that can be checked, by its name.
pub(super) fn find_level(name: &str) -> Result<Level, Failure> {
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
    fn patterns_are_asked_for_by_everybodys_names_and_once() {
        let question = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Question::build(&[], &names)
        };
        let kinds = vec![AnomalyKind::AbortedRead, AnomalyKind::FracturedReadCo];
        let expected = Question::Patterns { kinds, named: true };
        assert_eq!(question(&["tap-k", "G1a", "fractured-read-co"]).unwrap(), expected);
        let all = Question::Patterns { kinds: supported_patterns().collect(), named: false };
        assert_eq!(question(&["all"]).unwrap(), all);
        for (name, error) in [
            ("lost-update", "LostUpdate cannot be searched for on its own yet"),
            ("rc", "read-committed is a level, not an anomaly"),
            ("G1b", "`G1b` may mean several anomalies"),
            ("cyclicoc", "there is no anomaly `cyclicoc`"),
        ] {
            assert_eq!(question(&[name]).unwrap_err().message, error);
        }
    }

    #[test]
    fn a_level_named_twice_is_decided_once() {
        let twice = request(&["pl-2", "adya-read-committed"]).unwrap();
        assert_eq!(twice.levels, [Level::AdyaReadCommitted]);
    }
}
