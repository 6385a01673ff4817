//! Cycles of single operations, and single operations that are wrong by themselves.
//!
//! Every operation of a cycle must have taken effect for certain, and where an edge says whose
//! version was found, nobody else may have written it.

use isolario_model::{
    AnomalyKind, Edge, Initial, KeyId, Level, OpId, Outcome, Reason, TxnId, VersionOrder,
};

use super::calls::{Did, Singles};
use crate::{Refusal, cycles, edges, shapes};

/// Refuses a cycle that is none, or another one than its name says.
pub(super) fn verify(
    singles: &Singles<'_>,
    kind: AnomalyKind,
    cycle: &[Edge],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    cycles::closes(cycle)?;
    cycle.iter().try_for_each(|edge| justify(singles, edge))?;
    if !kind.forbidden_at(Level::Linearizable) {
        return Err(Refusal::Allowed { kind, level: Level::Linearizable });
    }
    if shapes::is_of_kind(kind, cycle) { Ok(()) } else { wrong("the cycle is of another kind") }
}

/// Refuses an operation that found nothing wrong: someone may have written it, or it may have been
/// there at first.
pub(super) fn verify_read(
    singles: &Singles<'_>,
    kind: AnomalyKind,
    read: OpId,
    saw: Option<OpId>,
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    let history = singles.history;
    let txn = super::kept_txn(history, read)?;
    certain(singles, txn)?;
    let Some(old) = found(singles.did(read)) else { return wrong("it found nothing") };
    let key = singles.key(read);
    if singles.writers(key, old).next().is_some() || singles.may_be_initial(key, old) {
        return wrong("what it found may have been there");
    }
    let is_aborted = |write: &OpId| {
        history.outcome(history.op_txn(*write)) == Outcome::Aborted
            && singles.key(*write) == key
            && singles.did(*write).written() == Some(old)
    };
    match (kind, saw) {
        (AnomalyKind::AbortedRead, Some(write)) if write.index() < history.op_count() => {
            if is_aborted(&write) {
                Ok(())
            } else {
                wrong("it did not see an aborted write")
            }
        }
        (AnomalyKind::ThinAirRead, None) => {
            let mut ops = history.txns().flat_map(|txn| history.txn_ops(txn));
            if ops.any(|op| is_aborted(&op)) { wrong("an aborted write wrote it") } else { Ok(()) }
        }
        _ => wrong("it is of another kind"),
    }
}

/// Refuses two operations unless they found two values of a key that nobody wrote: it has only one
/// initial value, so the other came out of thin air.
pub(super) fn verify_initial_values(
    singles: &Singles<'_>,
    kind: AnomalyKind,
    key: KeyId,
    reads: [OpId; 2],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    let mut values = Vec::new();
    for read in reads {
        certain(singles, super::kept_txn(singles.history, read)?)?;
        let old = found(singles.did(read)).filter(|_| singles.key(read) == key);
        let Some(old) = old else { return wrong("it found nothing, or on another key") };
        values.push(old);
    }
    let unwritten = *singles.history.initial() == Initial::Unwritten
        && values.iter().all(|old| singles.may_be_initial(key, *old));
    match kind {
        AnomalyKind::ThinAirRead if unwritten && values[0] != values[1] => Ok(()),
        _ => wrong("they are not two values that no transaction wrote"),
    }
}

/// What an operation found for certain.
fn found(did: Did) -> Option<Option<u64>> {
    match did {
        Did::Found(old) | Did::Replaced(old, _) => Some(old),
        _ => None,
    }
}

/// Refuses transactions that did not take effect for certain; the initial one did.
fn certain(singles: &Singles<'_>, txn: TxnId) -> Result<(), Refusal> {
    let history = singles.history;
    if txn.is_init() {
        return Ok(());
    }
    if txn.index() >= history.txn_count() {
        return Err(Refusal::NoSuchTxn(txn));
    }
    let committed = history.outcome(txn) == Outcome::Committed;
    if committed { Ok(()) } else { Err(Refusal::NotCommitted(txn)) }
}

/// Refuses an edge that the history does not bear out.
fn justify(singles: &Singles<'_>, edge: &Edge) -> Result<(), Refusal> {
    if let Reason::AntiDependency { known: VersionOrder::Path { edges }, writer, .. } = &edge.reason
    {
        edges.iter().try_for_each(|edge| justify_plain(singles, edge))?;
        if edges::ends(edges)? != Some((*writer, edge.to)) {
            let why = "its path leads elsewhere";
            return Err(Refusal::WrongEdge { from: edge.from, to: edge.to, why });
        }
        return justify_missed(singles, edge);
    }
    justify_plain(singles, edge)
}

/// Refuses an anti-dependency that does not hold, but for the path by which versions are ordered.
fn justify_missed(singles: &Singles<'_>, edge: &Edge) -> Result<(), Refusal> {
    let Edge { from, to, .. } = *edge;
    let wrong = |why| Err(Refusal::WrongEdge { from, to, why });
    let Reason::AntiDependency { key, read, writer, known } = &edge.reason else {
        return Err(Refusal::Unsupported("an edge for this reason"));
    };
    let Some((old, source)) = source(singles, from, *key, *read) else {
        return wrong("it is not known what the one found");
    };
    let write = single(singles, to, *key);
    let did = write.map_or(Did::Nothing, |write| singles.did(write));
    let writes = matches!(did, Did::Wrote(_) | Did::Replaced(..));
    if source != Some(*writer) || from == to || *writer == to || !writes {
        return wrong("the other one did not write what the one missed");
    }
    let follows = match known {
        VersionOrder::Initial => writer.is_init(),
        VersionOrder::ReadModifyWrite { read } => {
            write == Some(*read) && matches!(did, Did::Replaced(found, _) if found == old)
        }
        VersionOrder::Path { .. } => true,
        _ => return Err(Refusal::Unsupported("an order of versions known in this way")),
    };
    if follows { Ok(()) } else { wrong("the other one need not have written later") }
}

/// Refuses an edge that does not hold or that rests on further edges.
fn justify_plain(singles: &Singles<'_>, edge: &Edge) -> Result<(), Refusal> {
    let Edge { from, to, .. } = *edge;
    certain(singles, from)?;
    certain(singles, to)?;
    let holds = match edge.reason {
        Reason::RealTime { finish, start } => singles.times.order(from, to, finish, start),
        Reason::Read { key, read, write: Some(write) } => {
            let source = source(singles, to, key, read).and_then(|(_, source)| source);
            source == Some(from) && single(singles, from, key) == Some(write)
        }
        Reason::AntiDependency { known: VersionOrder::Path { .. }, .. } => {
            return Err(Refusal::Unsupported("a path within a path"));
        }
        _ => return justify_missed(singles, edge),
    };
    let why = "the history does not show it";
    if holds { Ok(()) } else { Err(Refusal::WrongEdge { from, to, why }) }
}

/// The one operation of a transaction, if it is on this key.
fn single(singles: &Singles<'_>, txn: TxnId, key: KeyId) -> Option<OpId> {
    singles.history.txn_ops(txn).next().filter(|op| singles.key(*op) == key)
}

/// What the operation of a transaction found, and who alone may have written it.
fn source(
    singles: &Singles<'_>,
    txn: TxnId,
    key: KeyId,
    read: OpId,
) -> Option<(Option<u64>, Option<TxnId>)> {
    let op = single(singles, txn, key).filter(|op| *op == read)?;
    let old = found(singles.did(op))?;
    let mut writers = singles.writers(key, old);
    let initial = singles.may_be_initial(key, old);
    let source = match (writers.next(), initial) {
        (None, true) => Some(TxnId::INIT),
        (Some(write), false) => Some(singles.history.op_txn(write)),
        _ => None,
    };
    Some((old, source.filter(|_| writers.next().is_none())))
}
