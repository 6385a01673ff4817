//! Lemmas that are not worth their memory any more.
//!
//! A lemma that spans many decisions is seldom of use again (Audemard and Simon, *Predicting Learnt
//! Clauses Quality in Modern SAT Solvers*, 2009). Whatever is forgotten can be learned again; how
//! the lemmas that are left came about stays on record.

use std::cmp::Reverse;

use super::Search;

/// After how many conflicts lemmas are looked at for the first time, and by how many more each time.
const FIRST: u64 = 2_000;
const MORE: u64 = 300;
/// Lemmas that tie so few decisions together are never forgotten.
const FEW: u32 = 2;

/// When lemmas are looked at next.
pub(super) struct Schedule {
    next: u64,
    pause: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { next: FIRST, pause: FIRST }
    }
}

impl Schedule {
    /// Whether it is time. Each pause is longer than the last, so that more and more is kept, and
    /// every search comes to an end.
    pub(super) fn is_due(&mut self, conflicts: u64) -> bool {
        let is_due = conflicts >= self.next;
        if is_due {
            self.pause += MORE;
            self.next = conflicts + self.pause;
        }
        is_due
    }
}

impl Search<'_, '_> {
    /// Forgets the worse half of the lemmas, and the argument if it outgrew its limit.
    pub(super) fn forget(&mut self, largest_proof: u64) {
        let dropped = self.worse_half();
        let mut numbers = vec![0u32; self.lemmas.len()];
        let mut kept = Vec::with_capacity(self.lemmas.len());
        for (at, lemma) in std::mem::take(&mut self.lemmas).into_iter().enumerate() {
            if !dropped[at] {
                numbers[at] = kept.len() as u32;
                kept.push(lemma);
            }
        }
        self.lemmas = kept;
        for literal in &self.trail {
            if let Some(reason) = &mut self.states[literal.var()].reason {
                *reason = numbers[*reason as usize];
            }
        }
        self.watches.iter_mut().for_each(Vec::clear);
        for (number, lemma) in (0..).zip(&self.lemmas) {
            if let [first, second, ..] = lemma.literals[..] {
                self.watches[first.index()].push(number);
                self.watches[second.index()].push(number);
            }
        }
        let steps = self.proof.keep(self.lemmas.iter().map(|lemma| lemma.step));
        if self.proof.bytes() as u64 > largest_proof {
            self.proof.lose();
        }
        for lemma in self.lemmas.iter_mut().filter(|_| !self.proof.is_lost()) {
            lemma.step = steps[lemma.step as usize];
        }
    }

    /// Which lemmas to drop: of those that nothing follows from now, those of most decisions, older
    /// ones first.
    fn worse_half(&self) -> Vec<bool> {
        let mut is_reason = vec![false; self.lemmas.len()];
        let reasons = self.trail.iter().filter_map(|literal| self.states[literal.var()].reason);
        reasons.for_each(|lemma| is_reason[lemma as usize] = true);
        let is_free = |at: &usize| !is_reason[*at] && self.lemmas[*at].span > FEW;
        let mut free: Vec<usize> = (0..self.lemmas.len()).filter(is_free).collect();
        free.sort_by_key(|at| Reverse(self.lemmas[*at].span));
        let mut dropped = vec![false; self.lemmas.len()];
        free[..free.len() / 2].iter().for_each(|at| dropped[*at] = true);
        dropped
    }
}
