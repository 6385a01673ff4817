//! A shortest cycle of a strongly connected component.

use super::InEdges;
use super::subgraph::{Search, Subgraph};

/// Components up to this size are searched from every node, which makes the answer exact.
pub(crate) const EXACT_BELOW: usize = 10_000;

/// How many edges may be looked at in larger ones, all searches together.
pub(crate) const BUDGET: usize = 50_000_000;

/// A shortest cycle through the nodes of a component (sorted), in the direction of the edges,
/// beginning with its least node. In components of 10,000 nodes and more it is the shortest that a
/// bounded search finds.
pub(crate) fn shortest_cycle(graph: &impl InEdges, component: &[u32]) -> Vec<u32> {
    shortest_closed(graph, component, &Closing { closes: &|_, _| false, rank: &|_| 0 })
}

/// What else closes a cycle, and which of several is to be preferred.
pub(crate) struct Closing<'c> {
    /// Whether something that is not an edge of the graph leads from the first node to the second.
    pub(crate) closes: &'c dyn Fn(u32, u32) -> bool,
    /// Of cycles of the same length, the one with the least rank is the answer.
    pub(crate) rank: &'c dyn Fn(&[u32]) -> u32,
}

/// As [`shortest_cycle`], of cycles with at most one step that only `closing` allows.
pub(crate) fn shortest_closed(
    graph: &impl InEdges,
    component: &[u32],
    closing: &Closing<'_>,
) -> Vec<u32> {
    let inside = Subgraph::new(graph, component);
    let mut search = Search::new(&inside);
    // Its length, its rank, and the cycle.
    let mut best: Option<(usize, u32, Vec<u32>)> = None;
    for root in 0..component.len() as u32 {
        let limit = best.as_ref().map_or(usize::MAX, |(length, ..)| *length);
        let target = inside.node(root);
        let back = search.path_to(root, limit, |node| node == root).map(|mut path| {
            path.pop();
            path
        });
        let closes = |node| node != root && (closing.closes)(target, inside.node(node));
        let closed = search.path_to(root, limit - 1, closes);
        for path in [back, closed].into_iter().flatten() {
            let cycle: Vec<u32> = path.into_iter().map(|number| inside.node(number)).collect();
            let rank = (closing.rank)(&cycle);
            if best.as_ref().is_none_or(|best| (cycle.len(), rank) < (best.0, best.1)) {
                best = Some((cycle.len(), rank, cycle));
            }
        }
        // No cycle is shorter than a loop. Without any, the search goes on beyond its budget: what is
        // reported is a cycle, whatever it costs.
        let is_over = component.len() >= EXACT_BELOW && search.edges_seen > BUDGET;
        if best.as_ref().is_some_and(|(length, ..)| *length == 1 || is_over) {
            break;
        }
    }
    rotate_to_least(best.map(|(.., cycle)| cycle).unwrap_or_default())
}

fn rotate_to_least(mut cycle: Vec<u32>) -> Vec<u32> {
    let least = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
    cycle.rotate_left(least);
    cycle
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::*;

    #[test]
    fn the_shortest_of_several_cycles_is_found_in_edge_direction() {
        // 0→1→2→3→0 and the short cut 3→5→3.
        let graph = Rows::graph(6, &[(0, 1), (1, 2), (2, 3), (3, 0), (3, 5), (5, 3)]);
        assert_eq!(shortest_cycle(&graph, &[0, 1, 2, 3, 5]), [3, 5]);
        let triangle = Rows::graph(3, &[(0, 2), (2, 1), (1, 0)]);
        assert_eq!(shortest_cycle(&triangle, &[0, 1, 2]), [0, 2, 1]);
    }

    #[test]
    fn a_loop_is_the_shortest_cycle_of_all() {
        let graph = Rows::graph(2, &[(0, 1), (1, 0), (1, 1)]);
        assert_eq!(shortest_cycle(&graph, &[0, 1]), [1]);
    }
}
