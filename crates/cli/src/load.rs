//! Reading a history, or what is stated about one, and saying what was odd about the file.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use isolario::formats::version_order::{self, UnknownNames, VersionStatements};
use isolario::formats::{
    self, Content, ContradictoryTimesError, Meter, Position, Problem, ReadError, Source,
    serialization_order,
};
use isolario::model::{History, Oddity, PromisedOrder, Remark, Severity};

use crate::args::MatchesBy;
use crate::config::{InputFormat, SerializationOrder};
use crate::console::Console;
use crate::failure::Failure;
use crate::progress::Progress;

/// A history, and how long it took to read.
pub(crate) struct LoadedHistory {
    pub(crate) history: History,
    pub(crate) time: Duration,
}

/// Reads a history in the given format, or in the one that it looks like.
pub(crate) fn load(
    path: &Path,
    format: InputFormat,
    console: &mut Console,
) -> Result<LoadedHistory, Failure> {
    let name = path.display();
    let begun = Instant::now();
    let meter = Meter::default();
    let progress = (!console.quiet).then(|| Progress::of_reading(&name.to_string(), meter.clone()));
    let loaded = read(path, format, meter)?;
    let time = begun.elapsed();
    drop(progress);
    for warning in &loaded.warnings {
        console.warning(&format!("{name}{}: {}", place(warning.position), warning.message));
    }
    if let Some(found) = ContradictoryTimesError::of(&loaded.history) {
        report_bad_times(&name.to_string(), &found, format, console);
    }
    for ignored in &loaded.ignored {
        let first = place(ignored.first);
        console.detail(&format!(
            "{name}: ignored {} {}, the first at {name}{first}",
            ignored.count, ignored.what
        ));
    }
    Ok(LoadedHistory { history: loaded.history, time })
}

/// Says which transactions finish before they start, where both times of these are left out.
pub(crate) fn report_bad_times(
    name: &str,
    found: &ContradictoryTimesError,
    format: InputFormat,
    console: &mut Console,
) {
    let of_each = if found.count() == 1 { "" } else { " of each" };
    let (place, found) = (place(found.position()), found.describe(format.most_lines));
    console.caution(&format!("{name}{place}: {found}; both times{of_each} are left out"));
}

/// Says what is odd about a history. Gives back the contradiction, if there is one: no verdict
/// about such a history would mean anything.
pub(crate) fn report_remarks(
    name: &str,
    history: &History,
    remarks: &[Remark],
    console: &mut Console,
) -> Option<Failure> {
    let mut contradiction = None;
    // Bad times were reported when the history was read.
    let is_new = |remark: &&Remark| !matches!(remark.first, Oddity::FinishBeforeStart { .. });
    for remark in remarks.iter().filter(is_new) {
        let text = format!("{name}: {}", remark.describe(history));
        match remark.severity() {
            Severity::Fatal => contradiction = contradiction.or(Some(Failure::new(text))),
            Severity::Warning => console.warning(&text),
            _ => console.detail(&text),
        }
    }
    contradiction
}

fn read(path: &Path, format: InputFormat, meter: Meter) -> Result<formats::ParsedHistory, Failure> {
    let failed = |error: &ReadError| Failure::reading(error, format);
    let source = Source::open_metered(path, meter).map_err(|error| failed(&error))?;
    let source = source.leaving_out_contradictory_times(format.leaves_out_contradictory_times);
    let guess = formats::sniff(&source);
    if let Some(named) = format.named {
        return named.read(&source).map_err(|error| match guess {
            Some(guess) if is_about_format(&error) && guess.name() != named.name() => failed(
                &error,
            )
            .with_hint(format!("it looks like {0}; try {1} {0}", guess.name(), format.flag)),
            _ => failed(&error),
        });
    }
    let Some(guess) = guess else {
        return match formats::by_extension(path) {
            // What is wrong with it says more than that it looks like nothing.
            Some(usual) if has_content(&source) => usual.read(&source).map_err(|error| {
                let (name, flag) = (usual.name(), format.flag);
                let hint = format!(
                    "it was read as {name}, by its extension; use {flag} for another format"
                );
                failed(&error).with_hint(hint)
            }),
            _ => Err(unrecognised(&source, format)),
        };
    };
    guess.read(&source).map_err(|error| failed(&error).with_guess(guess.name(), format.flag))
}

/// Whether a history may have been read in a wrong format.
fn is_about_format(error: &ReadError) -> bool {
    !matches!(error.problem, Problem::ContradictoryTimes(_))
}

/// A source that looks like no format, and what it may be instead.
fn unrecognised(source: &Source, format: InputFormat) -> Failure {
    let (name, flag) = (source.name(), format.flag);
    match source.content() {
        _ if is_parquet(source) => Failure::new(format!("{name}: a Parquet file, which isolario cannot read")).with_hint(
            format!("check it with isolario-cluster: isolario-cluster check --level L {name}"),
        ),
        Content::File(bytes) if bytes.is_empty() => Failure::new(format!("{name}: the file is empty"))
            .with_hint("`isolario run` records a history, and `isolario gen history` generates one"),
        Content::Directory(files) if files.is_empty() => {
            Failure::new(format!("{name}: the directory has no files"))
                .with_hint("name a file, or a directory of logs")
        }
        Content::Directory(_) => Failure::new(format!(
            "{name}: the files of the directory are in no known history format"
        ))
        .with_hint(format!(
            "a directory is read as one history with a file per session: name its files to read them \
                     one by one, or its format with {flag}"
        )),
        Content::File(bytes) => {
            let error = source.error(Position::Whole, Problem::Unrecognised);
            let failure = Failure::reading(&error, format);
            match PACKERS.iter().find(|(_, magic)| bytes.starts_with(magic)) {
                None => failure,
                Some((packer, _)) => Failure::new(format!("{name}: the file is compressed with {packer}"))
                    .with_hint(format!("unpack it first: {packer} -dc {name} | isolario check -")),
            }
        }
    }
}

/// Whether it is a table of operations, as `isolario-cluster` writes it, or some other one.
fn is_parquet(source: &Source) -> bool {
    let is_parquet = |bytes: &[u8]| bytes.starts_with(b"PAR1");
    match source.content() {
        Content::File(bytes) => is_parquet(bytes),
        Content::Directory(files) => files.iter().any(|(_, bytes)| is_parquet(bytes)),
    }
}

/// What histories may be packed with and is not read, by how it begins.
const PACKERS: [(&str, &[u8]); 2] = [("xz", b"\xfd7zXZ\0"), ("bzip2", b"BZh")];

/// Whether there is anything in a file but what a packer made of it.
fn has_content(source: &Source) -> bool {
    match source.content() {
        Content::File(bytes) => {
            !bytes.is_empty() && !PACKERS.iter().any(|(_, magic)| bytes.starts_with(magic))
        }
        Content::Directory(_) => false,
    }
}

/// A position, as it follows the name of a file.
pub(crate) fn place(position: Position) -> String {
    match position {
        Position::Whole => String::new(),
        Position::Line(line) => format!(":{line}"),
        Position::Column(line, column) => format!(":{line}:{column}"),
        Position::Byte(byte) => format!(": byte {byte}"),
    }
}

/// Lets a database say which rows satisfy the predicates that nobody here can evaluate.
#[cfg(feature = "databases")]
pub(crate) fn ask_for_matches(history: History, by: Option<MatchesBy>) -> Result<History, Failure> {
    let Some(MatchesBy::Sqlite) = by else { return Ok(history) };
    let sqlite = isolario::db::matches::Sqlite::new().map_err(|error| {
        Failure::new(format!("cannot start SQLite to evaluate predicates: {error}"))
    })?;
    Ok(history.with_matches(|predicate| sqlite.oracle(predicate)))
}

/// There is none in this build.
#[cfg(not(feature = "databases"))]
pub(crate) fn ask_for_matches(history: History, by: Option<MatchesBy>) -> Result<History, Failure> {
    match by {
        None => Ok(history),
        Some(MatchesBy::Sqlite) => {
            Err(Failure::new("--matches sqlite: this build of isolario does not contain SQLite")
                .with_hint("build it with the feature `databases`"))
        }
    }
}

/// Reads what a file states about a history, and warns of what the history does not have.
pub(crate) fn read_version_order(
    file: &Path,
    name: &str,
    history: &History,
    console: &mut Console,
) -> Result<VersionStatements, Failure> {
    let source = Source::open(file).map_err(|error| bad_order(&error))?;
    let statements = version_order::read(&source, history).map_err(|error| bad_order(&error))?;
    if let Some(message) = unknown_in(&statements.unknown, name) {
        console.warning(&format!("{}:{message}", file.display()));
    }
    Ok(statements)
}

/// Reads the order that a database promises for the transactions of a history, and warns of those
/// that the history does not have.
pub(crate) fn read_serialization_order(
    order: &SerializationOrder,
    name: &str,
    history: &History,
    console: &mut Console,
) -> Result<PromisedOrder, Failure> {
    let SerializationOrder::File(file) = order else {
        let has_stamps = |txn| history.db_start(txn).or(history.db_commit(txn)).is_some();
        return match history.txns().any(has_stamps) {
            true => Ok(PromisedOrder::of_stamps(history)),
            false => {
                Err(Failure::new(format!("{name} does not contain timestamps of the database"))
                    .with_hint("give the order in a file: --serialization-order FILE"))
            }
        };
    };
    let bad = |error: ReadError| {
        let hint = match &error.problem {
            Problem::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                "check the path; `isolario gen history --serialization-order-out FILE` writes such a \
                 file"
            }
            _ => "a line looks like {\"order\": [\"T1\", \"T2\"]}",
        };
        Failure::new(error.to_string()).with_hint(hint)
    };
    let source = Source::open(file).map_err(bad)?;
    let sequence = serialization_order::read(&source, history).map_err(bad)?;
    if let Some((line, first)) = &sequence.first_unknown {
        let more = match sequence.unknown - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let file = file.display();
        console.warning(&format!("{file}:{line}: ignored {first}{more}, not in {name}"));
    }
    Ok(PromisedOrder::of_txns(history, &sequence.txns))
}

/// What a history does not have, and where that is first named.
fn unknown_in(unknown: &UnknownNames, name: &str) -> Option<String> {
    let (line, what) = unknown.first.as_ref()?;
    let others = unknown.keys + unknown.versions - 1;
    let more = match others {
        0 => String::new(),
        1 => " and one more key or version".to_owned(),
        _ => format!(" and {others} more keys and versions"),
    };
    Some(format!("{line}: ignored {what}{more}, not in {name}"))
}

fn bad_order(error: &ReadError) -> Failure {
    let failure = Failure::new(error.to_string());
    match &error.problem {
        Problem::Io(error) if error.kind() == io::ErrorKind::NotFound => failure.with_hint(
            "check the path; `isolario gen history --version-order-out FILE` writes such a file",
        ),
        Problem::Io(_) => failure,
        Problem::AbortedVersion { .. } => {
            failure.with_hint("remove the versions of aborted transactions from the file")
        }
        Problem::AmbiguousVersion { .. } => failure
            .with_hint("name the writers instead: {\"key\": \"x\", \"writers\": [\"T1\", \"T2\"]}"),
        _ => failure.with_hint("a line looks like {\"key\": \"x\", \"values\": [1, 2]}"),
    }
}
