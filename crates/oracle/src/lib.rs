//! The test kit: brute force from the axioms, and random small histories to feed it.
//!
//! [`satisfies`] decides a level the slow and obvious way: it tries every outcome of the unknown
//! transactions, every way to resolve the reads and every commit order, and asks the axiom of the
//! level each time. It shares nothing with the checkers, so that where the two agree on many
//! random histories ([`random`]) both are probably right.
//!
//! ```
//! use isolario_model::Level;
//! use isolario_oracle::{Answer, Options, history, satisfies};
//!
//! // Both read the same version of x, and both overwrite it.
//! let lost_update = history(
//!     "alice: r x nil, w x 1
//!      bob:   r x nil, w x 2",
//! );
//! let options = Options::default();
//! assert_eq!(satisfies(&lost_update, Level::Causal, options), Answer::Satisfied);
//! assert_eq!(satisfies(&lost_update, Level::SnapshotIsolation, options), Answer::Violated);
//! ```

mod adya;
mod axioms;
mod certificate;
mod cut;
mod draft;
mod guaranteed;
mod linear;
mod points;
mod predicates;
mod promised;
pub mod random;
mod shown;
mod small;
mod uncommitted;
mod views;
mod worlds;

use isolario_model::{History, KeyAssumptions, Level, StatedOrder};

pub use certificate::satisfies_certificate;
pub use draft::{Applied, Draft, DraftOp, DraftTxn, ParseError, history};
pub use predicates::satisfies_predicates;
pub use promised::satisfies_promised;
pub use random::volume;
pub use shown::Shown;

use small::Small;
use worlds::World;

/// How to read a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether the transactions of a session are ordered as the session ran them.
    pub session_order: bool,
    /// By how much the clock of each client may be off: every transaction's interval is widened by
    /// that much on both sides.
    pub clock_skew: u64,
    /// What is assumed of every register by itself.
    pub assume: KeyAssumptions,
}

impl Default for Options {
    fn default() -> Self {
        Options { session_order: true, clock_skew: 0, assume: KeyAssumptions::default() }
    }
}

impl Options {
    /// With session order, or without.
    pub fn with_session_order(self, session_order: bool) -> Self {
        Options { session_order, ..self }
    }

    /// With clocks that may differ by so much.
    pub fn with_clock_skew(self, clock_skew: u64) -> Self {
        Options { clock_skew, ..self }
    }

    /// With what is assumed of every register. Cut isolation knows no order, and ignores it.
    pub fn with_assumptions(self, assume: KeyAssumptions) -> Self {
        Options { assume, ..self }
    }
}

/// What brute force says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Some outcomes, some resolution of the reads and some commit order satisfy the level.
    Satisfied,
    /// None do.
    Violated,
    /// The oracle does not know: too many transactions, an operation or a level that it has no
    /// axioms for.
    Unsupported,
}

/// The levels that the oracle has axioms for, weaker ones first: all that are about transactions.
pub fn levels() -> impl Iterator<Item = Level> {
    Level::all().filter(|level| !level.needs().single_operations)
}

/// Whether a history satisfies a level. Takes time exponential in the number of transactions:
/// meant for up to seven. Beside the [`levels`], it takes linearizable for histories of single
/// operations with times.
pub fn satisfies(history: &History, level: Level, options: Options) -> Answer {
    if level == Level::Linearizable {
        return linear::answer(history, options);
    }
    satisfies_stated(history, level, options, &[])
}

/// As [`satisfies`], with orders of versions that are part of the question: of those writers that
/// committed, each comes before the next. Cut isolation knows no order, and ignores them.
pub fn satisfies_stated(
    history: &History,
    level: Level,
    options: Options,
    stated: &[StatedOrder],
) -> Answer {
    let Some(all) = Small::all(history).filter(|_| level != Level::Linearizable) else {
        return Answer::Unsupported;
    };
    match all.iter().any(|small| is_satisfied(small, level, options, stated)) {
        true => Answer::Satisfied,
        false => Answer::Violated,
    }
}

fn is_satisfied(small: &Small, level: Level, options: Options, stated: &[StatedOrder]) -> bool {
    let any = |holds: &dyn Fn(&World) -> bool| worlds::any(small, level, options, stated, holds);
    match (level, adya::forbidden_at(level)) {
        (Level::CutIsolation, _) => cut::satisfied(small),
        (Level::ReadUncommitted | Level::StrongReadUncommitted, _) => {
            uncommitted::satisfied(small, level, options, stated)
        }
        (_, Some(forbidden)) => any(&|world| adya::some_version_orders(world, forbidden)),
        (level, None) => any(&|world| axioms::some_commit_order(world, level)),
    }
}

/// Whether a level may be refused because some read of a transaction that may have committed could
/// have seen the writes of two transactions, counting the one that wrote the initial state. Not
/// where all that it may have seen is wrong, nor where another read [is wrong](has_bad_read) by
/// itself: that is a violation at every level but cut isolation.
pub fn is_ambiguous(history: &History, level: Level) -> bool {
    let is_ambiguous = |small: &Small| match level {
        // No read is wrong by itself.
        Level::CutIsolation | Level::ReadUncommitted | Level::StrongReadUncommitted => {
            small.has_ambiguous_read(|_| true)
        }
        _ => {
            !small.has_bad_read()
                && small.has_ambiguous_read(|read| views::may_be_right(small, read))
        }
    };
    Small::all(history).is_some_and(|all| all.iter().any(is_ambiguous))
}

/// Whether some read of a committed transaction is wrong by itself: whoever wrote what it saw
/// aborted, or wrote it later in the same transaction, or replaced it, or nobody did.
pub fn has_bad_read(history: &History) -> bool {
    Small::all(history).is_some_and(|all| all.iter().all(Small::has_bad_read))
}
