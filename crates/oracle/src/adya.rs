//! Adya's levels, by the cycles that they forbid.
//!
//! Here an order is one per key, of the versions that committed transactions wrote. Such an order
//! says what each version of a list holds and which version each read saw, and makes a graph:
//!
//! | edge | from | to | is |
//! |---|---|---|---|
//! | ww | who wrote a version | who wrote the next one | a dependency |
//! | wr | who wrote a version | who read it | a dependency |
//! | given | who comes first in the session, or in real time | who comes later | a dependency |
//! | rw | who read a version | who wrote the next one | an anti-dependency |
//!
//! A level holds if for some orders the graph has none of the cycles that it forbids: those with
//! fewer anti-dependencies than it allows.
//!
//! | level | forbids cycles | Adya |
//! |---|---|---|
//! | read-uncommitted | of ww: see [`crate::uncommitted`] | G0 |
//! | adya-read-committed | without an anti-dependency | G1c |
//! | consistent-view | with fewer than two, session order aside | G1c, G-single |
//! | parallel-snapshot-isolation | with fewer than two | the same with sessions |
//! | repeatable-read | all | G2-item |
//!
//! The strong levels are the same with real time among what is given.
//! A read of an aborted, an intermediate or an invented value (G1a, G1b) is of no version.
//!
//! The orders of two keys need not come from one commit order. Where dependencies have no cycle they
//! do, since any topological order is one; tests hold that against the [axioms](crate::axioms).

use isolario_model::Level;

use crate::guaranteed;
use crate::small::{MAX_TXNS, Txns, bit, members};
use crate::views::View;
use crate::worlds::World;

/// Whether some orders of versions give a graph without the forbidden cycles.
pub(crate) fn some_version_orders(world: &World, forbidden: Forbidden) -> bool {
    let graph = Graph::new(&world.given);
    some_orders(&graph, forbidden, &world.writers, 0, &|graph, key, order| {
        agrees_with_statements(&world.stated, order)
            && guaranteed::agrees(&world.assumed, key, order)
            && graph.add_key(world, key, order)
    })
}

/// The cycles that a level forbids; none if it is not stated by cycles here.
pub(crate) fn forbidden_at(level: Level) -> Option<Forbidden> {
    match level {
        Level::AdyaReadCommitted | Level::StrongAdyaReadCommitted => {
            Some(Forbidden::OF_DEPENDENCIES)
        }
        Level::ConsistentView | Level::ParallelSnapshotIsolation => Some(Forbidden::SINGLE),
        Level::RepeatableRead | Level::StrongRepeatableRead => Some(Forbidden::ALL),
        _ => None,
    }
}

/// Which cycles are forbidden: those with fewer anti-dependencies than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forbidden {
    fewer_than: usize,
}

impl Forbidden {
    /// Cycles of dependencies.
    pub(crate) const OF_DEPENDENCIES: Forbidden = Forbidden { fewer_than: 1 };
    /// Cycles with at most one anti-dependency.
    pub(crate) const SINGLE: Forbidden = Forbidden { fewer_than: 2 };
    /// All cycles: none has more anti-dependencies than there are transactions.
    pub(crate) const ALL: Forbidden = Forbidden { fewer_than: MAX_TXNS + 1 };
}

/// Who depends on whom.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    dependencies: [Txns; MAX_TXNS],
    anti_dependencies: [Txns; MAX_TXNS],
}

impl Graph {
    /// The graph of an order that is given: per transaction, those before it.
    pub(crate) fn new(given: &[Txns; MAX_TXNS]) -> Graph {
        let mut graph = Graph { dependencies: [0; MAX_TXNS], anti_dependencies: [0; MAX_TXNS] };
        for (later, before) in given.iter().enumerate() {
            members(*before).for_each(|first| graph.dependencies[first] |= bit(later));
        }
        graph
    }

    /// Adds what the order of a key's versions says of those who wrote it.
    pub(crate) fn add_overwrites(&mut self, order: &[usize]) {
        for pair in order.windows(2) {
            self.dependencies[pair[0]] |= bit(pair[1]);
        }
    }

    /// Adds what the order of a key's versions says of those who wrote and who read it; false if a
    /// read saw none of these versions.
    fn add_key(&mut self, world: &World, key: usize, order: &[usize]) -> bool {
        self.add_overwrites(order);
        world.reads.iter().filter(|read| read.key == key).all(|read| {
            let Some(version) = version_seen(world, key, order, read.saw) else { return false };
            if version > 0 {
                self.dependencies[order[version - 1]] |= bit(read.reader);
            }
            match order.get(version) {
                Some(next) if *next != read.reader => {
                    self.anti_dependencies[read.reader] |= bit(*next);
                }
                _ => {}
            }
            true
        })
    }

    /// Whether it has a cycle that is forbidden: some closed walk has so few anti-dependencies, and
    /// then so has one of the cycles that it is made of.
    fn has(&self, forbidden: Forbidden) -> bool {
        (0..MAX_TXNS).any(|txn| self.comes_back(txn, forbidden))
    }

    fn comes_back(&self, txn: usize, forbidden: Forbidden) -> bool {
        // Who has been reached after 0, 1, 2, ... anti-dependencies.
        let mut reached = bit(txn);
        (0..forbidden.fewer_than).any(|count| {
            let arrived = count > 0 && reached & bit(txn) != 0;
            let mut before = 0;
            while before != reached {
                before = reached;
                reached |= successors(&self.dependencies, reached);
            }
            let comes_back = successors(&self.dependencies, reached) & bit(txn) != 0;
            reached = successors(&self.anti_dependencies, reached);
            arrived || comes_back
        })
    }
}

/// Whoever an edge leads to from one of these.
fn successors(edges: &[Txns; MAX_TXNS], from: Txns) -> Txns {
    members(from).fold(0, |set, txn| set | edges[txn])
}

/// Which version of a key a read saw, counted from 1; 0 is the initial one. None if it is none of
/// these versions, or the reader's own.
fn version_seen(world: &World, key: usize, order: &[usize], saw: &View) -> Option<usize> {
    match saw {
        View::Init | View::Own => Some(0),
        View::Txn(writer) => Some(order.iter().position(|txn| txn == writer)? + 1),
        View::List(shown) if shown.is_empty() => Some(0),
        View::List(shown) => {
            let mut held = Vec::new();
            let holds_what_is_shown = |writer: &usize| {
                let of_writer = world.appends.iter().filter(|a| a.txn == *writer && a.key == key);
                held.extend(of_writer.map(|append| append.word));
                held == *shown
            };
            Some(order.iter().position(holds_what_is_shown)? + 1)
        }
    }
}

/// Whether no later writer is stated to come before an earlier one.
pub(crate) fn agrees_with_statements(stated: &[Txns; MAX_TXNS], order: &[usize]) -> bool {
    (0..order.len()).all(|at| order[at..].iter().all(|later| stated[order[at]] & bit(*later) == 0))
}

/// Whether some orders of the writers of each key, from this key on, add up to a graph without
/// forbidden cycles. What an order adds to the graph, and whether it fits at all, is for `add` to
/// say. Edges only ever close cycles, so a graph that has one is given up at once.
pub(crate) fn some_orders(
    graph: &Graph,
    forbidden: Forbidden,
    writers: &[Txns],
    key: usize,
    add: &dyn Fn(&mut Graph, usize, &[usize]) -> bool,
) -> bool {
    let Some(of_key) = writers.get(key) else { return !graph.has(forbidden) };
    some_permutation(*of_key, &mut Vec::new(), &|order| {
        let mut graph = graph.clone();
        add(&mut graph, key, order)
            && !graph.has(forbidden)
            && some_orders(&graph, forbidden, writers, key + 1, add)
    })
}

/// Whether some order of these transactions, after those that are ordered, passes a test.
pub(crate) fn some_permutation(
    rest: Txns,
    order: &mut Vec<usize>,
    test: &dyn Fn(&[usize]) -> bool,
) -> bool {
    if rest == 0 {
        return test(order);
    }
    members(rest).any(|next| {
        order.push(next);
        let found = some_permutation(rest & !bit(next), order, test);
        order.pop();
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Case;
    use crate::small::Small;
    use crate::{Options, axioms, volume, worlds};

    /// Whether the cycles of the one level and the axioms of the other say the same of random
    /// histories.
    #[track_caller]
    fn say_the_same(by_cycles: Level, by_axioms: Level) {
        let forbidden = forbidden_at(by_cycles).expect("stated by cycles");
        let mut satisfied = 0;
        for case in Case::first(volume() / 4) {
            for draft in [case.draft(), case.list_draft(), case.read_modify_write_draft()] {
                let history = draft.history().expect("small");
                let small = &Small::all(&history).expect("small")[0];
                let any = |level, holds: &dyn Fn(&World) -> bool| {
                    worlds::any(small, level, Options::default(), &[], holds)
                };
                let cycles = any(by_cycles, &|world| some_version_orders(world, forbidden));
                let axioms = any(by_axioms, &|world| axioms::some_commit_order(world, by_axioms));
                assert_eq!(cycles, axioms, "{case:?}\n{draft}");
                satisfied += u64::from(axioms);
            }
        }
        assert!(satisfied > 0);
    }

    #[test]
    fn read_committed_by_cycles_is_read_committed_by_commit_orders() {
        say_the_same(Level::AdyaReadCommitted, Level::AdyaReadCommitted);
    }

    #[test]
    fn repeatable_read_is_serializable_where_there_are_no_predicates() {
        say_the_same(Level::RepeatableRead, Level::Serializable);
        say_the_same(Level::StrongRepeatableRead, Level::StrictSerializable);
    }
}
