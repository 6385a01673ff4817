//! Anomalies by name.
//!
//! The literature disagrees on names. Plume (OOPSLA 2024, Table 1) letters fourteen patterns
//! TAP-a to TAP-n; MTC (Table I) letters another fourteen, with two of Plume's swapped; Adya,
//! Elle and IsoRel have names of their own, and IsoRel's G1b is not Adya's. One table settles
//! it: every report takes its names from there.

mod shape;
mod table;

use std::fmt;

use crate::level::Level;
pub use shape::{CycleShape, ShapeKeys, ShapePredicates, Sight};
use table::TABLE;

/// A kind of anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// A read of a value that nobody wrote.
    ThinAirRead,
    /// A read from an aborted transaction.
    AbortedRead,
    /// A read of what the same transaction writes only later.
    FutureRead,
    /// A read from elsewhere of a key that the transaction itself had written.
    NotMyOwnWrite,
    /// A read of an own write that the transaction itself had overwritten.
    NotMyLastWrite,
    /// A read of a write that its transaction overwrote before it committed.
    IntermediateRead,
    /// A cycle of session order and reads.
    CyclicCo,
    /// Non-monotonic reads across keys, by causal order.
    NonMonoReadCo,
    /// Non-monotonic reads across keys, by commit order.
    NonMonoReadCm,
    /// Non-monotonic reads of one key.
    NonMonotonicRead,
    /// Two reads of one key from different transactions.
    NonRepeatableRead,
    /// Part of a transaction seen and part missed, by causal order.
    FracturedReadCo,
    /// Part of a transaction seen and part missed, by commit order.
    FracturedReadCm,
    /// A read that misses what the reader depends on, by causal order.
    CoConflictCm,
    /// A read that misses what the reader depends on, by commit order.
    ConflictCm,
    /// A transaction that misses its own session's earlier write.
    SessionGuaranteeViolation,
    /// Two readers that see two writes in opposite orders.
    LongFork,
    /// Two transactions that overwrite the same version, having read it.
    LostUpdate,
    /// Two transactions that each overwrite what the other read.
    WriteSkew,
    /// A transaction that reads one key before and another after a concurrent write to both.
    ReadSkew,
    /// An anti-dependency on one row and an overwrite on another, in a cycle.
    ReadWriteSkew,
    /// A cycle of overwrites.
    DirtyWrite,
    /// A cycle with exactly one anti-dependency.
    SingleAntiDependency,
    /// A cycle in which no two anti-dependencies are adjacent.
    NonadjacentAntiDependencies,
    /// A cycle with item anti-dependencies.
    ItemAntiDependencyCycle,
    /// A predicate missed a row of a transaction that the same reader otherwise saw.
    Phantom,
    /// Two predicates of one transaction that saw different transactions' changes.
    PredicateManyPreceders,
    /// A cycle with exactly one anti-dependency, that of a predicate.
    PredicateSingleAntiDependency,
    /// Two transactions that each change what the other's predicate, or read, had found.
    PredicateWriteSkew,
    /// A cycle with a predicate anti-dependency.
    PredicateAntiDependencyCycle,
    /// A result that the versions which the operation met do not give.
    ResultMismatch,
    /// A result that no version of a row explains.
    UnexplainedResult,
    /// A read of a version that had been overwritten before the reader began.
    StaleRead,
    /// A cycle that only real time closes.
    RealTimeCycle,
    /// Two reads of one list of which neither is a prefix of the other.
    IncompatibleOrder,
    /// An element twice in one list.
    DuplicateElements,
    /// A committed overwrite of an aborted transaction's version.
    DirtyUpdate,
    /// A cycle among the versions of one key.
    CyclicVersions,
    /// An operation whose result no order explains.
    NotLinearizable,
    /// An observation that contradicts a trusted order.
    OrderContradiction,
    /// No single cycle: every case leads to one.
    NoOrderPossible,
    /// An acknowledged commit that is missing after the server has been down.
    ///
    /// It is about durability: no level forbids it, and a history alone does not show it. So it is not
    /// among [`AnomalyKind::all`].
    LostCommit,
}

/// The names of an anomaly.
#[derive(Debug)]
#[non_exhaustive]
pub struct AnomalyNames {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// Our name, in one word.
    pub name: &'static str,
    /// What an engineer would call it: how reports introduce it.
    pub title: &'static str,
    /// Other everyday names, among them those of the ANSI critique (P0 to P4, A5A, A5B). One may
    /// stand for several kinds.
    pub everyday: &'static [&'static str],
    /// Plume's letter.
    pub plume: Option<char>,
    /// MTC's letter.
    pub mtc: Option<char>,
    /// Adya's name.
    pub adya: Option<&'static str>,
    /// Elle's name.
    pub elle: Option<&'static str>,
    /// IsoRel's name.
    pub isorel: Option<&'static str>,
    /// The weakest levels that forbid it: those, and whatever implies one of them, do; empty for what
    /// is not about isolation. Consistent
    /// view is named where session order is never a part of it; else it forbids what parallel
    /// snapshot isolation does, as far as that takes no session order.
    pub forbidden_by: &'static [Level],
    /// The shapes of the cycles that go by the name; empty if none do, or if any does that a level forbids.
    pub cycles: &'static [CycleShape],
    /// What happened, in one sentence without names.
    pub meaning: &'static str,
}

impl AnomalyKind {
    /// Every kind that levels forbid, in the order of the table.
    pub fn all() -> impl ExactSizeIterator<Item = AnomalyKind> {
        TABLE[..AnomalyKind::LostCommit as usize].iter().map(|row| row.kind)
    }

    /// Its names.
    pub fn names(self) -> &'static AnomalyNames {
        &TABLE[self as usize]
    }

    /// Our name for it.
    pub fn name(self) -> &'static str {
        self.names().name
    }

    /// What an engineer would call it.
    pub fn title(self) -> &'static str {
        self.names().title
    }

    /// Plume's name for it: `TAP-a` to `TAP-n`.
    pub fn pattern(self) -> Option<String> {
        self.names().plume.map(|letter| format!("TAP-{letter}"))
    }

    /// Whether a level forbids it.
    pub fn forbidden_at(self, level: Level) -> bool {
        let by =
            |level: Level| self.names().forbidden_by.iter().any(|weakest| level.implies(*weakest));
        // Where it applies, to single operations, linearizable is strict serializable.
        by(level) || (level == Level::Linearizable && by(Level::StrictSerializable))
    }

    /// The kind of a name: ours (in any case) or Plume's. Other tools' names may mean several
    /// kinds.
    pub fn find(name: &str) -> Option<AnomalyKind> {
        AnomalyKind::all().chain([AnomalyKind::LostCommit]).find(|kind| {
            kind.name().eq_ignore_ascii_case(name)
                || kind.pattern().is_some_and(|pattern| pattern.eq_ignore_ascii_case(name))
        })
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_kind_and_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert!(names.insert(row.name.to_ascii_lowercase()), "{} twice", row.kind);
            assert_eq!(row.forbidden_by.is_empty(), row.kind == AnomalyKind::LostCommit);
        }
        assert_eq!(AnomalyKind::all().len() + 1, TABLE.len());
    }

    #[test]
    fn plume_has_fourteen_letters_and_mtc_all_of_its_own() {
        let letters = |of: fn(&AnomalyNames) -> Option<char>| {
            TABLE.iter().filter_map(of).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(letters(|row| row.plume), ('a'..='n').collect());
        assert_eq!(letters(|row| row.mtc), ('a'..='n').collect());
        assert_eq!(TABLE.iter().filter(|row| row.plume.is_some()).count(), 14);
    }

    #[test]
    fn plume_and_mtc_swap_two_letters() {
        let own = AnomalyKind::NotMyOwnWrite.names();
        let last = AnomalyKind::NotMyLastWrite.names();
        assert_eq!((own.plume, own.mtc), (Some('d'), Some('e')));
        assert_eq!((last.plume, last.mtc), (Some('e'), Some('d')));
    }

    #[test]
    fn levels_forbid_what_plume_table_2_says() {
        let forbidden = |level: Level| -> String {
            AnomalyKind::all()
                .filter(|kind| kind.forbidden_at(level))
                .filter_map(|kind| kind.names().plume)
                .collect()
        };
        assert_eq!(forbidden(Level::Causal), "abcdefghijklmn");
        assert_eq!(forbidden(Level::ReadAtomic), "abcdefghijkl");
        assert_eq!(forbidden(Level::ReadCommitted), "abcdefghi");
        assert_eq!(forbidden(Level::CutIsolation), "j");
    }

    #[test]
    fn kinds_are_found_by_our_name_and_by_letter() {
        assert_eq!(AnomalyKind::find("lostupdate"), Some(AnomalyKind::LostUpdate));
        assert_eq!(AnomalyKind::find("tap-m"), Some(AnomalyKind::CoConflictCm));
        assert_eq!(AnomalyKind::find("G1a"), None);
    }
}
