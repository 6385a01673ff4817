//! What a cycle must look like to be called by a name.

use isolario_model::VisibilityRule::Everything;
use isolario_model::{AnomalyKind, Edge, EdgeKind, Level, LevelSet, Reason, VersionOrder};

use crate::stated;

/// Whether a cycle is what its name says.
pub(crate) fn is_of_kind(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    // What rests on a statement is called by none of the names that speak of clients alone.
    if stated::rest_on_statements(cycle) {
        return matches!(kind, AnomalyKind::OrderContradiction | AnomalyKind::NoOrderPossible);
    }
    if cycle.iter().any(|edge| matches!(edge.reason, Reason::Visible { .. })) {
        return is_inferred(kind, cycle);
    }
    let count = |kind| cycle.iter().filter(|edge| edge.reason.kind() == kind).count();
    let (anti, real_time) = (count(EdgeKind::ReadWrite), count(EdgeKind::RealTime));
    match kind {
        // Any cycle that the level forbids.
        AnomalyKind::NoOrderPossible => true,
        AnomalyKind::StaleRead => cycle.len() == 2 && real_time == 1 && anti == 1,
        AnomalyKind::RealTimeCycle => real_time > 0,
        // All other names are about what clients saw: no real time.
        _ if real_time > 0 => false,
        AnomalyKind::DirtyWrite => {
            let overwrites = count(EdgeKind::WriteWrite);
            overwrites > 0 && overwrites + count(EdgeKind::Session) == cycle.len()
        }
        AnomalyKind::CyclicVersions => {
            // That the initial version comes first is true of every key.
            let initial = |edge: &&Edge| edge.reason == Reason::Initial;
            let versions: Vec<Edge> = cycle.iter().filter(|e| !initial(e)).cloned().collect();
            is_of_one_key(&versions) && count(EdgeKind::WriteWrite) > 0
        }
        AnomalyKind::CyclicCo => {
            let listed = count(EdgeKind::WriteWrite);
            let causal = cycle.iter().filter(|edge| is_causal(edge)).count();
            causal > 0 && causal + listed == cycle.len()
        }
        AnomalyKind::LostUpdate => is_crossed(cycle) && is_of_one_key(cycle),
        AnomalyKind::WriteSkew => is_crossed(cycle) && !is_of_one_key(cycle),
        AnomalyKind::ReadWriteSkew => {
            cycle.len() == 2 && anti == 1 && count(EdgeKind::WriteWrite) == 1
        }
        AnomalyKind::LongFork => is_long_fork(cycle),
        AnomalyKind::SingleAntiDependency => anti == 1,
        AnomalyKind::NonadjacentAntiDependencies => anti > 1 && !has_adjacent(cycle),
        AnomalyKind::ItemAntiDependencyCycle => anti > 0,
        _ => Missed::of(cycle).is_some_and(|missed| missed.is_called(kind)),
    }
}

/// Whether a name claims more than a cycle shows. A name says which levels are ruled out; that is
/// true of a cycle of what clients saw. A cycle that rests on orders of versions which the level
/// itself demands says nothing about weaker levels.
pub(crate) fn claims_too_much(kind: AnomalyKind, level: Level, cycle: &[Edge]) -> bool {
    let mut claimed = claimed_levels(kind).iter();
    let claims_nothing =
        matches!(kind, AnomalyKind::NoOrderPossible | AnomalyKind::OrderContradiction);
    !claims_nothing && !cycle.iter().all(is_seen) && claimed.any(|by| !by.implies(level))
}

/// The weakest levels that a name is said to rule out, of those that do not ask for an order of
/// versions. That of single rows is about an order that is known.
fn claimed_levels(kind: AnomalyKind) -> LevelSet {
    let is_of_rows = |by: Level| by.needs().version_order && by.shape().visible == Everything;
    let forbids = |level: Level| {
        let mut weakest = kind.names().forbidden_by.iter().filter(|by| !is_of_rows(**by));
        weakest.any(|by| level.implies(*by))
    };
    let such = Level::all().filter(|level| !level.needs().version_order && forbids(*level));
    such.collect::<LevelSet>().weakest()
}

/// Whether an edge holds at every level.
fn is_seen(edge: &Edge) -> bool {
    match edge.reason.known() {
        Some(VersionOrder::Refuted { .. } | VersionOrder::Assumed) => false,
        Some(VersionOrder::Path { edges }) => edges.iter().all(is_causal),
        Some(_) => true,
        None => !matches!(edge.reason, Reason::Refuted { .. }),
    }
}

fn is_anti(edge: &Edge) -> bool {
    edge.reason.kind() == EdgeKind::ReadWrite
}

fn is_causal(edge: &Edge) -> bool {
    matches!(edge.reason.kind(), EdgeKind::Initial | EdgeKind::Session | EdgeKind::WriteRead)
}

/// Whether all edges are about the same key.
fn is_of_one_key(cycle: &[Edge]) -> bool {
    let first = cycle.first().and_then(|edge| edge.reason.key());
    first.is_some() && cycle.iter().all(|edge| edge.reason.key() == first)
}

/// Two transactions that each overwrote what the other had read.
fn is_crossed(cycle: &[Edge]) -> bool {
    cycle.len() == 2 && cycle.iter().all(is_anti)
}

/// Two readers, each of whom saw one of two writes and missed the other.
fn is_long_fork(cycle: &[Edge]) -> bool {
    let kinds: Vec<EdgeKind> = cycle.iter().map(|edge| edge.reason.kind()).collect();
    let (saw, missed) = (EdgeKind::WriteRead, EdgeKind::ReadWrite);
    kinds == [saw, missed, saw, missed] || kinds == [missed, saw, missed, saw]
}

/// Whether two anti-dependencies follow each other.
fn has_adjacent(cycle: &[Edge]) -> bool {
    let next = |at: usize| &cycle[(at + 1) % cycle.len()];
    (0..cycle.len()).any(|at| is_anti(&cycle[at]) && is_anti(next(at)))
}

/// A cycle of session order and reads but for one anti-dependency: its reader missed a write that
/// it depends on.
struct Missed<'a> {
    /// How the reader depends on the writer it missed.
    through: Vec<&'a Edge>,
    missed: &'a Reason,
}

impl<'a> Missed<'a> {
    fn of(cycle: &'a [Edge]) -> Option<Self> {
        let (missed, through): (Vec<&Edge>, Vec<&Edge>) =
            cycle.iter().partition(|edge| is_anti(edge));
        match missed.as_slice() {
            [missed] if !through.is_empty() && through.iter().all(|edge| is_causal(edge)) => {
                Some(Missed { through, missed: &missed.reason })
            }
            _ => None,
        }
    }

    /// Plume's names come in two kinds: the version that was read is older than the one missed by
    /// causal order (`CO`), or by commit order alone (`CM`).
    fn is_called(&self, kind: AnomalyKind) -> bool {
        let is_older_causally = matches!(
            self.missed,
            Reason::AntiDependency { known, .. } if is_known_causally(known)
        );
        match kind {
            AnomalyKind::SessionGuaranteeViolation => self.by().is_some_and(is_session),
            AnomalyKind::ReadSkew => self.by().is_some_and(|by| self.is_other_key(by)),
            AnomalyKind::NonMonotonicRead => {
                self.by().is_some_and(|by| self.reads_before(by) && !self.is_other_key(by))
            }
            AnomalyKind::NonMonoReadCo | AnomalyKind::NonMonoReadCm => {
                is_older_causally == (kind == AnomalyKind::NonMonoReadCo)
                    && self.by().is_some_and(|by| self.reads_before(by) && self.is_other_key(by))
            }
            AnomalyKind::FracturedReadCo | AnomalyKind::FracturedReadCm => {
                is_older_causally == (kind == AnomalyKind::FracturedReadCo)
                    && self.by().is_some_and(|by| by.reason.key() != self.missed.key())
            }
            AnomalyKind::CoConflictCm => is_older_causally,
            AnomalyKind::ConflictCm => !is_older_causally,
            _ => false,
        }
    }

    /// The one edge by which the reader depends on the writer it missed.
    fn by(&self) -> Option<&'a Edge> {
        match self.through.as_slice() {
            [by] => Some(by),
            _ => None,
        }
    }

    /// Whether the reader saw the writer by a read of another key.
    fn is_other_key(&self, by: &Edge) -> bool {
        by.reason.key().is_some() && by.reason.key() != self.missed.key()
    }

    /// Whether the reader saw the writer before the read that missed it.
    fn reads_before(&self, by: &Edge) -> bool {
        match (&by.reason, self.missed) {
            (Reason::Read { read: earlier, .. }, Reason::AntiDependency { read, .. }) => {
                earlier < read
            }
            _ => false,
        }
    }
}

fn is_session(edge: &Edge) -> bool {
    edge.reason == Reason::Session
}

/// Whether one version is older than another by causal order.
fn is_known_causally(known: &VersionOrder) -> bool {
    match known {
        VersionOrder::Initial | VersionOrder::ReadModifyWrite { .. } => true,
        VersionOrder::Path { edges } => edges.iter().all(is_causal),
        _ => false,
    }
}

/// Plume's names for cycles with an edge that the rule of a weak level gave: how the missed writer is
/// visible, and whether the rest of the cycle is causal.
fn is_inferred(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    let inferred = || cycle.iter().filter(|edge| matches!(edge.reason, Reason::Visible { .. }));
    let others_causal = || cycle.iter().filter(|edge| !is_causal(edge)).count() == 1;
    match kind {
        AnomalyKind::NonMonoReadCo => others_causal() && inferred().any(missed_across_keys),
        AnomalyKind::NonMonoReadCm => inferred().any(missed_across_keys),
        AnomalyKind::NonMonotonicRead => inferred().any(missed_within_key),
        AnomalyKind::FracturedReadCo => others_causal() && inferred().any(missed_directly),
        AnomalyKind::FracturedReadCm => inferred().any(missed_directly),
        AnomalyKind::CoConflictCm => others_causal(),
        AnomalyKind::ConflictCm => true,
        AnomalyKind::SessionGuaranteeViolation => inferred().any(missed_own_session),
        _ => false,
    }
}

/// The one edge of a path by which a reader saw the writer it then missed, with the inferred edge's
/// key and read.
fn visible_by(edge: &Edge) -> Option<(&Edge, &Reason)> {
    match &edge.reason {
        Reason::Visible { path, .. } => match path.as_slice() {
            [by] => Some((by, &edge.reason)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the reader saw the writer at once, and not by reading the same key: reading that twice with
/// different results is another thing.
fn missed_directly(edge: &Edge) -> bool {
    visible_by(edge).is_some_and(|(by, missed)| by.reason.key() != missed.key())
}

fn missed_own_session(edge: &Edge) -> bool {
    visible_by(edge).is_some_and(|(by, _)| is_session(by))
}

fn missed_across_keys(edge: &Edge) -> bool {
    visible_by(edge)
        .is_some_and(|(by, missed)| reads_before(by, missed) && by.reason.key() != missed.key())
}

fn missed_within_key(edge: &Edge) -> bool {
    visible_by(edge)
        .is_some_and(|(by, missed)| reads_before(by, missed) && by.reason.key() == missed.key())
}

/// Whether the reader saw the writer before the read that missed it.
fn reads_before(by: &Edge, missed: &Reason) -> bool {
    match (&by.reason, missed) {
        (Reason::Read { read: earlier, .. }, Reason::Visible { read, .. }) => earlier < read,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{KeyId, OpId, TxnId};

    use super::*;

    /// A cycle through as many transactions as there are reasons.
    fn cycle(reasons: &[Reason]) -> Vec<Edge> {
        let txn = |at: usize| TxnId::at(at % reasons.len());
        let edge = |(at, reason): (usize, &Reason)| Edge {
            from: txn(at),
            to: txn(at + 1),
            reason: reason.clone(),
        };
        reasons.iter().enumerate().map(edge).collect()
    }

    fn read(key: u32, read: u32) -> Reason {
        Reason::Read { key: KeyId(key), read: OpId(read), write: None }
    }

    fn overwrite(key: u32) -> Reason {
        Reason::Overwrite { key: KeyId(key), known: VersionOrder::Initial }
    }

    fn missed_as(key: u32, read: u32, known: VersionOrder) -> Reason {
        let (key, read) = (KeyId(key), OpId(read));
        Reason::AntiDependency { key, read, writer: TxnId::INIT, known }
    }

    fn missed(key: u32, read: u32) -> Reason {
        missed_as(key, read, VersionOrder::Initial)
    }

    /// Each cycle may be called by these names and by no others.
    #[test]
    fn a_cycle_has_the_names_that_fit_and_no_others() {
        use AnomalyKind::*;
        let (session, time) = (Reason::Session, Reason::RealTime { finish: 1, start: 2 });
        let single = [SingleAntiDependency, ItemAntiDependencyCycle];
        let cases: [(&[Reason], &[AnomalyKind]); 14] = [
            (&[overwrite(0), overwrite(1)], &[DirtyWrite]),
            (&[overwrite(0), overwrite(0)], &[DirtyWrite, CyclicVersions]),
            (&[overwrite(0), read(1, 1)], &[CyclicCo]),
            (
                &[session.clone(), missed(0, 1)],
                &[FracturedReadCo, CoConflictCm, SessionGuaranteeViolation],
            ),
            (
                &[read(1, 1), missed(0, 2)],
                &[NonMonoReadCo, FracturedReadCo, CoConflictCm, ReadSkew],
            ),
            (&[read(1, 2), missed(0, 1)], &[FracturedReadCo, CoConflictCm, ReadSkew]),
            (&[read(1, 2), read(2, 3), missed(0, 1)], &[CoConflictCm]),
            // What was seen and missed is one key: nothing is fractured.
            (&[read(0, 1), missed(0, 2)], &[NonMonotonicRead, CoConflictCm]),
            (&[missed(0, 1), overwrite(1)], &[ReadWriteSkew]),
            (&[missed(0, 1), missed(0, 2)], &[LostUpdate, ItemAntiDependencyCycle]),
            (&[missed(0, 1), missed(1, 2)], &[WriteSkew, ItemAntiDependencyCycle]),
            (
                &[read(0, 1), missed(1, 2), read(1, 3), missed(0, 4)],
                &[LongFork, NonadjacentAntiDependencies, ItemAntiDependencyCycle],
            ),
            (&[time.clone(), missed(0, 1)], &[StaleRead, RealTimeCycle]),
            (&[time, missed(0, 1), missed(1, 2)], &[RealTimeCycle]),
        ];
        for (reasons, names) in cases {
            let cycle = cycle(reasons);
            let is_single = cycle.iter().filter(|edge| is_anti(edge)).count() == 1;
            let fits = |kind: &AnomalyKind| {
                let timed = names.contains(&RealTimeCycle);
                // What no order allows may be called so, whatever its shape.
                *kind == NoOrderPossible
                    || names.contains(kind)
                    || (is_single && !timed && single.contains(kind))
            };
            for kind in AnomalyKind::all() {
                assert_eq!(is_of_kind(kind, &cycle), fits(&kind), "{kind}: {reasons:?}");
            }
        }
    }

    #[test]
    fn a_writer_that_is_seen_by_the_same_key_alone_is_not_read_in_part() {
        use AnomalyKind::{FracturedReadCm, FracturedReadCo};
        let visible_by = |key| {
            let by = Edge { from: TxnId(0), to: TxnId(2), reason: read(key, 1) };
            let (rule, key, reader, read) = (Level::ReadAtomic, KeyId(0), TxnId(2), OpId(2));
            Reason::Visible { rule, key, reader, read, path: vec![by] }
        };
        for kind in [FracturedReadCo, FracturedReadCm] {
            assert!(is_of_kind(kind, &cycle(&[visible_by(1), Reason::Session])));
            assert!(!is_of_kind(kind, &cycle(&[visible_by(0), Reason::Session])));
        }
    }

    #[test]
    fn what_is_older_by_commit_order_alone_is_not_called_causal() {
        use AnomalyKind::{CoConflictCm, ConflictCm, NonMonoReadCm, NonMonoReadCo};
        let refuted = VersionOrder::Refuted { cycle: Vec::new() };
        let cycle = cycle(&[read(1, 1), missed_as(0, 2, refuted)]);
        assert!([NonMonoReadCm, ConflictCm].iter().all(|kind| is_of_kind(*kind, &cycle)));
        assert!(![NonMonoReadCo, CoConflictCm].iter().any(|kind| is_of_kind(*kind, &cycle)));
    }
}
