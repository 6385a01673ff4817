//! The solver against a SAT solver, on histories too long for the oracle.
//!
//! A variable per pair of nodes says which comes first; the order is transitive; known edges hold;
//! and one alternative of every choice does. Cubic, and nothing like the search it is held against.

use std::sync;

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use isolario_model::{KeyId, Level, Verdict};
use isolario_oracle::random::{Rng, Shape, generate};
use isolario_oracle::volume;

use super::layout::Layout;
use super::lower;
use super::problem::{Arc, Precedes, Problem};
use super::tests::{ALL_WAYS, decide};
use crate::CheckOptions;
use crate::resolved::Resolved;
use crate::resolved::Version;
use crate::weak::Weak;

struct Sat {
    solver: BasicSolver,
    /// Per pair of nodes, the lower first, that the lower one comes first.
    before: Vec<Vec<Lit>>,
}

impl Sat {
    fn new(nodes: usize) -> Self {
        let mut solver = BasicSolver::default();
        let mut row = |length: usize| -> Vec<Lit> {
            (0..length).map(|_| Lit::new(solver.new_var_default(), true)).collect()
        };
        let before: Vec<Vec<Lit>> = (0..nodes).map(&mut row).collect();
        let mut sat = Sat { solver, before };
        for a in 0..nodes as u32 {
            for b in (0..nodes as u32).filter(|b| *b != a) {
                for c in (0..nodes as u32).filter(|c| *c != a && *c != b) {
                    let clause = [!sat.arc((a, b)), !sat.arc((b, c)), sat.arc((a, c))];
                    sat.clause(&clause);
                }
            }
        }
        sat
    }

    fn arc(&self, (from, to): Arc) -> Lit {
        let (low, high) = (from.min(to) as usize, from.max(to) as usize);
        let forward = self.before[high][low];
        if from < to { forward } else { !forward }
    }

    fn clause(&mut self, literals: &[Lit]) {
        self.solver.add_clause_reuse(&mut literals.to_vec());
    }

    fn choose(&mut self, problem: &Problem, precedes: Precedes) {
        let chosen = Lit::new(self.solver.new_var_default(), true);
        for (condition, alternative) in [(chosen, precedes), (!chosen, precedes.opposite())] {
            for arc in problem.arcs(alternative) {
                let implied = self.arc(arc);
                self.clause(&[!condition, implied]);
            }
        }
    }
}

/// Whether one alternative of every choice can be taken.
pub(super) fn is_satisfiable(problem: &Problem) -> bool {
    let mut sat = Sat::new(problem.nodes);
    for arc in &problem.known {
        let known = sat.arc(*arc);
        sat.clause(&[known]);
    }
    for key in (0..problem.versions.key_count()).map(KeyId::at) {
        let versions: Vec<Version> = problem.versions.of(key).collect();
        for (at, second) in versions.iter().enumerate() {
            for first in &versions[..at] {
                sat.choose(problem, Precedes { first: *first, second: *second });
            }
        }
    }
    sat.solver.solve_limited(&[]) == lbool::TRUE
}

#[test]
fn the_solver_agrees_with_a_sat_solver() {
    let plain = Shape { txns: (8, 14), keys: 4, sessions: 6, stray: 0, ..Shape::default() };
    let shapes = [
        Shape { stale: 40, forked: 0, wandering: 0, repeated: 5, reads: 50, ..plain.clone() },
        Shape { stale: 60, forked: 30, wandering: 0, repeated: 5, reads: 45, ..plain.clone() },
        Shape { stale: 10, forked: 0, wandering: 4, repeated: 0, reads: 30, keys: 3, ..plain },
    ];
    let (mut satisfied, mut violated) = (0, 0);
    for seed in 0..volume() / 20 {
        let history = generate(&shapes[seed as usize % 3], &mut Rng::new(seed)).history().unwrap();
        let options =
            CheckOptions { session_order: !seed.is_multiple_of(4), ..CheckOptions::default() };
        let resolved = sync::Arc::new(Resolved::new(&history, &options));
        let weak = Weak::new(sync::Arc::clone(&resolved));
        if !weak.plain_anomalies(Level::Serializable).is_empty()
            || resolved.dependencies.reads.choices.refusal.is_some()
        {
            continue;
        }
        let levels = [Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
        let level = levels[(seed / 3) as usize % 3];
        let layout = Layout::of(level, history.txn_count()).unwrap();
        let problem = lower::lower(&resolved, layout, false);
        let expected = is_satisfiable(&problem);
        for setup in ALL_WAYS {
            let verdict = decide(&resolved, level, &options, setup).verdict;
            let found = matches!(verdict, Verdict::Satisfied(_));
            assert_eq!(found, expected, "{level} {seed} {setup:?}");
        }
        *(if expected { &mut satisfied } else { &mut violated }) += 1;
    }
    assert!(satisfied > 0 && violated > 0, "{satisfied} satisfied, {violated} violated");
}
