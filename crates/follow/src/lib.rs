//! Levels of a history that is read from its file from front to back, in memory that does not grow with
//! its length: while it is written, or because it is too large to be loaded.
//!
//! [`Following`] follows one level: it reads what is new, has a [`Follower`] look at it, and clears up
//! doubts by reading some of the file again, or all of it. [`spill::decide`] follows levels to the end of a file.

mod delay;
mod order;
mod places;
#[cfg(feature = "proof")]
pub mod proof;
mod reader;
mod sorted;
pub mod spill;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use isolario_check::{
    Census, CheckOptions, FollowStatus, Follower, HistoryCounts, HistoryQuery, Inconclusive,
    PartPositions, ProvenResult, QueryAnswer, Unfollowable,
};
use isolario_formats::{ContradictoryTimesError, HistoryFormat, ReadError, Stream};
use isolario_model::{
    AnomalyKind, History, Inapplicable, Level, LevelResult, Limit, SinkError, Undecided, ValueRef,
    Verdict,
};

pub use delay::Delays;
use delay::Watch;
use order::Mark;
pub use order::Order;
use places::{Place, Trail};
use reader::Reader;
use sorted::{Finishes, Runs};

/// Why a history could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It has too much of something, or makes no sense.
    #[error("{0}")]
    Sink(#[from] SinkError),
    /// It is of a kind that cannot be followed.
    #[error("the history cannot be followed: {}", in_words(*.0))]
    Unfit(Unfollowable),
    /// Its format cannot be read piece by piece.
    #[error("{path}: the format ({format}) cannot be read incrementally", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: &'static str,
    },
    /// The level is none of [`Follower::levels`].
    #[error("{0} cannot be followed")]
    Level(Level),
    /// What is sorted or kept on disk could not be written or read.
    #[error("cannot write temporary files in {path}: {error}", path = path.display())]
    Spill {
        /// The directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// What is kept on disk could not be written there.
fn failed(path: &Path, error: io::Error) -> FollowError {
    FollowError::Spill { path: path.to_owned(), error }
}

fn in_words(unfit: Unfollowable) -> &'static str {
    match unfit {
        Unfollowable::Operation => "it has operations other than reads and writes of registers",
        Unfollowable::Initial => "it does not state one initial value for all keys",
        _ => "a transaction writes the initial value",
    }
}

/// The file of a history.
#[derive(Clone, Copy)]
pub struct Input<'i> {
    /// Its path.
    pub path: &'i Path,
    /// Its format.
    pub format: &'static dyn HistoryFormat,
    /// Whether both times of transactions that finish before they start are left out, instead of being an
    /// error.
    pub leaves_out_contradictory_times: bool,
}

impl<'i> Input<'i> {
    /// A file whose times make sense.
    pub fn new(path: &'i Path, format: &'static dyn HistoryFormat) -> Input<'i> {
        Input { path, format, leaves_out_contradictory_times: false }
    }

    /// Leaves out both times of transactions that finish before they start, instead of refusing the file.
    #[must_use]
    pub fn leaving_out_contradictory_times(self, left_out: bool) -> Input<'i> {
        Input { leaves_out_contradictory_times: left_out, ..self }
    }

    /// The transactions of the file that finish before they start, as far as it is written.
    pub fn bad_times(&self) -> Result<Option<ContradictoryTimesError>, FollowError> {
        let mut stream = self.leaving_out_contradictory_times(true).open()?;
        let mut found: Option<ContradictoryTimesError> = None;
        loop {
            let mut piece = stream.next_piece()?;
            let is_end = piece.is_empty();
            if is_end {
                piece.push(stream.close()?);
            }
            if let Some(next) = stream.contradictory_times_in(&piece)? {
                found = Some(match found {
                    Some(before) => before.and(next),
                    None => next,
                });
            }
            if is_end {
                return Ok(found);
            }
        }
    }

    fn open(&self) -> Result<Stream, FollowError> {
        let stream = Stream::open(self.path, self.format)?.ok_or_else(|| FollowError::Format {
            path: self.path.to_owned(),
            format: self.format.name(),
        })?;
        Ok(stream.leaving_out_contradictory_times(self.leaves_out_contradictory_times))
    }
}

/// How much is looked at, and kept.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How many transactions are kept at least.
    pub tail: usize,
    /// How many new transactions are waited for before they are looked at, as long as more are there.
    pub at_a_time: usize,
    /// How many bytes may be used, about.
    pub memory: Option<u64>,
    /// How many bytes of the file are read at a time: a record at least.
    pub piece: usize,
    /// Whether the order is kept by which a level is satisfied.
    pub orders: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (tail, at_a_time) = (Follower::USUAL_TAIL, 1 << 15);
        Settings { tail, at_a_time, memory: None, piece: 1 << 21, orders: false }
    }
}

/// How long to wait for more after so many new transactions were looked at. What is kept is looked at again
/// each time: where little is new, more is waited for.
pub fn pause_after(new: u64) -> Duration {
    Duration::from_millis(if new > Follower::USUAL_TAIL as u64 { 0 } else { 100 })
}

impl Settings {
    /// With another number of transactions that are kept, and looked at, at least.
    #[must_use]
    pub fn with_tail(self, tail: usize) -> Settings {
        Settings { tail, at_a_time: tail, ..self }
    }

    /// With another number of transactions that are waited for before they are looked at. More take more memory, and a
    /// little less work.
    #[must_use]
    pub fn with_at_a_time(self, at_a_time: usize) -> Settings {
        Settings { at_a_time, ..self }
    }

    /// With another number of bytes that are read at a time. More take more memory, and are unpacked on more
    /// cores.
    #[must_use]
    pub fn with_pieces_of(self, piece: usize) -> Settings {
        Settings { piece, ..self }
    }

    /// With the orders by which levels are satisfied, or without. They are kept on disk.
    #[must_use]
    pub fn with_orders(self, orders: bool) -> Settings {
        Settings { orders, ..self }
    }

    /// With a limit on memory.
    #[must_use]
    pub fn with_memory(self, memory: Option<u64>) -> Settings {
        Settings { memory, ..self }
    }
}

/// An operation takes about so many bytes while it is looked at: in the batch that it was read into, in the
/// history, and in the columns of the checkers.
const BYTES_PER_OPERATION: u64 = 150;

/// So many transactions are sorted in memory, if there is no limit.
const SORTED_AT_A_TIME: usize = 1 << 21;

/// How much memory is used where nobody says how much.
const USUAL_MEMORY: u64 = 4 << 30;

/// Places to go back to take this share of the memory at most. What is known at a place takes so many bytes
/// per key, transaction and operation.
const SHARE_OF_PLACES: u64 = 16;
const BYTES_PER_KNOWN: u64 = 32;

/// One level of a file, followed.
pub struct Following<'i> {
    input: Input<'i>,
    options: CheckOptions,
    settings: Settings,
    reader: Reader,
    follower: Follower,
    /// Whether everything was read, and nothing more is waited for.
    is_closed: bool,
    /// Where transactions are sorted that are not about in the order in which they finished.
    directory: Option<PathBuf>,
    finishes: Finishes,
    runs: Option<Rc<Runs>>,
    watch: Watch,
    /// The order by which the level holds, if it is kept.
    order: Option<Order>,
    /// Where to go back to.
    places: Trail,
    /// How many transactions had come when there was doubt for the last time.
    doubted: Option<u64>,
    /// How often everything was read again.
    restarts: u32,
}

/// What became of a step.
#[derive(Debug)]
pub enum Step {
    /// There was nothing new.
    Nothing,
    /// The level holds of everything that was read, but for so many that wait for their writers.
    Holds {
        /// How many wait.
        waiting: usize,
    },
    /// There was doubt: some is read again, or everything, and more is kept.
    Again,
    /// The level does not hold, or cannot be decided.
    Decided(Box<Decided>),
}

/// What is said of a level that does not simply hold.
#[derive(Debug)]
#[non_exhaustive]
pub struct Decided {
    /// The answer. Its evidence is about the part.
    pub result: LevelResult,
    /// A part of the history, or all of it, that proves the answer.
    pub part: History,
    /// Where the part is in the history.
    pub places: PartPositions,
    /// How large the history is, as far as it was read.
    pub figures: HistoryCounts,
}

impl From<ProvenResult> for Decided {
    fn from(proven: ProvenResult) -> Decided {
        let ProvenResult { result, part, positions: places, figures, .. } = proven;
        Decided { result, part, places, figures }
    }
}

impl<'i> Following<'i> {
    /// Begins to follow a level of a file.
    pub fn new(
        input: Input<'i>,
        level: Level,
        options: &CheckOptions,
        settings: Settings,
    ) -> Result<Following<'i>, FollowError> {
        let follower = Follower::new(level, options.clone(), settings.tail);
        Ok(Following {
            reader: Reader::ahead(input.open()?.in_pieces_of(settings.piece)),
            input,
            options: options.clone(),
            settings,
            follower: follower.ok_or(FollowError::Level(level))?,
            is_closed: false,
            directory: None,
            finishes: Finishes::new(settings.tail),
            runs: None,
            watch: Watch::default(),
            order: None,
            places: Trail::default(),
            doubted: None,
            restarts: 0,
        })
    }

    /// Keeps the order by which the level holds, in a directory.
    fn keep_order_in(&mut self, directory: &Path) -> Result<(), FollowError> {
        self.follower.keep_order();
        self.order = Some(Order::create(directory).map_err(|error| failed(directory, error))?);
        Ok(())
    }

    /// The order by which the level holds, if it was kept, and if it takes no more than an order.
    fn into_order(mut self) -> Result<Option<Order>, FollowError> {
        let (Some(mut order), Some(_)) = (self.order, self.follower.take_order()) else {
            return Ok(None);
        };
        let sessions = self.follower.sessions().map(ValueRef::to_owned).collect();
        order.finish(sessions).map_err(|error| failed(self.input.path, error))?;
        Ok(Some(order))
    }

    /// Sorts transactions in a directory where they are not about in the order in which they finished, or
    /// reads those that somebody has sorted.
    fn sort_into(&mut self, directory: &Path, runs: Option<Rc<Runs>>) -> Result<(), FollowError> {
        self.directory = Some(directory.to_owned());
        self.runs = runs;
        self.reader = self.reader_from_the_beginning()?;
        Ok(())
    }

    fn reader_from_the_beginning(&self) -> Result<Reader, FollowError> {
        match &self.runs {
            Some(runs) => Reader::sorted(runs),
            None => Ok(Reader::ahead(self.input.open()?.in_pieces_of(self.settings.piece))),
        }
    }

    /// Who follows the level.
    pub fn follower(&self) -> &Follower {
        &self.follower
    }

    /// How often everything was read again, and not only some.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Whether the file says that nothing will be added any more, and all of it was read.
    pub fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }

    /// How long it took until what was added to the file had been looked at.
    pub fn delays(&self) -> &Delays {
        &self.watch.delays
    }

    /// Reads some of what is new, and looks at it.
    pub fn step(&mut self) -> Result<Step, FollowError> {
        let enough = self.at_a_time();
        let mut new = 0;
        let mut looked = None;
        while new < enough {
            // What was read ahead was read some time before.
            looked = self.reader.is_here().then(Instant::now);
            let piece = self.reader.next()?;
            if piece.is_empty() {
                break;
            }
            looked = None;
            for batch in piece {
                new += batch.len();
                self.finishes.add(&batch);
                self.follower.add(batch);
            }
        }
        if self.finishes.is_out_of_order
            && let (Some(directory), None) = (&self.directory, &self.runs)
        {
            let at_a_time = self.most().map_or(SORTED_AT_A_TIME, |most| most / 2);
            self.runs = Some(Rc::new(Runs::sort(&self.input, directory, at_a_time.max(1))?));
            return self.begin_again(self.follower.tail());
        }
        let step = if new == 0 { Step::Nothing } else { self.look()? };
        if let Step::Nothing | Step::Holds { .. } = step {
            self.watch.covered(self.follower.arrived(), looked);
        }
        Ok(step)
    }

    /// Reads the file to its end, and waits for nothing more; none if the level holds.
    pub fn to_end(&mut self) -> Result<Option<Box<Decided>>, FollowError> {
        // A doubt at the very end opens it again.
        while !self.is_closed {
            if self.options.stop.is_asked() {
                return Ok(Some(self.undecided(Limit::Interrupted)));
            }
            let step = match self.step()? {
                Step::Nothing => self.close()?,
                step => step,
            };
            if let Step::Decided(decided) = step {
                return Ok(Some(decided));
            }
        }
        Ok(None)
    }

    /// Finds out whether those that wait for their writers saw versions that were let go. What nobody has
    /// written so far may still come.
    pub fn look_back(&mut self) -> Result<Step, FollowError> {
        self.follower.expect_more(false);
        let look = self.follower.check()?;
        self.follower.expect_more(true);
        self.clear_up(look, |proven| {
            let anomalies = proven.result.verdict.anomalies();
            anomalies.iter().all(|anomaly| anomaly.kind == AnomalyKind::ThinAirRead)
        })
    }

    fn close(&mut self) -> Result<Step, FollowError> {
        self.is_closed = true;
        self.follower.add(self.reader.close()?);
        self.follower.expect_more(false);
        self.look()
    }

    fn look(&mut self) -> Result<Step, FollowError> {
        let look = self.follower.check()?;
        if let (Some(order), Some(settled)) = (&mut self.order, self.follower.take_order()) {
            order.add(&settled).map_err(|error| failed(self.input.path, error))?;
        }
        let step = match (look, self.most()) {
            (_, Some(most)) if self.follower.kept() > most / 2 => self.too_large(),
            (FollowStatus::Inconclusive(doubt), _) if self.is_worth_going_back(&doubt) => {
                drop(doubt);
                self.go_back(self.follower.tail().saturating_mul(2))?
            }
            (look, _) => self.clear_up(look, |_| false)?,
        };
        if let Step::Holds { .. } = step {
            self.remember_place();
        }
        Ok(step)
    }

    /// Remembers where it is, if that costs little: one may want to go back there.
    fn remember_place(&mut self) {
        let known = self.follower.checkpoint();
        if self.is_closed || !self.places.are_due(known) {
            return;
        }
        let Some(stream) = self.reader.take_place() else { return };
        let order = self.order.as_ref().map_or_else(Mark::default, Order::mark);
        let (known, finishes) = (known.clone(), self.finishes.clone());
        let memory = self.settings.memory.unwrap_or(USUAL_MEMORY);
        let most = (memory / SHARE_OF_PLACES / BYTES_PER_KNOWN) as usize;
        self.places.add(Place { stream, known, finishes, order }, most);
    }

    /// Whether to go back before anybody is asked: to read a little again takes less time than to look for a
    /// few transactions in the whole file. Not twice for the same doubt, and not where the end of a file that
    /// grows was reached: there the answer is wanted at once.
    fn is_worth_going_back(&self, doubt: &Inconclusive) -> bool {
        let (tail, arrived) = (self.follower.tail().saturating_mul(2), self.follower.arrived());
        let may_help = doubt.result().is_none_or(|result| result.verdict.is_violated());
        let span = (tail + 2 * self.at_a_time()) as u64;
        let is_new = self.doubted.is_none_or(|doubted| arrived > doubted + span);
        let is_in_time = !self.reader.is_here() || self.reader.is_complete() || self.is_closed;
        may_help
            && is_new
            && is_in_time
            && self.may_keep(tail)
            && self.places.reach(arrived.saturating_sub(tail as u64))
    }

    /// Whether memory allows to keep so many transactions.
    fn may_keep(&self, tail: usize) -> bool {
        self.most().is_none_or(|most| tail <= most / 2)
    }

    /// How many transactions to look at.
    fn at_a_time(&self) -> usize {
        let (wanted, tail) = (self.settings.at_a_time, self.follower.tail());
        wanted.min(self.most().map_or(usize::MAX, |most| most / 2)).max(tail)
    }

    /// How many transactions may be in memory.
    fn most(&self) -> Option<usize> {
        let HistoryCounts { operations, outcomes, .. } = self.follower.figures();
        let per_txn = (operations / outcomes.iter().sum::<u64>().max(1)).max(4);
        self.settings.memory.map(|bytes| (bytes / BYTES_PER_OPERATION / per_txn) as usize)
    }

    fn too_large(&self) -> Step {
        Step::Decided(self.undecided(Limit::Memory(self.settings.memory.unwrap_or_default())))
    }

    fn undecided(&self, limit: Limit) -> Box<Decided> {
        let verdict = Verdict::Undecided(Undecided::new(limit));
        let (level, decided_by) = (self.follower.level(), self.follower.decided_by());
        Box::new(Decided {
            result: LevelResult { level, decided_by, verdict },
            part: History::default(),
            places: PartPositions::default(),
            figures: self.follower.figures(),
        })
    }

    /// Clears up a doubt, by asking the whole file about those that matter; if that does not help, by
    /// going back and keeping more.
    fn clear_up(
        &mut self,
        look: FollowStatus,
        may_change: impl Fn(&ProvenResult) -> bool,
    ) -> Result<Step, FollowError> {
        let doubt = match look {
            FollowStatus::Holds { waiting } => return Ok(Step::Holds { waiting }),
            FollowStatus::Unfit(unfit) => return Err(FollowError::Unfit(unfit)),
            FollowStatus::Inconclusive(doubt) => *doubt,
        };
        let mut is_ahead = false;
        let answer = match HistoryQuery::new(&doubt, &self.follower) {
            Some(question) => {
                let told = told(question, &self.input, self.settings.piece, self.is_closed)?;
                is_ahead = told.is_ahead_of(&self.follower);
                told.answer(&self.options)?
            }
            None => QueryAnswer::Inconclusive,
        };
        match (answer, doubt.result().map(|result| &result.verdict)) {
            // None that is kept has a time.
            (_, Some(Verdict::NotApplicable(Inapplicable::NoTimes)))
                if !self.follower.expects_times()
                    && census(&self.input, self.settings.piece)?.has_times() =>
            {
                self.follower.expect_times();
                self.follower.resume(doubt)?;
                self.look()
            }
            (QueryAnswer::Proven(proven), _) if !may_change(&proven) => {
                Ok(Step::Decided(Box::new(Decided::from(*proven))))
            }
            (QueryAnswer::Proven(_) | QueryAnswer::Awaited, _) => {
                self.follower.resume(doubt)?;
                Ok(Step::Holds { waiting: self.follower.kept() })
            }
            // A part of the history cannot be decided, and so the whole cannot.
            (_, Some(Verdict::Undecided(_) | Verdict::NotApplicable(_))) => self.prove(doubt),
            // The whole file has what no transaction wrote so far, or another writer of what was read: it
            // comes later.
            (_, Some(verdict))
                if doubt.is_about_everything()
                    && !self.is_closed
                    && (is_ahead || has_unwritten(verdict)) =>
            {
                self.follower.resume(doubt)?;
                Ok(Step::Holds { waiting: self.follower.kept() })
            }
            (_, Some(_)) if doubt.is_about_everything() => self.prove(doubt),
            _ => match self.follower.tail().saturating_mul(2) {
                tail if self.may_keep(tail) => self.go_back(tail),
                _ => Ok(self.too_large()),
            },
        }
    }

    fn prove(&self, doubt: Inconclusive) -> Result<Step, FollowError> {
        let whole = census(&self.input, self.settings.piece)?;
        let proven = self.follower.prove(doubt, &whole)?;
        Ok(Step::Decided(Box::new(Decided::from(proven))))
    }

    /// Goes back a whole tail at least, and keeps so many from there on: all that are between there and here.
    fn go_back(&mut self, tail: usize) -> Result<Step, FollowError> {
        let arrived = self.follower.arrived();
        self.doubted = Some(arrived);
        match self.places.go_back(arrived.saturating_sub(tail as u64)) {
            Some(Place { stream, known, finishes, order }) => {
                self.follower.return_to(known, tail);
                self.finishes = finishes;
                self.go_on_with(Reader::ahead(stream), order)
            }
            None => self.begin_again(tail),
        }
    }

    fn begin_again(&mut self, tail: usize) -> Result<Step, FollowError> {
        self.restarts += 1;
        self.follower.restart(tail);
        self.finishes = Finishes::new(self.settings.tail);
        self.places.clear();
        self.go_on_with(self.reader_from_the_beginning()?, Mark::default())
    }

    fn go_on_with(&mut self, reader: Reader, mark: Mark) -> Result<Step, FollowError> {
        self.reader = reader;
        self.is_closed = false;
        if let Some(order) = &mut self.order {
            order.return_to(mark).map_err(|error| failed(self.input.path, error))?;
        }
        Ok(Step::Again)
    }
}

/// Whether somebody read what nobody wrote.
fn has_unwritten(verdict: &Verdict) -> bool {
    verdict.anomalies().iter().any(|anomaly| anomaly.kind == AnomalyKind::ThinAirRead)
}

/// Counts what is in a file.
fn census(input: &Input<'_>, piece: usize) -> Result<Census, FollowError> {
    let mut reader = Reader::ahead(input.open()?.in_pieces_of(piece));
    let mut census = Census::default();
    loop {
        let piece = reader.next()?;
        if piece.is_empty() {
            break;
        }
        census.count(piece)?;
    }
    census.count(vec![reader.close()?])?;
    Ok(census)
}

/// Tells an inquiry the whole file.
fn told(
    mut inquiry: HistoryQuery,
    input: &Input<'_>,
    piece: usize,
    is_over: bool,
) -> Result<HistoryQuery, FollowError> {
    let mut reader = Reader::ahead(input.open()?.in_pieces_of(piece));
    loop {
        let piece = reader.next()?;
        if piece.is_empty() {
            break;
        }
        inquiry.add(piece)?;
    }
    match is_over {
        true => inquiry.add(vec![reader.close()?])?,
        false => inquiry.add_unended(reader.unended()?)?,
    }
    Ok(inquiry)
}
