//! `isolario convert`: from one format to another.

use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use isolario::formats::{HistoryFormat, Target};
use isolario::model::{History, SinkError};

use crate::config::Convert;
use crate::console::{Console, PipeTolerant};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::load;

pub(crate) fn run(config: &Convert, console: &mut Console) -> Result<Outcome, Failure> {
    let name = config.to.display().to_string();
    let to_stdout = name == "-";
    if !to_stdout {
        refuse_existing(&config.to, config.force)?;
    }
    let history = load(&config.from, config.from_format, console)?.history;
    if to_stdout {
        let stdout = BufWriter::new(PipeTolerant::new(io::stdout()));
        write(&history, config.to_format, Target::Stream(Box::new(stdout)))
            .map_err(|error| Failure::writing("standard output", &error))?;
    } else {
        write_file(&history, config.to_format, &config.to)?;
        let (count, format) = (history.txn_count(), config.to_format.name());
        console.info(&format!("wrote {count} transactions to {name} ({format})"));
    }
    Ok(Outcome::Done)
}

fn refuse_existing(path: &Path, force: bool) -> Result<(), Failure> {
    let name = path.display();
    // A link that leads nowhere is there, too.
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        // A directory may hold more than a history: nobody's files are removed on a flag.
        Ok(found) if found.is_dir() => {
            Err(Failure::new(format!("{name} exists and is a directory"))
                .with_hint("remove it, or choose another name"))
        }
        Ok(_) if force => Ok(()),
        Ok(_) => Err(Failure::new(format!("{name} exists already"))
            .with_hint("replace it with --force, or choose another name")),
    }
}

fn write(history: &History, format: &dyn HistoryFormat, target: Target) -> Result<(), SinkError> {
    let mut writer = format.writer(target)?;
    history.replay(writer.as_mut())?;
    writer.finish()
}

/// Writes beside the target and renames at the end: a failure leaves nothing half-written.
fn write_file(history: &History, format: &dyn HistoryFormat, path: &Path) -> Result<(), Failure> {
    let failed = |error: SinkError| Failure::writing(&path.display().to_string(), &error);
    let draft = Draft::beside(path);
    write(history, format, Target::Path(draft.path.clone())).map_err(failed)?;
    std::fs::rename(&draft.path, path).map_err(|error| failed(error.into()))
}

/// A file or directory that is removed unless it was renamed.
struct Draft {
    path: PathBuf,
}

impl Draft {
    /// In the directory of the target, since a rename does not cross file systems.
    fn beside(target: &Path) -> Draft {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        Draft { path: target.with_file_name(name) }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove; that is no failure.
        let _ = match self.path.is_dir() {
            true => std::fs::remove_dir_all(&self.path),
            false => std::fs::remove_file(&self.path),
        };
    }
}
