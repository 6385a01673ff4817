//! Formats that keep one file per session in a directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use isolario_model::{History, SinkError, Value, ValueRef};
use rustc_hash::FxHashSet;

use crate::error::{Fault, Position, Problem, ReadError};
use crate::narrow::{inexpressible, numbers_or_positions};
use crate::source::{Bytes, Source};
use crate::{IgnoredItems, OutputTarget};

/// A file of a directory and the session it holds.
#[derive(Debug)]
pub(crate) struct SessionFile<'a> {
    /// The session's name.
    pub(crate) session: Value,
    /// The file's name.
    pub(crate) name: &'a str,
    /// What it holds.
    pub(crate) bytes: &'a [u8],
}

impl SessionFile<'_> {
    /// Names the file as the one at fault, which is a text: the place is a line and a column.
    pub(crate) fn text_error(&self, source: &Source, fault: Fault) -> ReadError {
        source.error_in(self.name, Position::in_text(self.bytes, fault.at), *fault.problem)
    }

    /// Names the file as the one at fault, which is binary: the place is a byte.
    pub(crate) fn binary_error(&self, source: &Source, fault: Fault) -> ReadError {
        source.error_in(self.name, Position::Byte(fault.at as u64), *fault.problem)
    }
}

/// The session files of a directory, and how many of its files are none.
pub(crate) fn session_files<'a>(
    source: &'a Source,
    prefix: char,
    is_session: impl Fn(&str) -> bool,
) -> Result<(Vec<SessionFile<'a>>, u64), ReadError> {
    let (mut sessions, mut others) = (Vec::new(), 0);
    let mut seen = FxHashSet::default();
    for (name, bytes) in source.require_files()? {
        if !is_session(plain_name(name)) {
            others += 1;
            continue;
        }
        let session = session_name(name, prefix);
        if !seen.insert(session.clone()) {
            let found = format!("a second file of session {session}");
            let problem = Problem::malformed("one file per session", found);
            return Err(source.error_in(name, Position::Whole, problem));
        }
        sessions.push(SessionFile { session, name, bytes });
    }
    Ok((sessions, others))
}

/// The first file that looks like a session and is not empty: what sniffers look at.
pub(crate) fn first_session(source: &Source, is_session: impl Fn(&str) -> bool) -> Option<&[u8]> {
    let mut files = source.files()?.iter();
    let has_content =
        |(name, bytes): &&(String, Bytes)| is_session(plain_name(name)) && !bytes.is_empty();
    files.find(has_content).map(|(_, bytes)| &bytes[..])
}

/// The name before it was compressed.
fn plain_name(file: &str) -> &str {
    file.strip_suffix(".gz").or_else(|| file.strip_suffix(".zst")).unwrap_or(file)
}

/// `T7.log` is session 7 where the prefix is `T`; any other file is named by itself. Leading
/// zeros are kept apart, so that `T7.log` and `T07.log` stay two sessions.
fn session_name(file: &str, prefix: char) -> Value {
    let plain = plain_name(file);
    let number = plain
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(".log"))
        .and_then(|digits| digits.parse::<u64>().ok().filter(|n| n.to_string() == digits));
    match number {
        Some(number) => ValueRef::from(number).to_owned(),
        None => Value::Text(plain.into()),
    }
}

/// Whole files or sessions that were not used, for the report.
pub(crate) fn ignored_if_any(what: &'static str, count: u64) -> Option<IgnoredItems> {
    (count > 0).then_some(IgnoredItems { what, count, first: Position::Whole })
}

/// Creates a directory and, in it, a file for every session, which `write_session` fills.
///
/// Files are numbered by the sessions' names where those are numbers, else by position.
pub(crate) fn write_session_files(
    format: &'static str,
    prefix: char,
    history: &History,
    target: OutputTarget,
    mut write_session: impl FnMut(isolario_model::SessionId, &mut dyn Write) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let directory = create_directory(format, target)?;
    let names = history.sessions().map(|session| Some(history.session_name(session)));
    let numbers = numbers_or_positions(names, |_| true, 0);
    for (session, number) in history.sessions().zip(numbers) {
        let file = File::create(directory.join(format!("{prefix}{number}.log")))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write_session(session, &mut out)?;
        out.flush()?;
    }
    Ok(())
}

/// A directory with nothing in it: whatever else it held would be taken for sessions.
fn create_directory(format: &'static str, target: OutputTarget) -> Result<PathBuf, SinkError> {
    let OutputTarget::Path(path) = target else {
        return Err(inexpressible(format, "a history in a stream: it is a directory of files"));
    };
    fs::create_dir_all(&path)?;
    if fs::read_dir(&path)?.next().is_some() {
        let message = format!("{} is a directory with files in it", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message).into());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_called_by_the_number_of_their_file() {
        assert_eq!(session_name("T7.log", 'T'), Value::Int(7));
        assert_eq!(session_name("T7.log.gz", 'T'), Value::Int(7));
        assert_eq!(session_name("T07.log", 'T'), Value::Text("T07.log".into()));
        assert_eq!(session_name("T+7.log", 'T'), Value::Text("T+7.log".into()));
        assert_eq!(session_name("J7.log", 'T'), Value::Text("J7.log".into()));
    }

    #[test]
    fn two_files_of_one_session_are_refused() {
        let files = ["T1.log", "T1.log.gz"].map(|n| (n.to_owned(), vec![])).to_vec();
        let error = session_files(&Source::from_files("d", files), 'T', |_| true).unwrap_err();
        let message =
            "d/T1.log.gz: expected one file per session, found a second file of session 1";
        assert_eq!(error.to_string(), message);
    }
}
