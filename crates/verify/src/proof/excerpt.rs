//! Re-checks what a proof says is violated of a history that is not in memory, and tells what is wrong with its orders.
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
    Batch, History, LevelResult, Op, OpKind, Outcome, SinkError, TxnId, TxnSink, TxnStart, Value,
    ValueRef, Verdict,
};

use super::outline::ProofOutline;
use super::read::read_part;
use super::replay::OrderRefusal;
use super::{ProofError, ProofProblem, TxnPositions, VerifiedProof};
use crate::{Refusal, Verifier};

/// A proof, and the transactions that it takes to see whether what it says of violated levels is so, and what is
/// wrong with its orders. They are looked for in the history, which is told twice, in pieces that each have the
/// next transactions of some sessions.
pub struct ProofExcerpt<'f> {
    outline: &'f ProofOutline,
    /// By level, why its order is refused.
    refused: Vec<Option<OrderRefusal>>,
    positions: TxnPositions,
    /// Who is named, by position.
    named: BTreeSet<u64>,
    /// What they read, by key, and what those of unknown outcome wrote.
    wanted: BTreeMap<Value, BTreeSet<Value>>,
    /// What those of unknown outcome wrote, and nobody who was picked has read.
    unseen: BTreeSet<(Value, Value)>,
    picked: Batch,
    /// By session, the positions of those that were picked.
    picked_positions: BTreeMap<Value, Vec<u64>>,
}

impl<'f> ProofExcerpt<'f> {
    /// Looks for those that a proof names, and for those by whom its orders are refused, if they are.
    pub fn new(
        outline: &'f ProofOutline,
        of_all: &TxnPositions,
        refused: Vec<Option<OrderRefusal>>,
    ) -> ProofExcerpt<'f> {
        let mut named = positions(&outline.rest);
        named.extend(refused.iter().flatten().flat_map(|OrderRefusal(wrong)| wrong.named()));
        ProofExcerpt {
            outline,
            refused,
            positions: of_all.clone(),
            named,
            wanted: BTreeMap::new(),
            unseen: BTreeSet::new(),
            picked: Batch::new(),
            picked_positions: BTreeMap::new(),
        }
    }

    /// Whether nobody has to be looked for.
    pub fn names_no_txn(&self) -> bool {
        self.named.is_empty()
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
        self.positions.begin_again();
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
            if is_taken { excerpt.take(piece, txn, position) } else { Ok(()) }
        })
    }

    /// Takes a transaction. What it read is told if everybody who wrote that is picked. Without a name of its own, it
    /// has the one that it goes by in the whole.
    fn take(&mut self, piece: &History, txn: TxnId, position: u64) -> Result<(), SinkError> {
        let session = piece.session_name(piece.session_of(txn));
        self.picked_positions.entry(session.to_owned()).or_default().push(position);
        let place = format!("#{position}");
        let id = piece.txn_name(txn).or(Some(ValueRef::Text(&place)));
        self.picked.begin(&TxnStart { session, id, line: None })?;
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

    /// Calls a function for each transaction of a piece, with its position.
    fn for_each(
        &mut self,
        piece: &History,
        mut take: impl FnMut(&mut Self, u64, TxnId) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        for of_session in self.positions.tell(piece)? {
            let txns = piece.session_txns(of_session.session);
            for (txn, position) in txns.zip(of_session.positions) {
                take(self, position, txn)?;
            }
        }
        Ok(())
    }

    /// Re-checks what the proof says of levels that are violated, and gives the part by which that was done. Orders
    /// are as right as was said; that a level is satisfied comes without one.
    pub fn verify(self) -> Result<(History, VerifiedProof), ProofError> {
        let refused = |error: SinkError| ProofError {
            position: None,
            problem: ProofProblem::Missing(error.to_string()),
        };
        let part = self.picked.build().map_err(refused)?;
        let mut positions = BTreeMap::new();
        for session in part.sessions() {
            let picked = self.picked_positions.get(&part.session_name(session).to_owned());
            positions.extend(picked.into_iter().flatten().copied().zip(part.session_txns(session)));
        }
        let proof = read_part(&part, positions.clone(), &self.outline.rest)?;
        let verifier = Verifier::new(&part, &proof.options);
        let refusal = |(result, refused): (&LevelResult, &Option<OrderRefusal>)| match (
            &result.verdict,
            refused,
        ) {
            (Verdict::Satisfied(_), None) => None,
            (_, Some(OrderRefusal(wrong))) => {
                let refusal = wrong.told_of(&part, result.level, |at| positions.get(&at).copied());
                refusal.or(Some(Refusal::Unsupported("a history that has changed")))
            }
            (_, None) => verifier.verify(result).err(),
        };
        let refusals = proof.results.iter().zip(&self.refused).map(refusal).collect();
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
