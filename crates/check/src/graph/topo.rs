//! Topological order.

use super::InEdges;

/// A node's place in the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// An order in which every node comes after its predecessors; none if there is a cycle.
///
/// Nodes are tried in the order of `roots`, which names each once: if that is a topological order,
/// it is the answer.
pub(crate) fn topological_order(graph: &impl InEdges, roots: &[u32]) -> Option<Vec<u32>> {
    depth_first(graph, roots, graph.node_count(), |node| Some(node as usize))
}

/// As [`topological_order`], of the nodes that have a `number` below `count`: those that `roots`
/// names.
///
/// A depth-first search along incoming edges finishes a node after all it depends on, so the order
/// of finishing is the answer.
pub(super) fn depth_first(
    graph: &impl InEdges,
    roots: &[u32],
    count: usize,
    number: impl Fn(u32) -> Option<usize>,
) -> Option<Vec<u32>> {
    let mut state = vec![State::New; count];
    let mut order = Vec::with_capacity(roots.len());
    let mut stack: Vec<(u32, usize, u32)> = Vec::new();
    let roots = roots.iter().filter_map(|root| Some((*root, number(*root)?)));
    for (root, at) in roots {
        if state[at] != State::New {
            continue;
        }
        state[at] = State::Open;
        stack.push((root, at, 0));
        while let Some((node, at, cursor)) = stack.last_mut() {
            let Some(before) = graph.next_in(*node, cursor) else {
                state[*at] = State::Done;
                order.push(*node);
                stack.pop();
                continue;
            };
            let Some(at) = number(before) else { continue };
            match state[at] {
                State::Done => {}
                State::Open => return None,
                State::New => {
                    state[at] = State::Open;
                    stack.push((before, at, 0));
                }
            }
        }
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::*;

    #[test]
    fn every_node_comes_after_its_predecessors() {
        let edges = [(3, 1), (1, 0), (2, 0), (3, 2)];
        let order = topological_order(&Rows::graph(4, &edges), &[0, 1, 2, 3]).unwrap();
        let place = |node: u32| order.iter().position(|n| *n == node);
        assert!(edges.iter().all(|(from, to)| place(*from) < place(*to)), "{order:?}");
        let guess = [3, 2, 1, 0];
        assert_eq!(topological_order(&Rows::graph(4, &edges), &guess), Some(guess.to_vec()));
    }

    #[test]
    fn a_cycle_has_no_order_and_a_loop_is_a_cycle() {
        assert_eq!(topological_order(&Rows::graph(3, &[(0, 1), (1, 2), (2, 0)]), &[0, 1, 2]), None);
        assert_eq!(topological_order(&Rows::graph(1, &[(0, 0)]), &[0]), None);
    }

    #[test]
    fn a_chain_of_a_million_needs_no_stack() {
        let edges: Vec<_> = (1..1_000_000).map(|n| (n, n - 1)).collect();
        let roots: Vec<u32> = (0..1_000_000).collect();
        let order = topological_order(&Rows::graph(1_000_000, &edges), &roots).unwrap();
        assert_eq!(order.first(), Some(&999_999));
    }
}
