//! A shortest cycle of a strongly connected component.

use rustc_hash::FxHashMap;

use super::InEdges;

/// Components up to this size are searched from every node, which makes the answer exact.
const EXACT_BELOW: usize = 10_000;

/// How many edges may be looked at in larger ones, all searches together.
const BUDGET: usize = 50_000_000;

/// A shortest cycle through the nodes of a component (sorted), in the direction of the edges,
/// beginning with its least node. In components of 10,000 nodes and more it is the shortest that a
/// bounded search finds.
pub(crate) fn shortest_cycle(graph: &impl InEdges, component: &[u32]) -> Vec<u32> {
    let inside = Subgraph::new(graph, component);
    let mut search = Bfs::new(component.len());
    let mut best: Option<Vec<u32>> = None;
    for root in 0..component.len() as u32 {
        let limit = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(cycle) = search.cycle_through(&inside, root, limit) {
            best = Some(cycle);
        }
        // No cycle is shorter than a loop.
        let shortest = best.as_ref().is_some_and(|cycle| cycle.len() == 1);
        if shortest || (component.len() >= EXACT_BELOW && search.edges_seen > BUDGET) {
            break;
        }
    }
    let cycle: Vec<u32> =
        best.unwrap_or_default().iter().map(|node| component[*node as usize]).collect();
    rotate_to_least(cycle)
}

fn rotate_to_least(mut cycle: Vec<u32>) -> Vec<u32> {
    let least = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
    cycle.rotate_left(least);
    cycle
}

/// The component with nodes numbered from zero: incoming edges in compressed rows.
struct Subgraph {
    ends: Vec<u32>,
    sources: Vec<u32>,
}

impl Subgraph {
    fn new(graph: &impl InEdges, component: &[u32]) -> Self {
        let number: FxHashMap<u32, u32> =
            component.iter().enumerate().map(|(at, node)| (*node, at as u32)).collect();
        let (mut ends, mut sources) = (Vec::new(), Vec::new());
        for node in component {
            let first = sources.len();
            sources.extend(graph.predecessors(*node).filter_map(|before| number.get(&before)));
            sources[first..].sort_unstable();
            let mut kept = first;
            for at in first..sources.len() {
                if kept == first || sources[kept - 1] != sources[at] {
                    sources[kept] = sources[at];
                    kept += 1;
                }
            }
            sources.truncate(kept);
            ends.push(sources.len() as u32);
        }
        Subgraph { ends, sources }
    }

    fn edges_into(&self, node: u32) -> &[u32] {
        let start = if node == 0 { 0 } else { self.ends[node as usize - 1] as usize };
        &self.sources[start..self.ends[node as usize] as usize]
    }
}

/// Breadth-first search against the direction of the edges.
struct Bfs {
    /// The next node on the way to the root, valid where the stamp is the current one.
    toward_root: Vec<u32>,
    stamp: Vec<u32>,
    round: u32,
    queue: Vec<u32>,
    edges_seen: usize,
}

impl Bfs {
    fn new(nodes: usize) -> Self {
        Bfs {
            toward_root: vec![0; nodes],
            stamp: vec![0; nodes],
            round: 0,
            queue: Vec::new(),
            edges_seen: 0,
        }
    }

    /// The shortest cycle through `root`, if it is shorter than `limit`.
    fn cycle_through(&mut self, graph: &Subgraph, root: u32, limit: usize) -> Option<Vec<u32>> {
        self.round += 1;
        self.queue.clear();
        self.queue.push(root);
        let (mut at, mut depth, mut depth_ends) = (0, 1, 1);
        while at < self.queue.len() && depth < limit {
            let node = self.queue[at];
            at += 1;
            for before in graph.edges_into(node) {
                self.edges_seen += 1;
                if *before == root {
                    return Some(self.path_from(node, root));
                }
                if self.stamp[*before as usize] != self.round {
                    self.stamp[*before as usize] = self.round;
                    self.toward_root[*before as usize] = node;
                    self.queue.push(*before);
                }
            }
            if at == depth_ends {
                depth += 1;
                depth_ends = self.queue.len();
            }
        }
        None
    }

    /// The cycle that enters `node` from `root` and goes on along the tree back to it.
    fn path_from(&self, node: u32, root: u32) -> Vec<u32> {
        let mut cycle = vec![root];
        let mut node = node;
        while node != root {
            cycle.push(node);
            node = self.toward_root[node as usize];
        }
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_graph::Listed;
    use super::*;

    #[test]
    fn the_shortest_of_several_cycles_is_found_in_edge_direction() {
        // 0→1→2→3→0 and the short cut 3→5→3.
        let graph = Listed::new(6, &[(0, 1), (1, 2), (2, 3), (3, 0), (3, 5), (5, 3)]);
        assert_eq!(shortest_cycle(&graph, &[0, 1, 2, 3, 5]), [3, 5]);
        let triangle = Listed::new(3, &[(0, 2), (2, 1), (1, 0)]);
        assert_eq!(shortest_cycle(&triangle, &[0, 1, 2]), [0, 2, 1]);
    }

    #[test]
    fn a_loop_is_the_shortest_cycle_of_all() {
        let graph = Listed::new(2, &[(0, 1), (1, 0), (1, 1)]);
        assert_eq!(shortest_cycle(&graph, &[0, 1]), [1]);
    }
}
