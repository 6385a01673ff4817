//! Learned clauses that are not worth their memory any more.
//!
//! A clause that spans many decisions is seldom of use again (Audemard and Simon, *Predicting Learnt
//! Clauses Quality in Modern SAT Solvers*, 2009). Whatever is forgotten can be learned again; how
//! the clauses that are left came about stays on record.

use std::cmp::Reverse;

use super::{Clauses, Given};

/// Clauses that tie at most this many decisions together are never forgotten.
const FEW: u32 = 2;

impl<G: Given> Clauses<G> {
    /// Forgets the worse half of the learned clauses, and the proof if it takes more than `largest_proof` bytes.
    pub(crate) fn forget(&mut self, largest_proof: u64) {
        let dropped = self.worse_half();
        let mut numbers = vec![0u32; self.clauses.len()];
        let mut kept = Vec::with_capacity(self.clauses.len());
        for (at, clause) in std::mem::take(&mut self.clauses).into_iter().enumerate() {
            if !dropped[at] {
                numbers[at] = kept.len() as u32;
                kept.push(clause);
            }
        }
        for literal in &self.trail {
            if let Some(reason) = &mut self.states[literal.var()].reason {
                *reason = numbers[*reason as usize];
            }
        }
        self.watches.iter_mut().for_each(Vec::clear);
        (0..).zip(&kept).for_each(|(number, clause)| self.watch(number, &clause.literals));
        let steps = self.proof.keep(kept.iter().map(|clause| clause.step));
        if self.proof.bytes() as u64 > largest_proof {
            self.proof.lose();
        }
        for clause in kept.iter_mut().filter(|_| !self.proof.is_lost()) {
            clause.step = steps[clause.step as usize];
        }
        self.clauses = kept;
    }

    /// The clauses to drop: of those that nothing follows from now, those of most decisions, older
    /// ones first.
    fn worse_half(&self) -> Vec<bool> {
        let mut is_reason = vec![false; self.clauses.len()];
        let reasons = self.trail.iter().filter_map(|literal| self.states[literal.var()].reason);
        reasons.for_each(|clause| is_reason[clause as usize] = true);
        let is_droppable = |at: &usize| !is_reason[*at] && self.clauses[*at].span > FEW;
        let mut droppable: Vec<usize> = (0..self.clauses.len()).filter(is_droppable).collect();
        droppable.sort_by_key(|at| Reverse(self.clauses[*at].span));
        let mut dropped = vec![false; self.clauses.len()];
        droppable[..droppable.len() / 2].iter().for_each(|at| dropped[*at] = true);
        dropped
    }
}
