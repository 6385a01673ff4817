//! Clauses: sets of literals of which one must be true. What follows from them, and what a conflict teaches.
//!
//! This is the part of a conflict-driven search that does not depend on what its variables mean (Marques-Silva
//! and Sakallah, *GRASP*, 1999; two watched literals as in Moskewicz et al., *Chaff*, 2001). The client decides:
//! which variables there are, which one gets a value next, and what else a value implies. The
//! [search for an order](crate::strong) adds edges, [suppositions](crate::suppose) decide a level.
//!
//! Every clause is a step of a proof: it is given, with its reason, or learned from earlier steps
//! (`proof.rs`). So a contradiction leads back to the reasons that it rests on.

mod forget;
mod learn;
mod proof;
#[cfg(test)]
mod tests;

use std::ops::Not;

pub(crate) use proof::Given;
use proof::{Inference, Proof};

/// Number of decisions and conflicts after which a search without a theory checks whether it is over.
const CHECK_EVERY: usize = 64;

/// A variable or its opposite: twice the variable, and one more for the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal(u32);

impl Literal {
    /// A variable, as a literal.
    #[inline]
    pub(crate) fn of(var: u32) -> Literal {
        Literal(2 * var)
    }

    #[inline]
    pub(crate) fn var(self) -> usize {
        (self.0 / 2) as usize
    }

    /// Whether it is the variable, not its opposite.
    #[inline]
    pub(crate) fn is_positive(self) -> bool {
        self.0.is_multiple_of(2)
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Not for Literal {
    type Output = Literal;

    #[inline]
    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

/// A variable's state.
#[derive(Clone, Copy)]
struct State {
    /// The literal that is true, if one is.
    value: Option<Literal>,
    /// Number of decisions it depends on.
    level: u32,
    /// The clause it follows from; none for decisions.
    reason: Option<u32>,
    /// The literal that was true last.
    phase: Literal,
}

struct Clause {
    /// The first two are watched.
    literals: Vec<Literal>,
    step: u32,
    /// Number of decisions that it ties together.
    span: u32,
}

/// A clause all of whose literals are false.
#[derive(Clone)]
pub(crate) struct Conflict {
    literals: Vec<Literal>,
    step: u32,
}

/// Clauses, each given for a reason `G` or learned from others, and the values of their variables.
pub(crate) struct Clauses<G> {
    states: Vec<State>,
    /// The literals that are true, in the order in which they were set.
    trail: Vec<Literal>,
    /// Where each decision is on the trail.
    levels: Vec<usize>,
    /// Number of literals of the trail that have been propagated.
    followed: usize,
    clauses: Vec<Clause>,
    /// Per literal, the clauses that watch for it to be false.
    watches: Vec<Vec<u32>>,
    proof: Proof<G>,
    /// A given clause that is false whatever is decided.
    contradiction: Option<Conflict>,
    /// Working space: the variables that a lesson has seen.
    seen: Vec<bool>,
}

impl<G> Default for Clauses<G> {
    fn default() -> Self {
        Clauses {
            states: Vec::new(),
            trail: Vec::new(),
            levels: Vec::new(),
            followed: 0,
            clauses: Vec::new(),
            watches: Vec::new(),
            proof: Proof::default(),
            contradiction: None,
            seen: Vec::new(),
        }
    }
}

impl<G: Given> Clauses<G> {
    /// Adds a variable, numbered one more than the last. `phase` is the literal to try first.
    pub(crate) fn add_variable(&mut self, phase: Literal) {
        self.states.push(State { value: None, level: 0, reason: None, phase });
        self.watches.extend([Vec::new(), Vec::new()]);
        self.seen.push(false);
    }

    /// Number of variables.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Number of variables without a value.
    pub(crate) fn free_count(&self) -> usize {
        self.states.len() - self.trail.len()
    }

    /// Whether a variable has no value.
    #[inline]
    pub(crate) fn is_free(&self, var: usize) -> bool {
        self.states[var].value.is_none()
    }

    #[inline]
    pub(crate) fn is_true(&self, literal: Literal) -> bool {
        self.states[literal.var()].value == Some(literal)
    }

    #[inline]
    pub(crate) fn is_false(&self, literal: Literal) -> bool {
        self.states[literal.var()].value == Some(!literal)
    }

    /// The literal of a variable that was true last.
    #[inline]
    pub(crate) fn phase(&self, var: usize) -> Literal {
        self.states[var].phase
    }

    /// Makes a literal true that has no value yet.
    pub(crate) fn decide(&mut self, literal: Literal) {
        self.levels.push(self.trail.len());
        self.set(literal, None);
    }

    #[inline]
    fn set(&mut self, literal: Literal, reason: Option<u32>) {
        let state = &mut self.states[literal.var()];
        state.value = Some(literal);
        state.level = self.levels.len() as u32;
        state.reason = reason;
        state.phase = literal;
        self.trail.push(literal);
    }

    /// Takes back all decisions after the first `level`. `freed` is called for each literal that loses its value.
    pub(crate) fn back_to(&mut self, level: usize, mut freed: impl FnMut(Literal)) {
        let Some(trail) = self.levels.get(level).copied() else { return };
        for literal in self.trail.drain(trail..) {
            self.states[literal.var()].value = None;
            freed(literal);
        }
        self.levels.truncate(level);
        self.followed = trail;
    }

    /// Adds a clause. Unless two of its literals have no value, all decisions must have been taken back, so that
    /// what follows from it depends on nothing else.
    pub(crate) fn add(&mut self, mut literals: Vec<Literal>, given: G) {
        literals.sort_by_key(|literal| !self.is_free(literal.var()));
        let step = self.proof.add(Inference::Given(given));
        let is_asked = literals.iter().skip(1).all(|literal| self.is_false(*literal));
        let first = literals.first().copied();
        if is_asked && first.is_none_or(|first| self.is_false(first)) {
            self.contradiction = Some(Conflict { literals: literals.clone(), step });
        }
        let number = self.push(Clause { literals, step, span: 0 });
        if let Some(first) = first.filter(|first| is_asked && self.is_free(first.var())) {
            self.set(first, Some(number));
        }
    }

    /// Keeps a clause, which watches its first two literals. Returns its number.
    fn push(&mut self, clause: Clause) -> u32 {
        let number = self.clauses.len() as u32;
        self.watch(number, &clause.literals);
        self.clauses.push(clause);
        number
    }

    fn watch(&mut self, number: u32, literals: &[Literal]) {
        if let [first, second, ..] = literals {
            self.watches[first.index()].push(number);
            self.watches[second.index()].push(number);
        }
    }

    /// A conflict that no clause states: the client found for a reason of its own that one of these literals must
    /// be true.
    pub(crate) fn conflict(&mut self, literals: Vec<Literal>, given: G) -> Conflict {
        Conflict { literals, step: self.proof.add(Inference::Given(given)) }
    }

    /// The next literal to follow up.
    #[inline]
    pub(crate) fn next_set(&mut self) -> Option<Literal> {
        let literal = self.trail.get(self.followed).copied()?;
        self.followed += 1;
        Some(literal)
    }

    /// Visits the clauses that watch for the opposite of a literal.
    pub(crate) fn visit_watches(&mut self, literal: Literal) -> Option<Conflict> {
        let lost = !literal;
        let mut watching = std::mem::take(&mut self.watches[lost.index()]);
        let (mut at, mut conflict) = (0, None);
        while at < watching.len() && conflict.is_none() {
            let number = watching[at];
            if self.find_other(number, lost) {
                watching.swap_remove(at);
                continue;
            }
            at += 1;
            let first = self.clauses[number as usize].literals[0];
            if self.is_false(first) {
                let clause = &self.clauses[number as usize];
                conflict = Some(Conflict { literals: clause.literals.clone(), step: clause.step });
            } else if !self.is_true(first) {
                self.set(first, Some(number));
            }
        }
        self.watches[lost.index()].append(&mut watching);
        conflict
    }

    /// Makes a clause watch for another literal than one that became false. False if its first is true, or all
    /// others are false.
    fn find_other(&mut self, number: u32, lost: Literal) -> bool {
        let mut literals = std::mem::take(&mut self.clauses[number as usize].literals);
        if literals[0] == lost {
            literals.swap(0, 1);
        }
        let other = if self.is_true(literals[0]) {
            None
        } else {
            (2..literals.len()).find(|at| !self.is_false(literals[*at]))
        };
        if let Some(at) = other {
            literals.swap(1, at);
            self.watches[literals[1].index()].push(number);
        }
        self.clauses[number as usize].literals = literals;
        other.is_some()
    }

    /// Searches for values that make all clauses true, where nothing but clauses counts, until `next` names no
    /// literal to make true. Otherwise returns what the given clauses that contradict each other were given for. If
    /// it is over on the way, some variables have no values yet.
    pub(crate) fn solve(
        &mut self,
        is_over: &dyn Fn() -> bool,
        mut next: impl FnMut(&Self) -> Option<Literal>,
    ) -> Result<(), Vec<&G>> {
        for turn in 1usize.. {
            if turn.is_multiple_of(CHECK_EVERY) && is_over() {
                break;
            }
            if let Some(conflict) = self.contradiction.clone().or_else(|| self.propagate()) {
                let Some(lesson) = self.learn(&conflict) else {
                    return Err(self.grounds(&conflict));
                };
                self.back_to(lesson.level, |_| ());
                self.keep(lesson);
            } else if let Some(literal) = next(self) {
                self.decide(literal);
            } else {
                break;
            }
        }
        Ok(())
    }

    fn propagate(&mut self) -> Option<Conflict> {
        while let Some(literal) = self.next_set() {
            if let Some(conflict) = self.visit_watches(literal) {
                return Some(conflict);
            }
        }
        None
    }

    /// Number of bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        let literals: usize = self.clauses.iter().map(|clause| clause.literals.capacity()).sum();
        let clauses =
            self.clauses.capacity() * size_of::<Clause>() + literals * size_of::<Literal>();
        // A clause is watched twice, in lists that may be half empty.
        let watches = self.watches.capacity() * size_of::<Vec<u32>>() + self.clauses.len() * 16;
        clauses + watches + self.states.capacity() * size_of::<State>() + self.proof.bytes()
    }
}
