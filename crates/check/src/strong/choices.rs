//! Choices that are written down, with any number of alternatives.
//!
//! An alternative is a set of edges with a reason. One of each choice has to be taken. To take more
//! does no harm, and is never asked for: whatever has no cycle has none with fewer edges.

use super::problem::Arc;
use crate::graph::Rows;

/// Choices and their alternatives, numbered as they were added.
#[derive(Default)]
pub(crate) struct Choices {
    /// By choice, what taking each of its alternatives means, in words.
    reasons: Rows<String>,
    /// The choice of each alternative.
    choice_of: Vec<u32>,
    /// By alternative, its edges.
    arcs: Rows<Arc>,
}

impl Choices {
    /// Adds a choice.
    pub(crate) fn add(&mut self, alternatives: impl IntoIterator<Item = (String, Vec<Arc>)>) {
        let choice = self.len() as u32;
        let mut reasons = Vec::new();
        for (reason, arcs) in alternatives {
            self.choice_of.push(choice);
            self.arcs.push(arcs);
            reasons.push(reason);
        }
        self.reasons.push(reasons);
    }

    /// How many choices there are.
    pub(crate) fn len(&self) -> usize {
        self.reasons.len()
    }

    /// The alternatives of a choice.
    #[inline]
    pub(crate) fn alternatives(&self, choice: u32) -> std::ops::Range<u32> {
        let span = self.reasons.span(choice as usize);
        span.start as u32..span.end as u32
    }

    /// The choice of an alternative.
    #[inline]
    pub(crate) fn choice(&self, alternative: u32) -> u32 {
        self.choice_of[alternative as usize]
    }

    /// The edges of an alternative.
    #[inline]
    pub(crate) fn arcs(&self, alternative: u32) -> &[Arc] {
        self.arcs.get(alternative as usize)
    }

    /// What taking an alternative means, if there is such a one.
    pub(crate) fn reason(&self, alternative: u32) -> Option<&str> {
        self.reasons.entries().get(alternative as usize).map(String::as_str)
    }

    /// Whether there is a choice without alternatives.
    pub(crate) fn has_empty(&self) -> bool {
        (0..self.reasons.len()).any(|choice| self.reasons.span(choice).is_empty())
    }

    /// Whether one alternative has only edges for which something holds.
    pub(crate) fn has_one(&self, choice: u32, mut holds: impl FnMut(Arc) -> bool) -> bool {
        self.alternatives(choice).any(|a| self.arcs(a).iter().all(|arc| holds(*arc)))
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        let words: usize = self.reasons.entries().iter().map(String::capacity).sum();
        let numbers = self.choice_of.len() * size_of::<u32>();
        words + numbers + self.reasons.bytes() + self.arcs.bytes()
    }
}
