//! What must hold for any bytes whatever. A target that does not hold panics.

use isolario_check::{CheckOptions, check, supported};
use isolario_formats::{FORMATS, HistoryFormat, Source, find};
use isolario_model::{History, SinkError};
use isolario_verify::verify;

use crate::files::{Files, write};
use crate::same::is_same;

/// Stands between the files of a directory in one input.
pub const FILE_MARK: &[u8] = b"\n%file%\n";

/// Histories above this many operations are read, and not checked: an input of a few kilobytes
/// is enough to find what there is to find.
const LARGEST_CHECKED: usize = 20_000;

/// Reads bytes as a format of one file. A history that comes out of them can be written in the
/// same format, if that can express it, and then read again.
///
/// # Panics
///
/// If the target does not hold.
pub fn read(format_name: &str, bytes: &[u8]) {
    if let Some(source) = file(bytes) {
        read_source(format_name, &source);
    }
}

/// As [`read`], for formats of several files.
///
/// # Panics
///
/// If the target does not hold.
pub fn directory(format_name: &str, bytes: &[u8]) {
    read_source(format_name, &several(format_name, bytes));
}

/// Every sniffer gives an answer, and the reader that it recommends gives one, too.
///
/// # Panics
///
/// If the target does not hold.
pub fn sniff(bytes: &[u8]) {
    let directories = ["cobra", "viper"].map(|name| several(name, bytes));
    for source in directories.iter().chain(&file(bytes)) {
        for format in FORMATS.iter().filter(|format| format.sniff(source)) {
            let _ = format.read(source);
        }
    }
}

/// Whatever history is in the bytes, as `jsonl` or `text`, all levels are decided for it, and the
/// evidence is accepted.
///
/// # Panics
///
/// If the target does not hold.
pub fn verdict(bytes: &[u8]) {
    let Some(source) = file(bytes) else { return };
    for format in ["jsonl", "text"].into_iter().filter_map(find) {
        let Ok(loaded) = format.read(&source) else { continue };
        if loaded.history.op_count() <= LARGEST_CHECKED {
            decide(&loaded.history);
        }
    }
}

fn decide(history: &History) {
    for session_order in [true, false] {
        let mut options = CheckOptions::default();
        options.session_order = session_order;
        for result in check(history, supported(), &options) {
            let verified = verify(
                history,
                &result,
                &isolario_verify::VerifyOptions::default().with_session_order(session_order),
            );
            assert!(verified.is_ok(), "{}: {verified:?}\n{result:?}", result.level);
        }
    }
}

/// Compressed input is left out: a few bytes of it may stand for gigabytes, and unpacking is other
/// people's work.
fn file(bytes: &[u8]) -> Option<Source> {
    let is_packed =
        bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    if is_packed { None } else { Source::from_bytes("input", bytes.to_vec()).ok() }
}

fn several(format_name: &str, bytes: &[u8]) -> Source {
    let letter = if format_name == "cobra" { 'T' } else { 'J' };
    let mut files = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(FILE_MARK.len()).position(|window| window == FILE_MARK) {
        files.push(rest[..at].to_vec());
        rest = &rest[at + FILE_MARK.len()..];
    }
    files.push(rest.to_vec());
    let named = (0..).zip(files).map(|(n, bytes): (u32, _)| (format!("{letter}{n}.log"), bytes));
    Source::from_files("input", named.collect())
}

/// The files of a directory as one input.
pub fn joined(files: &Files) -> Vec<u8> {
    match files {
        Files::One(bytes) => bytes.clone(),
        Files::Several(files) => {
            let contents: Vec<&[u8]> = files.iter().map(|(_, bytes)| &bytes[..]).collect();
            contents.join(FILE_MARK)
        }
    }
}

fn read_source(format_name: &str, source: &Source) {
    let Some(format) = find(format_name) else { return };
    format.sniff(source);
    if let Ok(loaded) = format.read(source) {
        let outcome = write_and_read(format, &loaded.history);
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

fn write_and_read(format: &dyn HistoryFormat, history: &History) -> Result<(), String> {
    let files = match write(format, history) {
        Ok(files) => files,
        Err(SinkError::Inexpressible { .. }) => return Ok(()),
        Err(error) => return Err(format!("cannot be written: {error}")),
    };
    let shown = || String::from_utf8_lossy(&joined(&files)).into_owned();
    let again = files.source("written").and_then(|source| format.read(&source));
    let again = again.map_err(|error| format!("{error}\n{}", shown()))?.history;
    match is_same(format, history, &again) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("another history comes back:\n{}", shown())),
        Err(error) => Err(error.to_string()),
    }
}
