//! `check --follow`: a history is checked while it is written.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario::follow::{FollowError, Following, Input, Settings, Step, pause_after};
use isolario::formats::{self, HistoryFormat, Source, Stream};
use isolario::model::{Level, VerdictKind};
use isolario::report::grouped;

use crate::args::ReportForm;
use crate::config::{Check, Follow, InputFormat};
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::load::report_bad_times;
use crate::run_directory::refuse_part;

/// How long those that wait for their writers are let be, at least, where nothing is new. Then the whole
/// history tells whether what they saw is on its way or was forgotten.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many times as long as it takes to look at the whole history, one waits before.
const REST: u32 = 10;

/// What came of following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// All levels hold of everything in the file.
    ToItsEnd,
    /// Something is wrong or open: a check of the whole history says what.
    UntilDoubt,
}

/// Follows a file until a level does not hold, nothing is added any more, or Ctrl-C.
pub(crate) fn follow(
    config: &Check,
    follow: &Follow,
    path: &Path,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Followed, Failure> {
    refuse_part(path)?;
    let input = input_of(config.format, path)?;
    let mut all = Vec::new();
    for level in &follow.levels {
        let new = Following::new(input, *level, &config.options, Settings::default());
        let following = new.map_err(|error| failed(&error, config.format))?;
        all.push(OneLevel { level: *level, following, waiting: 0 });
    }
    let mut levels = Levels { config, all, patience: PATIENCE };
    let (mut last_growth, mut is_told) = (Instant::now(), true);
    loop {
        let Some(new) = levels.each(OneLevel::step, console)? else {
            return Ok(Followed::UntilDoubt);
        };
        if new > 0 {
            (last_growth, is_told) = (Instant::now(), false);
        }
        if pause_after(new).is_zero() && !interrupt.happened() {
            continue;
        }
        let is_over = levels.all.iter().all(|one| one.following.is_complete());
        let is_idle = follow.until_idle.is_some_and(|most| last_growth.elapsed() >= most);
        if is_over || is_idle || interrupt.happened() {
            return levels.end(path, console);
        }
        if levels.wait() && !is_told && last_growth.elapsed() >= levels.patience {
            is_told = true;
            let begun = Instant::now();
            if levels.each(OneLevel::look_back, console)?.is_none() {
                return Ok(Followed::UntilDoubt);
            }
            levels.patience = PATIENCE.max(begun.elapsed() * REST);
        }
        std::thread::sleep(pause_after(new));
    }
}

/// A file that is read piece by piece.
pub(crate) fn input_of(format: InputFormat, path: &Path) -> Result<Input<'_>, Failure> {
    let input = Input::new(path, format_of(format, path)?);
    Ok(input.leaving_out_contradictory_times(format.leaves_out_contradictory_times))
}

/// Says which transactions of such a file finish before they start, if their times are left out.
pub(crate) fn report_bad_times_in(
    path: &Path,
    format: InputFormat,
    console: &mut Console,
) -> Result<(), Failure> {
    if format.leaves_out_contradictory_times {
        let found = input_of(format, path)?.bad_times().map_err(|error| failed(&error, format))?;
        if let Some(found) = found {
            report_bad_times(&path.display().to_string(), &found, format, console);
        }
    }
    Ok(())
}

/// The format of a file, which must be one that can be read piece by piece.
pub(crate) fn format_of(
    format: InputFormat,
    path: &Path,
) -> Result<&'static dyn HistoryFormat, Failure> {
    let source = Source::open(path).map_err(|error| Failure::reading(&error, format))?;
    let found = format.named.or_else(|| formats::sniff(&source));
    match found.or_else(|| formats::by_extension(path)) {
        Some(format) if Stream::FORMATS.contains(&format.name()) => Ok(format),
        found => {
            let name = found.map_or("unknown", HistoryFormat::name);
            let path = path.display();
            Err(Failure::new(format!("{path}: the format ({name}) cannot be read incrementally"))
                .with_hint("record it as isolario or jsonl, or check the complete history"))
        }
    }
}

/// One level of the file.
struct OneLevel<'i> {
    level: Level,
    following: Following<'i>,
    /// How many transactions wait for their writers.
    waiting: usize,
}

impl OneLevel<'_> {
    fn step(&mut self) -> Result<Step, FollowError> {
        self.following.step()
    }

    fn look_back(&mut self) -> Result<Step, FollowError> {
        match self.waiting {
            0 => Ok(Step::Nothing),
            _ => self.following.look_back(),
        }
    }

    /// Says how long it took until what was added had been looked at, if something was added.
    fn tell_delay(&self, console: &mut Console) {
        let after = |share| self.following.delays().quantile(share);
        if let (Some(median), Some(most)) = (after(0.5), after(0.99)) {
            console.info(&format!(
                "{}: delay from the recording of a transaction to its check: median {} ms, 99th percentile {} ms",
                self.level,
                grouped(median.as_millis() as u64),
                grouped(most.as_millis() as u64)
            ));
        }
    }
}

/// All levels of the file. Each reads it on its own, so that one can read it again and the others go on.
struct Levels<'c, 'i> {
    config: &'c Check,
    all: Vec<OneLevel<'i>>,
    /// How long those that wait are let be.
    patience: Duration,
}

impl<'i> Levels<'_, 'i> {
    /// Takes a step with each level; says how many transactions were new, or nothing if a level does not
    /// hold or cannot be told.
    fn each(
        &mut self,
        step: impl Fn(&mut OneLevel<'i>) -> Result<Step, FollowError>,
        console: &mut Console,
    ) -> Result<Option<u64>, Failure> {
        let mut most_new = 0;
        for one in &mut self.all {
            let before = one.following.follower().arrived();
            match step(one).map_err(|error| failed(&error, self.config.format))? {
                Step::Nothing => {}
                Step::Holds { waiting } => {
                    one.waiting = waiting;
                    most_new = most_new.max(one.following.follower().arrived() - before);
                }
                Step::Again => {
                    let level = one.level;
                    console.detail(&format!(
                        "{level}: rereading part of the history, to retain more of it"
                    ));
                    most_new = u64::MAX;
                }
                Step::Decided(proven) => {
                    let at = grouped(one.following.follower().arrived());
                    let what = match proven.result.verdict.kind() {
                        VerdictKind::Violated => "is violated",
                        _ => "can no longer be decided",
                    };
                    console.info(&format!("after {at} transactions, {} {what}", one.level));
                    one.tell_delay(console);
                    return Ok(None);
                }
            }
        }
        Ok(Some(most_new))
    }

    /// Whether some transactions wait for their writers.
    fn wait(&self) -> bool {
        self.all.iter().any(|one| one.waiting > 0)
    }

    /// Says that all is well, unless something is open. Whoever wants more than that line gets the answer
    /// of a check.
    fn end(&mut self, path: &Path, console: &mut Console) -> Result<Followed, Failure> {
        let Check { form, proof, reports, .. } = self.config;
        let is_enough = *form == ReportForm::Human && proof.is_none() && !reports.are_wanted();
        if !is_enough {
            return Ok(Followed::UntilDoubt);
        }
        for one in &mut self.all {
            let end = one.following.to_end();
            if end.map_err(|error| failed(&error, self.config.format))?.is_some()
                || !one.following.follower().figures().has_evidence
            {
                return Ok(Followed::UntilDoubt);
            }
        }
        report_bad_times_in(path, self.config.format, console)?;
        for one in &self.all {
            one.tell_delay(console);
            let OneLevel { level, following, .. } = one;
            let (path, follower) = (path.display(), following.follower());
            let txns = grouped(follower.arrived());
            writeln!(console.out(), "{path}: {level} holds of all {txns} transactions so far")?;
            let (kept, restarts) = (grouped(follower.kept() as u64), follower.restarts());
            console.detail(&format!(
                "{level}: {kept} transactions are retained; the history was reread {restarts} times"
            ));
        }
        console.out().flush()?;
        Ok(Followed::ToItsEnd)
    }
}

pub(crate) fn failed(error: &FollowError, format: InputFormat) -> Failure {
    match error {
        FollowError::Read(error) => Failure::reading(error, format),
        error => Failure::new(error.to_string())
            .with_hint("check the complete history, without --follow"),
    }
}
