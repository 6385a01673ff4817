//! Suppositions: deciding a level where several things are open, of each of which one of a few candidates is true.
//!
//! The question is decided as if it were known which candidate each open point has. If the level holds, that is
//! the answer. If it does not, each cycle that was found rests on a few of the suppositions: these do not hold
//! together, which is a clause. The next suppositions are ones that no clause excludes. If there are none, the
//! level is violated, and the cycles that the contradiction rests on are the cases of the argument.
//!
//! Only a point that a cycle rests on becomes a choice among clauses, with the candidates that are preferred tried
//! first. Of all others, the question supposes what it finds likely. So a history in which few points are part of a
//! conflict is decided at little cost. What held before is kept where nothing excludes it.
//!
//! A point may be of a transaction of unknown outcome. Then it has a candidate only if that transaction committed,
//! which it is supposed to have done if some point has a candidate of which it is the writer. If no point has one,
//! it may as well have aborted: it demands nothing of the others.
//!
//! | question | points | candidates |
//! |---|---|---|
//! | `weak/chosen` | open reads at weak levels | the transactions that may have written what was read |
//! | `certificate/choices.rs` | open reads by a version certificate | equal versions of the row |
//! | `versions/parallel.rs` | pairs of appends that no read returned | the two orders |

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;

use isolario_model::{Anomaly, Edge, Evidence, KeyId, Limit, OpId, Reason, TxnId};

use crate::CheckOptions;
use crate::clauses::{Clauses, Given, Literal};
use crate::plan::Conclusion;

/// Contradictions of more clauses are not made smaller.
const MOST_TRIMMED: usize = 400;

/// Candidates, numbered from zero, of points that are choices.
pub(crate) type Supposed<P> = BTreeMap<P, u32>;

/// Suppositions that do not hold together, and the cycle that shows it.
pub(crate) struct Excluded<P> {
    pub(crate) rests_on: Vec<(P, u32)>,
    pub(crate) cycle: Vec<Edge>,
}

/// The end of a round: a conclusion, or suppositions that are excluded from now on.
pub(crate) type Round<P> = ControlFlow<Conclusion, Vec<Excluded<P>>>;

/// A question with open points.
pub(crate) trait Question {
    /// Something that is open.
    type Point: Copy + Ord;

    /// Decides the question under these suppositions. Of points that are not choices, it supposes what is likely.
    fn decide(&mut self, supposed: &Supposed<Self::Point>) -> Round<Self::Point>;

    /// The candidates of a point, preferred ones first.
    fn by_preference(&self, point: Self::Point) -> Vec<u32>;

    /// The transaction of unknown outcome that a point is of, if it is of one.
    fn condition(&self, _point: Self::Point) -> Option<TxnId> {
        None
    }

    /// The transaction of unknown outcome that must have committed if a point has this candidate.
    fn writer(&self, _point: Self::Point, _candidate: u32) -> Option<TxnId> {
        None
    }

    /// The points with a candidate of which a transaction of unknown outcome is the writer.
    fn points_of(&self, _writer: TxnId) -> Vec<Self::Point> {
        Vec::new()
    }
}

/// Decides a question, within the limits that count from `began` on.
pub(crate) fn decide<Q: Question>(
    question: Q,
    options: &CheckOptions,
    began: Instant,
) -> Conclusion {
    let mut suppositions = Suppositions::new(question);
    loop {
        if let Some(limit) = reached(options, began) {
            return Conclusion::limit(limit);
        }
        let excluded = match suppositions.question.decide(&suppositions.supposed) {
            ControlFlow::Break(conclusion) => return conclusion,
            ControlFlow::Continue(excluded) => excluded,
        };
        if excluded.is_empty() {
            // Nothing is learned, so the next round would be this one.
            return Conclusion::limit(Limit::Steps);
        }
        excluded.into_iter().for_each(|excluded| suppositions.exclude(excluded));
        if let Err(cycles) = suppositions.reconsider(&|| reached(options, began).is_some()) {
            return Conclusion::by_cases(cycles);
        }
    }
}

/// The limit that is reached, if one is.
pub(crate) fn reached(options: &CheckOptions, began: Instant) -> Option<Limit> {
    if options.stop.is_asked() {
        return Some(Limit::Interrupted);
    }
    options.timeout.filter(|timeout| began.elapsed() >= *timeout).map(Limit::Time)
}

/// The suppositions that the anomalies of a conclusion exclude. A cycle that rests on no supposition is there
/// whatever is supposed, and refutes the level.
pub(crate) fn excluded_by<P>(
    conclusion: Conclusion,
    exclude: impl Fn(&Anomaly) -> Option<Excluded<P>>,
) -> Round<P> {
    let Conclusion::Refuted(findings) = conclusion else { return ControlFlow::Break(conclusion) };
    let (mut certain, mut all) = (Vec::new(), Vec::new());
    for anomaly in &findings.anomalies {
        let Some(excluded) = exclude(anomaly) else { continue };
        let is_cycle = matches!(anomaly.evidence, Evidence::Cycle { .. });
        if is_cycle && excluded.rests_on.is_empty() {
            certain.push(Anomaly::clone(anomaly));
        }
        all.push(excluded);
    }
    if certain.is_empty() {
        ControlFlow::Continue(all)
    } else {
        ControlFlow::Break(Conclusion::refuted(certain))
    }
}

/// The reads that a cycle takes, with their keys.
pub(crate) fn reads_of(cycle: &[Edge]) -> Vec<(OpId, KeyId)> {
    let mut reads = Vec::new();
    let mut waiting = vec![cycle];
    while let Some(edges) = waiting.pop() {
        for edge in edges {
            match &edge.reason {
                Reason::Read { key, read, .. } | Reason::AntiDependency { key, read, .. } => {
                    reads.push((*read, *key));
                }
                Reason::Visible { key, read, path, .. } => {
                    reads.push((*read, *key));
                    waiting.push(path);
                }
                _ => {}
            }
        }
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// The reason for which a clause is given. Its literals are kept as well, to find smaller contradictions.
struct Ground {
    literals: Vec<Literal>,
    /// The cycle that what it excludes closes; none if it says what candidates there are.
    cycle: Option<Vec<Edge>>,
}

impl Given for Ground {}

impl Given for &Ground {}

/// A point that has one of its candidates, if a condition holds.
struct Choice<P> {
    point: P,
    condition: Option<Literal>,
    /// The variable of the first candidate; the others follow.
    first: u32,
    by_preference: Vec<u32>,
}

impl<P> Choice<P> {
    fn literal(&self, candidate: u32) -> Literal {
        Literal::of(self.first + candidate)
    }

    fn candidates(&self) -> impl Iterator<Item = (u32, Literal)> + '_ {
        self.by_preference.iter().map(|candidate| (*candidate, self.literal(*candidate)))
    }

    /// The candidate that it has by these clauses.
    fn candidate(&self, clauses: &Clauses<Ground>) -> Option<u32> {
        let mut candidates = self.candidates();
        candidates.find(|(_, literal)| clauses.is_true(*literal)).map(|(candidate, _)| candidate)
    }

    /// The candidate to try, if it must have one and has none: one that it had before, or the preferred one.
    fn next(&self, clauses: &Clauses<Ground>) -> Option<Literal> {
        let is_asked = self.condition.is_none_or(|condition| clauses.is_true(condition));
        if !is_asked || self.candidate(clauses).is_some() {
            return None;
        }
        let literals = self.candidates().map(|(_, literal)| literal);
        let free = literals.filter(|literal| clauses.is_free(literal.var()));
        free.min_by_key(|literal| clauses.phase(literal.var()) != *literal)
    }
}

struct Suppositions<Q: Question> {
    question: Q,
    clauses: Clauses<Ground>,
    choices: Vec<Choice<Q::Point>>,
    /// The number of each choice.
    numbers: BTreeMap<Q::Point, usize>,
    /// By transaction of unknown outcome, the literal that it committed.
    committed: BTreeMap<TxnId, Literal>,
    supposed: Supposed<Q::Point>,
}

impl<Q: Question> Suppositions<Q> {
    fn new(question: Q) -> Self {
        Suppositions {
            question,
            clauses: Clauses::default(),
            choices: Vec::new(),
            numbers: BTreeMap::new(),
            committed: BTreeMap::new(),
            supposed: Supposed::new(),
        }
    }

    /// Excludes suppositions that close a cycle.
    fn exclude(&mut self, excluded: Excluded<Q::Point>) {
        let literals = excluded.rests_on.into_iter().map(|(point, candidate)| {
            let number = self.open(point);
            !self.choices[number].literal(candidate)
        });
        let literals = literals.collect();
        self.add(literals, Some(excluded.cycle));
    }

    /// Makes a point a choice, and with it all others that decide whether its transaction or the writer of a
    /// candidate committed. Returns its number.
    fn open(&mut self, point: Q::Point) -> usize {
        let mut waiting = vec![point];
        while let Some(point) = waiting.pop() {
            if self.numbers.contains_key(&point) {
                continue;
            }
            let by_preference = self.question.by_preference(point);
            let first = self.clauses.len() as u32;
            by_preference.iter().for_each(|_| _ = self.variable());
            let txn = self.question.condition(point);
            let condition = txn.map(|txn| self.committed(txn, &mut waiting));
            let choice = Choice { point, condition, first, by_preference };
            let unless = condition.map(|condition| !condition);
            let literals = choice.candidates().map(|(_, literal)| literal);
            self.add(unless.into_iter().chain(literals).collect(), None);
            for (candidate, literal) in choice.candidates() {
                if let Some(writer) = self.question.writer(point, candidate) {
                    let committed = self.committed(writer, &mut waiting);
                    self.add(vec![!literal, committed], None);
                }
            }
            self.numbers.insert(point, self.choices.len());
            self.choices.push(choice);
        }
        self.numbers[&point]
    }

    /// The literal that a transaction committed. Every point with a candidate of its implies it, so all of them become choices.
    fn committed(&mut self, txn: TxnId, waiting: &mut Vec<Q::Point>) -> Literal {
        if let Some(committed) = self.committed.get(&txn) {
            return *committed;
        }
        waiting.extend(self.question.points_of(txn));
        let committed = self.variable();
        self.committed.insert(txn, committed);
        committed
    }

    fn variable(&mut self) -> Literal {
        let literal = Literal::of(self.clauses.len() as u32);
        self.clauses.add_variable(!literal);
        literal
    }

    fn add(&mut self, literals: Vec<Literal>, cycle: Option<Vec<Edge>>) {
        self.clauses.back_to(0, |_| ());
        self.clauses.add(literals.clone(), Ground { literals, cycle });
    }

    /// Supposes something that is not excluded. If nothing is left, returns the cycles that exclude everything,
    /// those with fewer edges first.
    fn reconsider(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), Vec<Vec<Edge>>> {
        let Suppositions { clauses, choices, supposed, .. } = self;
        let variables = clauses.len();
        let mut at = 0;
        let next = |clauses: &Clauses<Ground>| {
            let (before, after) = choices.split_at(at);
            let mut turns = (at..).zip(after).chain((0..).zip(before));
            let (number, literal) =
                turns.find_map(|(number, choice)| Some((number, choice.next(clauses)?)))?;
            at = number;
            Some(literal)
        };
        if let Err(grounds) = clauses.solve(is_over, next) {
            let grounds = trimmed(grounds, variables, is_over);
            let mut cycles: Vec<_> =
                grounds.into_iter().filter_map(|ground| ground.cycle.clone()).collect();
            cycles.sort_by_key(Vec::len);
            return Err(cycles);
        }
        for choice in choices {
            if let Some(candidate) = choice.candidate(clauses) {
                supposed.insert(choice.point, candidate);
            }
        }
        Ok(())
    }
}

/// The grounds of a contradiction without the cycles that it does not need. If there are many, or it is over on the
/// way, some that are not needed are left.
fn trimmed<'g>(
    mut grounds: Vec<&'g Ground>,
    variables: usize,
    is_over: &dyn Fn() -> bool,
) -> Vec<&'g Ground> {
    let mut at = 0;
    loop {
        grounds.sort_by_key(|ground| ground.cycle.is_none());
        if grounds.get(at).is_none_or(|ground| ground.cycle.is_none())
            || grounds.len() > MOST_TRIMMED
            || is_over()
        {
            return grounds;
        }
        let rest = [&grounds[..at], &grounds[at + 1..]].concat();
        match contradiction(&rest, variables, is_over) {
            Some(fewer) => grounds = fewer,
            None => at += 1,
        }
    }
}

/// The grounds that contradict each other, if some of these do. If it is over on the way, none.
fn contradiction<'g>(
    grounds: &[&'g Ground],
    variables: usize,
    is_over: &dyn Fn() -> bool,
) -> Option<Vec<&'g Ground>> {
    let mut clauses: Clauses<&Ground> = Clauses::default();
    (0..variables as u32).for_each(|var| clauses.add_variable(!Literal::of(var)));
    grounds.iter().for_each(|ground| clauses.add(ground.literals.clone(), *ground));
    // The other variables are in no clause.
    let literals = grounds.iter().flat_map(|ground| &ground.literals);
    let used: BTreeSet<usize> = literals.map(|literal| literal.var()).collect();
    let used: Vec<usize> = used.into_iter().collect();
    let mut at = 0;
    let next = |clauses: &Clauses<&Ground>| {
        at = (at..used.len()).chain(0..at).find(|at| clauses.is_free(used[*at]))?;
        Some(clauses.phase(used[at]))
    };
    let contradiction = clauses.solve(is_over, next).err()?;
    Some(contradiction.into_iter().copied().collect())
}
