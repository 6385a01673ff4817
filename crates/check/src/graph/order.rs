//! An order of all nodes that is mended where edges contradict it.

use std::ops::Range;

use rayon::prelude::*;

use super::InEdges;
use super::topo::depth_first;

/// An order of all nodes, known from both sides.
#[derive(Clone)]
pub(crate) struct Order {
    nodes: Vec<u32>,
    places: Vec<u32>,
}

/// A node that was moved forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) node: u32,
    /// One past the last place that may hold a node over which it was moved. They come after it
    /// now.
    pub(crate) end: u32,
}

impl Order {
    /// Takes an order that names each node once.
    pub(crate) fn new(nodes: Vec<u32>) -> Self {
        let places = places(&nodes);
        Order { nodes, places }
    }

    /// The nodes, first things first.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Gives up the places.
    pub(crate) fn into_nodes(self) -> Vec<u32> {
        self.nodes
    }

    /// Per node, how many come before it.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// Whether a node does not come before another.
    #[inline]
    pub(crate) fn denies(&self, (before, after): (u32, u32)) -> bool {
        self.places[before as usize] >= self.places[after as usize]
    }

    /// Makes the order topological, and tells what was moved; none if there is a cycle, and then
    /// some order is left. `contradicted` are all edges of the graph, as (before, after), that the
    /// order denies.
    ///
    /// Such an edge spans a stretch of the order. Where no stretch is, everything stays: an edge
    /// from one side to the other of such a place agrees with the order, so each stretch, with
    /// those that overlap it, can be sorted by itself. Of the graph's other edges, only those within
    /// a stretch are needed.
    pub(crate) fn mend(
        &mut self,
        graph: &(impl InEdges + Sync),
        contradicted: &[(u32, u32)],
    ) -> Option<Vec<Moved>> {
        let stretches = self.stretches(contradicted);
        let places = &self.places;
        let moved: Vec<Option<Vec<Moved>>> = cut(&mut self.nodes, &stretches)
            .into_par_iter()
            .zip(&stretches)
            .map(|(nodes, stretch)| sort(graph, nodes, places, stretch.start))
            .collect();
        for stretch in stretches {
            for (place, node) in (stretch.start as u32..).zip(&self.nodes[stretch]) {
                self.places[*node as usize] = place;
            }
        }
        Some(moved.into_iter().collect::<Option<Vec<_>>>()?.concat())
    }

    /// Per node, whether it is in one of the stretches that these edges span.
    pub(crate) fn within(&self, contradicted: &[(u32, u32)]) -> Vec<bool> {
        let mut within = vec![false; self.nodes.len()];
        for stretch in self.stretches(contradicted) {
            self.nodes[stretch].iter().for_each(|node| within[*node as usize] = true);
        }
        within
    }

    /// The stretches of the order that these edges span, in order and apart from each other. They
    /// lead back, as (before, after).
    pub(crate) fn stretches(&self, contradicted: &[(u32, u32)]) -> Vec<Range<usize>> {
        let place = |node: u32| self.places[node as usize] as usize;
        let span = |(before, after): &(u32, u32)| (place(*after), place(*before) + 1);
        joined(contradicted.iter().map(span).collect())
    }
}

/// Joins spans of an order that overlap. What comes of it is in order.
pub(crate) fn joined(mut spans: Vec<(usize, usize)>) -> Vec<Range<usize>> {
    spans.par_sort_unstable();
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (start, end) in spans {
        match stretches.last_mut() {
            Some(last) if start < last.end => last.end = last.end.max(end),
            _ => stretches.push(start..end),
        }
    }
    stretches
}

/// Per node, its place in an order of all nodes.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0u32; order.len()];
    for (place, node) in (0..).zip(order) {
        places[*node as usize] = place;
    }
    places
}

/// Cuts stretches out of an order.
pub(crate) fn cut<'n>(nodes: &'n mut [u32], stretches: &[Range<usize>]) -> Vec<&'n mut [u32]> {
    let mut cut = Vec::with_capacity(stretches.len());
    let (mut rest, mut done) = (nodes, 0);
    for stretch in stretches {
        let (_, tail) = rest.split_at_mut(stretch.start - done);
        let (nodes, tail) = tail.split_at_mut(stretch.len());
        cut.push(nodes);
        (rest, done) = (tail, stretch.end);
    }
    cut
}

/// Sorts a stretch that begins at `start`, and tells what was moved; none if there is a cycle.
/// `places` are those before.
fn sort(
    graph: &impl InEdges,
    stretch: &mut [u32],
    places: &[u32],
    start: usize,
) -> Option<Vec<Moved>> {
    // What is not in the stretch counts as done.
    let number = |node: u32| {
        let place = (places[node as usize] as usize).wrapping_sub(start);
        (place < stretch.len()).then_some(place)
    };
    let sorted = depth_first(graph, stretch, stretch.len(), number)?;
    let were = sorted.iter().map(|node| places[*node as usize]).collect();
    let mut moved = Vec::new();
    moved_forward(&sorted, were, start as u32, &mut moved);
    stretch.copy_from_slice(&sorted);
    Some(moved)
}

/// Which nodes come before others now that came before them. `were` are the places they had.
fn moved_forward(sorted: &[u32], were: Vec<u32>, start: u32, moved: &mut Vec<Moved>) {
    // The least place of all from here on: it never falls.
    let mut least = were.clone();
    for at in (1..least.len()).rev() {
        least[at - 1] = least[at - 1].min(least[at]);
    }
    for (at, (node, was)) in sorted.iter().zip(were).enumerate() {
        if least[at] < was {
            let over = at + least[at..].partition_point(|least| *least < was);
            moved.push(Moved { node: *node, end: start + over as u32 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::*;

    fn mended(order: &[u32], edges: &[(u32, u32)]) -> Option<Vec<u32>> {
        let mut order = Order::new(order.to_vec());
        let place = |node: u32| order.places()[node as usize];
        let denied: Vec<_> =
            edges.iter().filter(|(from, to)| place(*from) >= place(*to)).copied().collect();
        let graph = Rows::graph(order.nodes().len(), edges);
        order.mend(&graph, &denied).map(|_| order.into_nodes())
    }

    #[test]
    fn only_what_contradicts_is_moved() {
        assert_eq!(mended(&[0, 1, 2], &[(0, 1), (1, 2)]), Some(vec![0, 1, 2]));
        let edges = [(2, 1), (5, 4), (0, 3), (3, 5)];
        assert_eq!(mended(&[0, 1, 2, 3, 4, 5, 6], &edges), Some(vec![0, 2, 1, 3, 5, 4, 6]));
        // Stretches that overlap are one.
        let edges = [(2, 0), (4, 1), (0, 3)];
        assert_eq!(mended(&[0, 1, 2, 3, 4], &edges), Some(vec![2, 0, 4, 1, 3]));
    }

    #[test]
    fn a_cycle_cannot_be_mended() {
        assert_eq!(mended(&[0, 1, 2, 3], &[(0, 1), (1, 2), (2, 0)]), None);
        assert_eq!(mended(&[0, 1], &[(1, 1)]), None);
    }

    #[test]
    fn places_follow_the_nodes() {
        let mut order = Order::new(vec![2, 0, 1]);
        assert!(order.mend(&Rows::graph(3, &[(1, 2)]), &[(1, 2)]).is_some());
        assert_eq!(order.nodes(), [1, 2, 0]);
        assert_eq!(order.places(), [2, 0, 1]);
    }

    #[test]
    fn whatever_was_moved_over_another_is_told_with_it() {
        let edges = [(4, 1), (6, 5), (6, 2), (3, 0)];
        let mut order = Order::new((0..8).collect());
        let moved = order.mend(&Rows::graph(8, &edges), &edges).unwrap();
        assert_eq!(order.nodes(), [3, 0, 4, 1, 6, 2, 5, 7]);
        let told = |node: u32, over: u32| {
            let place = order.places()[over as usize];
            moved.iter().any(|moved| moved.node == node && place < moved.end)
        };
        for (node, over) in (0..8).flat_map(|over| (over + 1..8).map(move |node| (node, over))) {
            let was_moved = order.places()[node as usize] < order.places()[over as usize];
            assert!(told(node, over) || !was_moved, "{node} over {over}: {moved:?}");
        }
        assert_eq!(moved.iter().map(|moved| moved.node).collect::<Vec<_>>(), [3, 4, 6]);
    }
}
