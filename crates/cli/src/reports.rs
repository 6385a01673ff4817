//! Reports: in which form they go to standard output, and which go to files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use isolario::report::{Github, Hints, Human, Json, Junit, Renderer, Report, dot, html, svg};

use crate::args::{ReportArgs, ReportForm};
use crate::console::Console;
use crate::draft::{Draft, refuse_impossible};
use crate::failure::Failure;

/// The renderer for standard output.
pub(crate) fn renderer(form: ReportForm, console: &Console) -> Box<dyn Renderer> {
    match form {
        ReportForm::Json => Box::new(Json),
        ReportForm::Junit => Box::new(Junit),
        ReportForm::Github => Box::new(Github),
        ReportForm::Human => {
            let mut human = Human::new(console.style);
            human.timing = console.verbose;
            human.hints = Hints {
                more: "--max-anomalies N shows more",
                levels: "--level L shows those of a level",
                meaning: "`isolario explain NAME` says what an anomaly means, and what to look at.",
            };
            Box::new(human)
        }
    }
}

/// Which reports go to which files.
#[derive(Debug, Default)]
pub(crate) struct ReportFiles {
    html: Option<PathBuf>,
    dot: Option<PathBuf>,
    svg: Option<PathBuf>,
    junit: Option<PathBuf>,
}

impl ReportFiles {
    pub(crate) fn of(args: ReportArgs, histories: usize) -> Result<ReportFiles, Failure> {
        let alone = [("--report", &args.report), ("--dot", &args.dot), ("--svg", &args.svg)];
        match alone.iter().find(|(_, file)| file.is_some()) {
            Some((flag, _)) if histories > 1 => {
                let message = format!("{flag} takes one history, and there are {histories}");
                Err(Failure::new(message).with_hint("check them one by one"))
            }
            _ => {
                let files = [&args.report, &args.dot, &args.svg, &args.junit];
                files.into_iter().flatten().try_for_each(|file| refuse_impossible(file))?;
                let ReportArgs { report: html, dot, svg, junit } = args;
                Ok(ReportFiles { html, dot, svg, junit })
            }
        }
    }
}

/// The files of one run. Each is complete after every history: whoever interrupts the run finds
/// what was decided until then.
pub(crate) struct Files<'c> {
    config: &'c ReportFiles,
    /// The suites so far.
    junit: Vec<u8>,
}

impl<'c> Files<'c> {
    pub(crate) fn new(config: &'c ReportFiles) -> Files<'c> {
        Files { config, junit: Vec::new() }
    }

    /// Writes the report on a history to all files. One that cannot be written does not stop the
    /// others; what was wrong with the first of those is the answer.
    pub(crate) fn report(
        &mut self,
        report: &Report<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        if let Some(file) = &self.config.html {
            let written = write_whole(file, |out| html::write(report, None, out));
            if written.is_ok() {
                console.info(&format!("wrote the report to {}", file.display()));
            }
            result = result.and(written);
        }
        let mut quietly = |file: &Path, written: Result<(), Failure>| {
            if written.is_ok() {
                console.detail(&format!("wrote {}", file.display()));
            }
            written
        };
        if let Some(file) = &self.config.dot {
            result = result.and(quietly(file, write_whole(file, |out| dot::write(report, out))));
        }
        if let Some(file) = &self.config.svg {
            result = result.and(quietly(file, write_whole(file, |out| svg::write(report, out))));
        }
        if let Some(file) = &self.config.junit {
            Junit.report(report, &mut self.junit)?;
            result = result.and(quietly(file, self.write_junit(file)));
        }
        result
    }

    /// Writes that a history could not be checked.
    pub(crate) fn failure(&mut self, name: &str, error: &str) -> Result<(), Failure> {
        match &self.config.junit {
            Some(file) => {
                Junit.failure(name, error, &mut self.junit)?;
                self.write_junit(file)
            }
            None => Ok(()),
        }
    }

    fn write_junit(&self, file: &Path) -> Result<(), Failure> {
        write_whole(file, |out| {
            Junit.begin(out)?;
            out.write_all(&self.junit)?;
            Junit.end(out)
        })
    }
}

/// Writes a file that is there as a whole or not at all.
pub(crate) fn write_whole(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let whole = || -> io::Result<()> {
        let draft = Draft::beside(file);
        let mut out = BufWriter::new(File::create(draft.path())?);
        write(&mut out)?;
        out.flush()?;
        draft.keep_as(file)
    };
    whole().map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}
