//! Writing a history: to standard output, or to a file that is there completely or not at all.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use isolario::formats::{HistoryFormat, Target};
use isolario::model::{SinkError, TxnSink};

use crate::console::PipeTolerant;
use crate::draft::{Draft, refuse_impossible};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Where to write a history, and in which format.
pub(crate) struct Output {
    /// A file or directory; `-` is standard output.
    pub(crate) path: PathBuf,
    pub(crate) format: &'static dyn HistoryFormat,
    /// The flag that names the format.
    pub(crate) flag: &'static str,
    /// Whether to replace what is there.
    pub(crate) force: bool,
}

impl Output {
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Refuses a target that would have to be replaced, before any work is done.
    pub(crate) fn refuse_existing(&self) -> Result<(), Failure> {
        let name = self.path.display();
        // A link that leads nowhere is there, too.
        match self.path.symlink_metadata() {
            _ if self.is_stdout() => Ok(()),
            Err(_) => refuse_impossible(&self.path),
            // A directory may hold more than a history: nobody's files are removed on a flag.
            Ok(found) if found.is_dir() => {
                Err(Failure::new(format!("{name} exists and is a directory"))
                    .with_hint("remove it, or choose another name"))
            }
            Ok(_) if self.force => Ok(()),
            Ok(_) => Err(Failure::new(format!("{name} exists already"))
                .with_hint("replace it with --force, or choose another name")),
        }
    }

    /// Writes what `fill` puts into the sink. A file is written beside its place and renamed at the
    /// end: a failure leaves nothing half-written.
    pub(crate) fn write<T>(
        &self,
        fill: impl FnOnce(&mut dyn TxnSink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.is_stdout() {
            let stdout = BufWriter::new(PipeTolerant::new(io::stdout()));
            return self.write_to(Target::Stream(Box::new(stdout)), fill);
        }
        let draft = Draft::beside(&self.path);
        let interrupt = Interrupt::listen(true)?;
        interrupt.draft(draft.path());
        let filled = self.write_to(Target::Path(draft.path().to_owned()), fill)?;
        draft.keep_as(&self.path).map_err(|error| self.failed(&error.into()))?;
        Ok(filled)
    }

    fn write_to<T>(
        &self,
        target: Target,
        fill: impl FnOnce(&mut dyn TxnSink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut writer = self.format.writer(target).map_err(|error| self.failed(&error))?;
        let filled = fill(writer.as_mut())?;
        writer.finish().map_err(|error| self.failed(&error))?;
        Ok(filled)
    }

    /// A history that could not be written there.
    pub(crate) fn failed(&self, error: &SinkError) -> Failure {
        let name = self.path.display().to_string();
        let name = if self.is_stdout() { "standard output" } else { &name };
        Failure::writing(name, error, self.flag)
    }
}
