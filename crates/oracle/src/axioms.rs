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

//!
//! The versions of a key follow the commit order. A version of a register is what its writer wrote.
//! A version of a list holds what everyone up to its writer appended, in commit order: lists never
//! forget. So an order says what each version of each list is, and a read of a list returned the
//! version that looks like it; an order without such a version does not explain the read.
//!
//! Adya states read committed by cycles: for some order of each key's versions, session order,
//! write-read and write-write have none. The orders of versions need not come from one commit order
//! there, but without a cycle they do: any topological order is one.

use isolario_model::Level;

use crate::guaranteed;
use crate::small::{MAX_TXNS, Txns, bit, members};
use crate::views::View;
use crate::worlds::World;

/// A commit order as it is built, first to last.
struct CommitOrder<'w> {
    world: &'w World<'w>,
    placed: Txns,
    /// Per placed transaction, those that committed before it.
    before: [Txns; MAX_TXNS],
    /// Per placed transaction, those visible to it at once: so ∪ wr, and real time if the level has
    /// it.
    direct: [Txns; MAX_TXNS],
    /// Per placed transaction, those it causally depends on: (so ∪ wr)⁺.
    causes: [Txns; MAX_TXNS],
    /// Where the external reads of the placed transactions came from.
    reads: Vec<ReadFrom>,
    /// Per key, its list.
    lists: Vec<List>,
}

/// A read from another transaction, or from `init` if there is none.
#[derive(Clone, Copy, Debug)]
struct ReadFrom {
    reader: usize,
    key: usize,
    from: Option<usize>,
}

/// The versions of a list so far.
#[derive(Clone, Default)]
struct List {
    /// The newest version.
    elements: Vec<u64>,
    /// Who wrote a version, and how long that is.
    versions: Vec<(usize, usize)>,
}

impl List {
    /// Whose version a read shows (none for `init`), if there is such a version. Versions have
    /// different lengths.
    fn writer(&self, shown: &[u64]) -> Option<Option<usize>> {
        if shown.is_empty() {
            return Some(None);
        }
        let as_long = self.versions.iter().find(|(_, length)| *length == shown.len());
        as_long.filter(|_| self.elements.starts_with(shown)).map(|(writer, _)| Some(*writer))
    }
}

/// Whether some commit order satisfies the level.
pub(crate) fn some_commit_order(world: &World, level: Level) -> bool {
    let holds = |order: &CommitOrder, last: usize| axiom_holds(level, order, last);
    extends(&mut CommitOrder::empty(world), &holds)
}

impl<'w> CommitOrder<'w> {
    fn empty(world: &'w World) -> Self {
        CommitOrder {
            world,
            placed: 0,
            before: [0; MAX_TXNS],
            direct: [0; MAX_TXNS],
            causes: [0; MAX_TXNS],
            reads: Vec::new(),
            lists: vec![List::default(); world.writers.len()],
        }
    }

    /// Commits a transaction next. False if it cannot be next: it must follow others, or it read
    /// what nobody has written yet.
    fn place(&mut self, txn: usize) -> bool {
        let first_read = self.reads.len();
        if !self.resolve_reads(txn) {
            self.reads.truncate(first_read);
            return false;
        }
        let read_from = self.reads[first_read..].iter().filter_map(|read| read.from);
        let direct = read_from.fold(self.world.given[txn], |set, writer| set | bit(writer));
        if (direct | self.world.stated[txn]) & !self.placed != 0 {
            self.reads.truncate(first_read);
            return false;
        }
        self.before[txn] = self.placed;
        self.direct[txn] = direct;
        self.causes[txn] = members(direct).fold(direct, |set, cause| set | self.causes[cause]);
        self.placed |= bit(txn);
        self.append(txn);
        true
    }

    /// Finds out where a transaction's reads came from; false if some list does not look as it was
    /// read.
    fn resolve_reads(&mut self, txn: usize) -> bool {
        self.world.reads.iter().filter(|read| read.reader == txn).all(|read| {
            let from = match read.saw {
                View::Txn(writer) => Some(Some(*writer)),
                View::List(shown) => self.lists[read.key].writer(shown),
                View::Init | View::Own => Some(None),
            };
            self.reads.extend(from.map(|from| ReadFrom { reader: txn, key: read.key, from }));
            from.is_some()
        })
    }

    fn append(&mut self, txn: usize) {
        for append in self.world.appends.iter().filter(|append| append.txn == txn) {
            let list = &mut self.lists[append.key];
            list.elements.push(append.word);
            // The last append of a transaction makes its version.
            list.versions.retain(|(writer, _)| *writer != txn);
            list.versions.push((txn, list.elements.len()));
        }
    }

    /// Takes back what was placed last.
    fn take_back(&mut self, txn: usize) {
        self.placed &= !bit(txn);
        self.reads.retain(|read| read.reader != txn);
        for list in &mut self.lists {
            list.versions.retain(|(writer, _)| *writer != txn);
            list.elements.truncate(list.versions.last().map_or(0, |(_, length)| *length));
        }
    }

    /// Whether `first` commits before `second`; nothing commits before `init`.
    fn commits_before(&self, first: usize, second: Option<usize>) -> bool {
        second.is_some_and(|second| self.before[second] & bit(first) != 0)
    }

    /// Whoever commits before one of these, and these: co* backwards.
    fn and_before(&self, txns: Txns) -> Txns {
        members(txns).fold(txns, |set, txn| set | self.before[txn])
    }

    /// Whether the versions of each key, in the order of their commits, are as is assumed.
    fn agrees_with_assumptions(&self) -> bool {
        let assumed = &self.world.assumed;
        let agrees = |(key, writers): (usize, &Txns)| {
            let mut order: Vec<usize> = members(*writers).collect();
            order.sort_by_key(|txn| self.before[*txn].count_ones());
            guaranteed::agrees(assumed, key, &order)
        };
        assumed.is_empty() || self.world.writers.iter().enumerate().all(agrees)
    }

    /// ww, backwards: whoever committed earlier and wrote a key that this transaction writes.
    fn overwritten(&self, txn: usize) -> Txns {
        let shared = self.world.writers.iter().filter(|writers| **writers & bit(txn) != 0);
        shared.fold(0, |set, writers| set | writers) & self.before[txn]
    }

    fn reads_of(&self, reader: usize) -> impl Iterator<Item = &ReadFrom> {
        self.reads.iter().filter(move |read| read.reader == reader)
    }
}

/// Tries all ways to go on. Everything visible to a transaction commits before it, so its axiom is
/// decided as soon as it is placed, and hopeless beginnings are given up at once.
fn extends(order: &mut CommitOrder, holds: &dyn Fn(&CommitOrder, usize) -> bool) -> bool {
    if order.placed == order.world.committed {
        return order.agrees_with_assumptions();
    }
    members(order.world.committed & !order.placed).any(|next| {
        if !order.place(next) {
            return false;
        }
        let found = holds(order, next) && extends(order, holds);
        order.take_back(next);
        found
    })
}

/// The axiom of the level, for the reads of the transaction that was placed last.
fn axiom_holds(level: Level, order: &CommitOrder, reader: usize) -> bool {
    let mut read_from = 0;
    order.reads_of(reader).all(|read| {
        let visible = match level {
            Level::AdyaReadCommitted => 0,
            Level::ReadCommitted => read_from,
            Level::ReadAtomic => order.direct[reader],
            Level::Causal => order.causes[reader],
            Level::Prefix => order.and_before(order.direct[reader]),
            Level::SnapshotIsolation | Level::StrongSnapshotIsolation => {
                order.and_before(order.direct[reader] | order.overwritten(reader))
            }
            _ => order.before[reader],
        };
        read_from |= read.from.map_or(0, bit);
        misses_nothing(order, read, visible)
    })
}

/// The axiom's conclusion: every other visible writer of the key commits before the one read from.
fn misses_nothing(order: &CommitOrder, read: &ReadFrom, visible: Txns) -> bool {
    let others = visible & order.world.writers[read.key] & !read.from.map_or(0, bit);
    members(others).all(|other| order.commits_before(other, read.from))
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
            order.placed != world.committed || is_acyclic(&composed(order))
        };
        extends(&mut CommitOrder::empty(world), &acyclic)
    }

    /// (so ∪ wr ∪ ww) ; rw?, backwards.
    fn composed(order: &CommitOrder) -> [Txns; MAX_TXNS] {
        let mut composed = [0; MAX_TXNS];
        for txn in members(order.placed) {
            let dependencies = order.direct[txn] | order.overwritten(txn);
            composed[txn] |= dependencies;
            for overwriter in members(overwriters(order, txn)) {
                composed[overwriter] |= dependencies;
            }
        }
        composed
    }

    /// rw: whoever overwrote what this transaction read.
    fn overwriters(order: &CommitOrder, txn: usize) -> Txns {
        let of_read = |read: &ReadFrom| {
            let later = |other: &usize| match read.from {
                None => true,
                Some(from) => order.commits_before(from, Some(*other)),
            };
            let others = order.world.writers[read.key] & !bit(txn);
            members(others).filter(later).fold(0, |s, t| s | bit(t))
        };
        order.reads_of(txn).fold(0, |s, read| s | of_read(read))
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
            for draft in [case.draft(), case.list_draft()] {
                let history = draft.history().expect("small");
                let small = &Small::all(&history).expect("small")[0];
                let any = |holds: &dyn Fn(&World) -> bool| {
                    worlds::any(small, level, Options::default(), &[], holds)
                };
                let by_axioms = any(&|world| some_commit_order(world, level));
                let by_cycles = any(&some_dependency_graph_is_si);
                assert_eq!(by_axioms, by_cycles, "{case:?}\n{draft}");
                satisfied += u64::from(by_axioms);
            }
        }
        assert!(satisfied > 0);
    }
}
