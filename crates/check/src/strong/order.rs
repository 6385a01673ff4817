//! A topological order that is kept while edges come and go.
//!
//! Pearce and Kelly, *A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs* (2006): an
//! edge against the order moves only the nodes between its ends. Edges are taken back last first;
//! an order that was right with them is right without.

use super::graph::Graph;
use super::problem::Arc;
use super::search::Label;
use crate::graph::places;

/// No edge follows in a list.
const END: u32 = u32::MAX;

/// An edge that was added, and why.
#[derive(Clone, Copy)]
struct Added {
    arc: Arc,
    label: Label,
    next_out: u32,
    next_in: u32,
}

/// An edge that was added, with its label.
pub(crate) type Chosen = (Arc, Label);

/// How a search reached a node: along how many added edges, the last edge and its label, and
/// whether there is no better way.
type Reached = (u32, (Arc, Option<Label>), bool);

/// The edges of a graph and more, in topological order.
pub(crate) struct Order<'g> {
    graph: &'g Graph,
    /// The nodes in order, and the place of each.
    nodes: Vec<u32>,
    rank: Vec<u32>,
    added: Vec<Added>,
    first_out: Vec<u32>,
    first_in: Vec<u32>,
    /// Nodes that moved since they were last asked for; may hold a node more than once.
    moved: Vec<u32>,
    /// Which search met a node last.
    met: Vec<u32>,
    searches: u32,
    after: Vec<u32>,
    before: Vec<u32>,
    places: Vec<u32>,
}

impl<'g> Order<'g> {
    /// Begins with a topological order of the graph.
    pub(crate) fn new(graph: &'g Graph, nodes: Vec<u32>) -> Self {
        let rank = places(&nodes);
        let count = nodes.len();
        Order {
            graph,
            nodes,
            rank,
            added: Vec::new(),
            first_out: vec![END; count],
            first_in: vec![END; count],
            moved: Vec::new(),
            met: vec![0; count],
            searches: 0,
            after: Vec::new(),
            before: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The nodes in order.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The place of a node.
    #[inline]
    pub(crate) fn rank(&self, node: u32) -> u32 {
        self.rank[node as usize]
    }

    /// The nodes that moved since this was last asked.
    pub(crate) fn take_moved(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.moved)
    }

    /// How many edges were added.
    pub(crate) fn len(&self) -> usize {
        self.added.len()
    }

    /// Takes back the edges added last.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.added.len() > len {
            if let Some(Added { arc: (from, to), next_out, next_in, .. }) = self.added.pop() {
                self.first_out[from as usize] = next_out;
                self.first_in[to as usize] = next_in;
            }
        }
    }

    /// Adds an edge, unless it closes a cycle: then nothing changes.
    pub(crate) fn insert(&mut self, arc: Arc, label: Label) -> bool {
        let (from, to) = arc;
        if self.rank(from) >= self.rank(to) {
            if from == to || !self.search_forward(to, from) {
                return false;
            }
            self.search_backward(from, self.rank(to));
            self.reorder();
        }
        let number = self.added.len() as u32;
        self.added.push(Added {
            arc,
            label,
            next_out: self.first_out[from as usize],
            next_in: self.first_in[to as usize],
        });
        self.first_out[from as usize] = number;
        self.first_in[to as usize] = number;
        true
    }

    /// Collects what is reachable from `start` up to the place of `end`. False if `end` itself is.
    fn search_forward(&mut self, start: u32, end: u32) -> bool {
        self.searches += 1;
        let limit = self.rank(end);
        self.after.clear();
        self.after.push(start);
        self.met[start as usize] = self.searches;
        let mut at = 0;
        while at < self.after.len() {
            let node = self.after[at];
            at += 1;
            let mut found = false;
            let (rank, met, after, searches) =
                (&self.rank, &mut self.met, &mut self.after, self.searches);
            let mut visit = |next: u32| {
                found |= next == end;
                if rank[next as usize] < limit && met[next as usize] != searches {
                    met[next as usize] = searches;
                    after.push(next);
                }
            };
            self.graph.after(node).iter().for_each(|next| visit(*next));
            let mut edge = self.first_out[node as usize];
            while edge != END {
                let Added { arc, next_out, .. } = self.added[edge as usize];
                visit(arc.1);
                edge = next_out;
            }
            if found {
                return false;
            }
        }
        true
    }

    /// Collects what reaches `start` from a place on.
    fn search_backward(&mut self, start: u32, limit: u32) {
        self.searches += 1;
        self.before.clear();
        self.before.push(start);
        self.met[start as usize] = self.searches;
        let mut at = 0;
        while at < self.before.len() {
            let node = self.before[at];
            at += 1;
            let (rank, met, before, searches) =
                (&self.rank, &mut self.met, &mut self.before, self.searches);
            let mut visit = |next: u32| {
                if rank[next as usize] > limit && met[next as usize] != searches {
                    met[next as usize] = searches;
                    before.push(next);
                }
            };
            self.graph.before(node).iter().for_each(|next| visit(*next));
            let mut edge = self.first_in[node as usize];
            while edge != END {
                let Added { arc, next_in, .. } = self.added[edge as usize];
                visit(arc.0);
                edge = next_in;
            }
        }
    }

    /// Gives the places of all collected nodes to those before and then to those after, each in
    /// the order they had.
    fn reorder(&mut self) {
        let Order { rank, nodes, after, before, places, moved, .. } = self;
        before.sort_unstable_by_key(|node| rank[*node as usize]);
        after.sort_unstable_by_key(|node| rank[*node as usize]);
        places.clear();
        places.extend(before.iter().chain(after.iter()).map(|node| rank[*node as usize]));
        places.sort_unstable();
        for (node, place) in before.iter().chain(after.iter()).zip(places.iter()) {
            rank[*node as usize] = *place;
            nodes[*place as usize] = *node;
        }
        moved.extend(before.iter().chain(after.iter()));
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> usize {
        let per_node = (self.nodes.len() * 5 + self.moved.capacity()) * size_of::<u32>();
        per_node + self.added.capacity() * size_of::<Added>() + self.graph.bytes()
    }

    /// The added edges of a path between two nodes with as few of them as possible. Called where an
    /// edge from `end` to `start` was refused.
    pub(crate) fn path(&self, start: u32, end: u32) -> Vec<Chosen> {
        use std::collections::VecDeque;

        use rustc_hash::FxHashMap;

        let limit = self.rank(end);
        let mut reached: FxHashMap<u32, Reached> = FxHashMap::default();
        reached.insert(start, (0, ((start, start), None), false));
        let mut queue: VecDeque<(u32, u32)> = VecDeque::from([(start, 0)]);
        while let Some((node, cost)) = queue.pop_front() {
            match reached.get_mut(&node) {
                Some((_, _, done)) if !*done => *done = true,
                _ => continue,
            }
            if node == end {
                break;
            }
            let mut visit = |next: u32, label: Option<Label>| {
                let total = cost + u32::from(label.is_some());
                let better = reached.get(&next).is_none_or(|(other, ..)| total < *other);
                if self.rank(next) <= limit && better {
                    reached.insert(next, (total, ((node, next), label), false));
                    if label.is_some() {
                        queue.push_back((next, total));
                    } else {
                        queue.push_front((next, total));
                    }
                }
            };
            self.graph.after(node).iter().for_each(|next| visit(*next, None));
            let mut edge = self.first_out[node as usize];
            while edge != END {
                let Added { arc, label, next_out, .. } = self.added[edge as usize];
                visit(arc.1, Some(label));
                edge = next_out;
            }
        }
        let mut path = Vec::new();
        let mut node = end;
        while node != start {
            let Some((_, (arc, label), _)) = reached.get(&node) else { return Vec::new() };
            path.extend(label.map(|label| (*arc, label)));
            node = arc.0;
        }
        path.reverse();
        path
    }
}
