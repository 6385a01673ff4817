//! What transactions read before they wrote, held against the order that is stated.
//!
//! That a transaction read a version and then wrote the key suggests that it wrote the later version. It is
//! no more than that where reads may be dirty: Adya's G0 is about the order in which versions were
//! installed, and whoever states that order is believed. Elsewhere a read is a dependency by itself, and
//! both together are a cycle.

use isolario_model::{History, KeyId, Outcome, StatedOrder, TxnId};
use rustc_hash::FxHashSet;

use crate::graph::Rows;
use crate::resolved::{KnownBy, VersionEdge, writes_key};

/// Drops the edges of read-modify-writes of which statements imply the reverse, and says whether there are
/// any. Statements about a key that contradict each other imply nothing.
pub(super) fn drop_contradicted(
    history: &History,
    edges: &mut Vec<VersionEdge>,
    statements: &[StatedOrder],
) -> bool {
    let stated = Statements::new(history, statements);
    let before = edges.len();
    edges.retain(|edge| {
        let is_inferred = matches!(edge.known, KnownBy::ReadModifyWrite { .. });
        !(is_inferred && stated.imply(edge.key, edge.after, edge.before))
    });
    edges.len() < before
}

/// A version that statements speak of.
type Node = (KeyId, TxnId);

/// The versions that statements speak of, each with those that are stated to come next.
///
/// Those of transactions of unknown outcome are among them. The order of two versions follows from what
/// is stated about a third one, whether or not that one is there in the end.
struct Statements {
    /// In order.
    nodes: Vec<Node>,
    next: Rows<u32>,
    /// Per node, how far it is in an order of all that agrees with every statement; none if the
    /// statements about its key contradict each other.
    places: Vec<Option<u32>>,
    /// Per node, a statement that has it, and its place there.
    within: Vec<(usize, usize)>,
}

impl Statements {
    fn new(history: &History, statements: &[StatedOrder]) -> Statements {
        let has_version = |txn: TxnId, key: KeyId| {
            !txn.is_init()
                && history.outcome(txn) != Outcome::Aborted
                && writes_key(history, txn, key)
        };
        let chains: Vec<Vec<Node>> = statements
            .iter()
            .map(|StatedOrder { key, writers, .. }| {
                let writers = writers.iter().filter(|txn| has_version(**txn, *key));
                writers.map(|txn| (*key, *txn)).collect()
            })
            .collect();
        let mut nodes: Vec<Node> = chains.iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let number = |node: &Node| nodes.partition_point(|other| other < node);
        let mut within = vec![(0, 0); nodes.len()];
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (statement, chain) in chains.iter().enumerate() {
            let numbers: Vec<usize> = chain.iter().map(number).collect();
            numbers.iter().enumerate().for_each(|(at, node)| within[*node] = (statement, at));
            let consecutive = numbers.windows(2).filter(|pair| pair[0] != pair[1]);
            pairs.extend(consecutive.map(|pair| (pair[0] as u32, pair[1] as u32)));
        }
        let next = Rows::group(nodes.len(), pairs.iter().copied());
        let places = places(&nodes, &next, &pairs);
        Statements { nodes, next, places, within }
    }

    /// Whether the statements together put one writer of a key before another.
    fn imply(&self, key: KeyId, first: TxnId, second: TxnId) -> bool {
        let node = |txn: TxnId| self.nodes.binary_search(&(key, txn)).ok();
        let (Some(first), Some(second)) = (node(first), node(second)) else { return false };
        let (Some(_), Some(end)) = (self.places[first], self.places[second]) else { return false };
        let ((one, early), (other, late)) = (self.within[first], self.within[second]);
        one == other && early < late || self.lead(first as u32, second as u32, end)
    }

    /// Whether a way of statements leads from one version to another, which is at this place.
    fn lead(&self, first: u32, second: u32, end: u32) -> bool {
        let is_on_the_way = |node: u32| self.places[node as usize].is_some_and(|at| at <= end);
        let (mut reached, mut waiting) = (FxHashSet::default(), vec![first]);
        while let Some(node) = waiting.pop().filter(|_| !reached.contains(&second)) {
            let next = self.next.get(node as usize).iter().copied();
            waiting.extend(next.filter(|node| is_on_the_way(*node) && reached.insert(*node)));
        }
        reached.contains(&second)
    }
}

/// Per node, its place in an order that agrees with all pairs; none for those of a key whose pairs have a
/// cycle.
fn places(nodes: &[Node], next: &Rows<u32>, pairs: &[(u32, u32)]) -> Vec<Option<u32>> {
    let mut waits_for = vec![0u32; nodes.len()];
    pairs.iter().for_each(|(_, after)| waits_for[*after as usize] += 1);
    let mut order: Vec<u32> =
        (0..nodes.len() as u32).filter(|node| waits_for[*node as usize] == 0).collect();
    let mut taken = 0;
    while let Some(node) = order.get(taken).copied() {
        taken += 1;
        for after in next.get(node as usize) {
            waits_for[*after as usize] -= 1;
            if waits_for[*after as usize] == 0 {
                order.push(*after);
            }
        }
    }
    let mut places = vec![None; nodes.len()];
    (0..).zip(&order).for_each(|(place, node)| places[*node as usize] = Some(place));
    for same in nodes.chunk_by(|one, other| one.0 == other.0) {
        let begin = nodes.partition_point(|node| node.0 < same[0].0);
        let of_key = &mut places[begin..begin + same.len()];
        if of_key.contains(&None) {
            of_key.fill(None);
        }
    }
    places
}
