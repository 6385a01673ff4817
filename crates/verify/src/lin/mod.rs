//! Linearizability: the order is run on a store; what is said to have no order is searched again.

mod calls;
mod cycles;
mod search;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, KeyId, Level, OpId, Outcome, TxnId, Verdict, Witness,
};

use crate::times::InTurn;
use crate::{Refusal, VerifyOptions, anomalies};
use calls::Singles;
pub(crate) use calls::is_known;

/// Re-checks a verdict on linearizability.
pub(crate) fn verify(
    history: &History,
    options: VerifyOptions,
    verdict: &Verdict,
) -> Result<(), Refusal> {
    match verdict {
        Verdict::Satisfied(Witness::Linearization(order)) => {
            let singles = Singles::new(history, options)?;
            is_complete(history, order)?;
            respects_real_time(&singles, order)?;
            explains(&singles, order)
        }
        Verdict::Violated(findings) => {
            let singles = Singles::new(history, options)?;
            anomalies::are_counted(findings)?;
            findings.anomalies.iter().try_for_each(|anomaly| is_wrong(&singles, anomaly))
        }
        _ => Err(Refusal::WrongWitness(Level::Linearizable)),
    }
}

fn is_wrong(singles: &Singles<'_>, anomaly: &Anomaly) -> Result<(), Refusal> {
    let kind = anomaly.kind;
    match &anomaly.evidence {
        Evidence::Operations { key, ops } if kind == AnomalyKind::NotLinearizable => {
            search::verify(singles, *key, ops)
        }
        Evidence::Read { read, saw, instead: None } => {
            cycles::verify_read(singles, kind, *read, *saw)
        }
        Evidence::Reads { key, first, second, edges } if edges.is_empty() => {
            cycles::verify_initial_values(singles, kind, *key, [*first, *second])
        }
        Evidence::Cycle { edges } => cycles::verify(singles, kind, edges),
        _ => Err(Refusal::WrongKind { kind, why: "such evidence does not show it" }),
    }
}

/// The transaction of an operation, which must not have aborted.
fn kept_txn(history: &History, op: OpId) -> Result<TxnId, Refusal> {
    if op.index() >= history.op_count() {
        return Err(Refusal::NoSuchOp(op));
    }
    let txn = history.op_txn(op);
    match history.outcome(txn) {
        Outcome::Aborted => Err(Refusal::NotCommitted(txn)),
        _ => Ok(txn),
    }
}

/// Every operation that took effect is there, none twice.
fn is_complete(history: &History, order: &[OpId]) -> Result<(), Refusal> {
    let mut is_there = vec![false; history.txn_count()];
    for op in order {
        let txn = kept_txn(history, *op)?;
        if std::mem::replace(&mut is_there[txn.index()], true) {
            return Err(Refusal::Repeated(txn));
        }
    }
    let must = |txn: &TxnId| {
        history.outcome(*txn) == Outcome::Committed && history.txn_ops(*txn).len() > 0
    };
    match history.txns().filter(must).find(|txn| !is_there[txn.index()]) {
        Some(missing) => Err(Refusal::Missing(missing)),
        None => Ok(()),
    }
}

fn respects_real_time(singles: &Singles<'_>, order: &[OpId]) -> Result<(), Refusal> {
    let mut in_turn = InTurn::new(singles.times);
    order.iter().try_for_each(|op| {
        let txn = singles.history.op_txn(*op);
        in_turn.start(txn);
        in_turn.commit(txn)
    })
}

/// Every operation finds what it found. Where the initial state may be anything that nobody wrote,
/// several states are possible.
fn explains(singles: &Singles<'_>, order: &[OpId]) -> Result<(), Refusal> {
    let keys = (0..singles.history.key_count()).map(KeyId::at);
    let mut store: Vec<_> = keys.map(|key| singles.initial_states(key)).collect();
    for op in order {
        let key = singles.key(*op);
        let states = &mut store[key.index()];
        let did = singles.did(*op);
        *states = states.iter().flat_map(|state| singles.after(key, did, *state)).collect();
        if states.is_empty() {
            let why = "something else was there at its turn";
            return Err(Refusal::Unexplained { read: *op, why });
        }
    }
    Ok(())
}
