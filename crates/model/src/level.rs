//! Isolation levels and how they relate.

use std::fmt;

use crate::op::OpKind;

/// An isolation level.
///
/// Weaker levels come first in the declaration; the lattice itself is [`Level::weaker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// No cycle of overwrites.
    ReadUncommitted,
    /// Read uncommitted in real time.
    StrongReadUncommitted,
    /// Adya's read committed: reads see committed final versions, and no cycle of overwrites and
    /// reads.
    AdyaReadCommitted,
    /// Adya's read committed in real time.
    StrongAdyaReadCommitted,
    /// Biswas and Enea's read committed: also never backwards within a transaction.
    ReadCommitted,
    /// Repeated reads of a key agree, and nothing else.
    CutIsolation,
    /// All of a transaction's writes are seen, or none.
    ReadAtomic,
    /// What a transaction depends on is seen with it.
    Causal,
    /// Adya's PL-2+: nobody misses a write that it depends on, by reads and overwrites.
    ConsistentView,
    /// Consistent view with session order: snapshots, but perhaps not of one order of commits.
    ParallelSnapshotIsolation,
    /// Every transaction reads from a prefix of one commit order.
    Prefix,
    /// Prefix, and of two concurrent writers of a key one must fail.
    SnapshotIsolation,
    /// Snapshot isolation in real time.
    StrongSnapshotIsolation,
    /// Adya's repeatable read: serializable but for predicates.
    RepeatableRead,
    /// Repeatable read in real time.
    StrongRepeatableRead,
    /// As if one transaction ran after the other.
    Serializable,
    /// Serializable in real time.
    StrictSerializable,
    /// Single operations take effect at one moment between call and answer.
    Linearizable,
}

/// What a level asks of a history before it can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelNeeds {
    /// Start and finish times.
    pub times: bool,
    /// A known order of the versions of each key.
    pub version_order: bool,
    /// Transactions of one operation each.
    pub single_operations: bool,
    /// The kinds of operation that the checkers decide it for; none where there is no checker yet.
    pub operations: &'static [OpFamily],
}

/// Operations that belong together: what one kind of history is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OpFamily {
    /// Reads, writes and deletes of a value.
    Registers,
    /// Appends to a list, and reads of it.
    Lists,
    /// Writes that depend on what is there: compare-and-set, insert if absent.
    Conditionals,
    /// Reads and writes of whichever rows satisfy a predicate.
    Predicates,
}

impl OpFamily {
    /// The family of a kind of operation.
    pub fn of(kind: OpKind) -> OpFamily {
        match kind {
            OpKind::Read | OpKind::ReadUnobserved | OpKind::Write | OpKind::Delete => {
                OpFamily::Registers
            }
            OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved => OpFamily::Lists,
            OpKind::InsertIfAbsent | OpKind::CompareAndSet => OpFamily::Conditionals,
            OpKind::PredicateRead | OpKind::PredicateWrite | OpKind::Aggregate => {
                OpFamily::Predicates
            }
        }
    }
}

/// How a level constrains the order of transactions.
///
/// The levels that order anything share one axiom (Biswas and Enea, OOPSLA 2019): if a transaction
/// read a key from a writer, every other writer of the key that is *visible* to it was committed
/// before that writer. Levels differ in what is visible, and in what else the order must respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelShape {
    /// What a transaction is in the level's order.
    pub nodes: LevelNodes,
    /// What is visible to a reader.
    pub visible: VisibilityRule,
    /// Whether of two writers of a key one must start after the other has committed.
    pub exclusive_writers: bool,
    /// Whether session order counts, unless the user drops it for all levels.
    pub session_order: bool,
    /// Whether a transaction that had finished before another started comes before it.
    pub real_time: bool,
}

/// What a transaction is in a level's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LevelNodes {
    /// Nothing: the level orders nothing.
    None,
    /// One point: its commit, or all of it.
    One,
    /// Two points: its start, where it takes its snapshot, and its commit, where its writes appear.
    StartAndCommit,
    /// One point per operation.
    PerOperation,
}

/// Which writers a reader must not have missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum VisibilityRule {
    /// None.
    Nothing,
    /// Those it had read from before.
    EarlierReads,
    /// Those it reads from, and those before it in its session.
    Direct,
    /// Those that happen before it: along session order and reads.
    Causes,
    /// Those it depends on: along session order, reads and overwrites.
    Dependencies,
    /// Those that are visible directly, and whatever was committed before them.
    Prefix,
    /// Whatever was committed before it.
    Everything,
}

/// One row of the table of levels.
struct LevelRow {
    level: Level,
    name: &'static str,
    aliases: &'static [&'static str],
    weaker: &'static [Level],
    promise: &'static str,
    proscribes: &'static str,
    needs: LevelNeeds,
    shape: LevelShape,
}

const SINGLE_KEYS: &[OpFamily] = &[OpFamily::Registers, OpFamily::Lists, OpFamily::Conditionals];
const AND_PREDICATES: &[OpFamily] =
    &[OpFamily::Registers, OpFamily::Lists, OpFamily::Conditionals, OpFamily::Predicates];
const SINGLE: &[OpFamily] = &[OpFamily::Registers, OpFamily::Conditionals];

const fn needs(operations: &'static [OpFamily]) -> LevelNeeds {
    LevelNeeds { times: false, version_order: false, single_operations: false, operations }
}

/// A level with one commit order, in which reads miss nothing that is visible.
const fn ordered(visible: VisibilityRule) -> LevelShape {
    LevelShape {
        nodes: LevelNodes::One,
        visible,
        exclusive_writers: false,
        session_order: true,
        real_time: false,
    }
}

const SNAPSHOTS: LevelShape = LevelShape {
    nodes: LevelNodes::StartAndCommit,
    visible: VisibilityRule::Prefix,
    exclusive_writers: false,
    session_order: true,
    real_time: false,
};
const EXCLUSIVE_SNAPSHOTS: LevelShape = LevelShape { exclusive_writers: true, ..SNAPSHOTS };

use Level::{
    AdyaReadCommitted, Causal, ConsistentView, CutIsolation, Linearizable,
    ParallelSnapshotIsolation, Prefix, ReadAtomic, ReadCommitted, ReadUncommitted, RepeatableRead,
    Serializable, SnapshotIsolation, StrictSerializable, StrongAdyaReadCommitted,
    StrongReadUncommitted, StrongRepeatableRead, StrongSnapshotIsolation,
};

/// In the order of the declaration, so that a level is its own index.
///
/// The book's page on levels argues for those implications that are not in the papers.
static TABLE: [LevelRow; 18] = [
    LevelRow {
        level: ReadUncommitted,
        name: "read-uncommitted",
        aliases: &["ru", "pl-1"],
        weaker: &[],
        promise: "writes of different transactions are not mixed up",
        proscribes: "cycles of overwrites (G0)",
        needs: LevelNeeds { version_order: true, ..needs(SINGLE_KEYS) },
        shape: ordered(VisibilityRule::Nothing),
    },
    LevelRow {
        level: StrongReadUncommitted,
        name: "strong-read-uncommitted",
        aliases: &["strong-ru", "strong-pl-1"],
        weaker: &[ReadUncommitted],
        promise: "read uncommitted, and later transactions overwrite earlier ones in real time",
        proscribes: "cycles of overwrites and real time",
        needs: LevelNeeds { times: true, version_order: true, ..needs(SINGLE_KEYS) },
        shape: LevelShape { real_time: true, ..ordered(VisibilityRule::Nothing) },
    },
    LevelRow {
        level: AdyaReadCommitted,
        name: "adya-read-committed",
        aliases: &["pl-2"],
        weaker: &[ReadUncommitted],
        promise: "reads see the final writes of committed transactions, without circular flow",
        proscribes: "aborted and intermediate reads, and cycles of overwrites and reads (G0, G1)",
        needs: needs(SINGLE_KEYS),
        shape: ordered(VisibilityRule::Nothing),
    },
    LevelRow {
        level: StrongAdyaReadCommitted,
        name: "strong-adya-read-committed",
        aliases: &["strong-pl-2"],
        weaker: &[StrongReadUncommitted, AdyaReadCommitted],
        promise: "Adya's read committed, and nobody reads or overwrites what comes later in real time",
        proscribes: "aborted and intermediate reads, and cycles of overwrites, reads and real time",
        needs: LevelNeeds { times: true, ..needs(SINGLE_KEYS) },
        shape: LevelShape { real_time: true, ..ordered(VisibilityRule::Nothing) },
    },
    LevelRow {
        level: ReadCommitted,
        name: "read-committed",
        aliases: &["rc"],
        weaker: &[AdyaReadCommitted],
        promise: "also, a transaction never goes back in time within itself",
        proscribes: "G1 and non-monotonic reads, of one key or across keys",
        needs: needs(SINGLE_KEYS),
        shape: ordered(VisibilityRule::EarlierReads),
    },
    LevelRow {
        level: CutIsolation,
        name: "cut-isolation",
        aliases: &["ci"],
        weaker: &[],
        promise: "reading a key again returns the same version; nothing else",
        proscribes: "non-repeatable reads",
        needs: needs(SINGLE_KEYS),
        shape: LevelShape { nodes: LevelNodes::None, ..ordered(VisibilityRule::Nothing) },
    },
    LevelRow {
        level: ReadAtomic,
        name: "read-atomic",
        aliases: &["ra"],
        weaker: &[ReadCommitted, CutIsolation],
        promise: "a transaction's writes are seen together or not at all",
        proscribes: "fractured reads, and missing one's own session's writes",
        needs: needs(SINGLE_KEYS),
        shape: ordered(VisibilityRule::Direct),
    },
    LevelRow {
        level: Causal,
        name: "causal",
        aliases: &["cc", "tcc", "causal-consistency"],
        weaker: &[ReadAtomic],
        promise: "whoever sees an effect sees its causes",
        proscribes: "causality violations and conflicting orders of causally related writes",
        needs: needs(SINGLE_KEYS),
        shape: ordered(VisibilityRule::Causes),
    },
    LevelRow {
        level: ConsistentView,
        name: "consistent-view",
        aliases: &["cv", "pl-2+"],
        // Not Adya's read committed, nor any other level with session order: a cycle that the order
        // of a session closes is none here.
        weaker: &[CutIsolation],
        promise: "whoever sees or overwrites a transaction's effect misses nothing that led to it",
        proscribes: "cycles with fewer than two anti-dependencies, session order aside (G1, G-single)",
        needs: LevelNeeds { version_order: true, ..needs(SINGLE_KEYS) },
        shape: LevelShape { session_order: false, ..ordered(VisibilityRule::Dependencies) },
    },
    LevelRow {
        level: ParallelSnapshotIsolation,
        name: "parallel-snapshot-isolation",
        aliases: &["psi"],
        weaker: &[Causal, ConsistentView],
        promise: "snapshots and no lost updates, but independent writes in no common order",
        proscribes: "cycles with fewer than two anti-dependencies",
        needs: LevelNeeds { version_order: true, ..needs(SINGLE_KEYS) },
        shape: ordered(VisibilityRule::Dependencies),
    },
    LevelRow {
        level: Prefix,
        name: "prefix",
        aliases: &["pc", "prefix-consistency"],
        weaker: &[Causal],
        promise: "every transaction reads from a prefix of one commit order",
        proscribes: "long forks",
        needs: needs(AND_PREDICATES),
        shape: SNAPSHOTS,
    },
    LevelRow {
        level: SnapshotIsolation,
        name: "snapshot-isolation",
        aliases: &["si"],
        weaker: &[ParallelSnapshotIsolation, Prefix],
        promise: "every transaction reads from a snapshot, and concurrent writers conflict",
        proscribes: "lost updates, and cycles without two adjacent anti-dependencies",
        needs: needs(AND_PREDICATES),
        shape: EXCLUSIVE_SNAPSHOTS,
    },
    LevelRow {
        level: StrongSnapshotIsolation,
        name: "strong-snapshot-isolation",
        aliases: &["strong-si"],
        weaker: &[StrongAdyaReadCommitted, SnapshotIsolation],
        promise: "snapshot isolation, and snapshots are as recent as real time says",
        proscribes: "what snapshot isolation does, and stale snapshots",
        needs: LevelNeeds { times: true, ..needs(AND_PREDICATES) },
        shape: LevelShape { real_time: true, ..EXCLUSIVE_SNAPSHOTS },
    },
    LevelRow {
        level: RepeatableRead,
        name: "repeatable-read",
        aliases: &["rr", "pl-2.99"],
        weaker: &[AdyaReadCommitted, CutIsolation],
        promise: "serializable but for predicate reads",
        proscribes: "cycles with item anti-dependencies (G2-item)",
        needs: LevelNeeds { version_order: true, ..needs(SINGLE_KEYS) },
        shape: ordered(VisibilityRule::Everything),
    },
    LevelRow {
        level: StrongRepeatableRead,
        name: "strong-repeatable-read",
        aliases: &["strong-rr", "strong-pl-2.99"],
        weaker: &[StrongAdyaReadCommitted, RepeatableRead],
        promise: "strictly serializable but for predicate reads",
        proscribes: "cycles with item anti-dependencies and real time",
        needs: LevelNeeds { times: true, version_order: true, ..needs(SINGLE_KEYS) },
        shape: LevelShape { real_time: true, ..ordered(VisibilityRule::Everything) },
    },
    LevelRow {
        level: Serializable,
        name: "serializable",
        aliases: &["ser", "pl-3", "serializability"],
        weaker: &[SnapshotIsolation, RepeatableRead],
        promise: "as if one transaction ran after the other",
        proscribes: "all cycles: write skew and phantoms too",
        needs: needs(AND_PREDICATES),
        shape: ordered(VisibilityRule::Everything),
    },
    LevelRow {
        level: StrictSerializable,
        name: "strict-serializable",
        aliases: &["sser", "strict-serializability"],
        weaker: &[Serializable, StrongSnapshotIsolation, StrongRepeatableRead],
        promise: "serializable, in an order that real time agrees with",
        proscribes: "all cycles with real time: stale reads too",
        needs: LevelNeeds { times: true, ..needs(AND_PREDICATES) },
        shape: LevelShape { real_time: true, ..ordered(VisibilityRule::Everything) },
    },
    LevelRow {
        level: Linearizable,
        name: "linearizable",
        aliases: &["lin", "linearizability"],
        weaker: &[],
        promise: "single operations take effect between call and answer",
        proscribes: "any result that no order of the operations explains",
        needs: LevelNeeds { times: true, single_operations: true, ..needs(SINGLE) },
        shape: LevelShape {
            nodes: LevelNodes::PerOperation,
            real_time: true,
            ..ordered(VisibilityRule::Everything)
        },
    },
];

impl Level {
    /// Every level, weaker ones first.
    pub fn all() -> impl ExactSizeIterator<Item = Level> {
        TABLE.iter().map(|row| row.level)
    }

    fn row(self) -> &'static LevelRow {
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

    /// What it asks of a history before it can be decided.
    pub fn needs(self) -> LevelNeeds {
        self.row().needs
    }

    /// How it constrains the order of transactions.
    pub fn shape(self) -> LevelShape {
        self.row().shape
    }

    /// Whether there is a checker for it.
    pub fn is_decided(self) -> bool {
        !self.needs().operations.is_empty()
    }

    /// The levels that there are checkers for, weaker ones first.
    pub fn decided() -> impl Iterator<Item = Level> + Clone {
        TABLE.iter().map(|row| row.level).filter(|level| level.is_decided())
    }

    /// The levels of registers that hold of a history if its transactions can be put into some order, and whose
    /// witness is that order, of commits or of starts and commits; weaker ones first. Any serial order shows that they hold,
    /// if it agrees with real time where that counts.
    pub const fn by_order() -> &'static [Level] {
        &[
            Self::AdyaReadCommitted,
            Self::ReadCommitted,
            Self::ReadAtomic,
            Self::Causal,
            Self::Prefix,
            Self::SnapshotIsolation,
            Self::StrongSnapshotIsolation,
            Self::Serializable,
            Self::StrictSerializable,
        ]
    }

    /// Whether a history that satisfies this level satisfies the other, too.
    pub fn implies(self, other: Level) -> bool {
        self == other || self.weaker().iter().any(|level| level.implies(other))
    }

    /// Whether a history that violates the other level violates this one, too: it implies that one, or
    /// is strict serializability, which of single operations is linearizability. (No more than that is
    /// decided to be linearizable, and operations on different keys never conflict.)
    pub fn is_ruled_out_by(self, other: Level) -> bool {
        self.implies(other) || self == StrictSerializable && other == Linearizable
    }

    /// The level of a full or short name.
    pub fn find(name: &str) -> Option<Level> {
        let named = |row: &&LevelRow| row.name == name || row.aliases.contains(&name);
        TABLE.iter().find(named).map(|row| row.level)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of levels.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelSet(u32);

impl LevelSet {
    /// Whether a level is among them.
    pub fn contains(self, level: Level) -> bool {
        self.0 & (1 << level as u32) != 0
    }

    /// Adds a level.
    pub fn insert(&mut self, level: Level) {
        self.0 |= 1 << level as u32;
    }

    /// Takes a level out.
    pub fn remove(&mut self, level: Level) {
        self.0 &= !(1 << level as u32);
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The levels, weaker ones first.
    pub fn iter(self) -> impl Iterator<Item = Level> + Clone {
        TABLE.iter().map(|row| row.level).filter(move |level| self.contains(*level))
    }

    /// All that are in one of the two sets.
    #[must_use]
    pub fn union(self, other: LevelSet) -> LevelSet {
        LevelSet(self.0 | other.0)
    }

    /// The levels that imply one of these, and these: what is ruled out if these are.
    #[must_use]
    pub fn and_stronger(self) -> LevelSet {
        Level::all().filter(|level| self.iter().any(|weaker| level.implies(weaker))).collect()
    }

    /// Those that imply no other of them.
    #[must_use]
    pub fn weakest(self) -> LevelSet {
        let implies_another =
            |level: Level| self.iter().any(|other| other != level && level.implies(other));
        self.iter().filter(|level| !implies_another(*level)).collect()
    }

    /// Those that no other of them implies.
    #[must_use]
    pub fn strongest(self) -> LevelSet {
        let is_implied =
            |level: Level| self.iter().any(|other| other != level && other.implies(level));
        self.iter().filter(|level| !is_implied(*level)).collect()
    }
}

impl FromIterator<Level> for LevelSet {
    fn from_iter<I: IntoIterator<Item = Level>>(levels: I) -> Self {
        let mut set = LevelSet::default();
        levels.into_iter().for_each(|level| set.insert(level));
        set
    }
}

impl fmt::Debug for LevelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Level::name)).finish()
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
    fn a_stronger_level_shows_at_least_as_much_and_asks_no_less() {
        for level in Level::all().filter(|level| level.shape().nodes != LevelNodes::None) {
            let weaker = level.weaker().iter().filter(|weaker| **weaker != CutIsolation);
            for weaker in weaker {
                let (strong, weak) = (level.shape(), weaker.shape());
                assert!(strong.visible >= weak.visible, "{level} {weaker}");
                assert!(strong.real_time >= weak.real_time, "{level} {weaker}");
                assert!(level.needs().times >= weaker.needs().times, "{level} {weaker}");
            }
            // Real time can be respected only where it is known.
            assert!(level.needs().times >= level.shape().real_time, "{level}");
        }
    }

    #[test]
    fn sets_know_their_weakest_and_strongest_members_and_what_implies_one() {
        let set: LevelSet = [ReadCommitted, CutIsolation, ReadAtomic].into_iter().collect();
        assert!(set.weakest().iter().eq([ReadCommitted, CutIsolation]));
        assert!(set.strongest().iter().eq([ReadAtomic]));
        let ruled_out: LevelSet = [SnapshotIsolation].into_iter().collect();
        let expected =
            [SnapshotIsolation, StrongSnapshotIsolation, Serializable, StrictSerializable];
        assert!(ruled_out.and_stronger().iter().eq(expected));
        assert_eq!(format!("{ruled_out:?}"), "{\"snapshot-isolation\"}");
    }

    #[test]
    fn cut_isolation_and_read_committed_are_incomparable_and_read_atomic_implies_both() {
        assert!(!CutIsolation.implies(ReadCommitted) && !ReadCommitted.implies(CutIsolation));
        assert!(ReadAtomic.implies(ReadCommitted) && ReadAtomic.implies(CutIsolation));
        assert!(StrictSerializable.implies(ReadUncommitted));
    }
}
