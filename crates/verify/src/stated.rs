//! Orders of versions that are part of the question, beside the history.

use isolario_model::{Edge, KeyId, Reason, StatedOrder, TxnId, VersionOrder};

use crate::Refusal;

/// What is stated, by its place.
#[derive(Debug)]
pub(crate) struct Stated<'h> {
    orders: Vec<&'h StatedOrder>,
}

impl<'h> Stated<'h> {
    pub(crate) fn new(orders: &'h [StatedOrder]) -> Self {
        let mut orders: Vec<&StatedOrder> = orders.iter().collect();
        orders.sort_by_key(|order| order.at);
        Stated { orders }
    }

    /// Whether the statement at a place puts one writer of a key before another.
    pub(crate) fn says(&self, at: u64, key: KeyId, first: TxnId, second: TxnId) -> bool {
        let begin = self.orders.partition_point(|order| order.at < at);
        let there = self.orders[begin..].iter().take_while(|order| order.at == at);
        there.filter(|order| order.key == key).any(|order| {
            let first = order.writers.iter().position(|writer| *writer == first);
            let second = order.writers.iter().rposition(|writer| *writer == second);
            first.zip(second).is_some_and(|(first, second)| first < second)
        })
    }

    /// Refuses an order of commits that contradicts a statement. Those that have no place did not
    /// commit and do not count. `init` comes before all that do.
    pub(crate) fn agrees_with(&self, place: impl Fn(TxnId) -> Option<u32>) -> Result<(), Refusal> {
        let place = |txn: TxnId| if txn.is_init() { Some(0) } else { place(txn).map(|at| at + 1) };
        for order in &self.orders {
            let mut before: Option<(u32, TxnId)> = None;
            for writer in &order.writers {
                let Some(at) = place(*writer) else { continue };
                match before {
                    Some((earlier, first)) if earlier > at => {
                        let why = "the stated order of versions";
                        return Err(Refusal::OutOfOrder { first, second: *writer, why });
                    }
                    _ => before = Some((at, *writer)),
                }
            }
        }
        Ok(())
    }
}

/// Whether edges rest on a statement, at any depth.
pub(crate) fn rest_on_statements(edges: &[Edge]) -> bool {
    let mut waiting: Vec<&[Edge]> = vec![edges];
    while let Some(edges) = waiting.pop() {
        for edge in edges {
            match &edge.reason {
                Reason::StartDependency { .. } => return true,
                Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
                    match known {
                        VersionOrder::Stated { .. } => return true,
                        VersionOrder::Refuted { cycle: edges } | VersionOrder::Path { edges } => {
                            waiting.push(edges);
                        }
                        _ => {}
                    }
                }
                Reason::Visible { path: edges, .. } | Reason::Refuted { cycle: edges } => {
                    waiting.push(edges);
                }
                _ => {}
            }
        }
    }
    false
}
