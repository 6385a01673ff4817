//! The proof of what was decided of a file that is not in memory.

use std::io::{self, BufRead, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use isolario_check::{PointKind, SettledPoint};
use isolario_model::{
    BatchEntries, Findings, History, Level, LevelNodes, LevelResult, SinkError, Verdict,
};
use isolario_verify::VerifyOptions;
use isolario_verify::proof::{
    EvictedVersion, OrderLocation, OrderPoint, OrderRefusal, OrderReplay, PartPositionsRef,
    ProofError, ProofExcerpt, ProofOutline, ReplayError, ReplayLimits, ReplayOutcome,
    SessionDigests, StreamedOrder as ProofOrder, TxnPositions, VerifiedProof, WholeHistory,
    write_of_whole,
};

use super::order::Order;
use super::reader::Reader;
use super::sorted::Runs;
use super::spill::Spilled;
use super::{FollowError, Input, SORTED_AT_A_TIME};

/// Writes the proof of what was decided of a file, in the form in which any history is proven. `name` is what the
/// file is called.
pub fn write(
    input: Input<'_>,
    spilled: &Spilled,
    options: &VerifyOptions,
    name: &str,
    out: &mut dyn io::Write,
) -> Result<(), FollowError> {
    let sessions = survey(&input)?;
    let firsts = first_positions(&sessions);
    let orders: Vec<Option<Vec<u64>>> = spilled
        .orders
        .iter()
        .map(|order| order.as_ref().map(|order| firsts_of(order, &sessions, &firsts)))
        .collect();
    let whole = WholeHistory {
        digest: sessions.finish(),
        part: &spilled.part,
        positions: PartPositionsRef { txns: &spilled.places.txns, ops: &spilled.places.ops },
    };
    let results: Vec<LevelResult> = spilled.results.iter().map(not_exact).collect();
    let order = |at: usize| match (&spilled.orders[at], &orders[at]) {
        (Some(order), Some(firsts)) => moments(order, spilled.results[at].level, firsts.clone()),
        _ => Err(io::Error::other("it is open what reads saw, and no order was kept")),
    };
    let written = write_of_whole(whole, &results, order, options, name, out);
    Ok(written.map_err(SinkError::from)?)
}

/// What came of a proof that was re-checked without loading the history.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verified {
    /// All its claims were looked at.
    Told(Box<Told>),
    /// It says nothing about the history.
    NoProof(ProofError),
    /// The history or the proof is of a kind that takes all of the history.
    TakesAll,
    /// An order takes more memory than may be used.
    TooLarge(Level),
}

/// The claims of a proof, re-checked.
#[derive(Debug)]
pub struct Told {
    /// The part of the history that claims and refusals are about. Transactions without a name have the one that
    /// they go by in the whole.
    pub part: History,
    /// What came of the claims. That a level is satisfied comes without an order.
    pub verified: VerifiedProof,
    /// By level, the order that was replayed.
    pub orders: Vec<Option<OrderLocation>>,
    /// How many transactions the history has.
    pub txns: u64,
}

/// What may be used to re-check a proof.
#[derive(Clone, Copy, Debug)]
pub struct Means<'m> {
    /// So many bytes of memory, about.
    pub memory: u64,
    /// A directory in which a history is sorted whose transactions are not about in the order in which they
    /// finished, if memory does not suffice.
    pub directory: &'m Path,
}

/// An operation of a transaction that waits for its turn in an order, or that has had it and may still matter, takes about
/// so many bytes; there may be as many of the one kind as of the other.
const BYTES_PER_OPERATION: u64 = 2 * 64;

/// So many operations of the end of an order are kept at first, and so many times as many where that does not do.
const FIRST_KEPT: usize = 1 << 20;
const MORE: usize = 8;

/// Re-checks a proof against a file that is read from front to back.
pub fn verify(
    input: Input<'_>,
    proof: &mut (impl BufRead + Seek),
    means: Means<'_>,
) -> Result<Verified, FollowError> {
    let Some(outline) = ProofOutline::read(proof).map_err(SinkError::from)? else {
        return Ok(Verified::TakesAll);
    };
    let (mut sessions, mut is_fit) = (SessionDigests::default(), true);
    for_each_piece(from_the_beginning(&input)?, |piece| {
        is_fit &= ProofOutline::is_fit(piece);
        sessions.add(piece);
        Ok(ControlFlow::Continue(()))
    })?;
    if !is_fit {
        return Ok(Verified::TakesAll);
    }
    let positions = match outline.of_history(sessions) {
        Ok(positions) => positions,
        Err(error) => return Ok(Verified::NoProof(error)),
    };
    let mut replaying = Replaying { input, outline: &outline, positions, means, runs: None };
    let mut refused = Vec::new();
    for (at, order) in outline.orders().enumerate() {
        let Some(order) = order else {
            refused.push(None);
            continue;
        };
        match replaying.replay(at, order, proof)? {
            Ok(ReplayOutcome::Right) => refused.push(None),
            Ok(ReplayOutcome::Refused(refusal)) => refused.push(Some(refusal)),
            Ok(ReplayOutcome::ByNames) => return Ok(Verified::TakesAll),
            Ok(_) => return Ok(Verified::TooLarge(outline.level(at))),
            Err(error) => return Ok(Verified::NoProof(error)),
        }
    }
    replaying.tell(refused)
}

/// The orders of a proof, one after the other.
struct Replaying<'i> {
    input: Input<'i>,
    outline: &'i ProofOutline,
    positions: TxnPositions,
    means: Means<'i>,
    /// The history, sorted.
    runs: Option<Runs>,
}

impl Replaying<'_> {
    /// Replays an order: again if the history has to be sorted first, or if more of the end has to be kept.
    fn replay(
        &mut self,
        at: usize,
        order: OrderLocation,
        proof: &mut (impl BufRead + Seek),
    ) -> Result<Result<ReplayOutcome, ProofError>, FollowError> {
        let most = (self.means.memory / BYTES_PER_OPERATION) as usize;
        let mut room = ReplayLimits { waiting: most, recent: FIRST_KEPT.min(most) };
        let mut sought: Option<EvictedVersion> = None;
        loop {
            proof.seek(SeekFrom::Start(order.offset)).map_err(SinkError::from)?;
            let of = (self.outline, at);
            let sought_now = sought.clone();
            let mut replay =
                OrderReplay::new(of, order, &self.positions, &mut *proof, room, sought_now);
            for_each_piece(self.reader()?, |piece| replay.feed(piece))?;
            match replay.finish() {
                Ok(ReplayOutcome::TooLarge) if self.runs.is_none() => self.sort(most)?,
                Ok(ReplayOutcome::Further(further))
                    if room.recent < most || sought.as_ref() != Some(&further) =>
                {
                    room.recent = room.recent.saturating_mul(MORE).min(most);
                    sought = Some(further);
                }
                Err(ReplayError::Io(error)) => return Err(SinkError::from(error).into()),
                Err(ReplayError::Proof(error)) => return Ok(Err(error)),
                Ok(replayed) => return Ok(Ok(replayed)),
            }
        }
    }

    fn reader(&self) -> Result<Reader, FollowError> {
        match &self.runs {
            Some(runs) => Reader::sorted(runs),
            None => from_the_beginning(&self.input),
        }
    }

    fn sort(&mut self, most: usize) -> Result<(), FollowError> {
        let at_a_time = (most / OPERATIONS_PER_TXN).clamp(1, SORTED_AT_A_TIME);
        self.runs = Some(Runs::sort(&self.input, self.means.directory, at_a_time)?);
        Ok(())
    }

    /// Looks up those whom claims of violations and refusals are about.
    fn tell(self, refused: Vec<Option<OrderRefusal>>) -> Result<Verified, FollowError> {
        let mut excerpt = ProofExcerpt::new(self.outline, &self.positions, refused);
        if !excerpt.names_no_txn() {
            for_each_piece(self.reader()?, |piece| excerpt.find(piece).map(ControlFlow::Continue))?;
            excerpt.begin_again();
            for_each_piece(self.reader()?, |piece| excerpt.pick(piece).map(ControlFlow::Continue))?;
        }
        let (orders, txns) = (self.outline.orders().collect(), self.positions.count());
        Ok(match excerpt.verify() {
            Ok((part, verified)) => Verified::Told(Box::new(Told { part, verified, orders, txns })),
            Err(error) => Verified::NoProof(error),
        })
    }
}

/// A transaction that is sorted is taken to have so many operations.
const OPERATIONS_PER_TXN: usize = 16;

/// Which history a file has, and how many transactions its sessions.
fn survey(input: &Input<'_>) -> Result<SessionDigests, FollowError> {
    let mut sessions = SessionDigests::default();
    for_each_piece(from_the_beginning(input)?, |piece| {
        sessions.add(piece);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(sessions)
}

/// So many bytes of the file are read at a time: little enough not to matter besides what waits for its turn.
const PIECE: usize = 1 << 21;

fn from_the_beginning(input: &Input<'_>) -> Result<Reader, FollowError> {
    Ok(Reader::ahead(input.open()?.in_pieces_of(PIECE)))
}

/// Reads a file from front to back, or until that is enough.
fn for_each_piece(
    mut reader: Reader,
    mut take: impl FnMut(&History) -> Result<ControlFlow<()>, SinkError>,
) -> Result<(), FollowError> {
    loop {
        let piece = reader.next()?;
        if piece.is_empty() {
            break;
        }
        if take(&History::from_batches(piece, BatchEntries::Whole)?)?.is_break() {
            return Ok(());
        }
    }
    let rest = reader.close()?;
    if !rest.is_empty() {
        // There is nothing to break off.
        let _ = take(&rest.build()?)?;
    }
    Ok(())
}

/// By session, the position of its first transaction.
fn first_positions(sessions: &SessionDigests) -> Vec<u64> {
    let first = |next: &mut u64, count: &u64| {
        *next += count;
        Some(*next - count)
    };
    sessions.counts().iter().scan(0, first).collect()
}

/// The same by the numbers that the sessions have in an order.
fn firsts_of(order: &Order, sessions: &SessionDigests, firsts: &[u64]) -> Vec<u64> {
    let first = |name| sessions.session(name).map_or(0, |session| firsts[session]);
    order.sessions().iter().map(first).collect()
}

/// The order of a level in positions. One of starts and commits has that form also where it is empty.
fn moments(order: &Order, level: Level, firsts: Vec<u64>) -> io::Result<ProofOrder> {
    let moment = move |settling: io::Result<SettledPoint>| {
        let settling = settling?;
        let position = firsts[settling.session as usize] + settling.index;
        Ok(match settling.step {
            PointKind::Start => OrderPoint::Starts(position),
            PointKind::Commit => OrderPoint::Commits(position),
            PointKind::Both => OrderPoint::Takes(position),
        })
    };
    let moments = Box::new(order.moments()?.map(moment));
    let in_points = order.in_points() || level.shape().nodes == LevelNodes::StartAndCommit;
    Ok(ProofOrder { in_points, count: order.count(), points: moments })
}

/// Of the whole, what was found is not all there is.
fn not_exact(result: &LevelResult) -> LevelResult {
    let mut result = result.clone();
    if let Verdict::Violated(Findings { exact, .. }) = &mut result.verdict {
        *exact = false;
    }
    result
}
