//! How every lemma came about, so that a refutation can be told.

use super::literal::Literal;
use crate::strong::order::Labelled;

/// A lemma: a set of literals of which one holds.
pub(super) enum Step {
    /// Taken together, the literals of these edges close a cycle.
    Cycle(Vec<Labelled>),
    /// It follows from other steps, and from what is certain about these variables.
    Learned { from: Vec<u32>, certain: Vec<u32> },
}

/// All lemmas so far.
#[derive(Default)]
pub(super) struct Proof {
    steps: Vec<Step>,
    /// How many edges the cycles have in all.
    pub(super) edges: usize,
}

impl Proof {
    pub(super) fn add(&mut self, step: Step) -> u32 {
        self.edges += match &step {
            Step::Cycle(cycle) => cycle.len(),
            Step::Learned { from, certain } => from.len() + certain.len(),
        };
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    /// The cycles that a final conflict rests on. `reason` is the step that made a variable
    /// certain and the literals of that lemma.
    pub(super) fn cycles<'s>(
        &'s self,
        conflict: u32,
        literals: &[Literal],
        reason: impl Fn(usize) -> Option<(u32, &'s [Literal])>,
    ) -> Vec<&'s [Labelled]> {
        let mut is_used = vec![false; self.steps.len()];
        let mut steps = vec![conflict];
        let mut vars: Vec<usize> = literals.iter().map(|literal| literal.var()).collect();
        let mut seen = rustc_hash::FxHashSet::default();
        loop {
            if let Some(var) = vars.pop() {
                if seen.insert(var)
                    && let Some((step, literals)) = reason(var)
                {
                    steps.push(step);
                    vars.extend(literals.iter().map(|literal| literal.var()));
                }
            } else if let Some(step) = steps.pop() {
                if std::mem::replace(&mut is_used[step as usize], true) {
                    continue;
                }
                if let Step::Learned { from, certain } = &self.steps[step as usize] {
                    steps.extend(from);
                    vars.extend(certain.iter().map(|var| *var as usize));
                }
            } else {
                break;
            }
        }
        let used = is_used.iter().zip(&self.steps).filter(|(used, _)| **used);
        let cycles = used.filter_map(|(_, step)| match step {
            Step::Cycle(cycle) => Some(cycle.as_slice()),
            Step::Learned { .. } => None,
        });
        cycles.collect()
    }
}
