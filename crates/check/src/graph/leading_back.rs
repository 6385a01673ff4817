//! Which anti-dependencies lead back.

use super::{InEdges, places};

/// Of pairs (reader, writer), those whose writer leads to the reader. `order` is a topological order
/// of the graph.
///
/// Only a pair whose writer comes first in the order can be one, and the way back lies between the
/// two. Sixty-four pairs at a time, with a bit each, are carried along the order from the first of
/// their writers to the last of their readers. Pairs that are next to each other in the order are
/// taken together: transactions depend on those that ran about the same time, so that the stretches
/// are short, however long the history is.
pub(crate) fn leading_back(
    graph: &impl InEdges,
    order: &[u32],
    pairs: impl Iterator<Item = (u32, u32)>,
) -> Vec<(u32, u32)> {
    let places = places(order);
    let place = |node: u32| places[node as usize];
    let mut back: Vec<(u32, u32)> =
        pairs.filter(|(reader, writer)| place(*writer) < place(*reader)).collect();
    back.sort_unstable_by_key(|(reader, writer)| (place(*writer), place(*reader)));
    back.dedup();
    let mut found = Vec::new();
    let mut reached: Vec<u64> = Vec::new();
    for few in back.chunks(64) {
        let first = few.iter().map(|(_, writer)| place(*writer)).min().unwrap_or(0);
        let last = few.iter().map(|(reader, _)| place(*reader)).max().unwrap_or(0);
        reached.clear();
        reached.resize((last - first) as usize + 1, 0);
        for (bit, (_, writer)) in few.iter().enumerate() {
            reached[(place(*writer) - first) as usize] |= 1 << bit;
        }
        for at in first..=last {
            let before = graph.predecessors(order[at as usize]).map(place);
            let carried = before.filter(|before| *before >= first);
            let carried = carried.fold(0, |bits, before| bits | reached[(before - first) as usize]);
            reached[(at - first) as usize] |= carried;
        }
        for (bit, pair) in few.iter().enumerate() {
            if reached[(place(pair.0) - first) as usize] >> bit & 1 == 1 {
                found.push(*pair);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::*;

    #[test]
    fn a_pair_leads_back_if_there_is_a_way_from_its_writer_to_its_reader() {
        let graph = Rows::graph(6, &[(0, 1), (1, 2), (3, 4), (2, 5)]);
        let order = [0, 3, 1, 4, 2, 5];
        let all = (0..6).flat_map(|reader| (0..6).map(move |writer| (reader, writer)));
        let mut found = leading_back(&graph, &order, all.filter(|(a, b)| a != b));
        found.sort_unstable();
        assert_eq!(found, [(1, 0), (2, 0), (2, 1), (4, 3), (5, 0), (5, 1), (5, 2)]);
    }
}
