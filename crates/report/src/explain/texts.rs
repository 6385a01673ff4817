//! The texts, one file each. Levels and anomalies are declared to grow elsewhere, so one that has no
//! text yet has an empty one.

use isolario_model::{AnomalyKind as A, Level as L};

pub(super) fn anomaly(kind: A) -> &'static str {
    match kind {
        A::ThinAirRead => include_str!("anomalies/ThinAirRead.md"),
        A::AbortedRead => include_str!("anomalies/AbortedRead.md"),
        A::FutureRead => include_str!("anomalies/FutureRead.md"),
        A::NotMyOwnWrite => include_str!("anomalies/NotMyOwnWrite.md"),
        A::NotMyLastWrite => include_str!("anomalies/NotMyLastWrite.md"),
        A::IntermediateRead => include_str!("anomalies/IntermediateRead.md"),
        A::CyclicCo => include_str!("anomalies/CyclicCO.md"),
        A::NonMonoReadCo => include_str!("anomalies/NonMonoReadCO.md"),
        A::NonMonoReadCm => include_str!("anomalies/NonMonoReadCM.md"),
        A::NonMonotonicRead => include_str!("anomalies/NonMonotonicRead.md"),
        A::NonRepeatableRead => include_str!("anomalies/NonRepeatableRead.md"),
        A::FracturedReadCo => include_str!("anomalies/FracturedReadCO.md"),
        A::FracturedReadCm => include_str!("anomalies/FracturedReadCM.md"),
        A::CoConflictCm => include_str!("anomalies/COConflictCM.md"),
        A::ConflictCm => include_str!("anomalies/ConflictCM.md"),
        A::SessionGuaranteeViolation => include_str!("anomalies/SessionGuaranteeViolation.md"),
        A::LongFork => include_str!("anomalies/LongFork.md"),
        A::LostUpdate => include_str!("anomalies/LostUpdate.md"),
        A::WriteSkew => include_str!("anomalies/WriteSkew.md"),
        A::ReadSkew => include_str!("anomalies/ReadSkew.md"),
        A::ReadWriteSkew => include_str!("anomalies/ReadWriteSkew.md"),
        A::DirtyWrite => include_str!("anomalies/DirtyWrite.md"),
        A::SingleAntiDependency => include_str!("anomalies/SingleAntiDependency.md"),
        A::NonadjacentAntiDependencies => include_str!("anomalies/NonadjacentAntiDependencies.md"),
        A::ItemAntiDependencyCycle => include_str!("anomalies/ItemAntiDependencyCycle.md"),
        A::Phantom => include_str!("anomalies/Phantom.md"),
        A::PredicateManyPreceders => include_str!("anomalies/PredicateManyPreceders.md"),
        A::PredicateSingleAntiDependency => {
            include_str!("anomalies/PredicateSingleAntiDependency.md")
        }
        A::PredicateWriteSkew => include_str!("anomalies/PredicateWriteSkew.md"),
        A::PredicateAntiDependencyCycle => {
            include_str!("anomalies/PredicateAntiDependencyCycle.md")
        }
        A::ResultMismatch => include_str!("anomalies/ResultMismatch.md"),
        A::UnexplainedResult => include_str!("anomalies/UnexplainedResult.md"),
        A::StaleRead => include_str!("anomalies/StaleRead.md"),
        A::RealTimeCycle => include_str!("anomalies/RealTimeCycle.md"),
        A::IncompatibleOrder => include_str!("anomalies/IncompatibleOrder.md"),
        A::DuplicateElements => include_str!("anomalies/DuplicateElements.md"),
        A::DirtyUpdate => include_str!("anomalies/DirtyUpdate.md"),
        A::CyclicVersions => include_str!("anomalies/CyclicVersions.md"),
        A::NotLinearizable => include_str!("anomalies/NotLinearizable.md"),
        A::OrderContradiction => include_str!("anomalies/OrderContradiction.md"),
        A::NoOrderPossible => include_str!("anomalies/NoOrderPossible.md"),
        A::LostCommit => include_str!("lost-commit.md"),
        _ => "",
    }
}

pub(super) fn level(level: L) -> &'static str {
    match level {
        L::ReadUncommitted => include_str!("levels/read-uncommitted.md"),
        L::StrongReadUncommitted => include_str!("levels/strong-read-uncommitted.md"),
        L::AdyaReadCommitted => include_str!("levels/adya-read-committed.md"),
        L::StrongAdyaReadCommitted => include_str!("levels/strong-adya-read-committed.md"),
        L::ReadCommitted => include_str!("levels/read-committed.md"),
        L::CutIsolation => include_str!("levels/cut-isolation.md"),
        L::ReadAtomic => include_str!("levels/read-atomic.md"),
        L::Causal => include_str!("levels/causal.md"),
        L::ConsistentView => include_str!("levels/consistent-view.md"),
        L::ParallelSnapshotIsolation => include_str!("levels/parallel-snapshot-isolation.md"),
        L::Prefix => include_str!("levels/prefix.md"),
        L::SnapshotIsolation => include_str!("levels/snapshot-isolation.md"),
        L::StrongSnapshotIsolation => include_str!("levels/strong-snapshot-isolation.md"),
        L::RepeatableRead => include_str!("levels/repeatable-read.md"),
        L::StrongRepeatableRead => include_str!("levels/strong-repeatable-read.md"),
        L::Serializable => include_str!("levels/serializable.md"),
        L::StrictSerializable => include_str!("levels/strict-serializable.md"),
        L::Linearizable => include_str!("levels/linearizable.md"),
        _ => "",
    }
}
