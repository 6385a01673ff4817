//! Well-formed files to begin with: those that are shipped, and the histories in them written in
//! every other format that can express them.

use std::fs;
use std::path::{Path, PathBuf};

use isolario_formats::{FORMATS, HistoryFormat, Source, find, sniff};
use isolario_model::History;

use crate::files::{is_directory, write};
use crate::targets::joined;

/// Histories for narrow formats: one that nearly all can express, one with outcomes, one with
/// lists and timestamps.
const PLAIN: [&str; 3] = [
    r#"{"isolario":1,"initial":0}
{"session":0,"id":1,"db_start":[10,0],"db_commit":[20,1],"ops":[["r",1,0],["w",1,11],["w",2,12]]}
{"session":0,"id":2,"db_start":[21,0],"db_commit":[30,0],"ops":[["r",2,12],["w",1,13]]}
{"session":1,"id":3,"db_start":[15,0],"db_commit":[40,0],"ops":[["r",1,13],["w",3,4294967296]]}
"#,
    r#"{"isolario":1,"initial":0}
{"session":3,"id":7,"ops":[["w",1,5],["r",2,0]]}
{"session":3,"id":8,"outcome":"aborted","ops":[["w",1,6],["r",1,5]]}
{"session":4,"id":9,"ops":[["r",1,6],["r",1,5],["w",2,8]]}
"#,
    r#"{"isolario":1,"initial":0}
{"session":0,"id":1,"db_start":[1,0],"db_commit":[2,0],"ops":[["append","l",1],["r","l",[]]]}
{"session":1,"id":2,"db_start":3,"db_commit":3,"ops":[["r","l",[1,"two"]],["w","x",true]]}
"#,
];

/// The inputs of a format's target, the same at every call.
pub fn seeds(format_name: &str) -> Vec<Vec<u8>> {
    let Some(format) = find(format_name) else { return Vec::new() };
    let shipped = shipped();
    let converted = shipped.iter().filter_map(|(_, _, history)| write(format, history).ok());
    let converted: Vec<_> = converted.map(|files| joined(&files)).collect();
    if is_directory(format) {
        return converted;
    }
    let own = shipped.into_iter().filter(|(name, ..)| *name == format_name);
    own.map(|(_, bytes, _)| bytes).chain(converted).collect()
}

/// The shipped files: format, bytes, history.
fn shipped() -> Vec<(&'static str, Vec<u8>, History)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = files_under(&root.join("../formats/tests/golden"));
    paths.extend(files_under(&root.join("../../examples/histories")));
    let contents = paths.iter().filter_map(|path| fs::read(path).ok());
    contents.chain(PLAIN.map(Vec::from)).filter_map(recognised).collect()
}

fn recognised(bytes: Vec<u8>) -> Option<(&'static str, Vec<u8>, History)> {
    let source = Source::from_bytes("seed", bytes.clone()).ok()?;
    let format = sniff(&source)?;
    let history = format.read(&source).ok()?.history;
    Some((format.name(), bytes, history))
}

fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut pending = vec![directory.to_owned()];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => pending.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files
}

/// The names of all formats.
pub fn format_names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| HistoryFormat::name(*format))
}
