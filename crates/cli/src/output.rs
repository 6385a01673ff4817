//! Writing a history: to a stream, or to a file that is there completely or not at all.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use isolario::formats::{HistoryFormat, OutputTarget};
use isolario::model::{SinkError, TxnSink};

use crate::failure::Failure;
use crate::outfile::{Draft, Place, open_stream, refuse_replacing};

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

    /// Refuses a target that would have to be replaced, before any work is done. A directory is
    /// never replaced: it may hold more than a history.
    pub(crate) fn refuse_existing(&self) -> Result<(), Failure> {
        if self.is_stdout() { Ok(()) } else { refuse_replacing(&self.path, self.force) }
    }

    /// Writes what `fill` puts into the sink. The answer is none where the reader closed the
    /// pipe: then there is no reason to go on.
    pub(crate) fn write<T>(
        &self,
        fill: impl FnOnce(&mut dyn TxnSink) -> Result<T, SinkError>,
    ) -> Result<Option<T>, Failure> {
        match self.try_write(fill) {
            Ok(filled) => Ok(Some(filled)),
            Err(SinkError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn try_write<T>(
        &self,
        fill: impl FnOnce(&mut dyn TxnSink) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        if self.is_stdout() {
            let stdout = BufWriter::new(io::stdout());
            return self.write_to(OutputTarget::Stream(Box::new(stdout)), fill);
        }
        match Place::of(&self.path)? {
            Place::File { target, there } => {
                let draft = Draft::begin(target, there)?;
                let filled = self.write_to(OutputTarget::Path(draft.path()), fill)?;
                draft.keep()?;
                Ok(filled)
            }
            place => {
                let through = BufWriter::new(open_stream(&place)?);
                self.write_to(OutputTarget::Stream(Box::new(through)), fill)
            }
        }
    }

    fn write_to<T>(
        &self,
        target: OutputTarget,
        fill: impl FnOnce(&mut dyn TxnSink) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        let mut writer = self.format.writer(target)?;
        let filled = fill(writer.as_mut())?;
        writer.finish()?;
        Ok(filled)
    }

    /// A history that could not be written there.
    pub(crate) fn failed(&self, error: &SinkError) -> Failure {
        let name = self.path.display().to_string();
        let name = if self.is_stdout() { "standard output" } else { &name };
        Failure::writing(name, error, self.flag)
    }
}
