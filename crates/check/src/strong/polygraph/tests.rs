//! Random polygraphs, near the point where half of them have an order: against a SAT solver where
//! they are small, and with limits where they are too hard.

use isolario_model::Limit;
use std::time::Duration;

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use isolario_oracle::random::Rng;
use isolario_oracle::volume;

use super::*;
use crate::strong::sat::is_satisfiable;
use crate::strong::tests::ALL_WAYS;

/// Random choices between two or three alternatives of one or two edges each.
fn random(nodes: u32, choices: usize, rng: &mut Rng) -> Polygraph {
    let mut polygraph = Polygraph::new(nodes);
    let edge = |rng: &mut Rng| (rng.below(nodes as usize) as u32, rng.below(nodes as usize) as u32);
    for _ in 0..nodes / 4 {
        let (from, to) = edge(rng);
        if from != to {
            polygraph.edge(from.min(to), from.max(to));
        }
    }
    for _ in 0..choices {
        let count = 2 + rng.below(2);
        let alternatives: Vec<(String, Vec<(u32, u32)>)> = (0..count)
            .map(|at| (format!("way {at}"), (0..count).map(|_| edge(rng)).collect()))
            .collect();
        polygraph.choice(alternatives);
    }
    polygraph
}

/// Whether an order has all known edges forward, and one alternative of each choice.
fn is_solution(polygraph: &Polygraph, order: &[u32]) -> bool {
    let Problem { nodes, known, choices, .. } = &polygraph.problem;
    let mut place = vec![usize::MAX; *nodes];
    order.iter().enumerate().for_each(|(at, node)| place[*node as usize] = at);
    let is_forward = |(from, to): (u32, u32)| place[from as usize] < place[to as usize];
    order.len() == *nodes
        && place.iter().all(|at| *at < *nodes)
        && known.iter().all(|edge| is_forward(*edge))
        && (0..choices.len() as u32).all(|choice| choices.has_one(choice, is_forward))
}

/// Whether each is a cycle of known edges and of the alternatives it names, and no choice of
/// alternatives avoids all of them.
fn is_refutation(polygraph: &Polygraph, cycles: &[Vec<CycleEdge>]) -> bool {
    let Problem { known, choices, .. } = &polygraph.problem;
    let is_edge = |(edge, alternative): &CycleEdge| match alternative {
        Some(alternative) => choices.arcs(*alternative).contains(edge),
        None => known.contains(edge),
    };
    let is_cycle = |cycle: &Vec<CycleEdge>| {
        let next = cycle.iter().cycle().skip(1);
        !cycle.is_empty() && cycle.iter().zip(next).all(|(one, two)| one.0.1 == two.0.0)
    };
    let mut solver = BasicSolver::default();
    let mut takes: Vec<Lit> = Vec::new();
    for choice in 0..choices.len() as u32 {
        let mut one: Vec<Lit> = choices
            .alternatives(choice)
            .map(|_| Lit::new(solver.new_var_default(), true))
            .collect();
        takes.extend(&one);
        solver.add_clause_reuse(&mut one);
    }
    for cycle in cycles {
        let mut named: Vec<Lit> =
            cycle.iter().filter_map(|(_, a)| a.map(|a| !takes[a as usize])).collect();
        solver.add_clause_reuse(&mut named);
    }
    let leaves_a_case = solver.solve_limited(&[]) == lbool::TRUE;
    !leaves_a_case && cycles.iter().all(|cycle| is_cycle(cycle) && cycle.iter().all(is_edge))
}

#[test]
fn random_polygraphs_agree_with_a_sat_solver() {
    let (mut solved, mut refuted) = (0, 0);
    for seed in 0..volume() / 10 {
        let mut rng = Rng::new(seed);
        let nodes = 4 + rng.below(9) as u32;
        let choices = 1 + rng.below(3 * nodes as usize);
        let polygraph = random(nodes, choices, &mut rng);
        let expected = is_satisfiable(&polygraph.problem);
        for steps in ALL_WAYS {
            match polygraph.solve_with(&Options::default(), steps) {
                Solution::Order(order) => {
                    assert!(expected && is_solution(&polygraph, &order), "{seed} {steps:?}");
                }
                Solution::None(cycles) => {
                    let is_right = is_refutation(&polygraph, &cycles);
                    assert!(!expected && is_right, "{seed} {steps:?} {cycles:?}");
                }
                Solution::Undecided(reason) => panic!("{seed} {steps:?} {reason:?}"),
            }
        }
        *(if expected { &mut solved } else { &mut refuted }) += 1;
    }
    assert!(solved > 0 && refuted > 0, "{solved} have an order, {refuted} have none");
}

#[test]
fn a_polygraph_can_be_written_down() {
    let mut polygraph = Polygraph::new(2);
    polygraph.edge(0, 1);
    polygraph.choice([("early", vec![(2, 0)]), ("late", vec![(1, 2), (0, 2)])]);
    let mut text = Vec::new();
    polygraph.write(&mut text).unwrap();
    let expected =
        "problem polygraph\nnode 0\nnode 1\nnode 2\nknown 0 1\nchoice: early 2>0 or late 1>2 0>2\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    assert_eq!(polygraph.reason(1), Some("late"));
    assert_eq!(polygraph.reason(2), None);
}

#[test]
fn a_choice_without_alternatives_cannot_be_made() {
    let mut polygraph = Polygraph::new(1);
    polygraph.choice::<String>([]);
    assert_eq!(polygraph.solve(&Options::default()), Solution::None(Vec::new()));
}

/// Far too hard for the time it gets.
fn hard() -> Polygraph {
    random(HARD.0, HARD.1, &mut Rng::new(1))
}

const HARD: (u32, usize) = (400, 1_000);

#[test]
fn a_hard_polygraph_ends_by_time_and_not_by_memory() {
    let options = Options {
        timeout: Some(Duration::from_millis(500)),
        memory: Some(64 << 20),
        ..Options::default()
    };
    let Solution::Undecided(limit) = hard().solve(&options) else { panic!("it was not hard") };
    assert_eq!(limit, Limit::Time(Duration::from_millis(500)));
}

#[test]
fn lemmas_are_forgotten() {
    let polygraph = hard();
    let options = Options::default();
    let problem = &polygraph.problem;
    let graph = Graph::new(problem.nodes, &problem.known);
    let nodes: Vec<u32> = (0..problem.nodes as u32).collect();
    let mut search = Search::new(problem, Order::new(&graph, nodes));
    let found = search.run(&Limits::new(&options, Level::Serializable), Some(20_000));
    assert!(matches!(found, SearchEnd::Stopped(Limit::Steps)));
    // Those of choices stay. Of 20,000 others, all but the last half and those of few decisions go.
    assert!(search.lemma_count() < problem.choices.len() + 10_000, "{}", search.lemma_count());
}
