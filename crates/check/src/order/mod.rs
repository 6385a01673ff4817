//! The loop: an order of all nodes, and the demands of a level that it denies.
//!
//! An order that a history suggests is almost right as a rule. It denies a few demands, all between
//! transactions that ran at about the same time. Each round adds these to what is known and repairs the
//! order, for which only the segments that they span have to be sorted. That may deny other demands, so
//! what was moved is examined again, until nothing is denied.
//!
//! An order that comes out of the loop gives everything that its rules demand. Rules only say what an order
//! denies, so that nothing is stored of what it gives: for most histories that is everything.

use isolario_model::{Edge, TxnId};

use crate::graph::{Moved, Order};
use crate::plan::Conclusion;

/// Two nodes in the order in which they must come.
pub(crate) type Demand = (u32, u32);

/// Demands of a level on an order. Each call is about all transactions, and rules go through these in
/// [blocks](crate::blocks).
pub(crate) trait OrderRule<D = Demand> {
    /// The demands that an order denies. An error ends the search: [`Conclusion::Pass`] where it would take
    /// too long to find out.
    fn denied(&self, order: &Order) -> Result<Vec<D>, Conclusion>;

    /// The demands that an order denies since these nodes were moved, if it gave what was denied before; none
    /// if [`OrderRule::among`] lists all.
    fn denied_since(&self, _order: &Order, _moved: &[Moved]) -> Result<Vec<D>, Conclusion> {
        Ok(Vec::new())
    }

    /// All demands within the segments of an order that some denied ones span, if these can be listed. Else
    /// only those count that were denied so far.
    fn among(&self, _order: &Order, _denied: &[D]) -> Option<Vec<D>> {
        None
    }

    /// Why a transaction comes before another one, if this rule demands it and the two say so by themselves.
    fn explain(&self, _from: TxnId, _to: TxnId) -> Option<Edge> {
        None
    }
}

/// Limits of the loop.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Number of times that the order is repaired.
    pub(crate) rounds: usize,
    /// The number of demands that may be denied at a time: if there are more, the order was no good guess.
    pub(crate) denied: usize,
}

impl Patience {
    /// For rules that end by themselves.
    pub(crate) const ENDLESS: Patience = Patience { rounds: usize::MAX, denied: usize::MAX };
}

/// The end of the search for an order. `G` is the graph that has none.
pub(crate) enum OrderOrCycle<G> {
    Order(Vec<u32>),
    /// The demands have a cycle.
    Cycle(G),
}

impl<G> OrderOrCycle<G> {
    pub(crate) fn order(self) -> Option<Vec<u32>> {
        match self {
            OrderOrCycle::Order(order) => Some(order),
            OrderOrCycle::Cycle(_) => None,
        }
    }
}

/// Looks for an order that gives what some rules demand, beginning with a guess. `repair` is given the order,
/// the demands of each rule that count, and those that the order denies. It returns the nodes that it moved,
/// or the graph that has a cycle.
pub(crate) fn find<D: Clone, G>(
    guess: Vec<u32>,
    rules: &[&dyn OrderRule<D>],
    patience: Patience,
    mut repair: impl FnMut(&mut Order, &[Vec<D>], &[D]) -> Result<Vec<Moved>, G>,
) -> Result<OrderOrCycle<G>, Conclusion> {
    let mut order = Order::new(guess);
    let mut moved: Option<Vec<Moved>> = None;
    // Per rule, what the orders so far denied.
    let mut known: Vec<Vec<D>> = vec![Vec::new(); rules.len()];
    for _ in 0..patience.rounds {
        let mut denied = Vec::new();
        for (rule, known) in rules.iter().zip(&mut known) {
            let of_rule = match &moved {
                None => rule.denied(&order)?,
                Some(moved) => rule.denied_since(&order, moved)?,
            };
            known.extend_from_slice(&of_rule);
            denied.extend(of_rule);
        }
        if denied.is_empty() {
            return Ok(OrderOrCycle::Order(order.into_nodes()));
        }
        if denied.len() > patience.denied {
            break;
        }
        let demands = |(rule, known): (&&dyn OrderRule<D>, &Vec<D>)| {
            rule.among(&order, &denied).unwrap_or_else(|| known.clone())
        };
        let demanded: Vec<Vec<D>> = rules.iter().zip(&known).map(demands).collect();
        match repair(&mut order, &demanded, &denied) {
            Ok(nodes) => moved = Some(nodes),
            Err(graph) => return Ok(OrderOrCycle::Cycle(graph)),
        }
    }
    Err(Conclusion::Pass)
}
