//! The hard families of the benchmark are what they say: a history satisfies its levels exactly
//! if its graph has no triangle (AWDIT, Lemmas 4.2 to 4.4).

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "../benches/weak/hard.rs"]
mod hard;

use hard::{Family, Graph};
use isolario::check::{CheckOptions, check};
use isolario::model::{Batch, Level, Verdict};
use proptest::prelude::*;

/// Whether the history of a graph satisfies a level.
fn satisfies(family: Family, graph: &Graph, level: Level) -> bool {
    let mut batch = Batch::new();
    family.write(graph, &mut batch).unwrap();
    let history = batch.build().unwrap();
    match &check(&history, &[level], &CheckOptions::default())[0].verdict {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        other => panic!("{family:?} at {level}: {}", other.name()),
    }
}

#[track_caller]
fn assert_all(graph: &Graph, expected: bool) {
    for family in Family::ALL {
        for &level in family.levels() {
            assert_eq!(satisfies(family, graph, level), expected, "{} {level}", family.name());
        }
    }
}

#[test]
fn graphs_of_two_sides_satisfy_every_level() {
    for nodes in [1, 2, 10, 60] {
        assert_all(&Graph::two_sided(nodes, 7), true);
    }
}

#[test]
fn one_triangle_among_many_edges_flips_the_verdict() {
    // Even and odd nodes, all edges between them: no triangle until two even ones are joined.
    let across =
        || (0..20).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| (a + b) % 2 == 1);
    assert_all(&Graph::new(20, across()), true);
    assert_all(&Graph::new(20, across().chain([(4, 10)])), false);
}

proptest! {
    #[test]
    fn a_verdict_tells_whether_there_is_a_triangle(
        nodes in 3..9u32,
        chosen in proptest::collection::vec(any::<bool>(), 36),
    ) {
        let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b)));
        let edges: Vec<_> = pairs.zip(&chosen).filter(|(_, chosen)| **chosen).map(|(e, _)| e).collect();
        let joined = |a: u32, b: u32| edges.contains(&(a.max(b), a.min(b)));
        let triangle = edges.iter().any(|&(a, b)| (0..nodes).any(|c| joined(a, c) && joined(b, c)));
        assert_all(&Graph::new(nodes, edges.iter().copied()), !triangle);
    }
}
