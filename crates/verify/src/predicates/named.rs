//! Cycles with edges of predicates, under their names.
//!
//! An edge of a predicate says more than one of a row that was met: that a single version agrees with
//! what the reader was told. That is looked at here, and so is the name. Whether the edges hold and close
//! is a question about single rows.

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, KeyId, Level, OpId, Reason, TxnId};

use super::rows::Rows;
use crate::certificate::edges::is_called;
use crate::{Refusal, shapes};

/// Refuses edges of predicates that other versions explain, and a cycle of another kind.
pub(super) fn verify(
    rows: &Rows<'_>,
    level: Level,
    kind: AnomalyKind,
    cycle: &[Edge],
) -> Result<(), Refusal> {
    for edge in cycle {
        let Edge { from, to, ref reason } = *edge;
        let wrong = |why| Err(Refusal::WrongEdge { from, to, why });
        let holds = match *reason {
            Reason::PredicateRead { read, key, write } => {
                rows.is_of(read, to) && rows.is_of(write, from) && is_sole(rows, read, key, from)?
            }
            Reason::PredicateAntiDependency { read, key, write, evaluated: Some(ref met) } => {
                rows.is_of(read, from)
                    && rows.is_of(write, to)
                    && is_sole(rows, read, key, met.writer)?
                    && rows.is_otherwise(read, key, write)?
            }
            Reason::PredicateAntiDependency { evaluated: None, .. } => {
                return wrong("no certificate states which versions the predicate matched");
            }
            _ => true,
        };
        if !holds {
            return wrong("the predicate may have matched another version of the row");
        }
    }
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    if !is_called(kind, cycle) {
        return wrong("the cycle is of another kind");
    }
    if shapes::claims_too_much(kind, level, cycle) {
        return wrong("its name rules out weaker levels, and the cycle does not");
    }
    Ok(())
}

/// Whether what a transaction says about a row leaves one writer of it.
fn is_sole(rows: &Rows<'_>, op: OpId, key: KeyId, writer: TxnId) -> Result<bool, Refusal> {
    if !rows.has(key) {
        return Ok(false);
    }
    let met = rows.met(rows.txn_of(op), key)?;
    Ok(met.is_some_and(|met| met.writers == [writer]))
}

/// The same cycle without its name.
pub(super) fn as_case(cycle: &[Edge]) -> Anomaly {
    let evidence = Evidence::Cases { cycles: vec![cycle.to_vec()] };
    Anomaly::new(AnomalyKind::NoOrderPossible, evidence)
}
