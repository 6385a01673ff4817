//! Parts of a problem that do not depend on each other.
//!
//! A cycle never leaves a strongly connected component of the known edges together with all edges
//! that open choices may add. So each component can be solved apart, and orders of all components
//! make an order of the whole.
//!
//! Which pairs of versions are open is seen key by key, with reachability as saturation leaves it:
//! the versions of a key fall into groups, each of which comes before the next whatever is chosen.
//! Only pairs within a group may be open, and a node per group stands for all their edges.
//!
//! *What that is worth.* Segments decide most histories that have parts. Parts pay where the order that a
//! history suggests is of no use, that is without times, and the level is weaker than the guess: prefix, of
//! a store that gives no more, with groups of keys in use one after the other. There a search over all
//! parts takes 1.2 to 2 times as long; elsewhere, as long.
//!
//! All edges that the source of a read may add lead to the reader or from it. One node per read
//! ties the reader to its candidates, so that they are in one part: which of them it saw, and whether a
//! transaction is there that some of them may have seen, is then asked in that part alone. Whatever
//! overwrites a candidate comes after it, so that no further node is needed for the edges that a source
//! and an order of versions add together.

use isolario_model::KeyId;
use rayon::prelude::*;

use super::chains::Chains;
use super::graph::Graph;
use super::problem::{Arc, Problem};
use super::pruned::Pruned;
use super::reach::{Reach, Row};
use crate::graph::{components, places};
use crate::resolved::Version;

/// Keys per task.
const KEYS_PER_TASK: usize = 256;

/// A part.
pub(crate) struct Part {
    pub(crate) nodes: Vec<u32>,
    /// The versions whose order is open, those of a group together; of a key with open reads, all
    /// versions together.
    pub(crate) groups: Vec<Vec<Version>>,
    /// The open reads, each with the place of its key's versions among the groups.
    pub(crate) reads: Vec<(u32, usize)>,
}

impl Part {
    fn new(
        problem: &Problem,
        nodes: Vec<u32>,
        mut groups: Vec<Vec<Version>>,
        reads: impl Iterator<Item = u32> + Clone,
    ) -> Self {
        let (layout, versions) = (problem.layout, &problem.versions);
        let key_of = |read: u32| problem.sources.read(read).key;
        let mut keys: Vec<KeyId> = reads.clone().map(key_of).collect();
        keys.sort_unstable();
        keys.dedup();
        groups.retain(|group| keys.binary_search(&versions.key(group[0])).is_err());
        let first = groups.len();
        let is_inside = |version: &Version| {
            nodes.binary_search(&layout.commit(versions.writer(*version))).is_ok()
        };
        groups.extend(keys.iter().map(|key| versions.of(*key).filter(is_inside).collect()));
        let place = |read: u32| first + keys.partition_point(|key| *key < key_of(read));
        let reads = reads.map(|read| (read, place(read))).collect();
        Part { nodes, groups, reads }
    }

    /// How many transactions it is about.
    pub(crate) fn txns(&self, problem: &Problem) -> usize {
        let mut txns: Vec<_> =
            self.nodes.iter().filter_map(|node| problem.layout.txn(*node)).collect();
        txns.dedup();
        txns.len()
    }
}

/// The parts of what saturation left open; `order` is a topological order.
pub(crate) fn parts(
    problem: &Problem,
    pruned: &Pruned,
    (graph, order): (&Graph, &[u32]),
    chains: &Chains,
    reach: &Reach<'_>,
) -> Vec<Part> {
    let mut groups = open_groups(problem, chains, reach, order);
    let reads = open_reads(problem, pruned, &groups);
    let mut arcs = possible(problem, graph, &groups);
    let first_read = (problem.nodes + groups.len()) as u32;
    tie_sources(problem, pruned, (first_read..).zip(reads.iter().copied()), &mut arcs);
    let whole = Graph::new(first_read as usize + reads.len(), &arcs);
    let parts = components(&whole).into_iter().map(|mut nodes| {
        let mut hubs = nodes.split_off(nodes.partition_point(|n| (*n as usize) < problem.nodes));
        let of_reads = hubs.split_off(hubs.partition_point(|hub| *hub < first_read));
        let group = |hub: u32| std::mem::take(&mut groups[hub as usize - problem.nodes]);
        let groups = hubs.into_iter().map(group).collect();
        let reads = of_reads.iter().map(|hub| reads[(hub - first_read) as usize]);
        Part::new(problem, nodes, groups, reads)
    });
    parts.collect()
}

/// The reads that may add edges: those whose source is open, and those that are known to have seen a
/// version whose order is.
fn open_reads(problem: &Problem, pruned: &Pruned, groups: &[Vec<Version>]) -> Vec<u32> {
    let sources = &problem.sources;
    let mut open: Vec<Version> = groups.iter().flatten().copied().collect();
    open.sort_unstable();
    let is_open = |read: &u32| match pruned.source(*read) {
        Some((source, _)) => {
            sources.version(source).is_some_and(|version| open.binary_search(&version).is_ok())
        }
        // Nothing is asked of those who are not there.
        None => sources.read(*read).if_there.is_none_or(|n| pruned.shows_not_there(n).is_none()),
    };
    (0..sources.len() as u32).filter(is_open).collect()
}

/// Edges through one node per read wherever its source may add some; and those from whoever may have read
/// an initial version.
fn tie_sources(
    problem: &Problem,
    pruned: &Pruned,
    reads: impl Iterator<Item = (u32, u32)>,
    arcs: &mut Vec<Arc>,
) {
    let (layout, sources) = (problem.layout, &problem.sources);
    for (hub, read) in reads {
        let mut tied = vec![layout.start(sources.read(read).reader)];
        for candidate in pruned.left(sources, read) {
            let Some(version) = sources.version(candidate) else {
                arcs.extend(problem.source_arcs(candidate));
                continue;
            };
            let writer = problem.versions.writer(version);
            tied.extend([layout.commit(writer), layout.overwrite(writer)]);
            // What it read in turn is asked if it is there.
            tied.extend(sources.writer_if_there(candidate).map(|_| layout.start(writer)));
        }
        arcs.extend(tied.into_iter().flat_map(|node| [(node, hub), (hub, node)]));
    }
}

/// The known edges, and edges through one node per group wherever its choices may add some.
fn possible(problem: &Problem, graph: &Graph, groups: &[Vec<Version>]) -> Vec<Arc> {
    let (layout, versions) = (problem.layout, &problem.versions);
    let nodes = 0..problem.nodes as u32;
    let known = nodes.flat_map(|from| graph.after(from).iter().map(move |to| (from, *to)));
    let mut arcs: Vec<Arc> = known.collect();
    for (hub, group) in (problem.nodes as u32..).zip(groups) {
        for version in group {
            let writer = versions.writer(*version);
            let readers = versions.readers(*version).iter().map(|reader| layout.start(reader.txn));
            let touched = [layout.commit(writer), layout.overwrite(writer)];
            arcs.extend(touched.into_iter().chain(readers).flat_map(|n| [(n, hub), (hub, n)]));
        }
    }
    arcs
}

/// The groups of several versions, by key.
fn open_groups(
    problem: &Problem,
    chains: &Chains,
    reach: &Reach<'_>,
    order: &[u32],
) -> Vec<Vec<Version>> {
    let rank = places(order);
    let count = problem.versions.key_count();
    let starts: Vec<usize> = (0..count).step_by(KEYS_PER_TASK).collect();
    let found: Vec<Vec<Vec<Version>>> = starts
        .into_par_iter()
        .map(|start| {
            let mut finder = Finder { problem, chains, reach, rank: &rank, found: Vec::new() };
            let end = (start + KEYS_PER_TASK).min(count);
            (start..end).for_each(|key| finder.look_at(KeyId::at(key)));
            finder.found
        })
        .collect();
    found.into_iter().flatten().collect()
}

struct Finder<'a> {
    problem: &'a Problem,
    chains: &'a Chains,
    reach: &'a Reach<'a>,
    rank: &'a [u32],
    found: Vec<Vec<Version>>,
}

/// A version of the key in a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    chain: u32,
    position: u32,
    /// Its place among the versions of the key.
    place: usize,
}

impl Finder<'_> {
    fn look_at(&mut self, key: KeyId) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let commit = |version: Version| layout.commit(versions.writer(version));
        let mut versions: Vec<Version> = versions.of(key).collect();
        versions.sort_unstable_by_key(|version| self.rank[commit(*version) as usize]);
        let member = |(place, version): (usize, &Version)| {
            let (chain, position) = self.chains.at(commit(*version));
            Member { chain, position, place }
        };
        let mut members: Vec<Member> = versions.iter().enumerate().map(member).collect();
        members.sort_unstable();
        // Everything before a boundary comes before everything after it.
        let (mut end, mut boundary) = (versions.len(), usize::MAX);
        for at in (0..versions.len()).rev() {
            let row = self.reach.row(commit(versions[at]));
            boundary = boundary.min(first_unreached(&members, row));
            if boundary >= at {
                if end - at > 1 {
                    let mut group = versions[at..end].to_vec();
                    group.sort_unstable();
                    self.found.push(group);
                }
                end = at;
            }
        }
    }
}

/// The first version that does not come before the one whose row it is. Chains follow the order of
/// the versions, so that is the first in one of them.
fn first_unreached(members: &[Member], row: Row<'_>) -> usize {
    members
        .chunk_by(|a, b| a.chain == b.chain)
        .filter_map(|chain| {
            let reached = row.reached(chain[0].chain);
            chain.get(chain.partition_point(|member| member.position < reached))
        })
        .map(|member| member.place)
        .min()
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use crate::strong::chains::session_chains;
    use isolario_model::Level;
    use isolario_oracle::Draft;

    use super::*;
    use crate::CheckOptions;
    use crate::graph::topological_order;
    use crate::resolved::Resolved;
    use crate::strong::layout::Layout;
    use crate::strong::limits::Limits;
    use crate::strong::lower::lower;
    use crate::strong::solve_parts::{Solved, solve_parts};

    /// The parts of a history at serializability, and their orders.
    fn parts_of(text: &str) -> (Vec<Part>, Vec<Vec<u32>>) {
        let history = Draft::parse(text).unwrap().history().unwrap();
        let options = CheckOptions::default();
        let resolved = Resolved::new(&history, &options);
        let layout = Layout::of(Level::Serializable, history.txn_count()).unwrap();
        let problem = lower(&resolved, layout, false);
        let graph = Graph::new(problem.nodes, &problem.known);
        let guess: Vec<u32> = (0..problem.nodes as u32).collect();
        let order = topological_order(&graph, &guess).unwrap();
        let chains = session_chains(&resolved.dependencies, &problem);
        let reach = Reach::new(&chains, &graph, &order, &|| false);
        let pruned = Pruned::new(&problem);
        let parts = parts(&problem, &pruned, (&graph, &order), &chains, &reach);
        let limits = Limits::new(&options, Level::Serializable, std::time::Instant::now());
        let Solved::Orders(orders) =
            solve_parts(&problem, &pruned, (&graph, &order), &parts, &limits)
        else {
            panic!("each part has an order");
        };
        (parts, orders)
    }

    fn nodes(parts: &[Part]) -> Vec<&[u32]> {
        parts.iter().map(|part| part.nodes.as_slice()).collect()
    }

    #[test]
    fn pairs_of_writers_that_nothing_ties_together_are_parts_of_their_own() {
        // Blind writers of x and of y, and two writers of z of which one read from the other.
        let (parts, orders) = parts_of(
            "a: w x 1\nb: w x 2\nc: w y 1\nd: w y 2\ne: r x 1\nf: r y 1, w z 1\n\
             g: r z 1, w z 2",
        );
        assert_eq!(nodes(&parts), [[0, 1, 4], [2, 3, 5]]);
        assert!(parts.iter().all(|part| part.groups.len() == 1 && part.reads.is_empty()));
        // Whoever read the first version of a key saw the last version before its read.
        assert_eq!(orders.len(), 2);
        for (order, [first, second, reader]) in orders.iter().zip([[0, 1, 4], [2, 3, 5]]) {
            let place = |node: u32| order.iter().position(|other| *other == node).unwrap();
            assert!(place(first) < place(reader), "{order:?}");
            assert!(place(second) < place(first) || place(reader) < place(second), "{order:?}");
        }
    }

    #[test]
    fn reads_with_candidates_that_nothing_ties_together_are_parts_of_their_own() {
        // Two wrote the x that one read, two the y that another read. The z that the last one read was
        // written once, and then something else.
        let (parts, orders) = parts_of(
            "a: w x 1\nb: w x 1\nc: w y 1\nd: w y 1\ne: r x 1\nf: r y 1\n\
             g: w z 1\nh: w z 2\ni: r z 1",
        );
        assert_eq!(nodes(&parts), [[0, 1, 4], [2, 3, 5], [6, 7, 8]]);
        let reads: Vec<&[(u32, usize)]> = parts.iter().map(|part| part.reads.as_slice()).collect();
        assert_eq!(reads, [&[(0, 0)][..], &[(1, 0)], &[]]);
        for (order, reader) in orders.iter().zip([4, 5]) {
            assert_ne!(order[0], reader, "{order:?}");
        }
    }

    #[test]
    fn the_reads_of_whoever_may_not_be_there_are_in_the_part_of_those_who_may_have_seen_it() {
        // The last one read what b wrote if it is there, and then b read from one of two.
        let (parts, _) = parts_of(
            "a: w x 1\nb unknown: r y 1, w x 1\nc: w y 1\nd: w y 1\ne: r x 1\n\
             f: w z 1\ng: w z 1\nh: r z 1",
        );
        assert_eq!(nodes(&parts), [&[0, 1, 2, 3, 4][..], &[5, 6, 7]]);
        assert_eq!(parts[0].reads.len(), 2);
    }
}
