//! What is assumed of every register, beside the history: which versions come before which, because a
//! session or real time has an access to the one before an access to the other.

use isolario_model::{KeyAssumption, KeyId, Level, OpId, OpKind, Outcome, TxnId};

use crate::Refusal;
use crate::by_key::ByKey;
use crate::facts::{Facts, Source};

/// Whether an operation wrote a version of a register, or read another transaction's, and whose it was if
/// that is known.
enum Access {
    Of(TxnId),
    OneOfSeveral,
    Nothing,
}

fn access(facts: &Facts<'_>, op: OpId) -> Access {
    match facts.history.op_kinds()[op.index()] {
        OpKind::Write | OpKind::Delete => Access::Of(facts.txn(op)),
        OpKind::Read => match facts.source(op) {
            Some(Source::Init) => Access::Of(TxnId::INIT),
            Some(Source::Write(write)) if facts.txn(write) != facts.txn(op) => {
                let writer = facts.txn(write);
                if facts.is_of_version(op, writer) { Access::Of(writer) } else { Access::Nothing }
            }
            Some(Source::Ambiguous) => Access::OneOfSeveral,
            _ => Access::Nothing,
        },
        _ => Access::Nothing,
    }
}

/// The claim that one version of a key comes before another by an assumption.
pub(crate) struct Guarantee {
    pub(crate) by: KeyAssumption,
    pub(crate) key: KeyId,
    /// The operation that accessed the earlier version, and who wrote that.
    pub(crate) first: (OpId, TxnId),
    /// The operation that accessed the later version, and who wrote that.
    pub(crate) second: (OpId, TxnId),
}

impl Guarantee {
    /// Whether it is assumed, and the history has the one access before the other.
    pub(crate) fn holds(&self, facts: &Facts<'_>, level: Level) -> Result<bool, Refusal> {
        for (op, _) in [self.first, self.second] {
            facts.committed_at(level, facts.txn(facts.known_op(op)?))?;
        }
        let is_access = |(op, writer): (OpId, TxnId)| {
            facts.key(op) == self.key
                && matches!(access(facts, op), Access::Of(version) if version == writer)
        };
        let (first, second) = (self.first.0, self.second.0);
        let (before, after) = (facts.txn(first), facts.txn(second));
        let is_before = match self.by {
            KeyAssumption::SequentialKeys => {
                let follows = || facts.history.outcome(before) == Outcome::Committed;
                facts.history.session_of(before) == facts.history.session_of(after)
                    && first < second
                    && (before == after || follows())
            }
            KeyAssumption::LinearizableKeys => facts.times.in_order(before, after),
            _ => false,
        };
        let is_assumed = facts.options.assume.contains(self.by);
        Ok(is_assumed && is_before && is_access(self.first) && is_access(self.second))
    }
}

/// An access by a transaction that counts, and the place of its version.
#[derive(Clone, Copy)]
struct Placed {
    txn: TxnId,
    place: u32,
    writer: TxnId,
}

/// Refuses places of transactions in which versions do not follow each other as is assumed. Those
/// without a place did not commit and do not count; `init` comes before all others.
pub(crate) fn agrees_with(
    facts: &Facts<'_>,
    level: Level,
    place: impl Fn(TxnId) -> Option<u32>,
) -> Result<(), Refusal> {
    let assume = facts.options.assume;
    if !assume.order_versions() {
        return Ok(());
    }
    let place = |txn: TxnId| if txn.is_init() { Some(0) } else { place(txn).map(|at| at + 1) };
    let of_registers = ByKey::new(facts.history, |op| {
        use OpKind::{Delete, Read, Write};
        matches!(facts.history.op_kinds()[op.index()], Read | Write | Delete)
    });
    for key in (0..facts.history.key_count()).map(KeyId::at) {
        let mut ops: Vec<OpId> = of_registers.of_key(key).iter().map(|(_, op)| *op).collect();
        ops.sort_unstable();
        let mut accesses = Vec::with_capacity(ops.len());
        for op in ops {
            accesses.extend(placed(facts, level, op, &place)?);
        }
        if assume.contains(KeyAssumption::SequentialKeys) {
            are_sequential(facts, &accesses)?;
        }
        if assume.contains(KeyAssumption::LinearizableKeys) {
            are_linearizable(facts, &accesses)?;
        }
    }
    Ok(())
}

/// The place of the version that an operation accessed, if both count. Where dirty reads are allowed,
/// one that may have seen what is not there, or its own write, need not have seen a version of others.
fn placed(
    facts: &Facts<'_>,
    level: Level,
    op: OpId,
    place: &impl Fn(TxnId) -> Option<u32>,
) -> Result<Option<Placed>, Refusal> {
    let txn = facts.txn(op);
    if place(txn).is_none() {
        return Ok(None);
    }
    match access(facts, op) {
        Access::Of(writer) => Ok(place(writer).map(|place| Placed { txn, place, writer })),
        Access::Nothing => Ok(None),
        Access::OneOfSeveral => {
            let mut writers = facts.candidates(op).map(|write| facts.txn(write));
            let is_none = |writer: TxnId| {
                writer == txn || place(writer).is_none() || !facts.is_of_version(op, writer)
            };
            match crate::allows_dirty_reads(level) && writers.any(is_none) {
                true => Ok(None),
                false => Err(Refusal::Ambiguous(op)),
            }
        }
    }
}

fn out_of_order(first: Placed, second: Placed, why: &'static str) -> Result<(), Refusal> {
    Err(Refusal::OutOfOrder { first: first.writer, second: second.writer, why })
}

/// Places never go down along a session; what a transaction of unknown outcome accessed is not followed
/// by what comes after it.
fn are_sequential(facts: &Facts<'_>, accesses: &[Placed]) -> Result<(), Refusal> {
    let history = facts.history;
    let (mut last, mut own): (Option<Placed>, Option<Placed>) = (None, None);
    for access in accesses {
        let is_new = |other: Placed| other.txn != access.txn;
        if let Some(ended) = own.take_if(|own| is_new(*own))
            && history.outcome(ended.txn) == Outcome::Committed
        {
            last = Some(ended);
        }
        last = last.filter(|last| history.session_of(last.txn) == history.session_of(access.txn));
        match own.or(last) {
            Some(before) if before.place > access.place => {
                return out_of_order(before, *access, "sequential keys");
            }
            _ => own = Some(*access),
        }
    }
    Ok(())
}

/// No access has a lower place than one by a transaction that had finished before its own started.
fn are_linearizable(facts: &Facts<'_>, accesses: &[Placed]) -> Result<(), Refusal> {
    let finish = |access: &Placed| Some((facts.times.latest_finish(access.txn)?, *access));
    let mut finished: Vec<(i128, Placed)> = accesses.iter().filter_map(finish).collect();
    finished.sort_by_key(|(finish, _)| *finish);
    // Up to each of them, the highest place.
    let mut highest: Vec<Placed> = Vec::with_capacity(finished.len());
    for (_, access) in &finished {
        let best = highest.last().filter(|best| best.place >= access.place);
        highest.push(*best.unwrap_or(access));
    }
    for access in accesses {
        let Some(start) = facts.times.earliest_start(access.txn) else { continue };
        let before = finished.partition_point(|(finish, _)| *finish < start);
        match highest[..before].last() {
            Some(first) if first.place > access.place => {
                return out_of_order(*first, *access, "linearizable keys");
            }
            _ => {}
        }
    }
    Ok(())
}
