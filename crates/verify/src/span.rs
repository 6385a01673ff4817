//! What an edge says about the start and commit points of two transactions, level by level.
//!
//! At the snapshot levels and at prefix a transaction is two points: it reads the state as of its
//! start S and its writes are there from its commit C on. Session order, real time and reads put C
//! of the one before S of the other. Who read what another overwrote started before that one
//! committed: S before C. An overwrite orders the commits, C before C; at snapshot isolation two
//! writers of a key do not overlap, so there it is C before S.
//!
//! Edges that follow each other therefore make a path unless one arrives at C and the next leaves
//! from S: the later of the two points comes first. A cycle without such a place contradicts itself.
//! For snapshot isolation these are the cycles without two adjacent anti-dependencies (MTC,
//! Definition 6); at prefix an anti-dependency after an overwrite does not count, either.
//!
//! One exception makes lost updates a cycle: at snapshot isolation, if the reader of an
//! anti-dependency writes the key itself, the two writers do not overlap, and S before C is C before
//! S. At prefix they may, and lost updates are allowed.
//!
//! Below prefix only commits are ordered. There an anti-dependency is wrong by itself where its reader
//! must not have missed the write: what that takes is the level's own.

use isolario_model::{Edge, EdgeKind, KeyId, Level, LevelNodes, TxnId, VisibilityRule};

use crate::allows_dirty_reads;
use crate::facts::Facts;

/// A point of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Start,
    Commit,
}

/// The points that an edge orders: this one of the transaction it leaves before that one of the
/// transaction it arrives at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) leaves: Moment,
    pub(crate) arrives: Moment,
}

const COMMIT_TO_START: Span = Span { leaves: Moment::Commit, arrives: Moment::Start };
const COMMIT_TO_COMMIT: Span = Span { leaves: Moment::Commit, arrives: Moment::Commit };
const START_TO_COMMIT: Span = Span { leaves: Moment::Start, arrives: Moment::Commit };

/// What an edge orders at a level; none if it orders nothing there.
pub(crate) fn span(facts: &Facts<'_>, level: Level, edge: &Edge) -> Option<Span> {
    use EdgeKind::{CommitOrder, ReadWrite, Stated, WriteRead, WriteWrite};
    let (kind, shape) = (edge.reason.kind(), level.shape());
    match shape.nodes {
        // Transactions do not overlap.
        LevelNodes::One if shape.visible == VisibilityRule::Everything => Some(COMMIT_TO_START),
        // Only commits are ordered, and reads at the lowest level not even these.
        LevelNodes::One if kind == WriteRead && allows_dirty_reads(level) => None,
        LevelNodes::One => (kind != ReadWrite).then_some(COMMIT_TO_COMMIT),
        LevelNodes::StartAndCommit if shape.exclusive_writers => Some(match kind {
            ReadWrite
                if !reader_writes(facts, edge) || !excludes(facts, edge.to, edge.from, edge) =>
            {
                START_TO_COMMIT
            }
            ReadWrite | WriteWrite if !excludes(facts, edge.from, edge.to, edge) => {
                COMMIT_TO_COMMIT
            }
            CommitOrder | Stated if !both_write(facts, edge.from, edge.to) => COMMIT_TO_COMMIT,
            _ => COMMIT_TO_START,
        }),
        LevelNodes::StartAndCommit => Some(match kind {
            ReadWrite => START_TO_COMMIT,
            WriteWrite | CommitOrder | Stated => COMMIT_TO_COMMIT,
            _ => COMMIT_TO_START,
        }),
        _ => None,
    }
}

/// Whether the reader of an anti-dependency writes the key itself.
fn reader_writes(facts: &Facts<'_>, edge: &Edge) -> bool {
    edge.reason.key().is_some_and(|key| facts.writes_key(edge.from, key))
}

/// Whether one writer of the key of an edge has to start after the commit of another one, if it is the
/// later one.
fn excludes(facts: &Facts<'_>, first: TxnId, second: TxnId, edge: &Edge) -> bool {
    edge.reason.key().is_some_and(|key| facts.exclude(key, first, second))
}

/// Whether two transactions write a key in common, so that the later one starts after the commit of
/// the earlier one.
fn both_write(facts: &Facts<'_>, one: TxnId, other: TxnId) -> bool {
    let writes = |key: &KeyId| facts.writes_key(other, *key) && facts.exclude(*key, one, other);
    facts.written(one).iter().any(writes)
}

/// From which point to which a path of edges leads at a level; none if it leads nowhere, or is
/// empty. That each edge begins where the one before ended is for the caller to know.
pub(crate) fn path_span(facts: &Facts<'_>, level: Level, path: &[Edge]) -> Option<Span> {
    let mut spans = path.iter().map(|edge| span(facts, level, edge));
    let first = spans.next()??;
    spans.try_fold(first, |path, next| join(path, next?))
}

/// One span after the other.
fn join(first: Span, second: Span) -> Option<Span> {
    let goes_back = first.arrives == Moment::Commit && second.leaves == Moment::Start;
    (!goes_back).then_some(Span { leaves: first.leaves, arrives: second.arrives })
}

/// Whether a cycle contradicts itself at a level.
pub(crate) fn is_contradiction(facts: &Facts<'_>, level: Level, cycle: &[Edge]) -> bool {
    path_span(facts, level, cycle).is_some_and(|all| join(all, all).is_some())
        || misses_what_is_visible(level, cycle)
        || loses_an_update(facts, level, cycle)
}

/// Two transactions overwrote what the other had read, and it is the same key. Whichever of their
/// versions is the earlier one, its writer is visible to the other through that overwrite, and was
/// missed.
fn loses_an_update(facts: &Facts<'_>, level: Level, cycle: &[Edge]) -> bool {
    let missed =
        |edge: &Edge| edge.reason.kind() == EdgeKind::ReadWrite && reader_writes(facts, edge);
    match cycle {
        [one, other] if level.shape().visible == VisibilityRule::Dependencies => {
            missed(one) && missed(other) && one.reason.key() == other.reason.key()
        }
        _ => false,
    }
}

/// Below prefix, an anti-dependency says that its reader missed a write. That is wrong where the
/// write is visible to the reader: directly at read atomic, through any reads and sessions at causal,
/// and through overwrites as well at consistent view and parallel snapshot isolation.
fn misses_what_is_visible(level: Level, cycle: &[Edge]) -> bool {
    let mut others = cycle.iter().filter(|edge| edge.reason.kind() != EdgeKind::ReadWrite);
    let one_missed = others.clone().count() + 1 == cycle.len();
    one_missed
        && match level.shape().visible {
            VisibilityRule::Direct => cycle.len() == 2 && others.all(is_causal),
            VisibilityRule::Causes => cycle.len() >= 2 && others.all(is_causal),
            VisibilityRule::Dependencies => cycle.len() >= 2 && others.all(is_dependency),
            _ => false,
        }
}

/// Whether an edge is one of causal order.
pub(crate) fn is_causal(edge: &Edge) -> bool {
    matches!(edge.reason.kind(), EdgeKind::Session | EdgeKind::WriteRead)
}

/// Whether an edge is a dependency.
pub(crate) fn is_dependency(edge: &Edge) -> bool {
    is_causal(edge) || edge.reason.kind() == EdgeKind::WriteWrite
}
