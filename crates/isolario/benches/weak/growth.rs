//! What grows, and how it should.

use isolario::model::Level;
use isolario_bench::{Expected, Growth, Step};
use isolario_sim::Distribution;

use crate::Sizes;
use crate::hard::Family;
use crate::history::{OPS_PER_TXN, Recipe, SESSIONS};
use crate::work::Work;

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

/// Everything that is to be measured.
pub fn all(sizes: &Sizes) -> Vec<Growth<Work>> {
    let mut all =
        vec![of_transactions(sizes), of_sessions(sizes), of_operations_per_transaction(sizes)];
    all.extend(Family::ALL.map(|family| of_graph(family, sizes)));
    all
}

fn of_transactions(sizes: &Sizes) -> Growth<Work> {
    let step = |&txns: &u64| Step {
        size: Some(txns as f64),
        write: Recipe::simulated(txns, SESSIONS, OPS_PER_TXN, Distribution::Uniform).writer(),
    };
    Growth {
        name: "transactions".to_owned(),
        title: format!("Load and check, {SESSIONS} sessions"),
        quantity: "transactions",
        jobs: LEVELS.map(Work::LoadAndCheck).to_vec(),
        expected: Expected::AtMost(1.1),
        steps: sizes.growing_txns.iter().map(step).collect(),
    }
}

fn of_sessions(sizes: &Sizes) -> Growth<Work> {
    let txns = sizes.fixed_txns;
    let step = |&sessions: &u32| Step {
        size: Some(sessions.into()),
        write: Recipe::simulated(txns, sessions, OPS_PER_TXN, Distribution::Uniform).writer(),
    };
    Growth {
        name: "sessions".to_owned(),
        title: format!("Check alone, {txns} transactions of {OPS_PER_TXN} operations"),
        quantity: "sessions",
        jobs: vec![Work::Check(Level::Causal)],
        expected: Expected::AtMost(1.1),
        steps: [10, 100, 1000].iter().map(step).collect(),
    }
}

fn of_operations_per_transaction(sizes: &Sizes) -> Growth<Work> {
    let ops = sizes.fixed_txns * u64::from(OPS_PER_TXN);
    let step = |&per_txn: &u32| Step {
        size: Some(per_txn.into()),
        write: Recipe::simulated(
            ops / u64::from(per_txn),
            SESSIONS,
            per_txn,
            Distribution::Uniform,
        )
        .writer(),
    };
    Growth {
        name: "operations-per-transaction".to_owned(),
        title: format!("Check alone, {ops} operations, {SESSIONS} sessions"),
        quantity: "operations per transaction",
        jobs: LEVELS.map(Work::Check).to_vec(),
        expected: Expected::Anything,
        steps: [2, 8, 32, 128].iter().map(step).collect(),
    }
}

fn of_graph(family: Family, sizes: &Sizes) -> Growth<Work> {
    let step = |&nodes: &u32| {
        let recipe = Recipe::Hard(family, nodes_of(family, nodes));
        Step { size: None, write: recipe.writer() }
    };
    Growth {
        name: format!("hard-{}", family.name()),
        title: format!("Check alone, the hard family {}", family.name()),
        quantity: "operations",
        jobs: family.levels().iter().copied().map(Work::Check).collect(),
        expected: Expected::Between(1.4, 1.6),
        steps: sizes.nodes.iter().map(step).collect(),
    }
}

/// How many nodes a graph must have to make as large a history as one of so many nodes does in the
/// other families. Operations grow as the square of nodes, and this family has half as many.
fn nodes_of(family: Family, of_others: u32) -> u32 {
    if family == Family::TwoSessions { of_others * 7 / 5 } else { of_others }
}
