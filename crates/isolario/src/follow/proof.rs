//! The proof of what was decided of a file that is not in memory.

use std::io;

use isolario_check::{Settling, SettlingStep};
use isolario_model::{Findings, History, LevelResult, Pieces, SinkError, Verdict};
use isolario_verify::Options;
pub use isolario_verify::proof::takes_an_excerpt;
use isolario_verify::proof::{
    Excerpt, Moment, OfWhole, Order as ProofOrder, Places, ProofError, SessionDigests,
    VerifiedProof, write_of_whole,
};

use super::order::Order;
use super::reader::Reader;
use super::spill::Spilled;
use super::{FollowError, Input};

/// Writes the proof of what was decided of a file, in the form in which any history is proven. `name` is what the
/// file is called.
pub fn write(
    input: Input<'_>,
    spilled: &Spilled,
    options: &Options,
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
    let whole = OfWhole {
        digest: sessions.finish(),
        part: &spilled.part,
        places: Places { txns: &spilled.places.txns, ops: &spilled.places.ops },
    };
    let results: Vec<LevelResult> = spilled.results.iter().map(not_exact).collect();
    let order = |at: usize| match (&spilled.orders[at], &orders[at]) {
        (Some(order), Some(firsts)) => moments(order, firsts.clone()),
        _ => Err(io::Error::other("it is open what reads saw, and no order was kept")),
    };
    let written = write_of_whole(whole, &results, order, options, name, out);
    Ok(written.map_err(SinkError::from)?)
}

/// What came of a proof, and the part of the history by which it was re-checked.
pub type Verified = Result<(History, VerifiedProof), ProofError>;

/// Re-checks a proof that [takes no more than a part](takes_an_excerpt) of a file; none if no part can be taken
/// of what is in the file.
pub fn verify(input: Input<'_>, proof: &[u8]) -> Result<Option<Verified>, FollowError> {
    let (mut sessions, mut is_fit) = (SessionDigests::default(), true);
    for_each_piece(&input, |piece| {
        is_fit &= Excerpt::is_fit(piece);
        sessions.add(piece);
        Ok(())
    })?;
    if !is_fit {
        return Ok(None);
    }
    let mut excerpt = match Excerpt::new(proof, sessions) {
        Ok(excerpt) => excerpt,
        Err(error) => return Ok(Some(Err(error))),
    };
    for_each_piece(&input, |piece| excerpt.find(piece))?;
    excerpt.begin_again();
    for_each_piece(&input, |piece| excerpt.pick(piece))?;
    Ok(Some(excerpt.verify()))
}

/// Which history a file has, and how many transactions its sessions.
fn survey(input: &Input<'_>) -> Result<SessionDigests, FollowError> {
    let mut sessions = SessionDigests::default();
    for_each_piece(input, |piece| {
        sessions.add(piece);
        Ok(())
    })?;
    Ok(sessions)
}

/// Reads a file from front to back.
fn for_each_piece(
    input: &Input<'_>,
    mut take: impl FnMut(&History) -> Result<(), SinkError>,
) -> Result<(), FollowError> {
    let mut reader = Reader::ahead(input.open()?);
    loop {
        let piece = reader.next()?;
        if piece.is_empty() {
            break;
        }
        take(&History::from_batches(piece, Pieces::Whole)?)?;
    }
    let rest = reader.close()?;
    match rest.is_empty() {
        true => Ok(()),
        false => Ok(take(&rest.build()?)?),
    }
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

fn moments(order: &Order, firsts: Vec<u64>) -> io::Result<ProofOrder> {
    let moment = move |settling: io::Result<Settling>| {
        let settling = settling?;
        let position = firsts[settling.session as usize] + settling.index;
        Ok(match settling.step {
            SettlingStep::Start => Moment::Starts(position),
            SettlingStep::Commit => Moment::Commits(position),
            SettlingStep::Both => Moment::Takes(position),
        })
    };
    let moments = Box::new(order.moments()?.map(moment));
    Ok(ProofOrder { in_points: order.in_points(), count: order.count(), moments })
}

/// Of the whole, what was found is not all there is.
fn not_exact(result: &LevelResult) -> LevelResult {
    let mut result = result.clone();
    if let Verdict::Violated(Findings { exact, .. }) = &mut result.verdict {
        *exact = false;
    }
    result
}
