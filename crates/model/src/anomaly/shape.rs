//! Shapes of cycles, by which cycles are named.

use crate::edge::EdgeKind;

/// A shape of cycles. What it says of a reader is about the one anti-dependency of the cycle.
///
/// The names are in rows of one table, and so are their shapes: a checker names a cycle by the fitting shape of the
/// least rank, and a verifier asks whether the shape of the name fits. Each interprets shapes with code of its
/// own.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CycleShape {
    /// Precedence if several shapes fit a cycle: the least rank gives the name, that of the most special shape.
    pub rank: u8,
    /// The number of edges; none if any number will do.
    pub length: Option<usize>,
    /// The least and the greatest number of anti-dependencies.
    pub anti_dependencies: [usize; 2],
    /// Whether two anti-dependencies follow each other; none if that does not matter.
    pub adjacent: Option<bool>,
    /// The kinds that all edges but anti-dependencies are of; empty if any will do. Real time is only in cycles that
    /// must have it.
    pub others: &'static [EdgeKind],
    /// Kinds of which the cycle has an edge of at least one; empty if it needs none.
    pub with: &'static [EdgeKind],
    /// Number of keys that the edges are about.
    pub keys: ShapeKeys,
    /// Part of predicates in the edges.
    pub predicates: ShapePredicates,
    /// Step by which the reader saw the writer that it missed.
    pub sight: Sight,
    /// Whether the version that was read is older than the one that was missed by causal order; none if that does
    /// not matter.
    pub causal: Option<bool>,
}

/// The keys that a cycle is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeKeys {
    /// Any keys.
    Any,
    /// All edges are about one key, but for the one from the initial state.
    One,
    /// Not all edges are about one key.
    Several,
}

/// Part of predicates in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapePredicates {
    /// Nothing matters.
    Any,
    /// No edge is about a predicate.
    None,
    /// No predicate missed a change.
    Seen,
    /// A predicate missed a change.
    Missed,
}

/// Step by which a reader saw the writer that it missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// In any way.
    Any,
    /// It follows the writer in its session, or read something else from it.
    Step,
    /// It read something else from the writer.
    Read,
    /// It read from the writer before it missed it.
    EarlierRead,
    /// It follows the writer in its session.
    Session,
    /// It read a row from the writer.
    Row,
    /// A predicate of its matched a change of the writer.
    Predicate,
}

const CAUSES: &[EdgeKind] = &[EdgeKind::Initial, EdgeKind::Session, EdgeKind::WriteRead];

/// Any cycle without real time.
pub(super) const ANY: CycleShape = CycleShape {
    rank: 3,
    length: None,
    anti_dependencies: [0, usize::MAX],
    adjacent: None,
    others: &[],
    with: &[],
    keys: ShapeKeys::Any,
    predicates: ShapePredicates::Seen,
    sight: Sight::Any,
    causal: None,
};

/// Any cycle in real time.
pub(super) const TIMED: CycleShape =
    CycleShape { with: &[EdgeKind::RealTime], predicates: ShapePredicates::Any, rank: 1, ..ANY };

/// Any cycle with one anti-dependency.
pub(super) const SINGLE: CycleShape = CycleShape { rank: 9, anti_dependencies: [1, 1], ..ANY };

/// Any cycle of two anti-dependencies.
pub(super) const CROSSED: CycleShape =
    CycleShape { length: Some(2), anti_dependencies: [2, 2], ..ANY };

/// A cycle of session order and reads but for one anti-dependency.
pub(super) const MISSED: CycleShape =
    CycleShape { rank: 7, others: CAUSES, predicates: ShapePredicates::None, ..SINGLE };

/// As [`MISSED`], where the reader saw the writer by one step.
pub(super) const MISSED_DIRECTLY: CycleShape = CycleShape { length: Some(2), ..MISSED };

/// Any cycle in which a predicate missed a change.
pub(super) const BY_PREDICATE: CycleShape = CycleShape {
    rank: 6,
    anti_dependencies: [1, usize::MAX],
    predicates: ShapePredicates::Missed,
    ..ANY
};
