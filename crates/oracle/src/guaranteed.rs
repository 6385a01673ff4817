//! What is assumed of every register by itself.
//!
//! To access a version is to write it or to read it from another transaction. Wherever a session, or real time, has an access to
//! one version before an access to another, the first version is the earlier one: all pairs of accesses
//! are asked for, and orders of versions that do not agree with one of them are left out.

use isolario_model::{KeyAssumption, Outcome, TxnId};

use crate::Options;
use crate::small::Small;

/// An access to a version of a register by a transaction that committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) txn: usize,
    /// Where it stands in the history: program order within its session.
    pub(crate) at: usize,
    pub(crate) key: usize,
    /// Who wrote the version; none for `init`.
    pub(crate) version: Option<usize>,
}

/// That one version of a key comes before another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follows {
    key: usize,
    first: Option<usize>,
    second: Option<usize>,
}

/// What accesses say of the order of versions.
pub(crate) fn follows(small: &Small, options: Options, accesses: &[Access]) -> Vec<Follows> {
    let mut found = Vec::new();
    for a in accesses {
        for b in accesses.iter().filter(|b| b.key == a.key && b.version != a.version) {
            let assumed = |one: KeyAssumption| options.assume.contains(one);
            let is_before = assumed(KeyAssumption::SequentialKeys) && in_session(small, a, b)
                || assumed(KeyAssumption::LinearizableKeys) && in_time(small, options, a, b);
            if is_before {
                found.push(Follows { key: a.key, first: a.version, second: b.version });
            }
        }
    }
    found
}

/// Nothing follows a transaction of unknown outcome in its session, but for its own operations.
fn in_session(small: &Small, a: &Access, b: &Access) -> bool {
    let session = |txn: usize| small.history.session_of(TxnId::at(txn));
    let is_followed = a.txn == b.txn || small.outcomes[a.txn] == Outcome::Committed;
    session(a.txn) == session(b.txn) && a.at < b.at && is_followed
}

/// Whether the transaction of the one had finished before that of the other started.
fn in_time(small: &Small, options: Options, a: &Access, b: &Access) -> bool {
    let (history, skew) = (small.history, i128::from(options.clock_skew));
    let ordered = history.finish(TxnId::at(a.txn)).zip(history.start(TxnId::at(b.txn)));
    small.outcomes[a.txn] == Outcome::Committed
        && ordered.is_some_and(|(end, start)| i128::from(end) + skew < i128::from(start) - skew)
}

/// Whether an order of the versions of a key, after the initial one, agrees with all of it.
pub(crate) fn agrees(follows: &[Follows], key: usize, order: &[usize]) -> bool {
    let place = |version: Option<usize>| match version {
        None => Some(0),
        Some(writer) => order.iter().position(|txn| *txn == writer).map(|at| at + 1),
    };
    let of_key = follows.iter().filter(|follows| follows.key == key);
    of_key.into_iter().all(|follows| match (place(follows.first), place(follows.second)) {
        (Some(first), Some(second)) => first < second,
        _ => true,
    })
}
