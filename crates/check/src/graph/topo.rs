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
/// A depth-first search along incoming edges finishes a node after all it depends on, so the order
/// of finishing is the answer. Nodes are tried in the order of `roots`, which names each once: if
/// that is a topological order, it is the answer.
pub(crate) fn topological_order(graph: &impl InEdges, roots: &[u32]) -> Option<Vec<u32>> {
    let nodes = graph.node_count();
    let mut state = vec![State::New; nodes];
    let mut order = Vec::with_capacity(nodes);
    let mut stack: Vec<(u32, u32)> = Vec::new();
    for root in roots.iter().copied() {
        if state[root as usize] != State::New {
            continue;
        }
        state[root as usize] = State::Open;
        stack.push((root, 0));
        while let Some((node, cursor)) = stack.last_mut() {
            match graph.next_in(*node, cursor) {
                Some(before) => match state[before as usize] {
                    State::Done => {}
                    State::Open => return None,
                    State::New => {
                        state[before as usize] = State::Open;
                        stack.push((before, 0));
                    }
                },
                None => {
                    state[*node as usize] = State::Done;
                    order.push(*node);
                    stack.pop();
                }
            }
        }
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::super::test_graph::Listed;
    use super::*;

    #[test]
    fn every_node_comes_after_its_predecessors() {
        let edges = [(3, 1), (1, 0), (2, 0), (3, 2)];
        let order = topological_order(&Listed::new(4, &edges), &[0, 1, 2, 3]).unwrap();
        let place = |node: u32| order.iter().position(|n| *n == node);
        assert!(edges.iter().all(|(from, to)| place(*from) < place(*to)), "{order:?}");
        let guess = [3, 2, 1, 0];
        assert_eq!(topological_order(&Listed::new(4, &edges), &guess), Some(guess.to_vec()));
    }

    #[test]
    fn a_cycle_has_no_order_and_a_loop_is_a_cycle() {
        assert_eq!(topological_order(&Listed::new(3, &[(0, 1), (1, 2), (2, 0)]), &[0, 1, 2]), None);
        assert_eq!(topological_order(&Listed::new(1, &[(0, 0)]), &[0]), None);
    }

    #[test]
    fn a_chain_of_a_million_needs_no_stack() {
        let edges: Vec<_> = (1..1_000_000).map(|n| (n, n - 1)).collect();
        let roots: Vec<u32> = (0..1_000_000).collect();
        let order = topological_order(&Listed::new(1_000_000, &edges), &roots).unwrap();
        assert_eq!(order.first(), Some(&999_999));
    }
}
