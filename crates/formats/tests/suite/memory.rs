//! Formats of one file, over bytes in memory.

use isolario_formats::{Source, find};
use isolario_fuzz::files::{self, Files};
use isolario_model::{History, SinkError};

/// The bytes a format writes for a history.
pub fn write(format: &str, history: &History) -> Result<Vec<u8>, SinkError> {
    match files::write(find(format).unwrap(), history)? {
        Files::One(bytes) => Ok(bytes),
        Files::Several(_) => panic!("{format} writes several files"),
    }
}

/// The history a format reads from bytes, without the lines transactions stood on: no writer can
/// give those back.
pub fn read(format: &str, bytes: &[u8]) -> History {
    let source = Source::from_bytes("memory", bytes.to_vec()).unwrap();
    let loaded = find(format).unwrap().read(&source);
    let loaded =
        loaded.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(bytes)));
    files::without_lines(&loaded.history).unwrap()
}
