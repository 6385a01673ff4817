//! Makes the order of dependencies a witness of a level, if that is easily done.
//!
//! Whatever order comes out of this gives all that the level demands, so it proves that the level
//! holds. If none comes out, that proves nothing: the rule of the level is then applied in full.
//!
//! An order that a history suggests is almost right as a rule: it denies a few of the level's
//! demands, all between transactions that ran at about the same time. Giving in to these may deny
//! others; so what was moved is examined again, until nothing is left to mend.

use isolario_model::Level;

use super::contradictions::{Demand, Examined};
use super::recent;
use super::recheck::recheck;
use crate::graph::Order;
use crate::resolved::Dependencies;
use crate::resolved::WriteSets;
use crate::resolved::{Inferred, Saturated};

/// How often the order is mended.
const ROUNDS: usize = 16;

/// At most one demand per so many transactions may be denied: else the order was no good guess.
const FEW: usize = 4;

/// An order of all transactions that gives what the level demands. `order` is one of dependencies.
pub(super) fn find(
    dependencies: &Dependencies<'_>,
    writes: &WriteSets<'_>,
    order: &[u32],
    level: Level,
) -> Option<Vec<u32>> {
    let txns = dependencies.history.txn_count();
    let mut order = Order::new(order.to_vec());
    let listed = dependencies.reads.version_order.iter().map(|edge| (edge.before, edge.after));
    let mut demanded: Vec<Demand> = listed.collect();
    if demanded.iter().any(|(_, after)| after.is_init()) {
        return None;
    }
    let mut denied = examine(&Examined { dependencies, writes, order: &order }, level)?;
    let places = order.places();
    let denies = |(before, after): &&Demand| places[before.index()] >= places[after.index()];
    denied.extend(demanded.iter().filter(denies).copied());
    for _ in 0..ROUNDS {
        if denied.is_empty() {
            return Some(order.into_nodes());
        }
        if denied.len() > txns / FEW || denied.iter().any(|(_, after)| after.is_init()) {
            return None;
        }
        demanded.extend_from_slice(&denied);
        let inferred = Inferred::new(txns, std::slice::from_ref(&demanded));
        let graph = Saturated { dependencies, inferred: &inferred };
        let edges: Vec<_> = denied.iter().map(|(before, after)| (before.0, after.0)).collect();
        let moved = order.mend(&graph, &edges)?;
        denied = recheck(&Examined { dependencies, writes, order: &order }, level, &moved)?;
    }
    None
}

/// Everything that the level demands of an order and the order does not give.
fn examine(examined: &Examined<'_>, level: Level) -> Option<Vec<Demand>> {
    match level {
        Level::ReadCommitted => Some(examined.read_committed()),
        Level::ReadAtomic => Some(examined.read_atomic()),
        _ => recent::causal(examined),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use isolario_oracle::random::Case;

    use super::super::levels::Weak;
    use super::*;
    use crate::CheckOptions;
    use crate::graph::topological_order;
    use crate::resolved::Resolved;

    /// Whether the saturated relation of a level has an order.
    fn is_orderable(weak: &Weak<'_>, level: Level) -> bool {
        let inferred = weak.saturate(level, &[]);
        let graph = Saturated { dependencies: weak.dependencies(), inferred: &inferred };
        !inferred.before_init && topological_order(&graph, &weak.resolved.guess.commits).is_some()
    }

    #[test]
    fn a_witness_is_found_only_where_saturation_finds_an_order_and_nearly_always_there() {
        let (mut orderable, mut found) = (0, 0);
        for case in Case::first(5_000) {
            let history = case.draft().history().unwrap();
            let options = CheckOptions::default().with_session_order(case.seed % 4 != 0);
            let resolved = Arc::new(Resolved::new(&history, &options));
            let weak = Weak::new(Arc::clone(&resolved));
            let Some(order) = &resolved.order else { continue };
            for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
                let is_found =
                    find(&resolved.dependencies, resolved.write_sets(), order, level).is_some();
                let is_orderable = is_orderable(&weak, level);
                assert!(is_orderable || !is_found, "{level}: {}", case.draft());
                orderable += usize::from(is_orderable);
                found += usize::from(is_found);
            }
        }
        assert!(found * 100 > orderable * 95, "{found} of {orderable}");
    }
}
