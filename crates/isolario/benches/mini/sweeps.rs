//! What grows, as in Figures 7, 8 and 9 of the MTC paper: transactions, skew, sessions, keys, and
//! how many sessions run at a time.

use isolario::model::Level;
use isolario_bench::{Expected, Growth, Step};
use isolario_sim::Distribution;

use crate::Sizes;
use crate::history::Recipe;
use crate::work::Work;

const LEVELS: [Level; 3] =
    [Level::Serializable, Level::SnapshotIsolation, Level::StrictSerializable];

/// Everything that is to be measured.
pub fn all(sizes: &Sizes) -> Vec<Growth<Work>> {
    let base = Recipe { txns: sizes.fixed_txns, ..Recipe::default() };
    let of_txns = |&txns: &u64| (txns as f64, Recipe { txns, ..base });
    let of_skew = |&exponent: &f64| {
        (exponent, Recipe { distribution: Distribution::Zipf { exponent }, ..base })
    };
    let of_sessions = |&sessions: &u32| (sessions.into(), Recipe { sessions, ..base });
    let of_keys = |&keys: &u32| (keys.into(), Recipe { keys, ..base });
    let of_concurrency = |&concurrency: &f64| (concurrency, Recipe { concurrency, ..base });
    let flat = Expected::AtMost(0.2);
    vec![
        growth("transactions", Expected::AtMost(1.1), sizes.growing_txns.iter().map(of_txns)),
        growth("skew", Expected::Anything, [0.2, 0.5, 0.99, 1.5].iter().map(of_skew)),
        growth("sessions", flat, [10, 50, 200, 1000].iter().map(of_sessions)),
        growth("keys", flat, [1000, 10_000, 100_000].iter().map(of_keys)),
        growth("concurrency", flat, [0.1, 0.3, 1.0].iter().map(of_concurrency)),
    ]
}

fn growth(
    quantity: &'static str,
    expected: Expected,
    steps: impl Iterator<Item = (f64, Recipe)>,
) -> Growth<Work> {
    Growth {
        name: quantity.to_owned(),
        title: format!("Check alone, by {quantity}"),
        quantity,
        jobs: LEVELS.map(Work::Check).to_vec(),
        expected,
        steps: steps
            .map(|(size, recipe)| Step { size: Some(size), write: recipe.writer() })
            .collect(),
    }
}
