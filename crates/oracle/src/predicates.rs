//! Levels of histories with predicate operations, where nobody says which versions these met.

use std::collections::BTreeMap;

use isolario_model::{History, Initial, Level, Op, Outcome, TxnId};

use crate::points::{Search, has_starts};
use crate::{Answer, Options};

/// Whether a history of rows and registers satisfies a level: the strong ones, for which some serial
/// order, or some order of starts and commits, must make every operation return what it returned.
/// Each transaction of unknown outcome may have committed or not.
///
/// A predicate write of which nobody knows the rows is none that anything can be said about: a
/// transaction of unknown outcome that has one is left out, and where that does not explain the
/// history nobody can tell.
pub fn satisfies_predicates(history: &History, level: Level, options: Options) -> Answer {
    let (Some(has_starts), Initial::Value(_)) = (has_starts(level), history.initial()) else {
        return Answer::Unsupported;
    };
    let of = |outcome| -> Vec<TxnId> {
        history.txns().filter(|txn| history.outcome(*txn) == outcome).collect()
    };
    let is_open = |txn: &TxnId| has_unobserved_write(history, *txn);
    let (committed, unknown) = (of(Outcome::Committed), of(Outcome::Unknown));
    let some_left_out = committed.iter().chain(&unknown).any(is_open);
    let known: Vec<TxnId> = unknown.into_iter().filter(|txn| !is_open(txn)).collect();
    let satisfied = (0..1u32 << known.len()).any(|chosen| {
        let is_chosen = |(at, _): &(usize, &TxnId)| chosen >> at & 1 == 1;
        let chosen = known.iter().enumerate().filter(is_chosen).map(|(_, txn)| *txn);
        let mut txns: Vec<TxnId> = committed.iter().copied().chain(chosen).collect();
        txns.sort_unstable();
        let (promised, by_incarnation, effects) = (None, true, BTreeMap::new());
        let search =
            Search { history, level, options, promised, has_starts, by_incarnation, txns, effects };
        search.answer() == Answer::Satisfied
    });
    match satisfied && !committed.iter().any(is_open) {
        true => Answer::Satisfied,
        false if some_left_out => Answer::Unsupported,
        false => Answer::Violated,
    }
}

fn has_unobserved_write(history: &History, txn: TxnId) -> bool {
    let mut ops = history.txn_ops(txn);
    ops.any(|op| matches!(history.op(op), Op::PredicateWrite { rows: None, .. }))
}
