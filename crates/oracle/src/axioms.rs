//! The levels, one axiom each.
//!
//! Every level asks for a total commit order that respects session order and write-read, and in
//! which no read misses what is visible to it:
//!
//! > if t3 reads x from t1, and another transaction t2 that writes x is *visible* to t3, then t2
//! > commits before t1.
//!
//! The levels differ in what is visible:
//!
//! | level | t2 is visible to t3 if | from |
//! |---|---|---|
//! | adya-read-committed | never | AWDIT, footnote 2 |
//! | read-committed | t3 read from t2 before it read x | AWDIT, Definition 2.4 |
//! | read-atomic | t2 (so ∪ wr) t3 | AWDIT, Definition 2.6 |
//! | causal | t2 (so ∪ wr)⁺ t3 | AWDIT, Definition 2.8 |
//! | prefix | t2 co* ; (so ∪ wr) t3 | MTC, Definition 12 |
//! | snapshot-isolation | t2 co* ; (so ∪ wr ∪ ww) t3 | MTC, Definitions 12 and 13 |
//! | serializable | t2 co t3 | Biswas and Enea; MTC, Definition 5 |
//!
//! MTC states snapshot isolation by cycles (Definition 6): a test says it that way, and that both
//! say the same. The strict levels add real time to session order.
//! `init` commits first and writes every key.

use isolario_model::Level;

use crate::small::{MAX_TXNS, Txns, bit, members};
use crate::worlds::{ExternalRead, World};

/// A commit order as it is built, first to last.
struct CommitOrder {
    placed: Txns,
    /// Per placed transaction, those that committed before it.
    before: [Txns; MAX_TXNS],
    /// Per placed transaction, those it causally depends on: (so ∪ wr)⁺.
    causes: [Txns; MAX_TXNS],
}

/// Whether some commit order satisfies the level.
pub(crate) fn some_commit_order(world: &World, level: Level) -> bool {
    let holds = |order: &CommitOrder, last: usize| axiom_holds(world, level, order, last);
    extends(world, &mut CommitOrder::empty(), &holds)
}

impl CommitOrder {
    fn empty() -> Self {
        CommitOrder { placed: 0, before: [0; MAX_TXNS], causes: [0; MAX_TXNS] }
    }

    fn place(&mut self, world: &World, txn: usize) {
        self.before[txn] = self.placed;
        let direct = world.direct[txn];
        self.causes[txn] = members(direct).fold(direct, |set, cause| set | self.causes[cause]);
        self.placed |= bit(txn);
    }

    /// Whether `first` commits before `second`; nothing commits before `init`.
    fn commits_before(&self, first: usize, second: Option<usize>) -> bool {
        second.is_some_and(|second| self.before[second] & bit(first) != 0)
    }

    /// Whoever commits before one of these, and these: co* backwards.
    fn and_before(&self, txns: Txns) -> Txns {
        members(txns).fold(txns, |set, txn| set | self.before[txn])
    }
}

/// Tries all ways to go on. Everything visible to a transaction commits before it, so its axiom is
/// decided as soon as it is placed, and hopeless beginnings are given up at once.
fn extends(
    world: &World,
    order: &mut CommitOrder,
    holds: &dyn Fn(&CommitOrder, usize) -> bool,
) -> bool {
    if order.placed == world.committed {
        return true;
    }
    members(world.committed & !order.placed).any(|next| {
        let required = world.direct[next] | world.listed[next];
        if required & !order.placed != 0 {
            return false;
        }
        order.place(world, next);
        let found = holds(order, next) && extends(world, order, holds);
        order.placed &= !bit(next);
        found
    })
}

/// The axiom of the level, for the reads of the transaction that was placed last.
fn axiom_holds(world: &World, level: Level, order: &CommitOrder, reader: usize) -> bool {
    let mut read_from = 0;
    world.reads.iter().filter(|read| read.reader == reader).all(|read| {
        let visible = match level {
            Level::AdyaReadCommitted => 0,
            Level::ReadCommitted => read_from,
            Level::ReadAtomic => world.direct[reader],
            Level::Causal => order.causes[reader],
            Level::Prefix => order.and_before(world.direct[reader]),
            Level::SnapshotIsolation | Level::StrongSnapshotIsolation => {
                order.and_before(world.direct[reader] | overwritten(world, order, reader))
            }
            _ => order.before[reader],
        };
        read_from |= read.from.map_or(0, bit);
        misses_nothing(world, order, read, visible)
    })
}

/// The axiom's conclusion: every other visible writer of the key commits before the one read from.
fn misses_nothing(world: &World, order: &CommitOrder, read: &ExternalRead, visible: Txns) -> bool {
    let others = visible & world.writers[read.key] & !read.from.map_or(0, bit);
    members(others).all(|other| order.commits_before(other, read.from))
}

/// ww, backwards: whoever committed earlier and wrote a key that this transaction writes.
fn overwritten(world: &World, order: &CommitOrder, txn: usize) -> Txns {
    let shared = world.writers.iter().filter(|writers| **writers & bit(txn) != 0);
    shared.fold(0, |set, writers| set | writers) & order.before[txn]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Case;
    use crate::small::Small;
    use crate::{Options, volume, worlds};

    /// MTC, Definition 6: for some order of each key's versions, (so ∪ wr ∪ ww) ; rw? is acyclic.
    fn some_dependency_graph_is_si(world: &World) -> bool {
        let acyclic = |order: &CommitOrder, _| {
            order.placed != world.committed || is_acyclic(&composed(world, order))
        };
        extends(world, &mut CommitOrder::empty(), &acyclic)
    }

    /// (so ∪ wr ∪ ww) ; rw?, backwards.
    fn composed(world: &World, order: &CommitOrder) -> [Txns; MAX_TXNS] {
        let mut composed = [0; MAX_TXNS];
        for txn in members(world.committed) {
            let dependencies = world.direct[txn] | overwritten(world, order, txn);
            composed[txn] |= dependencies;
            for overwriter in members(overwriters(world, order, txn)) {
                composed[overwriter] |= dependencies;
            }
        }
        composed
    }

    /// rw: whoever overwrote what this transaction read.
    fn overwriters(world: &World, order: &CommitOrder, txn: usize) -> Txns {
        let of_read = |read: &ExternalRead| {
            let later = |other: &usize| match read.from {
                None => true,
                Some(from) => order.commits_before(from, Some(*other)),
            };
            members(world.writers[read.key] & !bit(txn)).filter(later).fold(0, |s, t| s | bit(t))
        };
        world.reads.iter().filter(|read| read.reader == txn).fold(0, |s, read| s | of_read(read))
    }

    fn is_acyclic(before: &[Txns; MAX_TXNS]) -> bool {
        let mut done: Txns = 0;
        loop {
            let free = (0..MAX_TXNS).filter(|txn| before[*txn] & !done == 0);
            let next = free.fold(0, |set, txn| set | bit(txn));
            if next == done {
                return done.count_ones() as usize == MAX_TXNS;
            }
            done = next;
        }
    }

    #[test]
    fn the_axioms_of_snapshot_isolation_are_its_forbidden_cycles() {
        let level = Level::SnapshotIsolation;
        let mut satisfied = 0;
        for case in Case::first(volume() / 4) {
            let history = case.history().expect("small");
            let small = Small::new(&history).expect("small");
            let any = |holds: &dyn Fn(&World) -> bool| {
                worlds::any(&small, level, Options::default(), holds)
            };
            let by_axioms = any(&|world| some_commit_order(world, level));
            let by_cycles = any(&some_dependency_graph_is_si);
            assert_eq!(by_axioms, by_cycles, "{case:?}\n{}", case.draft());
            satisfied += u64::from(by_axioms);
        }
        assert!(satisfied > 0);
    }
}
