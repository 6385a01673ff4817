//! Variables and literals: one variable per order of two versions, one literal for each way; and
//! one per alternative that is written down.

use rustc_hash::FxHashMap;

use crate::strong::choices::Choices;
use crate::strong::problem::{Alternative, Precedes};

/// What a variable stands for or its opposite: twice the variable, and one more for the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal(pub(crate) u32);

impl Literal {
    #[inline]
    pub(crate) fn var(self) -> usize {
        (self.0 / 2) as usize
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Not for Literal {
    type Output = Literal;

    #[inline]
    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

/// What a variable stands for.
#[derive(Clone, Copy)]
enum Subject {
    /// An order of two versions; the other literal is the opposite order.
    Order(Precedes),
    /// An alternative that is written down; the other literal is to do without it.
    Listed(u32),
}

/// The choices that have been made variables.
#[derive(Default)]
pub(crate) struct Variables {
    subjects: Vec<Subject>,
    orders: FxHashMap<Precedes, u32>,
    /// The variable of the first alternative of each choice that is written down.
    listed: FxHashMap<u32, u32>,
}

impl Variables {
    pub(crate) fn len(&self) -> usize {
        self.subjects.len()
    }

    /// The literal of an order, and whether its variable is new.
    pub(crate) fn order(&mut self, precedes: Precedes) -> (Literal, bool) {
        let is_first = precedes.first < precedes.second;
        let first = if is_first { precedes } else { precedes.opposite() };
        let next = self.subjects.len() as u32;
        let number = *self.orders.entry(first).or_insert(next);
        if number == next {
            self.subjects.push(Subject::Order(first));
        }
        (Literal(2 * number + u32::from(!is_first)), number == next)
    }

    /// Makes the alternatives of a choice variables. Returns the literals that take them, if they
    /// are new.
    pub(crate) fn list(&mut self, choices: &Choices, choice: u32) -> Option<Vec<Literal>> {
        let next = self.subjects.len() as u32;
        if *self.listed.entry(choice).or_insert(next) != next {
            return None;
        }
        self.subjects.extend(choices.alternatives(choice).map(Subject::Listed));
        Some((next..self.subjects.len() as u32).map(|var| Literal(2 * var)).collect())
    }

    /// The literals that take the alternatives of the choice that a variable belongs to, if it is
    /// one that is written down.
    pub(crate) fn siblings(
        &self,
        choices: &Choices,
        var: u32,
    ) -> Option<impl Iterator<Item = Literal> + Clone + use<>> {
        let Subject::Listed(alternative) = self.subjects[var as usize] else { return None };
        let choice = choices.choice(alternative);
        let first = *self.listed.get(&choice)?;
        let count = choices.alternatives(choice).len() as u32;
        Some((first..first + count).map(|var| Literal(2 * var)))
    }

    /// The alternative that a literal takes, if it takes one.
    #[inline]
    pub(crate) fn alternative(&self, literal: Literal) -> Option<Alternative> {
        let is_first = literal.0.is_multiple_of(2);
        match self.subjects[literal.var()] {
            Subject::Order(first) if is_first => Some(Alternative::Order(first)),
            Subject::Order(first) => Some(Alternative::Order(first.opposite())),
            Subject::Listed(alternative) => is_first.then_some(Alternative::Listed(alternative)),
        }
    }

    /// The order of two versions that a literal is, if it is one.
    pub(crate) fn precedes(&self, literal: Literal) -> Option<Precedes> {
        match self.alternative(literal) {
            Some(Alternative::Order(precedes)) => Some(precedes),
            _ => None,
        }
    }

    /// The alternative that is written down and that a literal takes, if it does.
    pub(crate) fn listed(&self, literal: Literal) -> Option<u32> {
        match self.alternative(literal) {
            Some(Alternative::Listed(alternative)) => Some(alternative),
            _ => None,
        }
    }
}
