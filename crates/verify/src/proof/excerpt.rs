//! Re-checks what a proof says is violated of a history that is not in memory.
//!
//! What is looked at are the transactions that the evidence names, with everybody who wrote what these
//! read. Whatever the whole history satisfies, they satisfy by themselves: take an order of the whole,
//! and from it these. Each read that is left saw the last version before it, whose possible writers
//! are all there, and of the versions that are left it still is the last. So what they violate, the
//! history violates. Other reads count as ones of which nobody knows what they saw.
//!
//! That a transaction of unknown outcome committed is seen by who read from it, so that one such reader is looked at, too. Where
//! that one's outcome is unknown as well, more of the history is needed: a proof that the part does not bear out need not be
//! wrong.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Batch, History, Level, LevelResult, Op, OpKind, Outcome, SinkError, TxnId, TxnSink, TxnStart,
    Value, Verdict,
};
use rustc_hash::FxHashMap;

use super::digest::SessionDigests;
use super::read::{header, read_part};
use super::{ProofError, ProofProblem, VerifiedProof};
use crate::{Refusal, Verifier};

/// A proof that says of levels that they are violated, and the transactions that it takes to see whether
/// that is so. They are looked for in the history, which is told twice, in pieces that each have the next
/// transactions of some sessions.
pub struct Excerpt<'f> {
    file: &'f [u8],
    sessions: Vec<Session>,
    numbers: FxHashMap<Value, usize>,
    /// Who is named, by position.
    named: BTreeSet<u64>,
    /// What they read, by key, and what those of unknown outcome wrote.
    wanted: BTreeMap<Value, BTreeSet<Value>>,
    /// What those of unknown outcome wrote, and nobody who was picked has read.
    unseen: BTreeSet<(Value, Value)>,
    picked: Batch,
}

/// How far a session was told.
#[derive(Default)]
struct Session {
    /// The position of its first transaction, and of its next one.
    first: u64,
    next: u64,
    /// The positions of those that were picked.
    picked: Vec<u64>,
}

/// Whether a part of the history is enough to see whether a proof is right: if it says of levels that they
/// are violated, and nothing else, and names the history by the digests of its sessions.
pub fn takes_an_excerpt(file: &[u8]) -> bool {
    let Ok(header) = header(file) else { return false };
    let options = &header.options;
    let stands_alone = header.lost == 0
        && !options.trust_version_order
        && !options.promised_order
        && options.assume.is_empty();
    let lines =
        file.split(|byte| *byte == b'\n').skip((header.anomalies as usize).saturating_add(1));
    let claims = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let is_violated =
        |line: &&[u8]| std::str::from_utf8(line).is_ok_and(|line| line.contains(VIOLATED));
    header.digest.is_by_session()
        && stands_alone
        && header.levels.iter().all(|level| LEVELS.contains(level))
        && claims.len() == header.levels.len()
        && claims.iter().all(is_violated)
}

/// The levels that ask for an order of all transactions.
const LEVELS: [Level; 9] = [
    Level::AdyaReadCommitted,
    Level::ReadCommitted,
    Level::ReadAtomic,
    Level::Causal,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// What the line of a level says that is violated, as it is written.
const VIOLATED: &str = "\"verdict\":\"violated\"";

impl<'f> Excerpt<'f> {
    /// Whether a history is of a kind of which a part can be taken: it has operations on registers alone, and
    /// their versions go by their values.
    pub fn is_fit(piece: &History) -> bool {
        let is_known =
            |kind: &OpKind| matches!(kind, OpKind::Read | OpKind::ReadUnobserved | OpKind::Write);
        !piece.names_versions() && piece.op_kinds().iter().all(is_known)
    }

    /// Looks for those that a proof names, which must be one of this history.
    pub fn new(file: &'f [u8], history: SessionDigests) -> Result<Excerpt<'f>, ProofError> {
        let session = |next: &mut u64, count: &u64| {
            let first = *next;
            *next += count;
            Some(Session { first, next: first, picked: Vec::new() })
        };
        let excerpt = Excerpt {
            file,
            sessions: history.counts().iter().scan(0, session).collect(),
            numbers: history.names().clone(),
            named: positions(file),
            wanted: BTreeMap::new(),
            unseen: BTreeSet::new(),
            picked: Batch::new(),
        };
        let (proof, history) = (header(file)?.digest, history.finish());
        match proof == history {
            true => Ok(excerpt),
            false => {
                let problem = ProofProblem::OtherHistory { proof, history };
                Err(ProofError { position: None, problem })
            }
        }
    }

    /// Tells the next piece, the first time.
    pub fn find(&mut self, piece: &History) -> Result<(), SinkError> {
        self.for_each(piece, |excerpt, position, txn| {
            if excerpt.named.contains(&position) {
                let is_unknown = piece.outcome(txn) == Outcome::Unknown;
                for (kind, key, value) in accesses(piece, txn) {
                    if kind == OpKind::Write && is_unknown {
                        excerpt.unseen.insert((key.clone(), value.clone()));
                    }
                    if kind == OpKind::Read || is_unknown {
                        excerpt.wanted.entry(key).or_default().insert(value);
                    }
                }
            }
            Ok(())
        })
    }

    /// Everything was told, and will be once more.
    pub fn begin_again(&mut self) {
        self.sessions.iter_mut().for_each(|session| session.next = session.first);
    }

    /// Tells the next piece, the second time.
    pub fn pick(&mut self, piece: &History) -> Result<(), SinkError> {
        if self.picked.is_empty() {
            self.picked.meta(piece.meta())?;
        }
        self.for_each(piece, |excerpt, position, txn| {
            let mut is_taken = excerpt.named.contains(&position);
            for (kind, key, value) in accesses(piece, txn) {
                is_taken |= match kind {
                    OpKind::Write => excerpt.is_wanted(&key, &value),
                    _ => {
                        piece.outcome(txn) == Outcome::Committed
                            && excerpt.unseen.remove(&(key, value))
                    }
                };
            }
            if is_taken {
                excerpt.take(piece, txn)?;
                excerpt.session(piece, txn).picked.push(position);
            }
            Ok(())
        })
    }

    /// Takes a transaction. What it read is told if everybody who wrote that is picked.
    fn take(&mut self, piece: &History, txn: TxnId) -> Result<(), SinkError> {
        let session = piece.session_name(piece.session_of(txn));
        self.picked.begin(&TxnStart { session, id: piece.txn_name(txn), line: None })?;
        for op in piece.txn_ops(txn) {
            match piece.op(op) {
                Op::Read { key, value: Some(value) } => {
                    let (key, value) = (piece.key_name(key), piece.value(value));
                    let is_told = self.is_wanted(&key.to_owned(), &value.to_owned());
                    self.picked.op(&Op::Read { key, value: is_told.then_some(value) })?;
                }
                _ => piece.with_op_input(op, |op| self.picked.op(op))?,
            }
        }
        self.picked.end(&piece.txn_end(txn))
    }

    fn is_wanted(&self, key: &Value, value: &Value) -> bool {
        self.wanted.get(key).is_some_and(|values| values.contains(value))
    }

    fn session(&mut self, piece: &History, txn: TxnId) -> &mut Session {
        let name = piece.session_name(piece.session_of(txn)).to_owned();
        &mut self.sessions[self.numbers.get(&name).copied().unwrap_or_default()]
    }

    /// Calls a function for each transaction of a piece, with its position.
    fn for_each(
        &mut self,
        piece: &History,
        mut take: impl FnMut(&mut Self, u64, TxnId) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        for session in piece.sessions() {
            let name = piece.session_name(session).to_owned();
            let Some(number) = self.numbers.get(&name).copied() else {
                return Err(SinkError::Sequence("the history has changed"));
            };
            for txn in piece.session_txns(session) {
                let position = self.sessions[number].next;
                take(self, position, txn)?;
                self.sessions[number].next += 1;
            }
        }
        Ok(())
    }

    /// Re-checks what the proof says, and gives the part by which that was done.
    pub fn verify(self) -> Result<(History, VerifiedProof), ProofError> {
        let refused = |error: SinkError| ProofError {
            position: None,
            problem: ProofProblem::NotThere(error.to_string()),
        };
        let part = self.picked.build().map_err(refused)?;
        let mut positions = BTreeMap::new();
        for session in part.sessions() {
            let number = self.numbers.get(&part.session_name(session).to_owned());
            let picked = number.map_or(&[][..], |number| &self.sessions[*number].picked);
            positions.extend(picked.iter().copied().zip(part.session_txns(session)));
        }
        let proof = read_part(&part, positions, self.file)?;
        let verifier = Verifier::new(&part, &proof.options);
        let refusal = |result: &LevelResult| match result.verdict {
            Verdict::Violated(_) => verifier.verify(result).err(),
            _ => Some(Refusal::Unsupported("a part shows only what is violated")),
        };
        let refusals = proof.results.iter().map(refusal).collect();
        drop(verifier);
        Ok((part, VerifiedProof { proof, refusals, not_lost: Vec::new() }))
    }
}

/// What a transaction read and wrote.
fn accesses(piece: &History, txn: TxnId) -> impl Iterator<Item = (OpKind, Value, Value)> {
    let named =
        |kind, key, value| (kind, piece.key_name(key).to_owned(), piece.value(value).to_owned());
    piece.txn_ops(txn).filter_map(move |op| match piece.op(op) {
        Op::Read { key, value: Some(value) } => Some(named(OpKind::Read, key, value)),
        Op::Write { key, value } => Some(named(OpKind::Write, key, value)),
        _ => None,
    })
}

/// All positions that stand in a proof. What only looks like one makes the part larger.
fn positions(file: &[u8]) -> BTreeSet<u64> {
    const MARK: &[u8] = b"\"#\":";
    let mut found = BTreeSet::new();
    let mut rest = file;
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        rest = &rest[at + MARK.len()..];
        let digits = rest.iter().skip_while(|byte| **byte == b' ');
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(None, |number: Option<u64>, digit| {
            number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        });
        found.extend(number);
    }
    found
}
