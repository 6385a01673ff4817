//! Strongly connected components, by Tarjan's algorithm without recursion.

use super::InEdges;

const NEW: u32 = u32::MAX;

/// The components that hold a cycle: those of several nodes, and single nodes with a loop. Each is
/// sorted, and they come in order of their least node.
pub(crate) fn components(graph: &impl InEdges) -> Vec<Vec<u32>> {
    let mut search = Search::new(graph.node_count());
    for root in 0..graph.node_count() as u32 {
        if search.number[root as usize] == NEW {
            search.explore(graph, root);
        }
    }
    search.found.sort_unstable_by_key(|component| component[0]);
    search.found
}

struct Search {
    /// The order in which nodes were met.
    number: Vec<u32>,
    /// The least number known to be reachable from the node within its component.
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<u32>,
    next: u32,
    found: Vec<Vec<u32>>,
}

impl Search {
    fn new(nodes: usize) -> Self {
        Search {
            number: vec![NEW; nodes],
            low: vec![NEW; nodes],
            on_stack: vec![false; nodes],
            stack: Vec::new(),
            next: 0,
            found: Vec::new(),
        }
    }

    fn open(&mut self, node: u32) {
        self.number[node as usize] = self.next;
        self.low[node as usize] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node as usize] = true;
    }

    fn explore(&mut self, graph: &impl InEdges, root: u32) {
        self.open(root);
        let mut path: Vec<(u32, u32)> = vec![(root, 0)];
        while let Some((node, cursor)) = path.last_mut() {
            let node = *node;
            match graph.next_in(node, cursor) {
                Some(next) if self.number[next as usize] == NEW => {
                    self.open(next);
                    path.push((next, 0));
                }
                Some(next) => {
                    if self.on_stack[next as usize] {
                        let reached = self.number[next as usize];
                        self.low[node as usize] = self.low[node as usize].min(reached);
                    }
                }
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        let reached = self.low[node as usize];
                        self.low[*parent as usize] = self.low[*parent as usize].min(reached);
                    }
                    if self.low[node as usize] == self.number[node as usize] {
                        self.close(graph, node);
                    }
                }
            }
        }
    }

    /// Takes the component that `root` was the first of off the stack.
    fn close(&mut self, graph: &impl InEdges, root: u32) {
        let mut component = Vec::new();
        while let Some(node) = self.stack.pop() {
            self.on_stack[node as usize] = false;
            component.push(node);
            if node == root {
                break;
            }
        }
        let is_loop = || graph.predecessors(root).any(|before| before == root);
        if component.len() > 1 || is_loop() {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::*;

    #[test]
    fn only_components_with_a_cycle_are_reported() {
        let edges = [(0, 1), (1, 0), (1, 2), (2, 3), (4, 5), (5, 6), (6, 4), (7, 7)];
        let found = components(&Rows::graph(9, &edges));
        assert_eq!(found, [vec![0, 1], vec![4, 5, 6], vec![7]]);
    }

    #[test]
    fn a_cycle_of_a_million_needs_no_stack() {
        let edges: Vec<_> = (0..1_000_000).map(|n| (n, (n + 1) % 1_000_000)).collect();
        assert_eq!(components(&Rows::graph(1_000_000, &edges))[0].len(), 1_000_000);
    }
}
