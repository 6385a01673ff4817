//! How every lemma came about, so that a refutation can be told.

use super::literal::Literal;
use crate::strong::order::Chosen;

/// A lemma: a set of literals of which one holds.
pub(super) enum Inference {
    /// Forced together, the literals of these edges close a cycle with what is known.
    Cycle(Box<[Chosen]>),
    /// The alternatives of a choice; of a read those that are left, if it is the choice of one.
    Choice { read: Option<u32> },
    /// It follows from other steps, and from what is certain about these variables.
    Learned { from: Box<[u32]>, certain: Box<[u32]> },
}

impl Inference {
    fn bytes(&self) -> usize {
        let contents = match self {
            Inference::Cycle(cycle) => size_of_val(&**cycle),
            Inference::Choice { .. } => 0,
            Inference::Learned { from, certain } => size_of_val(&**from) + size_of_val(&**certain),
        };
        size_of::<Inference>() + contents
    }
}

/// What a final conflict rests on.
pub(crate) struct Refutation<Step> {
    /// Cycles that close every case, each given by the edges of choices on it.
    pub(crate) cycles: Vec<Vec<Step>>,
    /// The reads that must have seen one of the candidates that were left.
    pub(crate) reads: Vec<u32>,
}

impl<Step> Refutation<Step> {
    /// The same in other terms.
    pub(crate) fn told<Told>(
        self,
        step: impl Fn(Step) -> Option<Told>,
        read: impl Fn(u32) -> u32,
    ) -> Refutation<Told> {
        let cycle = |cycle: Vec<Step>| cycle.into_iter().filter_map(&step).collect();
        Refutation {
            cycles: self.cycles.into_iter().map(cycle).collect(),
            reads: self.reads.into_iter().map(read).collect(),
        }
    }
}

/// The lemmas that those in use rest on.
#[derive(Default)]
pub(super) struct Proof {
    steps: Vec<Inference>,
    bytes: usize,
    /// Whether it grew too large, and nothing is kept any more.
    is_lost: bool,
}

impl Proof {
    pub(super) fn add(&mut self, step: Inference) -> u32 {
        if self.is_lost {
            return 0;
        }
        self.bytes += step.bytes();
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Gives up what was kept. The search goes on; only a refutation could not be told any more.
    pub(super) fn lose(&mut self) {
        *self = Proof { is_lost: true, ..Proof::default() };
    }

    /// Keeps what some steps rest on. Returns the new number of each step that is kept.
    pub(super) fn keep(&mut self, roots: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut is_used = vec![false; self.steps.len()];
        let mut open: Vec<u32> = roots.filter(|_| !self.is_lost).collect();
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut is_used[step as usize], true)
                && let Inference::Learned { from, .. } = &self.steps[step as usize]
            {
                open.extend(from);
            }
        }
        let mut numbers = vec![0u32; self.steps.len()];
        let mut kept = Vec::new();
        for (at, mut step) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            if !is_used[at] {
                continue;
            }
            if let Inference::Learned { from, .. } = &mut step {
                // A step rests on earlier ones, which have their new numbers.
                from.iter_mut().for_each(|step| *step = numbers[*step as usize]);
            }
            numbers[at] = kept.len() as u32;
            kept.push(step);
        }
        self.bytes = kept.iter().map(Inference::bytes).sum();
        self.steps = kept;
        numbers
    }

    /// What a final conflict rests on, shortest cycles first. `reason` is the step that made a variable
    /// certain and the literals of that lemma.
    pub(super) fn refutation<'s>(
        &'s self,
        conflict: u32,
        literals: &[Literal],
        reason: impl Fn(usize) -> Option<(u32, &'s [Literal])>,
    ) -> Refutation<Chosen> {
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
                if let Inference::Learned { from, certain } = &self.steps[step as usize] {
                    steps.extend(from);
                    vars.extend(certain.iter().map(|var| *var as usize));
                }
            } else {
                break;
            }
        }
        let used = is_used.iter().zip(&self.steps).filter(|(used, _)| **used);
        let mut refutation = Refutation { cycles: Vec::new(), reads: Vec::new() };
        for (_, step) in used {
            match step {
                Inference::Cycle(cycle) => refutation.cycles.push(cycle.to_vec()),
                Inference::Choice { read } => refutation.reads.extend(read),
                Inference::Learned { .. } => {}
            }
        }
        refutation.cycles.sort_by_key(Vec::len);
        refutation
    }
}
