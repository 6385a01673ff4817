//! Re-checks the orders of a proof against a history that is not in memory, both read from front to back.

use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::vec;

use isolario_model::{History, SinkError, Value};
use serde::Deserialize;

use super::outline::{ORDERS, OrderLocation, ProofOutline};
use super::write::OrderPoint;
use super::{ProofError, ProofProblem, TxnPositions};
use crate::streamed::{Halt, Replay, Wrong, is_fit};

/// The order of a level on its way through a history. The history is told once, in pieces that each have the next
/// transactions of some sessions, about in the order in which transactions finished.
pub struct OrderReplay<R> {
    /// None if the order shows nothing about the level.
    replay: Option<Replay>,
    moments: Moments<R>,
    /// What came of it, if that is known before the end.
    end: Option<End>,
}

type End = Result<ReplayOutcome, ReplayError>;

/// What came of an order.
#[derive(Debug)]
pub enum ReplayOutcome {
    /// It shows that the level is satisfied.
    Right,
    /// It does not.
    Refused(OrderRefusal),
    /// It takes more than may be kept.
    TooLarge,
    /// It takes a replay that keeps more.
    Further(EvictedVersion),
    /// It calls transactions by names of their own, which only the whole history can tell.
    ByNames,
}

/// Why an order is refused. Whoever it is about can be [looked up](super::ProofExcerpt).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRefusal(pub(super) Wrong);

/// A version that was overwritten before all that was kept, if anybody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedVersion {
    key: Value,
    value: Value,
}

/// How much may be kept in memory, in operations, of which each takes some fifty bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Of transactions that the history has and the order has not come to, or that are of unknown outcome and not
    /// in it.
    pub waiting: usize,
    /// Of the last ones in the order, at levels where old versions may be read.
    pub recent: usize,
}

/// Why it is not known what came of an order.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The proof could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a proof of the history.
    #[error(transparent)]
    Proof(#[from] ProofError),
}

impl ProofOutline {
    /// Whether a history, of which this is a piece, is of a kind that can be replayed piece by piece: it has
    /// operations on registers alone, whose versions go by their values, and one initial value for all keys
    /// or none.
    pub fn is_fit(piece: &History) -> bool {
        is_fit(piece)
    }
}

impl<R: BufRead> OrderReplay<R> {
    /// Replays the order of a level, by its place among the claims. The input is at the order's first line. If an
    /// earlier replay did not find something, this one looks out for it.
    pub fn new(
        (outline, at): (&ProofOutline, usize),
        order: OrderLocation,
        positions: &TxnPositions,
        input: R,
        room: ReplayLimits,
        further: Option<EvictedVersion>,
    ) -> OrderReplay<R> {
        let (options, level) = (outline.options, outline.claims[at].level);
        let mut replay = Replay::new(level, order.in_points, options, positions.clone(), room);
        if let (Some(replay), Some(EvictedVersion { key, value })) = (&mut replay, further) {
            replay.seek(key, value);
        }
        let end =
            replay.is_none().then_some(Ok(ReplayOutcome::Refused(OrderRefusal(Wrong::Witness))));
        OrderReplay { replay, moments: Moments::new(input, order), end }
    }

    /// Tells the next piece; breaks off if no more is needed.
    pub fn feed(&mut self, piece: &History) -> Result<ControlFlow<()>, SinkError> {
        if let (Some(replay), None) = (&mut self.replay, &self.end) {
            replay.tell(piece)?;
            self.end = advance(replay, &mut self.moments).err();
        }
        Ok(match self.end {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        })
    }

    /// Everything was told, or enough.
    pub fn finish(mut self) -> Result<ReplayOutcome, ReplayError> {
        if let Some(Ok(ReplayOutcome::Refused(_))) = self.end {
            // What is not in the form of a proof is no proof, however wrong it is besides.
            self.end = self.pass_all().err().or(self.end);
        }
        match self.end.take() {
            Some(end) => end,
            None => self.at_the_end().unwrap_or_else(|end| end),
        }
    }

    fn pass_all(&mut self) -> Result<(), End> {
        while self.moments.peek()?.is_some() {
            self.moments.pass();
        }
        Ok(())
    }

    fn at_the_end(&mut self) -> Result<End, End> {
        if self.moments.peek()?.is_some() {
            return Err(Err(io::Error::other("the history has changed").into()));
        }
        Ok(match self.replay.as_ref().map_or(Ok(()), Replay::finish) {
            Ok(()) => Ok(ReplayOutcome::Right),
            Err(wrong) => Ok(ReplayOutcome::Refused(OrderRefusal(wrong))),
        })
    }
}

/// Replays as much of an order as the history has brought. What ends it comes as an error.
fn advance(replay: &mut Replay, moments: &mut Moments<impl BufRead>) -> Result<(), End> {
    while let Some(moment) = moments.peek()?
        && replay.is_ready(moment)
    {
        moments.pass();
        replay.step(moment).map_err(|halt| end_of(halt, replay))?;
    }
    match replay.is_too_large() {
        true => Err(Ok(ReplayOutcome::TooLarge)),
        false => Ok(()),
    }
}

fn end_of(halt: Halt, replay: &Replay) -> End {
    match halt {
        Halt::Wrong(wrong) => Ok(ReplayOutcome::Refused(OrderRefusal(wrong))),
        Halt::Beyond { key, value } => {
            let key = replay.key_name(key).cloned().unwrap_or(Value::Nil);
            Ok(ReplayOutcome::Further(EvictedVersion { key, value }))
        }
        Halt::NoSuchTxn(position) => {
            let problem = ProofProblem::Missing(format!("transaction at position {position}"));
            Err(ProofError { position: None, problem }.into())
        }
    }
}

/// The moments of an order, line by line.
struct Moments<R> {
    input: R,
    order: OrderLocation,
    /// How many were on lines so far.
    found: u64,
    line: Vec<u8>,
    /// Those of the last line that have not passed.
    ready: vec::IntoIter<OrderPoint>,
    /// Whether there are no more lines.
    is_over: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    #[serde(rename = "#")]
    position: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commits {
    order: Vec<At>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Points {
    points: Vec<PointAt>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum PointAt {
    Start(At),
    Commit(At),
}

impl<R: BufRead> Moments<R> {
    fn new(input: R, order: OrderLocation) -> Moments<R> {
        let (line, ready) = (Vec::new(), Vec::new().into_iter());
        Moments { input, order, found: 0, line, ready, is_over: false }
    }

    /// The next moment; none after the last one.
    fn peek(&mut self) -> Result<Option<OrderPoint>, End> {
        if self.ready.as_slice().is_empty() && !self.is_over {
            self.ready = self.next_line()?.into_iter();
        }
        Ok(self.ready.as_slice().first().copied())
    }

    fn pass(&mut self) {
        self.ready.next();
    }

    /// The moments of the next line; none after the last one, which the order must not go beyond.
    fn next_line(&mut self) -> Result<Vec<OrderPoint>, End> {
        self.line.clear();
        let read = self.input.read_until(b'\n', &mut self.line);
        read.map_err(|error| Err(error.into()))?;
        let OrderLocation { in_points, count: stated, .. } = self.order;
        self.is_over = !self.line.starts_with(ORDERS[usize::from(in_points)]);
        if self.is_over && self.found == stated {
            return Ok(Vec::new());
        }
        let moments = match in_points {
            _ if self.is_over => return Err(self.miscounted()),
            false => serde_json::from_slice(&self.line).map(|Commits { order }| {
                order.into_iter().map(|at| OrderPoint::Takes(at.position)).collect::<Vec<_>>()
            }),
            true => serde_json::from_slice(&self.line)
                .map(|Points { points }| points.into_iter().map(OrderPoint::from).collect()),
        };
        let moments = moments.ok().filter(|moments| !moments.is_empty());
        let moments = moments.ok_or(Ok(ReplayOutcome::ByNames))?;
        self.found += moments.len() as u64;
        if self.found > stated {
            return Err(self.miscounted());
        }
        Ok(moments)
    }

    fn miscounted(&self) -> End {
        let OrderLocation { in_points, count: stated, .. } = self.order;
        let what = if in_points { "points" } else { "transactions" };
        let problem = ProofProblem::Miscounted { what, stated, found: self.found };
        Err(ProofError { position: None, problem }.into())
    }
}

impl From<PointAt> for OrderPoint {
    fn from(point: PointAt) -> OrderPoint {
        match point {
            PointAt::Start(at) => OrderPoint::Starts(at.position),
            PointAt::Commit(at) => OrderPoint::Commits(at.position),
        }
    }
}
