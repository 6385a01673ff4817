//! Reports: in which form they go to standard output, and which go to files.

use std::path::{Path, PathBuf};

use isolario::model::RunRecord;
use isolario::report::{Github, Hints, Json, Junit, Renderer, Report, bug_report, dot, html, svg};

use crate::args::{ReportArgs, ReportForm};
use crate::console::Console;
use crate::failure::Failure;
use crate::outfile::{Place, write_whole};

/// The renderer for standard output.
pub(crate) fn renderer(form: ReportForm, console: &Console) -> Box<dyn Renderer> {
    match form {
        ReportForm::Json => Box::new(Json),
        ReportForm::Junit => Box::new(Junit),
        ReportForm::Github => Box::new(Github),
        ReportForm::Human => {
            let mut human = console.human();
            human.timing = console.verbose;
            human.hints = Hints {
                more: "--max-anomalies N shows more",
                levels: "--level L shows those of a level",
                all: "--level all asks them",
                ask: "--level L asks for another",
                meaning: "`isolario explain NAME` says what an anomaly means, and what to look at.",
            };
            Box::new(human)
        }
    }
}

/// Which reports go to which files.
#[derive(Debug, Default)]
pub(crate) struct ReportFiles {
    pub(crate) html: Option<PathBuf>,
    pub(crate) dot: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) junit: Option<PathBuf>,
    pub(crate) bug_report: Option<PathBuf>,
    /// How many histories they are about.
    histories: usize,
}

impl ReportFiles {
    /// Whether they are about several histories.
    fn are_several(&self) -> bool {
        self.histories > 1
    }

    /// Whether any is to be written.
    pub(crate) fn are_wanted(&self) -> bool {
        let ReportFiles { html, dot, svg, junit, bug_report, .. } = self;
        [html, dot, svg, junit, bug_report].into_iter().any(Option::is_some)
    }

    /// Whether one of them says which history it is about: the digest takes time.
    pub(crate) fn want_digest(&self) -> bool {
        self.html.is_some() || self.bug_report.is_some()
    }

    pub(crate) fn of(args: ReportArgs, histories: usize) -> Result<ReportFiles, Failure> {
        let alone =
            [("--dot", &args.dot), ("--svg", &args.svg), ("--bug-report", &args.bug_report)];
        match alone.iter().find(|(_, file)| file.is_some()) {
            Some((flag, _)) if histories > 1 => {
                let message = format!("{flag} takes one history, but {histories} are given");
                Err(Failure::new(message).with_hint("check them one by one"))
            }
            _ => {
                let ReportArgs { report: html, dot, svg, bug_report, junit } = args;
                Ok(ReportFiles { html, dot, svg, junit, bug_report, histories })
            }
        }
    }
}

/// The files of one check. Each is complete after every history: whoever interrupts the check finds
/// what was decided until then.
pub(crate) struct Files<'c> {
    config: &'c ReportFiles,
    /// The suites so far.
    junit: Vec<u8>,
    /// The page on several histories so far.
    page: html::ReportCollection,
}

impl<'c> Files<'c> {
    pub(crate) fn new(config: &'c ReportFiles) -> Files<'c> {
        let page = html::ReportCollection::for_histories(config.histories);
        Files { config, junit: Vec::new(), page }
    }

    /// Writes the report on a history to all files. One that cannot be written does not stop the
    /// others. The answer says whether all were.
    pub(crate) fn report(
        &mut self,
        report: &Report<'_>,
        run: Option<&RunRecord>,
        console: &mut Console,
    ) -> bool {
        let mut all = true;
        let ReportFiles { html, dot, svg, bug_report, .. } = self.config;
        if let Some(file) = html.as_ref().filter(|_| !self.config.are_several()) {
            let written = write_whole(file, |out| html::write(report, run, out));
            all &= tell(written, "the report", file, console);
        } else if html.is_some() {
            // Writing to memory does not fail.
            let _ = self.page.add(report, run);
        }
        if let Some(file) = dot {
            let written = write_whole(file, |out| dot::write(report, out));
            all &= tell(written, "the graphs", file, console);
        }
        if let Some(file) = svg {
            let written = write_whole(file, |out| svg::write(report, out));
            all &= tell(written, "the picture", file, console);
        }
        if let Some(file) = bug_report {
            let written = write_whole(file, |out| bug_report::write(report, run, out));
            all &= tell(written, "the bug report", file, console);
        }
        if self.config.junit.is_some() {
            // Writing to memory does not fail.
            let _ = Junit.report(report, &mut self.junit);
        }
        self.write_so_far(console) && all
    }

    /// Adds further answers about the history of the last report: those by the database's own word.
    pub(crate) fn further(&mut self, report: &Report<'_>) {
        if self.config.junit.is_some() {
            // Writing to memory does not fail.
            let _ = Junit.report(report, &mut self.junit);
        }
    }

    /// Writes that a history could not be checked.
    pub(crate) fn failure(&mut self, name: &str, error: &str, console: &mut Console) -> bool {
        if self.config.junit.is_some() {
            let _ = Junit.failure(name.into(), error, &mut self.junit);
        }
        if self.config.are_several() {
            let _ = self.page.add_failure(name, error);
        }
        self.write_so_far(console)
    }

    /// Writes what holds all histories.
    pub(crate) fn end(&self, console: &mut Console) -> bool {
        let mut all = true;
        for (file, what) in self.shared() {
            all &= tell(self.write_shared(file), what, file, console);
        }
        all
    }

    /// The files that hold all histories, and what they are.
    fn shared(&self) -> Vec<(&'c Path, &'static str)> {
        let page = self.config.html.as_deref().filter(|_| self.config.are_several());
        let junit = self.config.junit.as_deref();
        let files = [(page, "the report"), (junit, "the results")];
        files.into_iter().filter_map(|(file, what)| Some((file?, what))).collect()
    }

    /// What is written through cannot be written anew: it waits for the end.
    fn write_so_far(&self, console: &mut Console) -> bool {
        let mut all = true;
        for (file, _) in self.shared() {
            if matches!(Place::of(file), Ok(Place::File { .. })) {
                let written = self.write_shared(file);
                all &= written.map_err(|failure| console.error(&failure)).is_ok();
            }
        }
        all
    }

    fn write_shared(&self, file: &Path) -> Result<(), Failure> {
        match self.config.html.as_deref() == Some(file) {
            true => write_whole(file, |out| self.page.write(out)),
            false => self.write_junit(file),
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

/// Says whether a file was written, and gives that back.
pub(crate) fn tell(
    written: Result<(), Failure>,
    what: &str,
    file: &Path,
    console: &mut Console,
) -> bool {
    match written {
        Ok(()) => {
            console.info(&format!("wrote {what} to {}", file.display()));
            true
        }
        Err(failure) => {
            console.error(&failure);
            false
        }
    }
}
