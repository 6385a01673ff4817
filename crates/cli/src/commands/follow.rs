//! `check --follow`: a history is checked while it is written.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario::check::{Follower, Look, Unfit};
use isolario::formats::{self, HistoryFormat, Source, Tail};
use isolario::model::{
    History, LevelResult, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart, VerdictKind,
};
use isolario::report::grouped;

use crate::args::ReportForm;
use crate::config::{Check, Follow};
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How long to wait for more where there is nothing new.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

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
    require_lines(config, path)?;
    let mut tail = Tail::open(path).map_err(|error| Failure::reading(&error, config.format))?;
    let new = |level| Follower::new(level, config.options.clone(), Follower::USUAL_TAIL);
    let mut following = Following {
        config,
        followers: follow.levels.iter().filter_map(|level| new(*level)).collect(),
        waiting: 0,
        patience: PATIENCE,
    };
    let (mut last_growth, mut is_told) = (Instant::now(), true);
    loop {
        let grew =
            tail.read(&mut following).map_err(|error| Failure::reading(&error, config.format))?;
        if grew {
            (last_growth, is_told) = (Instant::now(), false);
            if !following.look(&tail, false, console)? {
                return Ok(Followed::UntilDoubt);
            }
            continue;
        }
        if following.waiting > 0 && !is_told && last_growth.elapsed() >= following.patience {
            is_told = true;
            if !following.look(&tail, true, console)? {
                return Ok(Followed::UntilDoubt);
            }
        }
        let is_idle = follow.until_idle.is_some_and(|most| last_growth.elapsed() >= most);
        if is_idle || interrupt.happened() {
            return following.end(path, console);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Only lines can be read one by one while they are written.
fn require_lines(config: &Check, path: &Path) -> Result<(), Failure> {
    let source = Source::open(path).map_err(|error| Failure::reading(&error, config.format))?;
    let format = config.format.named.or_else(|| formats::sniff(&source));
    match format.or_else(|| formats::by_extension(path)).map(HistoryFormat::name) {
        Some("jsonl") => Ok(()),
        name => {
            let name = name.unwrap_or("in no known format");
            let path = path.display();
            Err(Failure::new(format!("{path} is {name}, and --follow reads jsonl")).with_hint(
                "have it recorded as jsonl, or check it when it is complete, without --follow",
            ))
        }
    }
}

/// One follower per level.
struct Following<'c> {
    config: &'c Check,
    followers: Vec<Follower>,
    /// How many transactions wait for their writers, at some level.
    waiting: usize,
    /// How long they are let be.
    patience: Duration,
}

impl Following<'_> {
    /// Looks at what is new, or at everything; false if some level does not hold or cannot be told.
    fn look(&mut self, tail: &Tail, all: bool, console: &mut Console) -> Result<bool, Failure> {
        self.waiting = 0;
        let mut whole: Option<History> = None;
        for follower in &mut self.followers {
            if let Some(unfit) = follower.unfit() {
                return Err(cannot(unfit));
            }
            let look = if all {
                Look::Doubtful
            } else {
                follower.look().map_err(|error| failed(&error))?
            };
            let looked = match look {
                Look::Doubtful => {
                    let begun = Instant::now();
                    let whole = match whole.take() {
                        Some(history) => whole.insert(history),
                        None => whole.insert(
                            tail.whole()
                                .map_err(|error| Failure::reading(&error, self.config.format))?,
                        ),
                    };
                    let looked = reload(follower, whole, console)?;
                    self.patience = PATIENCE.max(begun.elapsed() * REST);
                    looked
                }
                look => Ok(look),
            };
            match looked {
                Ok(Look::Holds { waiting }) => self.waiting = self.waiting.max(waiting),
                Ok(_) => return Ok(false),
                Err(result) => {
                    let at = grouped(follower.arrived());
                    let what = match result.verdict.kind() {
                        VerdictKind::Violated => "is violated",
                        _ => "cannot be told any more",
                    };
                    let level = follower.level();
                    console.info(&format!("after {at} transactions, {level} {what}"));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Says that all is well, unless something is open. Whoever wants more than that line gets the answer
    /// of a check.
    fn end(&self, path: &Path, console: &mut Console) -> Result<Followed, Failure> {
        let Check { form, proof, reports, dump_problem, .. } = self.config;
        let arrived = self.followers.first().map_or(0, Follower::arrived);
        let is_enough = *form == ReportForm::Human
            && proof.is_none()
            && dump_problem.is_none()
            && !reports.are_wanted();
        if self.waiting > 0 || arrived == 0 || !is_enough {
            return Ok(Followed::UntilDoubt);
        }
        for follower in &self.followers {
            let (path, level) = (path.display(), follower.level());
            let txns = grouped(follower.arrived());
            writeln!(console.out(), "{path}: {level} holds of all {txns} transactions so far")?;
            let (kept, reloads) = (grouped(follower.kept() as u64), follower.reloads());
            console.detail(&format!(
                "{level}: {kept} transactions are kept; the whole history was read {reloads} times"
            ));
        }
        console.out().flush()?;
        Ok(Followed::ToItsEnd)
    }
}

/// Looks at the whole history.
fn reload(
    follower: &mut Follower,
    whole: &History,
    console: &mut Console,
) -> Result<Result<Look, LevelResult>, Failure> {
    let (level, txns) = (follower.level(), grouped(follower.arrived()));
    console.detail(&format!("{level}: looking at all {txns} transactions again"));
    follower.reload(whole).map_err(|error| failed(&error))
}

fn failed(error: &SinkError) -> Failure {
    Failure::new(error.to_string())
        .with_hint("check the history when it is complete, without --follow")
}

fn cannot(unfit: &Unfit) -> Failure {
    let why = match unfit {
        Unfit::Operation => "it has operations other than reads and writes of registers",
        Unfit::Initial => "it does not state one initial value for all keys",
        _ => "somebody writes the initial value",
    };
    Failure::new(format!("the history cannot be followed: {why}"))
        .with_hint("check it when it is complete, without --follow")
}

/// Every level gets every transaction.
impl TxnSink for Following<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.followers.iter_mut().try_for_each(|follower| follower.meta(meta))
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.followers.iter_mut().try_for_each(|follower| follower.begin(start))
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.followers.iter_mut().try_for_each(|follower| follower.op_with(op, notes))
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.followers.iter_mut().try_for_each(|follower| follower.end(end))
    }
}
