//! What a cycle must look like to be called by a name.

use isolario_model::VisibilityRule::Everything;
use isolario_model::{
    AnomalyKind, CycleShape, Edge, EdgeKind, Level, LevelSet, Reason, ShapeKeys, ShapePredicates,
    Sight, VersionOrder,
};

use crate::stated;

/// Whether a cycle is what its name says: it has one of the shapes in the table of anomalies.
pub(crate) fn is_of_kind(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    let is_nameless = kind == AnomalyKind::NoOrderPossible;
    // What rests on a statement is called by none of the names that speak of clients alone.
    if stated::rest_on_statements(cycle) {
        return is_nameless || kind == AnomalyKind::OrderContradiction;
    }
    // Any cycle that the level forbids has no name; those that its rule closes have one.
    is_nameless && !cycle.iter().any(is_inferred) || has_shape_of(kind, cycle)
}

/// Whether a cycle has a shape of a name, whatever it rests on.
fn has_shape_of(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    let mut shapes = kind.names().cycles.iter();
    if !cycle.iter().any(is_inferred) {
        return shapes.any(|shape| fits(shape, cycle));
    }
    // The edges that the rule of a weak level gave say how the missed writer is visible, and their number whether
    // the rest of the cycle is causal.
    let others_causal = cycle.iter().filter(|edge| !is_causal(edge)).count() == 1;
    let seen_as = |shape: &CycleShape, edge: &Edge| {
        is_inferred(edge) && is_sighted(shape, only(edge.reason.support()), &edge.reason)
    };
    shapes.any(|shape| {
        let is_of_weak_levels =
            shape.causal.is_some() || matches!(shape.sight, Sight::EarlierRead | Sight::Session);
        is_of_weak_levels
            && (shape.causal != Some(true) || others_causal)
            && cycle.iter().any(|edge| seen_as(shape, edge))
    })
}

/// Whether the rule of a weak level gave an edge.
fn is_inferred(edge: &Edge) -> bool {
    matches!(edge.reason, Reason::Visible { .. })
}

/// The edge of a path of one.
fn only(path: &[Edge]) -> Option<&Edge> {
    path.first().filter(|_| path.len() == 1)
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

/// Whether a cycle of what clients saw, or of what follows from it, has a shape.
fn fits(shape: &CycleShape, cycle: &[Edge]) -> bool {
    let (missed, others): (Vec<&Edge>, Vec<&Edge>) = cycle.iter().partition(|edge| is_anti(edge));
    let is_one_of =
        |kinds: &[EdgeKind]| others.iter().any(|edge| kinds.contains(&edge.reason.kind()));
    let is_expected = |edge: &&Edge| match edge.reason.kind() {
        EdgeKind::RealTime => shape.with.contains(&EdgeKind::RealTime),
        kind => shape.others.is_empty() || shape.others.contains(&kind),
    };
    let [least, most] = shape.anti_dependencies;
    shape.length.is_none_or(|length| cycle.len() == length)
        && (least..=most).contains(&missed.len())
        && shape.adjacent.is_none_or(|adjacent| has_adjacent(cycle) == adjacent)
        && others.iter().all(is_expected)
        && (shape.with.is_empty() || is_one_of(shape.with))
        && has_keys(shape.keys, cycle)
        && about_predicates(shape.predicates, cycle)
        && missed.iter().all(|missed| {
            let by = others.first().copied().filter(|_| others.len() == 1);
            is_sighted(shape, by, &missed.reason)
                && shape.causal.is_none_or(|causal| is_known_causally(&missed.reason) == causal)
        })
}

fn has_keys(keys: ShapeKeys, cycle: &[Edge]) -> bool {
    // That the initial version comes first is true of every key.
    let mut edges = cycle.iter().filter(|edge| edge.reason != Reason::Initial);
    let first = edges.clone().find_map(|edge| edge.reason.key());
    let is_of_one_key = first.is_some() && edges.all(|edge| edge.reason.key() == first);
    match keys {
        ShapeKeys::Any => true,
        ShapeKeys::One => is_of_one_key,
        ShapeKeys::Several => !is_of_one_key,
    }
}

fn about_predicates(predicates: ShapePredicates, cycle: &[Edge]) -> bool {
    let is_missed = || cycle.iter().any(|edge| edge.reason.is_missed_by_predicate());
    match predicates {
        ShapePredicates::Any => true,
        ShapePredicates::None => !cycle.iter().any(|edge| edge.reason.is_about_predicate()),
        ShapePredicates::Seen => !is_missed(),
        ShapePredicates::Missed => is_missed(),
    }
}

fn is_anti(edge: &Edge) -> bool {
    edge.reason.kind() == EdgeKind::ReadWrite
}

fn is_causal(edge: &Edge) -> bool {
    matches!(edge.reason.kind(), EdgeKind::Initial | EdgeKind::Session | EdgeKind::WriteRead)
}

/// Whether two anti-dependencies follow each other.
fn has_adjacent(cycle: &[Edge]) -> bool {
    let next = |at: usize| &cycle[(at + 1) % cycle.len()];
    (0..cycle.len()).any(|at| is_anti(&cycle[at]) && is_anti(next(at)))
}

/// Whether a reader that missed a write saw its writer as a shape says, given the edge from the writer to
/// the reader where there is only one. What one step showed it is of another key than what it missed, unless the name is about one
/// key: reading a key twice with different results is another thing.
fn is_sighted(shape: &CycleShape, by: Option<&Edge>, missed: &Reason) -> bool {
    let Some(by) = by else { return shape.sight == Sight::Any };
    let is_of_same_key = by.reason.key() == missed.key();
    let is_of_key = is_of_same_key == (shape.keys == ShapeKeys::One);
    match shape.sight {
        Sight::Any => true,
        Sight::Session => by.reason == Reason::Session,
        Sight::Step => is_of_key,
        Sight::Read => {
            by.reason.kind() == EdgeKind::WriteRead && (is_of_key || by.reason.is_about_predicate())
        }
        Sight::EarlierRead => is_of_key && reads_before(&by.reason, missed),
        Sight::Row => matches!(by.reason, Reason::Read { .. }),
        Sight::Predicate => matches!(by.reason, Reason::PredicateRead { .. }),
    }
}

/// Whether one read came before another that missed something.
fn reads_before(seen: &Reason, missed: &Reason) -> bool {
    match (seen, missed) {
        (
            Reason::Read { read: earlier, .. },
            Reason::AntiDependency { read, .. } | Reason::Visible { read, .. },
        ) => earlier < read,
        _ => false,
    }
}

/// Whether the version that a reader missed is later by causal order than the one it read.
fn is_known_causally(missed: &Reason) -> bool {
    match missed {
        Reason::AntiDependency { known, .. } => match known {
            VersionOrder::Initial | VersionOrder::ReadModifyWrite { .. } => true,
            VersionOrder::Path { edges } => edges.iter().all(is_causal),
            _ => false,
        },
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
