//! `--version-order`: orders of versions, read for one history.

use std::io;
use std::path::Path;

use isolario::formats::version_order::{self, Unknown};
use isolario::formats::{Problem, ReadError, Source};
use isolario::model::{History, StatedOrder};

use crate::console::Console;
use crate::failure::Failure;

/// Reads what a file states about a history, and warns of what the history does not have.
pub(crate) fn read(
    file: &Path,
    name: &str,
    history: &History,
    console: &mut Console,
) -> Result<Vec<StatedOrder>, Failure> {
    let source = Source::open(file).map_err(|error| failed(&error))?;
    let statements = version_order::read(&source, history).map_err(|error| failed(&error))?;
    if let Some(message) = describe(&statements.unknown, name) {
        console.warning(&format!("{}:{message}", file.display()));
    }
    Ok(statements.orders)
}

/// What a history does not have, and where that is first named.
fn describe(unknown: &Unknown, name: &str) -> Option<String> {
    let (line, what) = unknown.first.as_ref()?;
    let others = unknown.keys + unknown.versions - 1;
    let more = match others {
        0 => String::new(),
        1 => ", nor one more key or version".to_owned(),
        _ => format!(", nor {others} more keys and versions"),
    };
    Some(format!("{line}: {name} does not have {what}{more}; left out"))
}

fn failed(error: &ReadError) -> Failure {
    let failure = Failure::new(error.to_string());
    match &error.problem {
        Problem::Io(error) if error.kind() == io::ErrorKind::NotFound => failure.with_hint(
            "check the path; `isolario gen history --version-order-out FILE` writes such a file",
        ),
        Problem::Io(_) => failure,
        Problem::AbortedVersion { .. } => {
            failure.with_hint("leave out the versions of transactions that aborted")
        }
        Problem::AmbiguousVersion { .. } => {
            failure.with_hint("name writers: {\"key\": \"x\", \"writers\": [\"T1\", \"T2\"]}")
        }
        _ => failure.with_hint("a line is such as {\"key\": \"x\", \"values\": [1, 2]}"),
    }
}
