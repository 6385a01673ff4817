//! The one table of anomaly names.

use super::shape::{
    ANY, BY_PREDICATE, CROSSED, CycleShape, MISSED, MISSED_DIRECTLY, SINGLE, ShapeKeys,
    ShapePredicates, Sight, TIMED,
};
use super::{AnomalyKind, AnomalyNames};
use crate::edge::EdgeKind as K;
use crate::level::Level;
use AnomalyKind as A;
use Level as L;

/// In the order of the declaration, so that a kind is its own index.
pub(super) static TABLE: [AnomalyNames; 42] = [
    AnomalyNames {
        plume: Some('a'),
        mtc: Some('a'),
        elle: Some("garbage-read"),
        ..row(
            A::ThinAirRead,
            "ThinAirRead",
            "Thin-air read",
            &[],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction read a value that nobody wrote.",
        )
    },
    AnomalyNames {
        plume: Some('b'),
        mtc: Some('b'),
        adya: Some("G1a"),
        elle: Some("G1a"),
        isorel: Some("G1a"),
        ..row(
            A::AbortedRead,
            "AbortedRead",
            "Dirty read",
            &["dirty read", "P1", "A1"],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction read what an aborted transaction had written.",
        )
    },
    AnomalyNames {
        plume: Some('c'),
        mtc: Some('c'),
        elle: Some("future-read"),
        ..row(
            A::FutureRead,
            "FutureRead",
            "Read of its own later write",
            &[],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction read a value that it wrote itself only later.",
        )
    },
    AnomalyNames {
        plume: Some('d'),
        mtc: Some('e'),
        elle: Some("internal"),
        ..row(
            A::NotMyOwnWrite,
            "NotMyOwnWrite",
            "Own write not seen",
            &[],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction wrote a key and then read it from somebody else.",
        )
    },
    AnomalyNames {
        plume: Some('e'),
        mtc: Some('d'),
        elle: Some("internal"),
        ..row(
            A::NotMyLastWrite,
            "NotMyLastWrite",
            "Own last write not seen",
            &[],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction read its own write although it had overwritten it itself.",
        )
    },
    AnomalyNames {
        plume: Some('f'),
        mtc: Some('f'),
        adya: Some("G1b"),
        elle: Some("G1b"),
        isorel: Some("intermediate read"),
        ..row(
            A::IntermediateRead,
            "IntermediateRead",
            "Dirty read of an unfinished value",
            &["dirty read", "P1"],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A transaction read a value that its writer overwrote before committing.",
        )
    },
    AnomalyNames {
        plume: Some('g'),
        adya: Some("G1c"),
        elle: Some("G1c"),
        isorel: Some("G1c"),
        cycles: &[CycleShape {
            rank: 5,
            anti_dependencies: [0, 0],
            others: &[K::Initial, K::Session, K::WriteRead, K::WriteWrite],
            with: &[K::Initial, K::Session, K::WriteRead],
            ..ANY
        }],
        ..row(
            A::CyclicCo,
            "CyclicCO",
            "Circular information flow",
            &["circular information flow"],
            &[L::AdyaReadCommitted],
            "Transactions depend on each other in a cycle.",
        )
    },
    AnomalyNames {
        plume: Some('h'),
        mtc: Some('i'),
        cycles: &[CycleShape {
            rank: 3,
            sight: Sight::EarlierRead,
            causal: Some(true),
            ..MISSED_DIRECTLY
        }],
        ..row(
            A::NonMonoReadCo,
            "NonMonoReadCO",
            "Non-monotonic read across keys",
            &["non-monotonic read", "monotonic reads"],
            &[L::ReadCommitted, L::RepeatableRead],
            "A transaction read from a later writer and then from one that it had causally overwritten.",
        )
    },
    AnomalyNames {
        plume: Some('i'),
        mtc: Some('i'),
        cycles: &[CycleShape { sight: Sight::EarlierRead, causal: Some(false), ..MISSED_DIRECTLY }],
        ..row(
            A::NonMonoReadCm,
            "NonMonoReadCM",
            "Non-monotonic read across keys, by commit order",
            &["non-monotonic read", "monotonic reads"],
            &[L::ReadCommitted, L::RepeatableRead],
            "A transaction read from a writer and then from one that must have committed before it.",
        )
    },
    AnomalyNames {
        mtc: Some('i'),
        cycles: &[CycleShape {
            sight: Sight::EarlierRead,
            keys: ShapeKeys::One,
            ..MISSED_DIRECTLY
        }],
        ..row(
            A::NonMonotonicRead,
            "NonMonotonicRead",
            "Non-monotonic read",
            &["monotonic reads"],
            &[L::ReadCommitted, L::CutIsolation, L::RepeatableRead],
            "A transaction read a newer version of a key and then an older one.",
        )
    },
    AnomalyNames {
        plume: Some('j'),
        mtc: Some('g'),
        isorel: Some("non-repeatable read"),
        ..row(
            A::NonRepeatableRead,
            "NonRepeatableRead",
            "Non-repeatable read",
            &["fuzzy read", "unrepeatable read", "P2", "A2"],
            &[L::CutIsolation],
            "A transaction read a key twice and got versions of different transactions.",
        )
    },
    AnomalyNames {
        plume: Some('k'),
        mtc: Some('j'),
        cycles: &[CycleShape {
            rank: 4,
            sight: Sight::Step,
            causal: Some(true),
            ..MISSED_DIRECTLY
        }],
        ..row(
            A::FracturedReadCo,
            "FracturedReadCO",
            "Fractured read",
            &["fractured read"],
            &[L::ReadAtomic, L::RepeatableRead],
            "A transaction saw part of another one's writes and missed the rest, in favour of a causally older version.",
        )
    },
    AnomalyNames {
        plume: Some('l'),
        mtc: Some('j'),
        cycles: &[CycleShape { sight: Sight::Step, causal: Some(false), ..MISSED_DIRECTLY }],
        ..row(
            A::FracturedReadCm,
            "FracturedReadCM",
            "Fractured read, by commit order",
            &["fractured read"],
            &[L::ReadAtomic, L::RepeatableRead],
            "A transaction saw part of another one's writes and missed the rest, in favour of a version that must be older.",
        )
    },
    AnomalyNames {
        plume: Some('m'),
        mtc: Some('k'),
        cycles: &[CycleShape { rank: 6, causal: Some(true), ..MISSED }],
        ..row(
            A::CoConflictCm,
            "COConflictCM",
            "Causality violation",
            &["causality violation"],
            &[L::Causal, L::RepeatableRead],
            "A transaction missed a write that it depends on, in favour of a causally older one.",
        )
    },
    AnomalyNames {
        plume: Some('n'),
        mtc: Some('k'),
        cycles: &[CycleShape { rank: 6, causal: Some(false), ..MISSED }],
        ..row(
            A::ConflictCm,
            "ConflictCM",
            "Causality violation, by commit order",
            &["causality violation"],
            &[L::Causal, L::RepeatableRead],
            "A transaction missed a write that it depends on, in favour of one that must be older.",
        )
    },
    AnomalyNames {
        mtc: Some('h'),
        cycles: &[CycleShape { rank: 2, sight: Sight::Session, ..MISSED_DIRECTLY }],
        ..row(
            A::SessionGuaranteeViolation,
            "SessionGuaranteeViolation",
            "Session guarantee violation",
            &["read your writes", "read-your-writes violation", "monotonic writes"],
            &[L::ReadAtomic, L::RepeatableRead],
            "A transaction missed what its own session had written before.",
        )
    },
    AnomalyNames {
        mtc: Some('l'),
        elle: Some("long-fork"),
        cycles: &[CycleShape {
            length: Some(4),
            anti_dependencies: [2, 2],
            adjacent: Some(false),
            others: &[K::WriteRead],
            ..ANY
        }],
        ..row(
            A::LongFork,
            "LongFork",
            "Long fork",
            &[],
            &[L::Prefix, L::RepeatableRead],
            "Two transactions saw two independent writes in opposite orders.",
        )
    },
    AnomalyNames {
        mtc: Some('m'),
        elle: Some("lost-update"),
        isorel: Some("lost update"),
        cycles: &[CycleShape { keys: ShapeKeys::One, ..CROSSED }],
        ..row(
            A::LostUpdate,
            "LostUpdate",
            "Lost update",
            &["P4"],
            &[L::ConsistentView, L::RepeatableRead],
            "Two transactions read the same version of a key and both overwrote it.",
        )
    },
    AnomalyNames {
        mtc: Some('n'),
        adya: Some("G2-item"),
        elle: Some("G2-item"),
        isorel: Some("write skew"),
        cycles: &[CycleShape { keys: ShapeKeys::Several, ..CROSSED }],
        ..row(
            A::WriteSkew,
            "WriteSkew",
            "Write skew",
            &["A5B"],
            &[L::RepeatableRead],
            "Two transactions each overwrote what the other had read.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        elle: Some("G-single-item"),
        isorel: Some("read skew"),
        cycles: &[CycleShape {
            rank: 5,
            length: Some(2),
            others: &[K::WriteRead],
            sight: Sight::Read,
            ..SINGLE
        }],
        ..row(
            A::ReadSkew,
            "ReadSkew",
            "Read skew",
            &["A5A"],
            &[L::ReadAtomic, L::ConsistentView, L::RepeatableRead],
            "A transaction saw one key before and another key after the same commit.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        isorel: Some("read-write skew"),
        cycles: &[CycleShape {
            rank: 5,
            length: Some(2),
            others: &[K::WriteWrite],
            keys: ShapeKeys::Several,
            ..SINGLE
        }],
        ..row(
            A::ReadWriteSkew,
            "ReadWriteSkew",
            "Read-write skew",
            &[],
            &[L::ConsistentView, L::RepeatableRead],
            "A transaction overwrote one row of a commit of which it had missed another.",
        )
    },
    AnomalyNames {
        adya: Some("G0"),
        elle: Some("G0"),
        isorel: Some("G0"),
        cycles: &[CycleShape {
            rank: 4,
            anti_dependencies: [0, 0],
            others: &[K::Session, K::WriteWrite],
            with: &[K::WriteWrite],
            ..ANY
        }],
        ..row(
            A::DirtyWrite,
            "DirtyWrite",
            "Dirty write",
            &["P0"],
            &[L::ReadUncommitted, L::ConsistentView],
            "Transactions overwrote each other in a cycle.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        elle: Some("G-single-item"),
        isorel: Some("G1b"),
        cycles: &[SINGLE],
        ..row(
            A::SingleAntiDependency,
            "SingleAntiDependency",
            "Single anti-dependency",
            &[],
            &[L::ParallelSnapshotIsolation, L::RepeatableRead],
            "A cycle of dependencies with a single overwritten read.",
        )
    },
    AnomalyNames {
        adya: Some("G-nonadjacent"),
        elle: Some("G-nonadjacent-item"),
        cycles: &[CycleShape {
            rank: 8,
            anti_dependencies: [2, usize::MAX],
            adjacent: Some(false),
            ..ANY
        }],
        ..row(
            A::NonadjacentAntiDependencies,
            "NonadjacentAntiDependencies",
            "Separate anti-dependencies",
            &[],
            &[L::SnapshotIsolation, L::RepeatableRead],
            "A cycle of dependencies whose overwritten reads are never next to each other.",
        )
    },
    AnomalyNames {
        adya: Some("G2-item"),
        elle: Some("G2-item"),
        isorel: Some("G2-item"),
        cycles: &[CycleShape { rank: 10, anti_dependencies: [1, usize::MAX], ..ANY }],
        ..row(
            A::ItemAntiDependencyCycle,
            "ItemAntiDependencyCycle",
            "Serialization anomaly",
            &[],
            &[L::RepeatableRead],
            "A cycle of dependencies with overwritten reads.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        elle: Some("G-single"),
        cycles: &[CycleShape {
            rank: 2,
            length: Some(2),
            anti_dependencies: [1, 1],
            sight: Sight::Row,
            ..BY_PREDICATE
        }],
        ..row(
            A::Phantom,
            "Phantom",
            "Phantom read",
            &["phantom", "P3", "A3"],
            &[L::ReadAtomic, L::ConsistentView],
            "A predicate missed a change of a transaction whose changes the same reader saw elsewhere.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        elle: Some("G-single"),
        cycles: &[CycleShape {
            rank: 3,
            length: Some(2),
            anti_dependencies: [1, 1],
            sight: Sight::Predicate,
            ..BY_PREDICATE
        }],
        ..row(
            A::PredicateManyPreceders,
            "PredicateManyPreceders",
            "Predicates that saw different changes",
            &["predicate-many-preceders", "PMP"],
            &[L::ReadAtomic, L::ConsistentView],
            "Of two predicates of one transaction, the one saw a change and the other missed it.",
        )
    },
    AnomalyNames {
        adya: Some("G-single"),
        elle: Some("G-single"),
        cycles: &[
            CycleShape { rank: 4, anti_dependencies: [1, 1], ..BY_PREDICATE },
            CycleShape { keys: ShapeKeys::One, predicates: ShapePredicates::Missed, ..CROSSED },
        ],
        ..row(
            A::PredicateSingleAntiDependency,
            "PredicateSingleAntiDependency",
            "Single anti-dependency of a predicate",
            &[],
            &[L::ParallelSnapshotIsolation],
            "A cycle of dependencies in which a single predicate missed a change.",
        )
    },
    AnomalyNames {
        adya: Some("G2"),
        elle: Some("G2"),
        cycles: &[CycleShape {
            keys: ShapeKeys::Several,
            predicates: ShapePredicates::Missed,
            ..CROSSED
        }],
        ..row(
            A::PredicateWriteSkew,
            "PredicateWriteSkew",
            "Write skew on a predicate",
            &[],
            &[L::Serializable],
            "Two transactions each changed what the other had looked for.",
        )
    },
    AnomalyNames {
        adya: Some("G2"),
        elle: Some("G2"),
        cycles: &[CycleShape { anti_dependencies: [2, usize::MAX], ..BY_PREDICATE }],
        ..row(
            A::PredicateAntiDependencyCycle,
            "PredicateAntiDependencyCycle",
            "Serialization anomaly of predicates",
            &[],
            &[L::Serializable],
            "A cycle of dependencies in which a predicate missed a change.",
        )
    },
    row(
        A::ResultMismatch,
        "ResultMismatch",
        "Result that does not fit what was there",
        &["result set mismatch"],
        &[L::AdyaReadCommitted, L::ConsistentView],
        "An operation returned something else than the versions that it met had to give.",
    ),
    row(
        A::UnexplainedResult,
        "UnexplainedResult",
        "Result that no version explains",
        &[],
        &[L::AdyaReadCommitted, L::ConsistentView],
        "Whichever committed version of a row an operation met, its result had to be another one.",
    ),
    AnomalyNames {
        cycles: &[CycleShape { rank: 0, length: Some(2), anti_dependencies: [1, 1], ..TIMED }],
        ..row(
            A::StaleRead,
            "StaleRead",
            "Stale read",
            &[],
            &[L::StrongSnapshotIsolation, L::StrongRepeatableRead],
            "A transaction read a version that had been overwritten before it began.",
        )
    },
    AnomalyNames {
        elle: Some("G2-item-realtime"),
        cycles: &[TIMED],
        ..row(
            A::RealTimeCycle,
            "RealTimeCycle",
            "Real-time violation",
            &[],
            &[L::StrongRepeatableRead],
            "A cycle of dependencies that real time closes.",
        )
    },
    AnomalyNames {
        elle: Some("incompatible-order"),
        ..row(
            A::IncompatibleOrder,
            "IncompatibleOrder",
            "Contradictory list reads",
            &[],
            &[L::ReadUncommitted, L::ConsistentView],
            "Two reads of a list show its elements in different orders.",
        )
    },
    AnomalyNames {
        elle: Some("duplicate-elements"),
        ..row(
            A::DuplicateElements,
            "DuplicateElements",
            "Append that took effect twice",
            &[],
            &[L::ReadUncommitted, L::ConsistentView],
            "A list shows an element twice that was appended once.",
        )
    },
    AnomalyNames {
        elle: Some("dirty-update"),
        ..row(
            A::DirtyUpdate,
            "DirtyUpdate",
            "Dirty update",
            &[],
            &[L::AdyaReadCommitted, L::ConsistentView],
            "A committed transaction built on what an aborted one had written.",
        )
    },
    AnomalyNames {
        elle: Some("cyclic-versions"),
        cycles: &[CycleShape {
            anti_dependencies: [0, 0],
            others: &[K::Initial, K::WriteWrite],
            with: &[K::WriteWrite],
            keys: ShapeKeys::One,
            ..ANY
        }],
        ..row(
            A::CyclicVersions,
            "CyclicVersions",
            "Cyclic version order",
            &[],
            &[L::ReadUncommitted, L::ConsistentView],
            "The versions of a key follow each other in a cycle.",
        )
    },
    row(
        A::NotLinearizable,
        "NotLinearizable",
        "Not linearizable",
        &[],
        &[L::Linearizable],
        "No order of the operations, in line with real time, explains what they returned.",
    ),
    row(
        A::OrderContradiction,
        "OrderContradiction",
        "Contradiction of the stated order",
        &[],
        &[L::ReadUncommitted, L::ConsistentView],
        "What a client saw contradicts the order that the database stated.",
    ),
    row(
        A::NoOrderPossible,
        "NoOrderPossible",
        "No possible order",
        &[],
        &[L::Prefix],
        "Every way to order the writes leads to a cycle of dependencies.",
    ),
    row(
        A::LostCommit,
        "LostCommit",
        "Lost commit",
        &[],
        &[],
        "A transaction was acknowledged, and is missing after the server has been down.",
    ),
];

const fn row(
    kind: AnomalyKind,
    name: &'static str,
    title: &'static str,
    everyday: &'static [&'static str],
    forbidden_by: &'static [Level],
    meaning: &'static str,
) -> AnomalyNames {
    AnomalyNames {
        kind,
        name,
        title,
        everyday,
        plume: None,
        mtc: None,
        adya: None,
        elle: None,
        isorel: None,
        cycles: &[],
        forbidden_by,
        meaning,
    }
}
