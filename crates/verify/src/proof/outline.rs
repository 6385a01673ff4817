//! A proof whose orders are left where they are: there may be more of them than fits into memory.

use std::io::{self, BufRead};

use isolario_model::Level;
use serde::Deserialize;

use super::read::header;
use super::{Digest, ProofError, ProofProblem, SessionDigests, TxnPositions};
use crate::VerifyOptions;

/// All that a proof says but the orders, and where these are. It is one that names its history by the digests of its
/// sessions and says of levels that they are satisfied by an order, violated or undecided.
#[derive(Debug)]
pub struct ProofOutline {
    /// All lines but those of orders.
    pub(super) rest: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) options: VerifyOptions,
    pub(super) claims: Vec<Claim>,
}

/// What is said of a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) level: Level,
    /// Where the order is by which it is satisfied.
    pub(super) order: Option<OrderLocation>,
}

/// Where an order is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLocation {
    /// Where its first line begins.
    pub offset: u64,
    /// Whether starts and commits are two moments.
    pub in_points: bool,
    /// How many moments it is said to have.
    pub count: u64,
}

/// What the lines of orders begin with, as they are written.
pub(super) const ORDERS: [&[u8]; 2] = [b"{\"order\":", b"{\"points\":"];

/// The line of a level, as far as it tells what follows.
#[derive(Deserialize)]
struct Section {
    verdict: String,
    witness: Option<String>,
    count: Option<u64>,
    sources: Option<u64>,
}

impl ProofOutline {
    /// Reads a proof; none if it is of another kind, or none at all, which whoever has the history in memory
    /// finds out.
    pub fn read(input: &mut dyn BufRead) -> io::Result<Option<ProofOutline>> {
        let mut lines = Lines::new(input)?;
        let Ok(header) = header(&lines.line) else { return Ok(None) };
        lines.keep()?;
        let options = &header.options;
        let stands_alone = header.lost == 0
            && !options.trust_version_order
            && !options.promised_order
            && options.assume.is_empty();
        let is_known = header.levels.iter().all(|level| Level::by_order().contains(level));
        if !stands_alone || !is_known || !header.digest.is_by_session() {
            return Ok(None);
        }
        for _ in 0..header.anomalies {
            if lines.is_over() {
                return Ok(None);
            }
            lines.keep()?;
        }
        let mut claims = Vec::new();
        for level in header.levels {
            let Some(claim) = lines.claim(level)? else { return Ok(None) };
            claims.push(claim);
        }
        let is_over = lines.is_over();
        let (digest, options, rest) = (header.digest, header.options, lines.kept);
        Ok(is_over.then_some(ProofOutline { rest, digest, options, claims }))
    }

    /// Where the transactions of a history stand, of which the proof must be.
    pub fn of_history(&self, sessions: SessionDigests) -> Result<TxnPositions, ProofError> {
        let positions = TxnPositions::new(&sessions);
        let (proof, history) = (self.digest, sessions.finish());
        match proof == history {
            true => Ok(positions),
            false => {
                let problem = ProofProblem::OtherHistory { proof, history };
                Err(ProofError { position: None, problem })
            }
        }
    }

    /// The level of a claim, by its place among the claims.
    pub fn level(&self, at: usize) -> Level {
        self.claims[at].level
    }

    /// By level, where the order is by which it is satisfied; none if it is said to be something else.
    pub fn orders(&self) -> impl Iterator<Item = Option<OrderLocation>> + '_ {
        self.claims.iter().map(|claim| claim.order)
    }
}

/// The lines of a proof, some of which are kept.
struct Lines<'i> {
    input: &'i mut dyn BufRead,
    /// The current line; empty at the end.
    line: Vec<u8>,
    /// Where it begins.
    offset: u64,
    kept: Vec<u8>,
}

impl<'i> Lines<'i> {
    fn new(input: &'i mut dyn BufRead) -> io::Result<Lines<'i>> {
        let mut lines = Lines { input, line: Vec::new(), offset: 0, kept: Vec::new() };
        lines.skip()?;
        Ok(lines)
    }

    fn is_over(&self) -> bool {
        self.line.is_empty()
    }

    /// Goes to the next line.
    fn skip(&mut self) -> io::Result<()> {
        self.offset += self.line.len() as u64;
        self.line.clear();
        self.input.read_until(b'\n', &mut self.line)?;
        Ok(())
    }

    /// Keeps the line and goes to the next one.
    fn keep(&mut self) -> io::Result<()> {
        self.kept.extend_from_slice(&self.line);
        self.skip()
    }

    /// The section of a level; none if it is of another kind.
    fn claim(&mut self, level: Level) -> io::Result<Option<Claim>> {
        let Ok(section) = serde_json::from_slice::<Section>(&self.line) else { return Ok(None) };
        self.keep()?;
        let in_points = match (section.verdict.as_str(), section.witness.as_deref()) {
            ("violated" | "undecided", _) => return Ok(Some(Claim { level, order: None })),
            ("satisfied", Some("commit-order")) => false,
            ("satisfied", Some("points")) => true,
            _ => return Ok(None),
        };
        let (Some(count), None) = (section.count, section.sources) else { return Ok(None) };
        let order = OrderLocation { offset: self.offset, in_points, count };
        while self.line.starts_with(ORDERS[usize::from(in_points)]) {
            self.skip()?;
        }
        Ok(Some(Claim { level, order: Some(order) }))
    }
}
