//! What cannot hold together, and what follows from that: a small search that learns from its conflicts.
//!
//! A *choice* has several alternatives, of which one must hold if its condition does. A clause says of
//! which literals one is true. Alternatives are tried in the order of preference that each choice comes
//! with, those first that held before: an assignment that is ruled out changes where it must, and stays
//! as it is elsewhere. What nothing asks for stays without a value, and may be taken to be false.
//!
//! Clauses may be added between one search and the next. Everything that is learned remembers what it
//! came from, so that a contradiction can be told by the clauses that it rests on.

use rustc_hash::FxHashSet;

/// How often it is asked whether it is over, in trials and conflicts.
const LOOK_EVERY: usize = 64;

/// Contradictions of more clauses are left as they are.
const MOST_TRIMMED: usize = 400;

/// Something that may hold or not.
pub(super) type Variable = u32;

/// A variable, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Literal(u32);

impl Literal {
    pub(super) fn holds(variable: Variable) -> Literal {
        Literal(variable * 2)
    }

    pub(super) fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }

    fn variable(self) -> usize {
        self.0 as usize / 2
    }
}

/// What a clause came from: other clauses, and what is certain about these variables. Nothing for one
/// that was given.
#[derive(Default)]
struct Origin {
    clauses: Vec<u32>,
    certain: Vec<u32>,
}

struct Clause {
    literals: Vec<Literal>,
    origin: Option<Origin>,
}

/// Alternatives of which one must hold.
#[derive(Clone)]
struct Choice {
    /// The clause that says so.
    clause: u32,
    /// Only if this does.
    condition: Option<Variable>,
    /// Preferred ones first.
    alternatives: Vec<Variable>,
    /// The one that held last.
    held: usize,
}

#[derive(Clone, Copy)]
struct Value {
    literal: Literal,
    /// The clause that made it true; none for what was tried.
    because: Option<u32>,
    /// After how many trials.
    trial: u32,
}

#[derive(Default)]
pub(super) struct Clauses {
    clauses: Vec<Clause>,
    /// Per literal, the clauses that have it among their first two.
    watches: Vec<Vec<u32>>,
    values: Vec<Option<Value>>,
    trail: Vec<Literal>,
    trials: Vec<usize>,
    followed: usize,
    choices: Vec<Choice>,
    /// A clause that what is certain makes false.
    contradicted: Option<u32>,
}

impl Clauses {
    /// So many new variables, the first of them.
    pub(super) fn variables(&mut self, count: usize) -> Variable {
        let first = self.values.len();
        self.values.resize(first + count, None);
        self.watches.resize((first + count) * 2, Vec::new());
        first as Variable
    }

    /// Says that one of some alternatives must hold, those that are preferred first. Returns the number
    /// of the clause.
    pub(super) fn choose(
        &mut self,
        condition: Option<Variable>,
        alternatives: Vec<Variable>,
    ) -> u32 {
        let unless = condition.map(|variable| Literal::holds(variable).not());
        let holds = alternatives.iter().copied().map(Literal::holds);
        let number = self.add(unless.into_iter().chain(holds).collect());
        if !alternatives.is_empty() {
            self.choices.push(Choice { clause: number, condition, alternatives, held: 0 });
        }
        number
    }

    /// Says that one of some literals is true. Returns the number of the clause.
    pub(super) fn add(&mut self, mut literals: Vec<Literal>) -> u32 {
        self.go_back(0);
        literals.sort_unstable();
        literals.dedup();
        self.keep(Clause { literals, origin: None })
    }

    /// Keeps a clause of which, by what is certain, at most one literal must hold now.
    fn keep(&mut self, clause: Clause) -> u32 {
        let number = self.clauses.len() as u32;
        let Clause { mut literals, origin } = clause;
        literals.sort_by_key(|literal| self.is_false(*literal));
        let is_false = |at: usize| literals.get(at).is_none_or(|literal| self.is_false(*literal));
        let (none_left, one_left) = (is_false(0), is_false(1));
        literals.iter().take(2).for_each(|literal| self.watches[literal.0 as usize].push(number));
        if none_left {
            self.contradicted.get_or_insert(number);
        } else if one_left {
            self.set(literals[0], Some(number));
        }
        self.clauses.push(Clause { literals, origin });
        number
    }

    /// Looks for values that make every clause true. Otherwise returns the given clauses that
    /// contradict each other, by their numbers. Where it is over on the way, some have no values yet.
    pub(super) fn solve(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), Vec<u32>> {
        for turn in 1usize.. {
            if turn.is_multiple_of(LOOK_EVERY) && is_over() {
                break;
            }
            let conflict = self.contradicted.or_else(|| self.follow());
            match conflict {
                Some(clause) if self.trials.is_empty() => {
                    self.contradicted = Some(clause);
                    return Err(self.roots(clause));
                }
                Some(clause) => self.learn(clause),
                None => match self.next_trial() {
                    None => return Ok(()),
                    Some(literal) => {
                        self.trials.push(self.trail.len());
                        self.set(literal, None);
                    }
                },
            }
        }
        Ok(())
    }

    /// As few of some clauses that contradict each other as still do: none of them can go, but for the
    /// choices. Where there are many, as many as they are.
    pub(super) fn trimmed(&self, contradiction: Vec<u32>) -> Vec<u32> {
        let mut left = contradiction;
        let mut at = 0;
        while at < left.len() && left.len() <= MOST_TRIMMED {
            let is_choice = self.choice_of(left[at]).is_some();
            let rest = [&left[..at], &left[at + 1..]].concat();
            match if is_choice { None } else { self.contradiction_of(&rest) } {
                Some(fewer) => left = fewer,
                None => at += 1,
            }
        }
        left
    }

    /// What contradicts each other among some given clauses.
    fn contradiction_of(&self, given: &[u32]) -> Option<Vec<u32>> {
        let mut clauses = Clauses::default();
        clauses.variables(self.values.len());
        for number in given {
            match self.choice_of(*number) {
                Some(choice) => clauses.choose(choice.condition, choice.alternatives.clone()),
                None => clauses.add(self.clauses[*number as usize].literals.clone()),
            };
        }
        let numbers = clauses.solve(&|| false).err()?;
        Some(numbers.into_iter().map(|number| given[number as usize]).collect())
    }

    fn choice_of(&self, clause: u32) -> Option<&Choice> {
        let at = self.choices.binary_search_by_key(&clause, |choice| choice.clause).ok()?;
        Some(&self.choices[at])
    }

    /// Whether a variable holds, as far as anything asks for it.
    pub(super) fn holds(&self, variable: Variable) -> bool {
        self.is_true(Literal::holds(variable))
    }

    fn is_true(&self, literal: Literal) -> bool {
        self.values[literal.variable()].is_some_and(|value| value.literal == literal)
    }

    fn is_false(&self, literal: Literal) -> bool {
        self.is_true(literal.not())
    }

    fn set(&mut self, literal: Literal, because: Option<u32>) {
        let value = &mut self.values[literal.variable()];
        if value.is_none() {
            *value = Some(Value { literal, because, trial: self.trials.len() as u32 });
            self.trail.push(literal);
        }
    }

    /// An alternative of a choice of which none holds yet and one must.
    fn next_trial(&mut self) -> Option<Literal> {
        for at in 0..self.choices.len() {
            let Choice { condition, alternatives, held, .. } = &self.choices[at];
            if condition.is_some_and(|condition| !self.holds(condition)) {
                continue;
            }
            if self.holds(alternatives[*held]) {
                continue;
            }
            if let Some(holds) = alternatives.iter().position(|a| self.holds(*a)) {
                self.choices[at].held = holds;
                continue;
            }
            let is_open = |at: &usize| self.values[alternatives[*at] as usize].is_none();
            let open = [*held].into_iter().chain(0..alternatives.len()).find(is_open)?;
            let literal = Literal::holds(alternatives[open]);
            self.choices[at].held = open;
            return Some(literal);
        }
        None
    }

    /// Makes true what must be, until nothing follows or a clause has become false.
    fn follow(&mut self) -> Option<u32> {
        while let Some(literal) = self.trail.get(self.followed).copied() {
            self.followed += 1;
            let falsified = literal.not();
            let watching = std::mem::take(&mut self.watches[falsified.0 as usize]);
            for (at, clause) in watching.iter().copied().enumerate() {
                if self.look_elsewhere(clause, falsified) {
                    continue;
                }
                self.watches[falsified.0 as usize].push(clause);
                let first = self.clauses[clause as usize].literals[0];
                if self.is_false(first) {
                    self.watches[falsified.0 as usize].extend_from_slice(&watching[at + 1..]);
                    return Some(clause);
                }
                self.set(first, Some(clause));
            }
        }
        None
    }

    /// Lets a clause watch another literal than the one that became false. Otherwise that one is not
    /// its first, unless it has no other.
    fn look_elsewhere(&mut self, clause: u32, falsified: Literal) -> bool {
        let values = &self.values;
        let is_false = |literal: &Literal| {
            values[literal.variable()].is_some_and(|value| value.literal == literal.not())
        };
        let literals = &mut self.clauses[clause as usize].literals;
        if literals.len() < 2 {
            return false;
        }
        if literals[0] == falsified {
            literals.swap(0, 1);
        }
        let Some(other) = literals.iter().skip(2).position(|literal| !is_false(literal)) else {
            return false;
        };
        literals.swap(1, other + 2);
        let watched = literals[1];
        self.watches[watched.0 as usize].push(clause);
        true
    }

    /// Learns from a conflict what the last trial rules out, and goes back to where that follows (the
    /// first unique implication point).
    fn learn(&mut self, conflict: u32) {
        let now = self.trials.len() as u32;
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let (mut learned, mut origin) = (Vec::new(), Origin::default());
        let mut explain = Some(conflict);
        // How many literals of the last trial are seen and not yet explained.
        let mut open = 0;
        let mut at = self.trail.len();
        let asserted = loop {
            if let Some(clause) = explain {
                origin.clauses.push(clause);
                for literal in &self.clauses[clause as usize].literals {
                    let variable = literal.variable();
                    let trial = self.values[variable].map_or(0, |value| value.trial);
                    if !self.is_false(*literal) || !seen.insert(variable) {
                        continue;
                    }
                    match trial {
                        0 => origin.certain.push(variable as u32),
                        trial if trial == now => open += 1,
                        _ => learned.push(*literal),
                    }
                }
            }
            let is_seen = |literal: &Literal| seen.contains(&literal.variable());
            at = self.trail[..at].iter().rposition(is_seen).unwrap_or(0);
            let literal = self.trail[at];
            open -= 1;
            if open == 0 {
                break literal.not();
            }
            explain = self.values[literal.variable()].and_then(|value| value.because);
        };
        let trial = |literal: &Literal| self.values[literal.variable()].map_or(0, |v| v.trial);
        let back = learned.iter().map(trial).max().unwrap_or(0);
        // Watched are the first two: the one that follows, and one that was made false last.
        learned.sort_by_key(|literal| std::cmp::Reverse(trial(literal)));
        learned.insert(0, asserted);
        self.go_back(back as usize);
        self.keep(Clause { literals: learned, origin: Some(origin) });
    }

    fn go_back(&mut self, trials: usize) {
        let Some(begin) = self.trials.get(trials).copied() else { return };
        for literal in self.trail.drain(begin..) {
            self.values[literal.variable()] = None;
        }
        self.trials.truncate(trials);
        self.followed = self.followed.min(begin);
    }

    /// The given clauses that one rests on which is false by what is certain.
    fn roots(&self, conflict: u32) -> Vec<u32> {
        let variables = |clause: u32| {
            let literals = &self.clauses[clause as usize].literals;
            literals.iter().map(|literal| literal.variable() as u32)
        };
        let mut clauses = vec![conflict];
        let mut certain: Vec<u32> = variables(conflict).collect();
        let (mut used, mut known) = (FxHashSet::default(), FxHashSet::default());
        let mut given = Vec::new();
        loop {
            if let Some(variable) = certain.pop() {
                let value = self.values[variable as usize];
                if known.insert(variable)
                    && let Some(because) = value.and_then(|value| value.because)
                {
                    clauses.push(because);
                    certain.extend(variables(because));
                }
            } else if let Some(clause) = clauses.pop() {
                match &self.clauses[clause as usize].origin {
                    _ if !used.insert(clause) => {}
                    None => given.push(clause),
                    Some(origin) => {
                        clauses.extend(&origin.clauses);
                        certain.extend(&origin.certain);
                    }
                }
            } else {
                given.sort_unstable();
                return given;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use isolario_oracle::random::Rng;

    use super::*;

    type Problem = (Vec<Vec<Variable>>, Vec<Vec<Variable>>);

    /// Choices of three alternatives, and sets of alternatives that exclude each other.
    fn problem(rng: &mut Rng) -> Problem {
        let choices = rng.between(1, 5);
        let alternatives = |choice: usize| (0..3).map(|at| (choice * 3 + at) as Variable).collect();
        let excluded = (0..rng.below(40)).map(|_| {
            let size = rng.between(1, 3);
            (0..size).map(|_| rng.below(choices * 3) as Variable).collect()
        });
        ((0..choices).map(alternatives).collect(), excluded.collect())
    }

    fn by_brute_force((choices, excluded): &Problem) -> bool {
        (0..1u32 << (choices.len() * 3)).any(|values| {
            let holds = |variable: &Variable| values >> variable & 1 == 1;
            choices.iter().all(|choice| choice.iter().any(holds))
                && !excluded.iter().any(|together| together.iter().all(holds))
        })
    }

    fn excluded(together: &[Variable]) -> Vec<Literal> {
        together.iter().map(|variable| Literal::holds(*variable).not()).collect()
    }

    #[test]
    fn the_search_agrees_with_brute_force_and_contradictions_are_real() {
        let mut counts = [0, 0];
        for seed in 0..3_000 {
            let problem = problem(&mut Rng::new(seed));
            let (choices, together) = &problem;
            let mut clauses = Clauses::default();
            clauses.variables(choices.len() * 3);
            choices.iter().for_each(|choice| _ = clauses.choose(None, choice.clone()));
            let mut result = clauses.solve(&|| false);
            // One after the other, as a search learns them.
            let mut numbers = Vec::new();
            for together in together {
                numbers.push(clauses.add(excluded(together)));
                result = clauses.solve(&|| false);
            }
            assert_eq!(result.is_ok(), by_brute_force(&problem), "{seed}");
            counts[usize::from(result.is_ok())] += 1;
            match result {
                Ok(()) => {
                    for choice in choices {
                        assert!(choice.iter().any(|variable| clauses.holds(*variable)), "{seed}");
                    }
                    for together in together {
                        assert!(!together.iter().all(|v| clauses.holds(*v)), "{seed}");
                    }
                }
                Err(roots) => {
                    let kept = |root: &u32| numbers.iter().position(|number| number == root);
                    let few = roots.iter().filter_map(kept).map(|at| together[at].clone());
                    let core = (choices.clone(), few.collect());
                    assert!(!by_brute_force(&core), "{seed}");
                    let roots = clauses.trimmed(roots);
                    let few: Vec<_> =
                        roots.iter().filter_map(kept).map(|at| together[at].clone()).collect();
                    assert!(!by_brute_force(&(choices.clone(), few.clone())), "{seed}");
                    for at in 0..few.len() {
                        let fewer = [&few[..at], &few[at + 1..]].concat();
                        assert!(by_brute_force(&(choices.clone(), fewer)), "{seed}");
                    }
                }
            }
        }
        assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
    }

    #[test]
    fn a_choice_whose_condition_does_not_hold_is_not_made() {
        let mut clauses = Clauses::default();
        let first = clauses.variables(3);
        clauses.choose(Some(first), vec![first + 1, first + 2]);
        assert_eq!(clauses.solve(&|| false), Ok(()));
        assert!(!clauses.holds(first + 1) && !clauses.holds(first + 2));
        clauses.add(vec![Literal::holds(first)]);
        assert_eq!(clauses.solve(&|| false), Ok(()));
        assert!(clauses.holds(first + 1));
        clauses.add(vec![Literal::holds(first + 1).not()]);
        assert_eq!(clauses.solve(&|| false), Ok(()));
        assert!(clauses.holds(first + 2));
    }
}
