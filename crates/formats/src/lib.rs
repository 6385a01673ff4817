//! Reads, writes and recognises history files: one module per format.
//!
//! [`read`] opens a path, recognises its format and builds a [`History`]; [`find`] gives a format
//! by name, and [`HistoryFormat::writer`] the sink that writes it.

mod bad_times;
mod by_value;
mod chronos;
mod cobra;
mod cursor;
mod dbcop;
mod decimal;
mod error;
mod isolario;
mod jepsen;
mod jsonl;
mod lines;
mod narrow;
mod notation;
mod number_set;
mod plume;
mod predicates;
pub mod serialization_order;
mod session_files;
mod source;
mod spare;
mod stream;
#[cfg(test)]
mod test_support;
mod text;
mod txn_names;
mod unpack;
pub mod version_order;
mod viper;

use std::path::{Path, PathBuf};

use isolario_model::{History, SinkError, TxnSink};

pub use bad_times::ContradictoryTimesError;
pub use error::{Position, Problem, ReadError};
pub use isolario::{LiveRecorder, SessionRecorder};
pub use source::{Bytes, Content, Meter, Source};
pub use stream::Stream;
pub use text::as_text;

/// A history as it came out of a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ParsedHistory {
    /// What was observed.
    pub history: History,
    /// What the format allows and this program makes no use of, counted: nothing is dropped
    /// silently.
    pub ignored: Vec<IgnoredItems>,
    /// What was wrong and could be put right: a cut file, a last record without an end.
    pub warnings: Vec<Warning>,
}

impl ParsedHistory {
    /// A history that used everything in its file.
    pub fn new(history: History) -> Self {
        ParsedHistory { history, ignored: Vec::new(), warnings: Vec::new() }
    }
}

/// One kind of thing in a file that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredItems {
    /// What, in the plural: "nemesis operations".
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// Where the first one stands.
    pub first: Position,
}

/// Something wrong that did not stop the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What was found and what was made of it.
    pub message: String,
    /// Where.
    pub position: Position,
}

/// Where a writer writes to.
pub enum OutputTarget {
    /// A stream: a file that is already open, a pipe, memory.
    Stream(Box<dyn std::io::Write + Send>),
    /// A path not yet there; formats of several files make a directory of it.
    Path(PathBuf),
}

impl OutputTarget {
    /// The stream of a one-file format: creates the file if it was given a path.
    pub fn into_stream(self) -> Result<Box<dyn std::io::Write + Send>, SinkError> {
        match self {
            OutputTarget::Stream(stream) => Ok(stream),
            OutputTarget::Path(path) => {
                let file = std::fs::File::create(path)?;
                Ok(Box::new(std::io::BufWriter::with_capacity(1 << 20, file)))
            }
        }
    }
}

/// A sink that writes a history file. Nothing is complete before `finish`.
pub trait HistoryWriter: TxnSink {
    /// Writes what is still held back and closes the file.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// A history format.
pub trait HistoryFormat: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it is, in half a line.
    fn about(&self) -> &'static str;

    /// Whether the source looks like this format. Looks at a beginning, not at everything.
    fn sniff(&self, source: &Source) -> bool;

    /// Makes a history of a source: what is special about the format.
    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError>;

    /// Reads a whole history. One with transactions that finish before they start is refused, unless the
    /// source [leaves out](Source::leaving_out_contradictory_times) their times.
    fn read(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        self.parse(source)?.with_sound_times(source)
    }

    /// A sink that writes this format.
    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError>;
}

/// All formats, in the order in which their sniffers are asked: the unmistakable ones first.
pub static FORMATS: &[&dyn HistoryFormat] = &[
    &isolario::Isolario,
    &cobra::Cobra,
    &dbcop::Dbcop,
    &viper::Viper,
    &chronos::Chronos,
    &jepsen::ElleEdn,
    &jepsen::ElleJson,
    &jepsen::JepsenLog,
    &plume::Plume,
    &jsonl::Jsonl,
    &text::Text,
];

/// The format of a name.
pub fn find(name: &str) -> Option<&'static dyn HistoryFormat> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

/// The format a source is in, if it looks like any.
pub fn sniff(source: &Source) -> Option<&'static dyn HistoryFormat> {
    FORMATS.iter().copied().find(|format| format.sniff(source))
}

/// The extensions that files usually have, and the names of the formats they are then in.
pub static EXTENSIONS: &[(&str, &str)] = &[
    ("iso", "isolario"),
    ("jsonl", "jsonl"),
    ("ndjson", "jsonl"),
    ("txt", "text"),
    ("edn", "elle-edn"),
    ("json", "elle-json"),
    ("bincode", "dbcop"),
];

/// The format that files of such a name are usually in.
pub fn by_extension(path: &Path) -> Option<&'static dyn HistoryFormat> {
    let extension = path.extension()?.to_str()?;
    if matches!(extension, "gz" | "zst") {
        return by_extension(Path::new(path.file_stem()?));
    }
    EXTENSIONS.iter().find(|(usual, _)| *usual == extension).and_then(|(_, name)| find(name))
}

/// Opens a path (`-` is standard input) and reads it in the format it looks like.
///
/// What looks like none is read in the format that its name suggests: what is wrong with it there
/// says more than that it looks like nothing.
pub fn read(path: &Path) -> Result<ParsedHistory, ReadError> {
    let source = Source::open(path)?;
    let by_name = || by_extension(path).filter(|_| source.file().is_some_and(|b| !b.is_empty()));
    match sniff(&source).or_else(by_name) {
        Some(format) => format.read(&source),
        None => Err(source.error(Position::Whole, Problem::Unrecognised)),
    }
}
