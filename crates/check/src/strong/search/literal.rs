//! Variables and literals: one variable per order of two versions, one literal for each way; and
//! one per version that a read may have seen and per transaction that may not be there.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::clauses::Literal;
use crate::resolved::Version;
use crate::strong::problem::{Alternative, Precedes, Problem, Under};
use crate::strong::sources::Candidate;

/// What an edge was added for: one literal, or two that add it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    one: Literal,
    other: Literal,
}

impl Label {
    pub(crate) fn of(literal: Literal) -> Label {
        Label { one: literal, other: literal }
    }

    pub(crate) fn both(one: Literal, other: Literal) -> Label {
        Label { one, other }
    }

    /// Its literals; one may come twice.
    pub(crate) fn literals(self) -> [Literal; 2] {
        [self.one, self.other]
    }
}

/// What a variable stands for.
#[derive(Clone, Copy)]
enum Subject {
    /// An order of two versions; the other literal is the opposite order.
    Order(Precedes),
    /// A version that a read saw; the other literal is that it did not.
    Source(Candidate),
    /// A transaction that is there; the other literal is that it is not.
    There,
}

/// The choices that have been made variables.
#[derive(Default)]
pub(crate) struct Variables {
    subjects: Vec<Subject>,
    orders: FxHashMap<Precedes, u32>,
    /// By read, the variables of its candidates.
    sources: FxHashMap<u32, Range<u32>>,
    candidates: FxHashMap<Candidate, u32>,
    /// By number of a transaction that may not be there, its variable.
    there: FxHashMap<u32, u32>,
    /// By version that a read may have seen, the literals that put it before another one.
    before: FxHashMap<Version, Vec<Literal>>,
}

impl Variables {
    /// The literal of an order, and whether its variable is new.
    pub(crate) fn order(&mut self, precedes: Precedes) -> (Literal, bool) {
        let is_first = precedes.first < precedes.second;
        let first = if is_first { precedes } else { precedes.opposite() };
        let next = self.subjects.len() as u32;
        let number = *self.orders.entry(first).or_insert(next);
        if number == next {
            self.subjects.push(Subject::Order(first));
        }
        let literal = Literal::of(number);
        (if is_first { literal } else { !literal }, number == next)
    }

    /// Notes that a literal puts a version before others, where reads may have seen that version.
    pub(crate) fn note_before(&mut self, version: Version, literal: Literal) {
        self.before.entry(version).or_default().push(literal);
    }

    /// The literals that put a version before others, as far as they were noted.
    pub(crate) fn before(&self, version: Version) -> &[Literal] {
        self.before.get(&version).map_or(&[], Vec::as_slice)
    }

    /// Makes candidates of a read variables. Returns the literals that take them.
    pub(crate) fn open_read(
        &mut self,
        read: u32,
        candidates: impl Iterator<Item = Candidate>,
    ) -> Vec<Literal> {
        let first = self.subjects.len() as u32;
        for candidate in candidates {
            self.candidates.insert(candidate, self.subjects.len() as u32);
            self.subjects.push(Subject::Source(candidate));
        }
        let vars = first..self.subjects.len() as u32;
        self.sources.insert(read, vars.clone());
        vars.map(Literal::of).collect()
    }

    /// The literals of the candidates of a read, if they are variables.
    pub(crate) fn sources_of(&self, read: u32) -> Option<impl Iterator<Item = Literal> + Clone> {
        Some(self.sources.get(&read)?.clone().map(Literal::of))
    }

    /// The literal that takes a candidate, if it is a variable.
    #[inline]
    pub(crate) fn of_candidate(&self, candidate: Candidate) -> Option<Literal> {
        self.candidates.get(&candidate).copied().map(Literal::of)
    }

    /// The literal that a transaction is there, and whether its variable is new.
    pub(crate) fn there(&mut self, number: u32) -> (Literal, bool) {
        let next = self.subjects.len() as u32;
        let var = *self.there.entry(number).or_insert(next);
        if var == next {
            self.subjects.push(Subject::There);
        }
        (Literal::of(var), var == next)
    }

    /// The literal that a transaction is there, if it is a variable.
    pub(crate) fn of_there(&self, number: u32) -> Option<Literal> {
        self.there.get(&number).copied().map(Literal::of)
    }

    /// The literals of which one has to be taken beside that of a variable, if there are such.
    pub(crate) fn siblings(
        &self,
        problem: &Problem,
        var: u32,
    ) -> Option<impl Iterator<Item = Literal> + Clone + use<>> {
        let vars = match self.subjects[var as usize] {
            Subject::Order(_) | Subject::There => return None,
            Subject::Source(candidate) => {
                self.sources.get(&problem.sources.read_of(candidate))?.clone()
            }
        };
        Some(vars.map(Literal::of))
    }

    /// The alternative that a literal takes, if it takes one.
    #[inline]
    pub(crate) fn alternative(&self, literal: Literal) -> Option<Alternative> {
        let is_first = literal.is_positive();
        match self.subjects[literal.var()] {
            Subject::Order(first) if is_first => Some(Alternative::Order(first)),
            Subject::Order(first) => Some(Alternative::Order(first.opposite())),
            Subject::Source(candidate) => is_first.then_some(Alternative::Source(candidate)),
            Subject::There => None,
        }
    }

    /// The order of two versions that a literal is, if it is one.
    pub(crate) fn precedes(&self, literal: Literal) -> Option<Precedes> {
        match self.alternative(literal) {
            Some(Alternative::Order(precedes)) => Some(precedes),
            _ => None,
        }
    }

    /// What an edge was added for.
    pub(crate) fn under(&self, label: Label) -> Under {
        let all = label.literals();
        Under {
            order: all.into_iter().find_map(|literal| self.precedes(literal)),
            source: all.into_iter().find_map(|literal| self.source(literal)),
        }
    }

    /// The version that a read saw by a literal, if it says so.
    pub(crate) fn source(&self, literal: Literal) -> Option<Candidate> {
        match self.alternative(literal) {
            Some(Alternative::Source(candidate)) => Some(candidate),
            _ => None,
        }
    }
}
