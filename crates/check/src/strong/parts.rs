//! Parts of a problem that do not depend on each other.
//!
//! A cycle never leaves a strongly connected component of the known edges together with all edges
//! that open choices may add. So each component can be solved apart, and orders of all components
//! make an order of the whole.
//!
//! Which pairs of versions are open is seen key by key, with reachability as saturation leaves it:
//! the versions of a key fall into groups, each of which comes before the next whatever is chosen.
//! Only pairs within a group may be open, and a node per group stands for all their edges.

use isolario_model::KeyId;
use rayon::prelude::*;

use super::chains::Chains;
use super::graph::Graph;
use super::problem::{Arc, Problem};
use super::reach::{Reach, Row};
use crate::graph::{components, places};
use crate::resolved::Version;

/// Keys per task.
const KEYS_PER_TASK: usize = 256;

/// A part: its nodes, and the versions whose order is open, those of a group together.
pub(crate) struct Part {
    pub(crate) nodes: Vec<u32>,
    pub(crate) groups: Vec<Vec<Version>>,
}

impl Part {
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
    graph: &Graph,
    chains: &Chains,
    reach: &Reach<'_>,
    order: &[u32],
) -> Vec<Part> {
    let mut groups = open_groups(problem, chains, reach, order);
    let arcs = possible(problem, graph, &groups);
    let whole = Graph::new(problem.nodes + groups.len(), &arcs);
    let parts = components(&whole).into_iter().map(|mut nodes| {
        let hubs = nodes.partition_point(|node| (*node as usize) < problem.nodes);
        let hubs = nodes.split_off(hubs);
        let group = |hub: u32| std::mem::take(&mut groups[hub as usize - problem.nodes]);
        Part { nodes, groups: hubs.into_iter().map(group).collect() }
    });
    parts.collect()
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
    use isolario_model::Level;
    use isolario_oracle::Draft;

    use super::*;
    use crate::Options;
    use crate::graph::topological_order;
    use crate::resolved::Resolved;
    use crate::strong::layout::Layout;
    use crate::strong::limits::Limits;
    use crate::strong::lower::lower;
    use crate::strong::solve_parts::{Solved, solve_parts};

    #[test]
    fn pairs_of_writers_that_nothing_ties_together_are_parts_of_their_own() {
        // Blind writers of x and of y, and two writers of z of which one read from the other.
        let text = "a: w x 1\nb: w x 2\nc: w y 1\nd: w y 2\ne: r x 1\nf: r y 1, w z 1\n\
                    g: r z 1, w z 2";
        let history = Draft::parse(text).unwrap().history().unwrap();
        let options = Options::default();
        let resolved = Resolved::new(&history, &options);
        let dependencies = &resolved.dependencies;
        let layout = Layout::of(Level::Serializable, history.txn_count()).unwrap();
        let problem = lower(&resolved, layout, false);
        let graph = Graph::new(problem.nodes, &problem.known);
        let order = topological_order(&graph, &[0, 1, 2, 3, 4, 5, 6]).unwrap();
        let chains = Chains::of_sessions(dependencies, &problem, 10).unwrap();
        let reach = Reach::new(&chains, &graph, &order, &|| false);
        let parts = parts(&problem, &graph, &chains, &reach, &order);
        let nodes: Vec<&[u32]> = parts.iter().map(|part| part.nodes.as_slice()).collect();
        assert_eq!(nodes, [[0, 1, 4], [2, 3, 5]]);
        assert!(parts.iter().all(|part| part.groups.len() == 1 && part.txns(&problem) == 3));
        let limits = Limits::new(&options, Level::Serializable);
        let Solved::Orders(orders) = solve_parts(&problem, &graph, &order, &parts, &limits) else {
            panic!("each part has an order");
        };
        // Whoever read the first version of a key saw the last version before its read.
        assert_eq!(orders.len(), 2);
        for (order, [first, second, reader]) in orders.iter().zip([[0, 1, 4], [2, 3, 5]]) {
            let place = |node: u32| order.iter().position(|other| *other == node).unwrap();
            assert!(place(first) < place(reader), "{order:?}");
            assert!(place(second) < place(first) || place(reader) < place(second), "{order:?}");
        }
    }
}
