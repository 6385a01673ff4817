//! What a cycle of dependencies is called, by its shape.
//!
//! Names are those of MTC's Table I where the cycle is one of these, and Adya's otherwise.

use isolario_model::{AnomalyKind, Edge, EdgeKind, Reason};

/// The name of a cycle of edges that clients' observations determine: session order, real time,
/// reads, overwrites and anti-dependencies.
pub(crate) fn name(cycle: &[Edge]) -> AnomalyKind {
    let count = |kind| cycle.iter().filter(|edge| edge.reason.kind() == kind).count();
    if count(EdgeKind::RealTime) > 0 {
        let is_stale = cycle.len() == 2 && count(EdgeKind::ReadWrite) == 1;
        return if is_stale { AnomalyKind::StaleRead } else { AnomalyKind::RealTimeCycle };
    }
    match count(EdgeKind::ReadWrite) {
        0 if count(EdgeKind::WriteWrite) == cycle.len() => AnomalyKind::DirtyWrite,
        0 => AnomalyKind::CyclicCo,
        1 if count(EdgeKind::WriteWrite) > 0 && cycle.len() == 2 => AnomalyKind::ReadWriteSkew,
        1 if count(EdgeKind::WriteWrite) > 0 => AnomalyKind::SingleAntiDependency,
        1 => missed(cycle),
        2 if cycle.len() == 2 => crossed(cycle),
        _ if has_adjacent(cycle) => AnomalyKind::ItemAntiDependencyCycle,
        2 if cycle.len() == 4 && count(EdgeKind::WriteRead) == 2 => AnomalyKind::LongFork,
        _ => AnomalyKind::NonadjacentAntiDependencies,
    }
}

/// How clear a name is to a reader, the clearest first.
pub(crate) fn clarity(kind: AnomalyKind) -> u32 {
    use AnomalyKind::{
        CoConflictCm, CyclicCo, FracturedReadCo, LongFork, LostUpdate, NonMonoReadCo,
        SessionGuaranteeViolation, StaleRead, WriteSkew,
    };
    let clearest = [
        LostUpdate,
        SessionGuaranteeViolation,
        StaleRead,
        FracturedReadCo,
        NonMonoReadCo,
        WriteSkew,
        CyclicCo,
        LongFork,
        CoConflictCm,
    ];
    clearest.iter().position(|clear| *clear == kind).unwrap_or(clearest.len()) as u32
}

/// One anti-dependency in a cycle of session order and reads: a reader missed a write that it
/// should have seen, since it came before it in its session, since it read something else from the
/// same transaction, or since it depends on it by a longer way.
fn missed(cycle: &[Edge]) -> AnomalyKind {
    let [one, other] = cycle else { return AnomalyKind::CoConflictCm };
    match (&one.reason, &other.reason) {
        (Reason::AntiDependency { read: stale, .. }, Reason::Read { read: fresh, .. })
        | (Reason::Read { read: fresh, .. }, Reason::AntiDependency { read: stale, .. }) => {
            if fresh < stale { AnomalyKind::NonMonoReadCo } else { AnomalyKind::FracturedReadCo }
        }
        _ => AnomalyKind::SessionGuaranteeViolation,
    }
}

/// Two transactions that each overwrote what the other had read.
fn crossed(cycle: &[Edge]) -> AnomalyKind {
    let mut keys = cycle.iter().map(|edge| edge.reason.key());
    if keys.next() == keys.next() { AnomalyKind::LostUpdate } else { AnomalyKind::WriteSkew }
}

/// Whether two anti-dependencies follow each other.
fn has_adjacent(cycle: &[Edge]) -> bool {
    let is_anti = |edge: &Edge| edge.reason.kind() == EdgeKind::ReadWrite;
    let next = cycle.iter().cycle().skip(1);
    cycle.iter().zip(next).any(|(one, other)| is_anti(one) && is_anti(other))
}

#[cfg(test)]
mod tests {
    use isolario_model::{KeyId, OpId, TxnId, VersionOrder};

    use super::*;

    /// A cycle through as many transactions as there are reasons.
    fn cycle(reasons: &[Reason]) -> Vec<Edge> {
        let txns = reasons.len();
        let edge = |(at, reason): (usize, &Reason)| {
            let (from, to) = (TxnId::at(at), TxnId::at((at + 1) % txns));
            Edge { from, to, reason: reason.clone() }
        };
        reasons.iter().enumerate().map(edge).collect()
    }

    fn read(read: u32) -> Reason {
        Reason::Read { key: KeyId(0), read: OpId(read), write: None }
    }

    fn missed(key: u32, read: u32) -> Reason {
        let (key, read, known) = (KeyId(key), OpId(read), VersionOrder::Initial);
        Reason::AntiDependency { key, read, writer: TxnId::INIT, known }
    }

    fn overwrite() -> Reason {
        Reason::Overwrite { key: KeyId(0), known: VersionOrder::Initial }
    }

    #[test]
    fn cycles_are_named_by_their_shape() {
        let (session, time) = (Reason::Session, Reason::RealTime { finish: 1, start: 2 });
        let expected: [(&[Reason], AnomalyKind); 15] = [
            (&[overwrite(), overwrite()], AnomalyKind::DirtyWrite),
            (&[overwrite(), read(1)], AnomalyKind::CyclicCo),
            (&[read(1), session.clone()], AnomalyKind::CyclicCo),
            (&[missed(0, 1), session.clone()], AnomalyKind::SessionGuaranteeViolation),
            (&[missed(0, 2), read(1)], AnomalyKind::NonMonoReadCo),
            (&[read(2), missed(0, 1)], AnomalyKind::FracturedReadCo),
            (&[read(2), read(3), missed(0, 1)], AnomalyKind::CoConflictCm),
            (&[missed(0, 1), overwrite()], AnomalyKind::ReadWriteSkew),
            (&[missed(0, 1), overwrite(), read(1)], AnomalyKind::SingleAntiDependency),
            (&[missed(0, 1), missed(0, 2)], AnomalyKind::LostUpdate),
            (&[missed(0, 1), missed(1, 2)], AnomalyKind::WriteSkew),
            (&[read(1), missed(0, 2), read(3), missed(1, 4)], AnomalyKind::LongFork),
            (
                &[session.clone(), missed(0, 2), read(3), missed(1, 4)],
                AnomalyKind::NonadjacentAntiDependencies,
            ),
            (&[session, missed(0, 2), missed(1, 4)], AnomalyKind::ItemAntiDependencyCycle),
            (&[time, missed(0, 1)], AnomalyKind::StaleRead),
        ];
        for (reasons, kind) in expected {
            assert_eq!(name(&cycle(reasons)), kind, "{reasons:?}");
        }
    }

    #[test]
    fn what_only_real_time_closes_says_so() {
        let time = Reason::RealTime { finish: 1, start: 2 };
        assert_eq!(name(&cycle(&[time.clone(), read(1)])), AnomalyKind::RealTimeCycle);
        assert_eq!(name(&cycle(&[time, missed(0, 1), missed(1, 2)])), AnomalyKind::RealTimeCycle);
    }
}
