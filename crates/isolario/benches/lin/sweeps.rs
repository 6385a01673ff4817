//! What grows: operations, keys, and how many sessions run at a time (MTC, Figure 7).

use isolario::model::Level;
use isolario_bench::{Expected, Growth, Step};

use crate::Sizes;
use crate::history::Recipe;
use crate::work::Work;

/// Everything that is to be measured.
pub fn all(sizes: &Sizes) -> Vec<Growth<Work>> {
    let base = Recipe { ops: sizes.fixed_ops, ..Recipe::CONDITIONAL };
    let plain = Recipe { ops: sizes.fixed_ops, ..Recipe::PLAIN };
    // Of a few values each, which takes the search.
    let few = Recipe { duplicate_ratio: 1.0, sessions: 10, ..base };
    let of_ops = |&ops: &u64| (ops as f64, Recipe { ops, ..base });
    let of_keys = |&keys: &u32| (keys.into(), Recipe { keys, ..base });
    let at_a_time = |recipe: Recipe| {
        let step = move |concurrency: f64| (concurrency, Recipe { concurrency, ..recipe });
        [0.1, 0.25, 0.5, 1.0].into_iter().map(step)
    };
    let searched = |&ops: &u64| (ops as f64, Recipe { ops, ..few });
    let flat = Expected::AtMost(0.2);
    vec![
        growth("operations", "operations", Expected::AtMost(1.1), sizes.ops.iter().map(of_ops)),
        growth("keys", "keys", flat, [1, 100, 10_000].iter().map(of_keys)),
        growth("concurrency", "concurrency", flat, at_a_time(base)),
        growth("plain-writes", "concurrency", flat, at_a_time(plain)),
        growth("search", "operations", Expected::AtMost(1.1), sizes.ops.iter().map(searched)),
    ]
}

fn growth(
    name: &str,
    quantity: &'static str,
    expected: Expected,
    steps: impl Iterator<Item = (f64, Recipe)>,
) -> Growth<Work> {
    Growth {
        name: name.to_owned(),
        title: format!("Check alone: {name}"),
        quantity,
        jobs: vec![Work::Check(Level::Linearizable)],
        expected,
        steps: steps
            .map(|(size, recipe)| Step { size: Some(size), write: recipe.writer() })
            .collect(),
    }
}
