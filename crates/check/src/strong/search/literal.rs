//! Variables and literals: one variable per choice, one literal per alternative.

use rustc_hash::FxHashMap;

use crate::strong::problem::Precedes;

/// An alternative: twice the variable, and one more for the second of its two alternatives.
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

/// The choices that have been made variables.
#[derive(Default)]
pub(crate) struct Variables {
    /// The first alternative of each.
    choices: Vec<Precedes>,
    numbers: FxHashMap<Precedes, u32>,
}

impl Variables {
    pub(crate) fn len(&self) -> usize {
        self.choices.len()
    }

    /// The literal of an alternative, and whether its variable is new.
    pub(crate) fn literal(&mut self, precedes: Precedes) -> (Literal, bool) {
        let is_first = precedes.first < precedes.second;
        let first = if is_first { precedes } else { precedes.opposite() };
        let next = self.choices.len() as u32;
        let number = *self.numbers.entry(first).or_insert(next);
        if number == next {
            self.choices.push(first);
        }
        (Literal(2 * number + u32::from(!is_first)), number == next)
    }

    /// The alternative that a literal is.
    #[inline]
    pub(crate) fn precedes(&self, literal: Literal) -> Precedes {
        let first = self.choices[literal.var()];
        if literal.0.is_multiple_of(2) { first } else { first.opposite() }
    }
}
