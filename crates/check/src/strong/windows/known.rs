//! What is known of the order beside reads: real time, and orders of versions that lists show or that are
//! stated.

use isolario_model::TxnId;

use super::Question;
use crate::graph::interval;
use crate::resolved::VersionEdge;

/// The first and the last place of whatever the order of the nodes contradicts.
pub(super) fn contradicted(
    question: &Question<'_>,
    nodes: &[u32],
    places: &[u32],
) -> Vec<(u32, u32)> {
    let mut wrong = match question.layout.real_time {
        true => against_time(question, nodes),
        false => Vec::new(),
    };
    let layout = question.layout;
    let place = |node: u32| places[node as usize];
    wrong.extend(question.version_edges().filter_map(|VersionEdge { before, after, .. }| {
        let (first, second) = (place(layout.commit(*before)), place(layout.overwrite(*after)));
        let end = first.max(place(layout.commit(*after)));
        (first > second).then_some((second, end))
    }));
    wrong
}

/// A transaction that had ended comes before all that started later: of these, the first one that comes
/// before it instead is where the latest start so far exceeds the end.
fn against_time(question: &Question<'_>, nodes: &[u32]) -> Vec<(u32, u32)> {
    let layout = question.layout;
    let txn = |node: u32| layout.txn(node).filter(|txn| question.reads().is_kept(*txn));
    let times = |txn: TxnId| interval(question.history(), question.clock_skew, txn);
    let mut latest = i64::MIN;
    let starts: Vec<i64> = nodes
        .iter()
        .map(|node| {
            let begins = txn(*node).filter(|txn| layout.start(*txn) == *node);
            latest = latest.max(begins.and_then(|txn| times(txn).0).unwrap_or(i64::MIN));
            latest
        })
        .collect();
    let wrong = |(place, node): (usize, &u32)| {
        let ended = times(txn(*node).filter(|txn| layout.commit(*txn) == *node)?).1?;
        let first = starts[..place].partition_point(|start| *start <= ended);
        (first < place).then_some((first as u32, place as u32))
    };
    nodes.iter().enumerate().filter_map(wrong).collect()
}
