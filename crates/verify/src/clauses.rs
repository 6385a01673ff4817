//! Whether clauses can all be true: a small search that learns from its conflicts.
//!
//! The textbook form of it (two watched literals, first unique implication point, the variables of
//! recent conflicts first), without restarts and without forgetting: the clauses of a proof are those
//! with which a search already ended.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A variable, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal(u32);

impl Literal {
    /// A variable, or its negation.
    pub(crate) fn new(variable: usize, positive: bool) -> Literal {
        Literal(variable as u32 * 2 + u32::from(!positive))
    }

    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }

    fn variable(self) -> usize {
        self.0 as usize / 2
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether some values of so many variables make at least one literal of every clause true.
pub(crate) fn is_satisfiable(variables: usize, clauses: &[Vec<Literal>]) -> bool {
    let mut search = Search::new(variables);
    clauses.iter().all(|clause| search.add(clause)) && search.run()
}

/// The clause that made a literal true; none for what was tried or given.
type Why = Option<usize>;

struct Search {
    clauses: Vec<Vec<Literal>>,
    /// Per literal, the clauses that watch it: it is one of their first two.
    watches: Vec<Vec<usize>>,
    /// Per variable, the literal of it that is true.
    values: Vec<Option<Literal>>,
    /// Per variable, why it has its value, and after how many trials it got it.
    whys: Vec<(Why, usize)>,
    /// What is true, in the order in which it became so, and where each trial begins.
    trail: Vec<Literal>,
    trials: Vec<usize>,
    /// How much of the trail has been followed up.
    followed: usize,
    /// Per variable, the last conflict it was part of; and those without a value by it.
    bumped: Vec<u64>,
    free: BTreeSet<(Reverse<u64>, usize)>,
    conflicts: u64,
}

impl Search {
    fn new(variables: usize) -> Self {
        Search {
            clauses: Vec::new(),
            watches: vec![Vec::new(); variables * 2],
            values: vec![None; variables],
            whys: vec![(None, 0); variables],
            trail: Vec::new(),
            trials: Vec::new(),
            followed: 0,
            bumped: vec![0; variables],
            free: (0..variables).map(|variable| (Reverse(0), variable)).collect(),
            conflicts: 0,
        }
    }

    /// Adds a clause before the search. False if it contradicts those before.
    fn add(&mut self, clause: &[Literal]) -> bool {
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        if clause.windows(2).any(|pair| pair[0] == pair[1].not()) {
            return true;
        }
        match clause.as_slice() {
            [] => false,
            [only] if self.is_false(*only) => false,
            [only] => {
                self.set(*only, None);
                true
            }
            _ => {
                self.watch(clause);
                true
            }
        }
    }

    fn watch(&mut self, clause: Vec<Literal>) -> usize {
        let at = self.clauses.len();
        clause.iter().take(2).for_each(|literal| self.watches[literal.index()].push(at));
        self.clauses.push(clause);
        at
    }

    fn run(&mut self) -> bool {
        loop {
            match self.follow() {
                Some(_) if self.trials.is_empty() => return false,
                Some(conflict) => self.learn(conflict),
                None => match self.free.first().copied() {
                    None => return true,
                    Some((_, variable)) => {
                        self.trials.push(self.trail.len());
                        self.set(Literal::new(variable, true), None);
                    }
                },
            }
        }
    }

    fn is_true(&self, literal: Literal) -> bool {
        self.values[literal.variable()] == Some(literal)
    }

    fn is_false(&self, literal: Literal) -> bool {
        self.values[literal.variable()] == Some(literal.not())
    }

    fn set(&mut self, literal: Literal, why: Why) {
        let variable = literal.variable();
        if self.values[variable].is_none() {
            self.values[variable] = Some(literal);
            self.whys[variable] = (why, self.trials.len());
            self.free.remove(&(Reverse(self.bumped[variable]), variable));
            self.trail.push(literal);
        }
    }

    /// Makes true what must be, until nothing follows or a clause has become false.
    fn follow(&mut self) -> Option<usize> {
        while let Some(literal) = self.trail.get(self.followed).copied() {
            self.followed += 1;
            let watching = std::mem::take(&mut self.watches[literal.not().index()]);
            let mut conflict = None;
            for at in watching {
                if conflict.is_some() || !self.look_elsewhere(at, literal.not()) {
                    self.watches[literal.not().index()].push(at);
                    if conflict.is_none() {
                        conflict = self.force(at);
                    }
                }
            }
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Lets a clause watch another literal than the one that became false, and leaves that one
    /// second. False if all others are false, or the first is true anyway.
    fn look_elsewhere(&mut self, at: usize, falsified: Literal) -> bool {
        let clause = &mut self.clauses[at];
        if clause[0] == falsified {
            clause.swap(0, 1);
        }
        let values = &self.values;
        let is_false = |literal: &Literal| values[literal.variable()] == Some(literal.not());
        if values[clause[0].variable()] == Some(clause[0]) {
            return false;
        }
        let Some(other) = clause.iter().skip(2).position(|literal| !is_false(literal)) else {
            return false;
        };
        clause.swap(1, other + 2);
        self.watches[clause[1].index()].push(at);
        true
    }

    /// Makes the first literal of a clause true, since all others are false: the clause, if it is
    /// false itself.
    fn force(&mut self, at: usize) -> Option<usize> {
        let first = self.clauses[at][0];
        if self.is_true(first) {
            return None;
        }
        if self.is_false(first) {
            return Some(at);
        }
        self.set(first, Some(at));
        None
    }

    /// Learns from a conflict what the last trial rules out, and goes back to where it follows.
    fn learn(&mut self, conflict: usize) {
        self.conflicts += 1;
        let now = self.trials.len();
        let mut seen = BTreeSet::new();
        let mut learned = Vec::new();
        // How many literals of the current trial are seen and not yet explained.
        let mut open = 0;
        let mut explain = Some(conflict);
        let mut at = self.trail.len();
        let asserted = loop {
            for literal in explain.map(|clause| self.clauses[clause].clone()).unwrap_or_default() {
                let (_, trial) = self.whys[literal.variable()];
                if trial == 0 || !self.is_false(literal) || !seen.insert(literal.variable()) {
                    continue;
                }
                match trial == now {
                    true => open += 1,
                    false => learned.push(literal),
                }
            }
            at = self.last_seen(at, &seen);
            let literal = self.trail[at];
            open -= 1;
            if open == 0 {
                break literal.not();
            }
            explain = self.whys[literal.variable()].0;
        };
        seen.into_iter().for_each(|variable| self.bump(variable));
        learned.sort_unstable_by_key(|literal| Reverse(self.whys[literal.variable()].1));
        let back = learned.first().map_or(0, |literal| self.whys[literal.variable()].1);
        self.go_back(back);
        learned.insert(0, asserted);
        let why = (learned.len() > 1).then(|| self.watch(learned));
        self.set(asserted, why);
    }

    /// Where in the trail, before a place, the last variable seen stands.
    fn last_seen(&self, before: usize, seen: &BTreeSet<usize>) -> usize {
        let is_seen = |literal: &Literal| seen.contains(&literal.variable());
        self.trail[..before].iter().rposition(is_seen).unwrap_or(0)
    }

    fn bump(&mut self, variable: usize) {
        let before = std::mem::replace(&mut self.bumped[variable], self.conflicts);
        if self.free.remove(&(Reverse(before), variable)) {
            self.free.insert((Reverse(self.conflicts), variable));
        }
    }

    fn go_back(&mut self, trials: usize) {
        let Some(begin) = self.trials.get(trials).copied() else { return };
        for literal in self.trail.drain(begin..) {
            let variable = literal.variable();
            self.values[variable] = None;
            self.free.insert((Reverse(self.bumped[variable]), variable));
        }
        self.trials.truncate(trials);
        self.followed = begin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(clause: &[i32]) -> Vec<Literal> {
        let literal = |l: &i32| Literal::new(l.unsigned_abs() as usize - 1, *l > 0);
        clause.iter().map(literal).collect()
    }

    /// All values are tried.
    fn by_brute_force(variables: usize, clauses: &[Vec<Literal>]) -> bool {
        (0..1u32 << variables).any(|values| {
            let holds = |literal: &Literal| {
                *literal == Literal::new(literal.variable(), values >> literal.variable() & 1 == 1)
            };
            clauses.iter().all(|clause| clause.iter().any(holds))
        })
    }

    #[test]
    fn nothing_is_satisfiable_and_an_empty_clause_is_not() {
        assert!(is_satisfiable(0, &[]));
        assert!(is_satisfiable(1, &[literals(&[1, -1])]));
        assert!(!is_satisfiable(1, &[Vec::new()]));
        assert!(!is_satisfiable(1, &[literals(&[1]), literals(&[-1])]));
    }

    #[test]
    fn the_search_agrees_with_brute_force() {
        let mut state = 1u32;
        let mut below = |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % bound
        };
        let mut counts = [0, 0];
        for _ in 0..3_000 {
            let variables = 1 + below(9) as usize;
            let mut clauses = Vec::new();
            for _ in 0..below(45) {
                let literal = |_| Literal::new(below(variables as u32) as usize, below(2) == 0);
                clauses.push((0..3).map(literal).collect::<Vec<_>>());
            }
            let expected = by_brute_force(variables, &clauses);
            assert_eq!(is_satisfiable(variables, &clauses), expected, "{clauses:?}");
            counts[usize::from(expected)] += 1;
        }
        assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
    }

    /// So many pigeons do not fit in one hole fewer.
    #[test]
    fn pigeons_do_not_fit() {
        let holes = 5;
        let sits = |pigeon: usize, hole: usize| Literal::new(pigeon * holes + hole, true);
        let mut clauses: Vec<Vec<Literal>> =
            (0..=holes).map(|pigeon| (0..holes).map(|hole| sits(pigeon, hole)).collect()).collect();
        for hole in 0..holes {
            for one in 0..=holes {
                let others = 0..one;
                clauses.extend(others.map(|o| vec![sits(one, hole).not(), sits(o, hole).not()]));
            }
        }
        assert!(!is_satisfiable((holes + 1) * holes, &clauses));
        clauses.remove(0);
        assert!(is_satisfiable((holes + 1) * holes, &clauses));
    }
}
