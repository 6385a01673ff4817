//! Isolation levels and how they relate.

use std::fmt;

/// An isolation level.
///
/// Weaker levels come first in the declaration; the lattice itself is [`Level::weaker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// No cycle of overwrites.
    ReadUncommitted,
    /// Adya's read committed: reads see committed final versions, and no cycle of overwrites and
    /// reads.
    AdyaReadCommitted,
    /// Biswas and Enea's read committed: also never backwards within a transaction.
    ReadCommitted,
    /// Repeated reads of a key agree, and nothing else.
    CutIsolation,
    /// All of a transaction's writes are seen, or none.
    ReadAtomic,
    /// What a transaction depends on is seen with it.
    Causal,
    /// Every transaction reads from a prefix of one commit order.
    Prefix,
    /// Prefix, and of two concurrent writers of a key one must fail.
    SnapshotIsolation,
    /// Snapshot isolation in real time.
    StrongSnapshotIsolation,
    /// Adya's repeatable read: serializable but for predicates.
    RepeatableRead,
    /// As if one transaction ran after the other.
    Serializable,
    /// Serializable in real time.
    StrictSerializable,
    /// Single operations take effect at one moment between call and answer.
    Linearizable,
}

/// One row of the table of levels.
struct Row {
    level: Level,
    name: &'static str,
    aliases: &'static [&'static str],
    weaker: &'static [Level],
    promise: &'static str,
    proscribes: &'static str,
    applies_to: &'static str,
}

use Level::{
    AdyaReadCommitted, Causal, CutIsolation, Linearizable, Prefix, ReadAtomic, ReadCommitted,
    ReadUncommitted, RepeatableRead, Serializable, SnapshotIsolation, StrictSerializable,
    StrongSnapshotIsolation,
};

/// In the order of the declaration, so that a level is its own index.
static TABLE: [Row; 13] = [
    Row {
        level: ReadUncommitted,
        name: "read-uncommitted",
        aliases: &["ru", "pl-1"],
        weaker: &[],
        promise: "writes of different transactions are not mixed up",
        proscribes: "cycles of overwrites (G0)",
        applies_to: "histories with a known version order: lists, certificates",
    },
    Row {
        level: AdyaReadCommitted,
        name: "adya-read-committed",
        aliases: &["pl-2"],
        weaker: &[ReadUncommitted],
        promise: "reads see the final writes of committed transactions, without circular flow",
        proscribes: "aborted and intermediate reads, and cycles of overwrites and reads (G0, G1)",
        applies_to: "registers with unique values; lists; certificates",
    },
    Row {
        level: ReadCommitted,
        name: "read-committed",
        aliases: &["rc"],
        weaker: &[AdyaReadCommitted],
        promise: "also, a transaction never goes back in time within itself",
        proscribes: "G1 and non-monotonic reads, of one key or across keys",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: CutIsolation,
        name: "cut-isolation",
        aliases: &["ci"],
        weaker: &[],
        promise: "reading a key again returns the same version; nothing else",
        proscribes: "non-repeatable reads",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: ReadAtomic,
        name: "read-atomic",
        aliases: &["ra"],
        weaker: &[ReadCommitted, CutIsolation],
        promise: "a transaction's writes are seen together or not at all",
        proscribes: "fractured reads, and missing one's own session's writes",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: Causal,
        name: "causal",
        aliases: &["cc", "tcc", "causal-consistency"],
        weaker: &[ReadAtomic],
        promise: "whoever sees an effect sees its causes",
        proscribes: "causality violations and conflicting orders of causally related writes",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: Prefix,
        name: "prefix",
        aliases: &["pc", "prefix-consistency"],
        weaker: &[Causal],
        promise: "every transaction reads from a prefix of one commit order",
        proscribes: "long forks",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: SnapshotIsolation,
        name: "snapshot-isolation",
        aliases: &["si"],
        weaker: &[Prefix],
        promise: "every transaction reads from a snapshot, and concurrent writers conflict",
        proscribes: "lost updates, and cycles without two adjacent anti-dependencies",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: StrongSnapshotIsolation,
        name: "strong-snapshot-isolation",
        aliases: &["strong-si"],
        weaker: &[SnapshotIsolation],
        promise: "snapshot isolation, and snapshots are as recent as real time says",
        proscribes: "what snapshot isolation does, and stale snapshots",
        applies_to: "histories with times",
    },
    Row {
        level: RepeatableRead,
        name: "repeatable-read",
        aliases: &["rr", "pl-2.99"],
        weaker: &[AdyaReadCommitted, CutIsolation],
        promise: "serializable but for predicate reads",
        proscribes: "cycles with item anti-dependencies (G2-item)",
        applies_to: "histories with a known version order: lists, certificates",
    },
    Row {
        level: Serializable,
        name: "serializable",
        aliases: &["ser", "pl-3", "serializability"],
        weaker: &[SnapshotIsolation, RepeatableRead],
        promise: "as if one transaction ran after the other",
        proscribes: "all cycles: write skew and phantoms too",
        applies_to: "registers with unique values; lists",
    },
    Row {
        level: StrictSerializable,
        name: "strict-serializable",
        aliases: &["sser", "strict-serializability"],
        weaker: &[Serializable, StrongSnapshotIsolation],
        promise: "serializable, in an order that real time agrees with",
        proscribes: "all cycles with real time: stale reads too",
        applies_to: "histories with times",
    },
    Row {
        level: Linearizable,
        name: "linearizable",
        aliases: &["lin", "linearizability"],
        weaker: &[],
        promise: "single operations take effect between call and answer",
        proscribes: "any result that no order of the operations explains",
        applies_to: "one operation per transaction, with times",
    },
];

impl Level {
    /// Every level, weaker ones first.
    pub fn all() -> impl ExactSizeIterator<Item = Level> {
        TABLE.iter().map(|row| row.level)
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Its full name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its short names.
    pub fn aliases(self) -> &'static [&'static str] {
        self.row().aliases
    }

    /// The strongest levels among those it implies.
    pub fn weaker(self) -> &'static [Level] {
        self.row().weaker
    }

    /// What it promises, in half a sentence.
    pub fn promise(self) -> &'static str {
        self.row().promise
    }

    /// What it forbids, in half a sentence.
    pub fn proscribes(self) -> &'static str {
        self.row().proscribes
    }

    /// Which kinds of history it can be decided for.
    pub fn applies_to(self) -> &'static str {
        self.row().applies_to
    }

    /// Whether a history that satisfies this level satisfies the other, too.
    pub fn implies(self, other: Level) -> bool {
        self == other || self.weaker().iter().any(|level| level.implies(other))
    }

    /// The level of a full or short name.
    pub fn find(name: &str) -> Option<Level> {
        let named = |row: &&Row| row.name == name || row.aliases.contains(&name);
        TABLE.iter().find(named).map(|row| row.level)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_level_and_weaker_levels_come_first() {
        for (index, level) in Level::all().enumerate() {
            assert_eq!(level as usize, index);
            assert!(level.weaker().iter().all(|weaker| *weaker < level), "{level}");
        }
    }

    #[test]
    fn names_and_aliases_are_unique_and_found() {
        let mut seen = std::collections::BTreeSet::new();
        for level in Level::all() {
            for name in std::iter::once(&level.name()).chain(level.aliases()) {
                assert!(seen.insert(*name), "{name} twice");
                assert_eq!(Level::find(name), Some(level));
            }
        }
        assert_eq!(Level::find("read-comitted"), None);
    }

    #[test]
    fn cut_isolation_and_read_committed_are_incomparable_and_read_atomic_implies_both() {
        assert!(!CutIsolation.implies(ReadCommitted) && !ReadCommitted.implies(CutIsolation));
        assert!(ReadAtomic.implies(ReadCommitted) && ReadAtomic.implies(CutIsolation));
        assert!(StrictSerializable.implies(ReadUncommitted));
    }
}
