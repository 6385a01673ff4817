//! Search: conflict-driven, over one variable per choice, with acyclicity as its theory.
//!
//! Choices become variables only when the current order of the nodes leaves them open. A decision
//! adds the edges of an alternative to the order; where that closes a cycle, the literals on the
//! cycle are a conflict like any other, from which a clause is learned. Which alternative is tried
//! first matters most: the one that the current order is closer to, which began as a guess at the
//! order of commits. Where that leads into many conflicts, alternatives that were right before are
//! tried first, with restarts.

mod heap;
mod literal;
mod propagate;
mod refutation;
mod sources;

use isolario_model::{KeyId, Limit};

pub(crate) use literal::{Label, Variables};

use super::limits::Limits;
use super::order::{Chosen, Order};
use super::problem::{Alternative, Arc, Precedes, Problem};
use super::undecided::{Undecided, undecided};
use crate::Phase;
use crate::clauses::{Clauses, Conflict, Literal};
use heap::Heap;
use refutation::Ground;

pub(crate) use refutation::Refutation;

/// After so many conflicts, the order no longer says which alternative is tried first.
const TRUST_ORDER_FOR: u64 = 5_000;
/// Conflicts of the shortest run between restarts.
const RUN: u64 = 128;
/// Conflicts before clauses are forgotten for the first time, and by how many more each later pause is longer.
const FIRST_PAUSE: u64 = 2_000;
const LONGER_BY: u64 = 300;
/// How often the clock is looked at, in decisions and conflicts.
const LOOK_EVERY: u64 = 16;
/// How often it is counted what memory is in use.
const COUNT_EVERY: u64 = 256;

/// What a search found.
pub(crate) enum SearchEnd {
    /// The order settles every choice.
    Solution,
    /// There is none.
    Refutation(Refutation<Chosen>),
    /// A limit was reached; none if it was that of conflicts.
    Stopped(Limit),
}

/// When learned clauses are forgotten next, in conflicts.
struct Schedule {
    next: u64,
    pause: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { next: FIRST_PAUSE, pause: FIRST_PAUSE }
    }
}

impl Schedule {
    /// Whether it is time. Each pause is longer than the last, so that more and more is kept, and
    /// every search comes to an end.
    fn is_due(&mut self, conflicts: u64) -> bool {
        let is_due = conflicts >= self.next;
        if is_due {
            self.pause += LONGER_BY;
            self.next = conflicts + self.pause;
        }
        is_due
    }
}

pub(crate) struct Search<'p, 'g> {
    problem: &'p Problem,
    pub(crate) order: Order<'g>,
    pub(crate) variables: Variables,
    clauses: Clauses<Ground>,
    heap: Heap,
    /// How many edges there were before each decision.
    edges: Vec<usize>,
    schedule: Schedule,
    pub(crate) conflicts: u64,
    is_dirty: Vec<bool>,
    /// Per candidate, whether it is known that the read did not see it; empty if nothing is known.
    gone: &'p [bool],
    /// The keys with reads whose candidates are variables.
    open_keys: Vec<KeyId>,
}

impl<'p, 'g> Search<'p, 'g> {
    pub(crate) fn new(problem: &'p Problem, order: Order<'g>) -> Self {
        Search {
            problem,
            order,
            variables: Variables::default(),
            clauses: Clauses::default(),
            heap: Heap::new(),
            edges: Vec::new(),
            schedule: Schedule::default(),
            conflicts: 0,
            is_dirty: vec![false; problem.versions.key_count()],
            gone: &[],
            open_keys: Vec::new(),
        }
    }

    /// Without the candidates of reads that are known not to be the source.
    pub(crate) fn without(self, gone: &'p [bool]) -> Self {
        Search { gone, ..self }
    }

    /// How many choices are variables, and how many of them are not settled.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.clauses.len(), self.clauses.free_count())
    }

    /// Searches, with at most so many conflicts.
    pub(crate) fn run(&mut self, limits: &Limits<'_>, most_conflicts: Option<u64>) -> SearchEnd {
        let all: Vec<KeyId> = (0..self.problem.versions.key_count()).map(KeyId::at).collect();
        self.open(&all);
        let phase = most_conflicts.map_or(Phase::Searching, |_| Phase::Guessing);
        let (mut turns, mut run, mut left) = (0u64, 1, RUN);
        loop {
            turns += 1;
            if turns.is_multiple_of(LOOK_EVERY)
                && let Some(limit) = self.limit(turns, phase, limits)
            {
                return SearchEnd::Stopped(limit);
            }
            if let Some(conflict) = self.follow_up() {
                self.conflicts += 1;
                left = left.saturating_sub(1);
                match self.resolve(&conflict) {
                    Some(_) if self.clauses.is_proof_lost() => {
                        return SearchEnd::Stopped(Limit::Argument(limits.proof()));
                    }
                    Some(refutation) => return SearchEnd::Refutation(refutation),
                    None if most_conflicts.is_some_and(|most| self.conflicts >= most) => {
                        return SearchEnd::Stopped(Limit::Steps);
                    }
                    None => continue,
                }
            }
            if self.schedule.is_due(self.conflicts) {
                self.clauses.forget(limits.proof());
            }
            if left == 0 {
                run += 1;
                left = RUN * luby(run);
                self.back_to(0);
            }
            if !self.decide() {
                let moved = self.order.take_moved();
                let mut keys = self.dirty_keys(&moved);
                keys.extend(self.keys_of_open_reads());
                keys.sort_unstable();
                keys.dedup();
                if !self.open(&keys) {
                    return SearchEnd::Solution;
                }
            }
        }
    }

    /// The limit that is reached, if one is.
    fn limit(&self, turns: u64, phase: Phase, limits: &Limits<'_>) -> Option<Limit> {
        if !turns.is_multiple_of(COUNT_EVERY) {
            return limits.reached(0);
        }
        let (choices, open) = self.progress();
        limits.tell(phase, (choices - open) as u64, choices as u64, self.conflicts);
        limits.reached(self.bytes())
    }

    /// Makes the open choices about some keys variables. Returns whether there are any.
    fn open(&mut self, keys: &[KeyId]) -> bool {
        let (taken, is_there) = (|read| self.taken(read), |number| self.is_there(number));
        let Undecided { orders, reads } =
            undecided(self.problem, &self.order, keys, &taken, &is_there);
        for precedes in &orders {
            self.open_order(*precedes);
        }
        reads.iter().for_each(|read| self.open_read(*read));
        !orders.is_empty() || !reads.is_empty()
    }

    fn open_order(&mut self, precedes: Precedes) {
        let (phase, is_new) = self.variables.order(precedes);
        if is_new {
            self.add_variable(phase);
            for (version, literal) in [(precedes.first, phase), (precedes.second, !phase)] {
                if !self.problem.sources.of_version(version).is_empty() {
                    self.variables.note_before(version, literal);
                }
            }
        }
    }

    fn add_variable(&mut self, phase: Literal) {
        self.clauses.add_variable(phase);
        self.heap.add();
    }

    /// The keys that transactions access which moved.
    fn dirty_keys(&mut self, moved: &[u32]) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> = Vec::new();
        for txn in moved.iter().filter_map(|node| self.problem.layout.txn(*node)) {
            for key in self.problem.versions.accessed(txn) {
                if !std::mem::replace(&mut self.is_dirty[key.index()], true) {
                    keys.push(*key);
                }
            }
        }
        keys.iter().for_each(|key| self.is_dirty[key.index()] = false);
        keys.sort_unstable();
        keys
    }

    /// Sets a variable that has no value yet. False if there is none.
    fn decide(&mut self) -> bool {
        while let Some(var) = self.heap.pop() {
            if self.clauses.is_free(var as usize) {
                let literal = self.preferred(var);
                if literal.var() != var as usize {
                    self.heap.insert(var);
                }
                self.edges.push(self.order.len());
                self.clauses.decide(literal);
                return true;
            }
        }
        false
    }

    /// The alternative that the current order is closer to: that whose edges lead back least.
    fn preferred(&self, var: u32) -> Literal {
        let phase = self.clauses.phase(var as usize);
        let trusts_order = self.conflicts <= TRUST_ORDER_FOR;
        match self.variables.siblings(self.problem, var) {
            Some(siblings) => self.preferred_of(siblings, var, phase, trusts_order),
            None if trusts_order && self.leads_back(phase) > self.leads_back(!phase) => !phase,
            None => phase,
        }
    }

    /// As [`Search::preferred`], of several alternatives of which one is enough.
    fn preferred_of(
        &self,
        siblings: impl Iterator<Item = Literal> + Clone,
        var: u32,
        phase: Literal,
        trusts_order: bool,
    ) -> Literal {
        if siblings.clone().any(|literal| self.clauses.is_true(literal)) {
            return !Literal::of(var);
        }
        let free = siblings.filter(|literal| trusts_order && !self.clauses.is_false(*literal));
        let source = |literal: &Literal| self.variables.source(*literal);
        let distance = |literal: &Literal| source(literal).map(|source| self.distance(source));
        free.min_by_key(distance).unwrap_or(phase)
    }

    /// By how many places the edges that a literal adds lead back at most.
    fn leads_back(&self, literal: Literal) -> u32 {
        match self.variables.alternative(literal) {
            Some(Alternative::Order(precedes)) => self.farthest_back(self.problem.arcs(precedes)),
            Some(Alternative::Source(candidate)) => {
                self.farthest_back(self.problem.source_arcs(candidate))
            }
            None => 0,
        }
    }

    fn farthest_back(&self, edges: impl Iterator<Item = Arc>) -> u32 {
        let rank = |node| self.order.rank(node);
        edges.map(|(from, to)| rank(from).saturating_sub(rank(to))).max().unwrap_or(0)
    }

    /// Learns from a conflict and goes back to where that says something new. If the conflict
    /// depends on no decision, returns what shows that.
    fn resolve(&mut self, conflict: &Conflict) -> Option<Refutation<Chosen>> {
        let Some(lesson) = self.clauses.learn(conflict) else {
            return Some(self.refutation(conflict));
        };
        lesson.involved.iter().for_each(|var| self.heap.bump(*var));
        self.heap.decay();
        self.back_to(lesson.level);
        self.clauses.keep(lesson);
        None
    }

    /// Takes back all decisions after the first few.
    fn back_to(&mut self, level: usize) {
        let Some(edges) = self.edges.get(level).copied() else { return };
        self.clauses.back_to(level, |literal| self.heap.insert(literal.var() as u32));
        self.order.truncate(edges);
        self.edges.truncate(level);
    }

    /// What the search takes, and what it works on.
    fn bytes(&self) -> u64 {
        // A variable also has its places in the heap, on the trail and in the table of choices.
        let own = self.clauses.bytes() + self.clauses.len() * 72 + self.order.bytes();
        own as u64 + self.problem.bytes()
    }
}

/// The sequence 1 1 2 1 1 2 4 1 1 2 …, which loses least whatever the best length of a run is.
fn luby(index: u64) -> u64 {
    let mut at = index;
    loop {
        let block = u64::BITS - at.leading_zeros();
        if at + 1 == 1 << block {
            return 1 << (block - 1);
        }
        at -= (1 << (block - 1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_between_restarts_follow_luby() {
        let first: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
