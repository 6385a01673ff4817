//! Levels of a history that is read from its file from front to back, in memory that does not grow with
//! its length: while it is written, or because it is too large to be loaded.
//!
//! [`Following`] follows one level: it reads what is new, has a [`Follower`] look at it, and clears up
//! doubts by reading the file again.

mod reader;

use std::path::{Path, PathBuf};

use isolario_check::{Answer, Doubt, Follower, Inquiry, Look, Options, Proven, Unfit};
use isolario_formats::{HistoryFormat, ReadError, Stream};
use isolario_model::{AnomalyKind, Level, SinkError, Verdict};

use reader::Reader;

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
    Unfit(Unfit),
    /// Its format cannot be read piece by piece.
    #[error("{path} is {format}, which cannot be read piece by piece", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: &'static str,
    },
    /// The level is none of [`Follower::levels`].
    #[error("{0} cannot be followed")]
    Level(Level),
}

fn in_words(unfit: Unfit) -> &'static str {
    match unfit {
        Unfit::Operation => "it has operations other than reads and writes of registers",
        Unfit::Initial => "it does not state one initial value for all keys",
        _ => "somebody writes the initial value",
    }
}

/// The file of a history.
#[derive(Clone, Copy)]
pub struct Input<'i> {
    /// Its path.
    pub path: &'i Path,
    /// Its format.
    pub format: &'static dyn HistoryFormat,
}

impl Input<'_> {
    fn open(&self) -> Result<Stream, FollowError> {
        Stream::open(self.path, self.format)?.ok_or_else(|| FollowError::Format {
            path: self.path.to_owned(),
            format: self.format.name(),
        })
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
}

impl Default for Settings {
    fn default() -> Self {
        Settings { tail: Follower::USUAL_TAIL, at_a_time: 1 << 19 }
    }
}

impl Settings {
    /// With another number of transactions that are kept, and looked at, at least.
    #[must_use]
    pub fn with_tail(self, tail: usize) -> Settings {
        Settings { tail, at_a_time: tail, ..self }
    }
}

/// One level of a file, followed.
pub struct Following<'i> {
    input: Input<'i>,
    options: Options,
    settings: Settings,
    reader: Reader,
    follower: Follower,
    /// Whether everything was read, and nothing more is waited for.
    is_closed: bool,
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
    /// There was doubt: everything is read again, and more is kept.
    Again,
    /// The level does not hold, or cannot be decided.
    Decided(Box<Proven>),
}

impl<'i> Following<'i> {
    /// Begins to follow a level of a file.
    pub fn new(
        input: Input<'i>,
        level: Level,
        options: &Options,
        settings: Settings,
    ) -> Result<Following<'i>, FollowError> {
        let follower = Follower::new(level, options.clone(), settings.tail);
        Ok(Following {
            reader: Reader::ahead(input.open()?),
            input,
            options: options.clone(),
            settings,
            follower: follower.ok_or(FollowError::Level(level))?,
            is_closed: false,
        })
    }

    /// Who follows the level.
    pub fn follower(&self) -> &Follower {
        &self.follower
    }

    /// Whether the file says that nothing will be added any more, and all of it was read.
    pub fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }

    /// Reads some of what is new, and looks at it.
    pub fn step(&mut self) -> Result<Step, FollowError> {
        let enough = self.settings.at_a_time.max(self.follower.tail());
        let mut new = 0;
        while new < enough {
            let piece = self.reader.next()?;
            if piece.is_empty() {
                break;
            }
            for batch in piece {
                new += batch.len();
                self.follower.add(batch);
            }
        }
        if new == 0 {
            return Ok(Step::Nothing);
        }
        self.look()
    }

    /// Reads the file to its end, and waits for nothing more; none if the level holds.
    pub fn to_end(&mut self) -> Result<Option<Box<Proven>>, FollowError> {
        // A doubt at the very end opens it again.
        while !self.is_closed {
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
        let look = self.follower.look()?;
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
        let look = self.follower.look()?;
        self.clear_up(look, |_| false)
    }

    /// Clears up a doubt, by asking the whole file about those that matter; if that does not help, by
    /// reading it again and keeping more.
    fn clear_up(
        &mut self,
        look: Look,
        may_change: impl Fn(&Proven) -> bool,
    ) -> Result<Step, FollowError> {
        let doubt = match look {
            Look::Holds { waiting } => return Ok(Step::Holds { waiting }),
            Look::Unfit(unfit) => return Err(FollowError::Unfit(unfit)),
            Look::Doubtful(doubt) => *doubt,
        };
        let answer = match Inquiry::new(&doubt, &self.follower) {
            Some(inquiry) => self.ask(inquiry)?,
            None => Answer::Open,
        };
        match (answer, doubt.result().map(|result| &result.verdict)) {
            (Answer::Proven(proven), _) if !may_change(&proven) => Ok(Step::Decided(proven)),
            (Answer::Proven(_) | Answer::Awaited, _) => {
                self.follower.resume(doubt)?;
                Ok(Step::Holds { waiting: self.follower.kept() })
            }
            // A part of the history cannot be decided, and so the whole cannot.
            (_, Some(Verdict::Undecided(_) | Verdict::NotApplicable(_))) => self.prove(doubt),
            (_, Some(_)) if doubt.is_about_everything() => self.prove(doubt),
            _ => self.begin_again(),
        }
    }

    fn prove(&self, doubt: Doubt) -> Result<Step, FollowError> {
        Ok(Step::Decided(Box::new(self.follower.prove(doubt)?)))
    }

    /// Tells an inquiry the whole file.
    fn ask(&self, mut inquiry: Inquiry) -> Result<Answer, FollowError> {
        let mut reader = Reader::ahead(self.input.open()?);
        loop {
            let piece = reader.next()?;
            if piece.is_empty() {
                break;
            }
            inquiry.add(piece)?;
        }
        match self.is_closed {
            true => inquiry.add(vec![reader.close()?])?,
            false => inquiry.add_unended(reader.unended()?)?,
        }
        Ok(inquiry.answer(&self.options)?)
    }

    fn begin_again(&mut self) -> Result<Step, FollowError> {
        self.follower.restart();
        self.is_closed = false;
        self.reader = Reader::ahead(self.input.open()?);
        Ok(Step::Again)
    }
}
