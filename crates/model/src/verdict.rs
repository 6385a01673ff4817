//! What a history proves: a verdict per level, with its evidence.

use crate::anomaly::AnomalyKind;
use crate::edge::Edge;
use crate::level::Level;
use crate::{KeyId, OpId, TxnId};

/// The answer for one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelResult {
    /// The level.
    pub level: Level,
    /// Which engine decided it.
    pub engine: Engine,
    /// The answer.
    pub verdict: Verdict,
}

/// The answer for one anomaly that was looked for on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternResult {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// The answer: satisfied where it does not occur, violated where it does.
    pub verdict: Verdict,
}

/// The engines that decide levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Weak levels by a minimal saturated commit relation.
    Weak,
    /// Strong levels of read-modify-write histories.
    Mini,
    /// Strong levels by search.
    Strong {
        /// A write that nothing but search can place among the versions of its key, since its
        /// transaction had not read the key; where that is known to be the reason.
        blind: Option<OpId>,
    },
    /// Levels over a known version order.
    Versions,
    /// Linearizability.
    Lin,
}

impl Engine {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Weak => "weak",
            Engine::Mini => "mini",
            Engine::Strong { .. } => "strong",
            Engine::Versions => "versions",
            Engine::Lin => "lin",
        }
    }
}

/// The answer to "does the history satisfy the level?".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Yes, as the witness shows.
    Satisfied(Witness),
    /// No, as the findings show.
    Violated(Findings),
    /// A limit was reached first.
    Undecided {
        /// Which limit, and what was established before.
        reason: String,
    },
    /// The level cannot be decided for a history of this kind.
    NotApplicable(Inapplicable),
}

impl Verdict {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Satisfied(_) => "satisfied",
            Verdict::Violated(_) => "violated",
            Verdict::Undecided { .. } => "undecided",
            Verdict::NotApplicable(_) => "not-applicable",
        }
    }
}

/// What shows that a level is satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// Nothing to show: the level orders nothing.
    Empty,
    /// All kept transactions in an order in which they may have committed.
    CommitOrder(Vec<TxnId>),
    /// The start and commit points of all kept transactions, in order.
    Points(Vec<Point>),
    /// All kept operations, each at the moment at which it may have taken effect, in order.
    Linearization(Vec<OpId>),
}

/// A moment in a transaction's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// It took its snapshot.
    Start(TxnId),
    /// It committed.
    Commit(TxnId),
}

/// What shows that a level is violated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The anomalies, clearest first.
    pub anomalies: Vec<Anomaly>,
    /// How many there are in the history.
    pub total: u64,
    /// Whether `total` is exact; a lower bound otherwise.
    pub exact: bool,
}

/// One anomaly, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// What it is called.
    pub kind: AnomalyKind,
    /// What shows it.
    pub evidence: Evidence,
}

/// The operations and edges that make up an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// One read that is wrong whatever the order.
    Read {
        /// The read.
        read: OpId,
        /// The write it saw; none for `init` and for a value nobody wrote.
        saw: Option<OpId>,
        /// The write that makes it wrong: the own write that it should have seen, or the one by
        /// which the writer itself replaced what was seen.
        instead: Option<OpId>,
    },
    /// Two reads of one key that do not fit together: of one transaction, or of one list.
    Reads {
        /// The key.
        key: KeyId,
        /// The earlier read.
        first: OpId,
        /// The later read.
        second: OpId,
        /// The edges that make it wrong; may be empty.
        edges: Vec<Edge>,
    },
    /// Edges that lead back to where they began.
    Cycle {
        /// The edges, each beginning where the one before ended.
        edges: Vec<Edge>,
    },
    /// No order is possible: each case is closed by a cycle.
    Cases {
        /// The cycles, shortest first.
        cycles: Vec<Vec<Edge>>,
    },
    /// Single operations on one key that no order explains, whatever else happened.
    ///
    /// Nothing is assumed about operations that are not listed: what a listed one saw counts only
    /// if everyone who may have written it is listed, too.
    Operations {
        /// The key.
        key: KeyId,
        /// The operations.
        ops: Vec<OpId>,
    },
}

impl Evidence {
    /// The edges of the argument: those of the first cycle where there are several.
    pub fn edges(&self) -> &[Edge] {
        match self {
            Evidence::Read { .. } | Evidence::Operations { .. } => &[],
            Evidence::Reads { edges, .. } | Evidence::Cycle { edges } => edges,
            Evidence::Cases { cycles } => cycles.first().map_or(&[], Vec::as_slice),
        }
    }
}

/// Why a level cannot be decided for a history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inapplicable {
    /// A read may have seen either of two writes.
    AmbiguousRead {
        /// The read.
        read: OpId,
        /// One write; none for `init`.
        first: Option<OpId>,
        /// Another one.
        second: OpId,
        /// How many reads are ambiguous in all.
        total: u64,
    },
    /// The checkers for this level do not know this kind of operation.
    Operation {
        /// An operation of that kind.
        op: OpId,
    },
    /// The level is about single operations, and a transaction has several.
    SeveralOperations {
        /// Such a transaction.
        txn: TxnId,
    },
    /// The level needs times, and the history has none.
    NoTimes,
    /// The level needs a version order, and the history shows none.
    NoVersionOrder,
    /// Another reason, in words.
    Other(String),
}
