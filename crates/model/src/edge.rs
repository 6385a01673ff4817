//! Edges between transactions, each with the reason why it must be there.

use crate::level::Level;
use crate::op::Stamp;
use crate::{KeyAssumption, KeyId, OpId, TxnId};

/// `from` comes before `to`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The earlier transaction.
    pub from: TxnId,
    /// The later one.
    pub to: TxnId,
    /// Why.
    pub reason: Reason,
}

impl Edge {
    /// The given edges and all edges that they rest on, at any depth: each one before those that it rests
    /// on. Not recursive, since the depth of an argument has no bound.
    pub fn walk<'e>(edges: impl IntoIterator<Item = &'e Edge>) -> impl Iterator<Item = &'e Edge> {
        let mut open: Vec<&Edge> = edges.into_iter().collect();
        open.reverse();
        std::iter::from_fn(move || {
            let edge = open.pop()?;
            open.extend(edge.reason.support().iter().rev());
            Some(edge)
        })
    }

    /// The transactions that wrote a key by this edge, with the key: those of the versions whose order it is
    /// about.
    pub fn writes(&self) -> impl Iterator<Item = (TxnId, KeyId)> + use<> {
        let writers = match self.reason {
            Reason::Overwrite { key, .. } | Reason::Visible { key, .. } => {
                Some([(self.from, key), (self.to, key)])
            }
            Reason::AntiDependency { key, writer, .. } => Some([(writer, key), (self.to, key)]),
            _ => None,
        };
        writers.into_iter().flatten()
    }
}

/// The kinds of edge, by which they are drawn and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The initial state precedes everything.
    Initial,
    /// Session order.
    Session,
    /// Real time.
    RealTime,
    /// A read from a write.
    WriteRead,
    /// An overwrite.
    WriteWrite,
    /// A read of what was overwritten: an anti-dependency.
    ReadWrite,
    /// Commit order inferred by the rule of a level.
    CommitOrder,
    /// An order that the database or the user stated.
    Stated,
}

/// Why one transaction comes before another, in terms of what clients saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// `from` wrote the initial state.
    Initial,
    /// Both are in one session, in this order.
    Session,
    /// `from` had finished before `to` started.
    RealTime {
        /// When `from` finished.
        finish: i64,
        /// When `to` started.
        start: i64,
    },
    /// `to` read what `from` wrote.
    Read {
        /// The key.
        key: KeyId,
        /// The read of `to`.
        read: OpId,
        /// The write of `from`; none where it is `init`.
        write: Option<OpId>,
    },
    /// `to` overwrote what `from` wrote.
    Overwrite {
        /// The key.
        key: KeyId,
        /// How the order of the two versions is known.
        known: VersionOrder,
    },
    /// `from` read a version that `to` overwrote.
    AntiDependency {
        /// The key.
        key: KeyId,
        /// The read of `from`.
        read: OpId,
        /// Who wrote the version it read.
        writer: TxnId,
        /// How it is known that `to` overwrote that version; `Initial` where `writer` is `init`.
        known: VersionOrder,
    },
    /// `from` is visible to a reader that read the key from `to`, although `from` wrote it, too:
    /// by the rule of a level, `from` was committed first.
    Visible {
        /// The level whose rule it is.
        rule: Level,
        /// The key that both wrote.
        key: KeyId,
        /// Who read it from `to`.
        reader: TxnId,
        /// The read of the key from `to`.
        read: OpId,
        /// How `from` is visible to the reader: the path of edges from the one to the other; for
        /// read committed, one edge whose read comes before `read`.
        path: Vec<Edge>,
    },
    /// A predicate of `from` did not match a row that `to` then made match, or the other way
    /// round.
    PredicateAntiDependency {
        /// The predicate read of `from`.
        read: OpId,
        /// The row.
        key: KeyId,
        /// The write of `to`.
        write: OpId,
        /// The version of the row that the predicate met, where that was inferred from what the history
        /// shows; none where a certificate states it.
        evaluated: Option<EvaluatedVersion>,
    },
    /// `to` evaluated a predicate over a version that `from` wrote.
    PredicateRead {
        /// The predicate read of `to`.
        read: OpId,
        /// The row.
        key: KeyId,
        /// The write of `from`.
        write: OpId,
    },
    /// `from` had committed by the snapshot that `to` read, as the database states it.
    StartDependency {
        /// The operation of `to` that read the snapshot.
        op: OpId,
        /// The snapshot, on the database's own clock.
        snapshot: Stamp,
    },
    /// The database or the user stated this order of transactions.
    Stated {
        /// Which statement: its line or position in the file.
        at: u64,
    },
    /// The other order is impossible: it closes this cycle.
    Refuted {
        /// The cycle that the opposite edge, or what follows from it, would close.
        cycle: Vec<Edge>,
    },
}

/// A version of a row that a predicate met, and which another transaction overwrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EvaluatedVersion {
    /// Who wrote it: the only one whose version agrees with what the reader was told.
    pub writer: TxnId,
    /// How it is known that it was overwritten; `Initial` where `writer` is `init`.
    pub known: VersionOrder,
}

/// How the order of two versions of a key is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VersionOrder {
    /// The first is the initial version.
    Initial,
    /// The later writer had read the earlier version.
    ReadModifyWrite {
        /// That read.
        read: OpId,
    },
    /// A list read shows one element after the other.
    List {
        /// That read.
        read: OpId,
    },
    /// A list read shows the earlier writer as the last one, and not the later one. Lists never
    /// forget: what a version does not hold was appended after it.
    AppendedLater {
        /// That read.
        read: OpId,
    },
    /// A version order that the database or the user stated.
    Stated {
        /// Its line or position in the file.
        at: u64,
    },
    /// It is assumed of every key, and two operations accessed the one version and then the other.
    Guaranteed {
        /// What is assumed.
        by: KeyAssumption,
        /// The operation that accessed the earlier version.
        first: OpId,
        /// The one that accessed the later version.
        second: OpId,
    },
    /// The other order closes this cycle.
    Refuted {
        /// The cycle.
        cycle: Vec<Edge>,
    },
    /// Assumed, as one case among several.
    Assumed,
    /// Follows from the order of the transactions along this path.
    Path {
        /// The path from the earlier writer to the later one.
        edges: Vec<Edge>,
    },
}

impl Reason {
    /// The kind of edge it makes.
    pub fn kind(&self) -> EdgeKind {
        match self {
            Reason::Initial => EdgeKind::Initial,
            Reason::Session => EdgeKind::Session,
            Reason::RealTime { .. } => EdgeKind::RealTime,
            Reason::Read { .. } | Reason::PredicateRead { .. } => EdgeKind::WriteRead,
            Reason::Overwrite { .. } => EdgeKind::WriteWrite,
            Reason::AntiDependency { .. } | Reason::PredicateAntiDependency { .. } => {
                EdgeKind::ReadWrite
            }
            Reason::Visible { .. } | Reason::Refuted { .. } => EdgeKind::CommitOrder,
            Reason::StartDependency { .. } | Reason::Stated { .. } => EdgeKind::Stated,
        }
    }

    /// Whether it holds whichever level is asked for. What was inferred by refuting the opposite, or
    /// assumed for the sake of an argument, holds at one level.
    pub fn holds_at_every_level(&self) -> bool {
        match self.known() {
            Some(VersionOrder::Refuted { .. } | VersionOrder::Assumed) => false,
            Some(VersionOrder::Path { edges }) => edges.iter().all(|edge| {
                matches!(edge.reason, Reason::Initial | Reason::Session | Reason::Read { .. })
            }),
            _ => !matches!(self, Reason::Refuted { .. }),
        }
    }

    /// How the order of two versions is known that it rests on, if it rests on one.
    pub fn known(&self) -> Option<&VersionOrder> {
        match self {
            Reason::Overwrite { known, .. }
            | Reason::AntiDependency { known, .. }
            | Reason::PredicateAntiDependency {
                evaluated: Some(EvaluatedVersion { known, .. }),
                ..
            } => Some(known),
            _ => None,
        }
    }

    /// Whether it is about what a predicate matched.
    pub fn is_about_predicate(&self) -> bool {
        matches!(self, Reason::PredicateRead { .. } | Reason::PredicateAntiDependency { .. })
    }

    /// Whether a predicate missed a change.
    pub fn is_missed_by_predicate(&self) -> bool {
        matches!(self, Reason::PredicateAntiDependency { .. })
    }

    /// The edges that it rests on; none where it was seen.
    pub fn support(&self) -> &[Edge] {
        match self {
            Reason::Visible { path: edges, .. } | Reason::Refuted { cycle: edges } => edges,
            reason => match reason.known() {
                Some(VersionOrder::Refuted { cycle: edges } | VersionOrder::Path { edges }) => {
                    edges
                }
                _ => &[],
            },
        }
    }

    /// The reads of single keys that show it: its own, and the one that shows the order of two versions.
    pub fn reads(&self) -> impl Iterator<Item = OpId> + use<> {
        let own = match self {
            Reason::Read { read, .. }
            | Reason::AntiDependency { read, .. }
            | Reason::Visible { read, .. } => Some(*read),
            _ => None,
        };
        let of_versions = match self {
            Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => known.read(),
            _ => None,
        };
        own.into_iter().chain(of_versions)
    }

    /// The key it is about, if it is about one.
    pub fn key(&self) -> Option<KeyId> {
        match *self {
            Reason::Read { key, .. }
            | Reason::Overwrite { key, .. }
            | Reason::AntiDependency { key, .. }
            | Reason::Visible { key, .. }
            | Reason::PredicateAntiDependency { key, .. }
            | Reason::PredicateRead { key, .. } => Some(key),
            Reason::Initial
            | Reason::Session
            | Reason::RealTime { .. }
            | Reason::StartDependency { .. }
            | Reason::Stated { .. }
            | Reason::Refuted { .. } => None,
        }
    }
}

impl VersionOrder {
    /// The read that shows the order, if one does.
    fn read(&self) -> Option<OpId> {
        match self {
            VersionOrder::ReadModifyWrite { read }
            | VersionOrder::List { read }
            | VersionOrder::AppendedLater { read } => Some(*read),
            _ => None,
        }
    }
}

impl EdgeKind {
    /// Its short name, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::Initial => "init",
            EdgeKind::Session => "session",
            EdgeKind::RealTime => "real-time",
            EdgeKind::WriteRead => "wr",
            EdgeKind::WriteWrite => "ww",
            EdgeKind::ReadWrite => "rw",
            EdgeKind::CommitOrder => "co",
            EdgeKind::Stated => "stated",
        }
    }

    /// Whether it was inferred by a rule rather than seen.
    pub fn is_inferred(self) -> bool {
        self == EdgeKind::CommitOrder
    }
}
