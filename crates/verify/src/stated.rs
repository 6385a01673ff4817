//! Orders of versions that are part of the question, beside the history.

use std::collections::{BTreeMap, BTreeSet};

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

    /// Whether the statements about a key together put one writer before another. Only writers that count
    /// have a version. Statements that contradict each other imply nothing.
    pub(crate) fn imply(
        &self,
        key: KeyId,
        (first, second): (TxnId, TxnId),
        counts: impl Fn(TxnId) -> bool,
    ) -> bool {
        let mut next = Next::new();
        for order in self.orders.iter().filter(|order| order.key == key) {
            let writers = order.writers.iter().copied();
            let writers: Vec<TxnId> =
                writers.filter(|txn| !txn.is_init() && counts(*txn)).collect();
            for pair in writers.windows(2).filter(|pair| pair[0] != pair[1]) {
                next.entry(pair[0]).or_default().insert(pair[1]);
            }
        }
        let (mut reached, mut waiting) = (BTreeSet::new(), vec![first]);
        while let Some(txn) = waiting.pop() {
            let next = next.get(&txn).into_iter().flatten();
            waiting.extend(next.filter(|txn| reached.insert(**txn)));
        }
        reached.contains(&second) && is_acyclic(&next)
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

/// Per writer of a key, those that are stated to come next.
type Next = BTreeMap<TxnId, BTreeSet<TxnId>>;

/// Whether writers can be taken one after the other, each before those that come next.
fn is_acyclic(next: &Next) -> bool {
    let mut waits_for: BTreeMap<TxnId, usize> = next.keys().map(|txn| (*txn, 0)).collect();
    for txn in next.values().flatten() {
        *waits_for.entry(*txn).or_default() += 1;
    }
    let free = waits_for.iter().filter(|(_, count)| **count == 0);
    let mut free: Vec<TxnId> = free.map(|(txn, _)| *txn).collect();
    while let Some(txn) = free.pop() {
        waits_for.remove(&txn);
        for after in next.get(&txn).into_iter().flatten() {
            if let Some(count) = waits_for.get_mut(after) {
                *count -= 1;
                free.extend((*count == 0).then_some(*after));
            }
        }
    }
    waits_for.is_empty()
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
