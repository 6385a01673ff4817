//! Choices that are written down, with any number of alternatives.
//!
//! An alternative is a set of edges with a reason. One of each choice has to be taken. To take more
//! does no harm, and is never asked for: whatever has no cycle has none with fewer edges.

use super::problem::Arc;

/// Choices in compressed rows: the alternatives of a choice and the edges of an alternative are
/// each together.
pub(crate) struct Choices {
    /// Where the alternatives of each choice begin, and one more.
    starts: Vec<u32>,
    /// The choice of each alternative.
    choice_of: Vec<u32>,
    /// Where the edges of each alternative begin, and one more.
    arc_starts: Vec<u32>,
    arcs: Vec<Arc>,
    /// What taking an alternative means, in words.
    reasons: Vec<String>,
}

impl Default for Choices {
    fn default() -> Self {
        Choices {
            starts: vec![0],
            choice_of: Vec::new(),
            arc_starts: vec![0],
            arcs: Vec::new(),
            reasons: Vec::new(),
        }
    }
}

impl Choices {
    /// Adds a choice.
    pub(crate) fn add(&mut self, alternatives: impl IntoIterator<Item = (String, Vec<Arc>)>) {
        let choice = self.len() as u32;
        for (reason, arcs) in alternatives {
            self.choice_of.push(choice);
            self.reasons.push(reason);
            self.arcs.extend(arcs);
            self.arc_starts.push(self.arcs.len() as u32);
        }
        self.starts.push(self.choice_of.len() as u32);
    }

    /// How many choices there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The alternatives of a choice.
    #[inline]
    pub(crate) fn alternatives(&self, choice: u32) -> std::ops::Range<u32> {
        self.starts[choice as usize]..self.starts[choice as usize + 1]
    }

    /// The choice of an alternative.
    #[inline]
    pub(crate) fn choice(&self, alternative: u32) -> u32 {
        self.choice_of[alternative as usize]
    }

    /// The edges of an alternative.
    #[inline]
    pub(crate) fn arcs(&self, alternative: u32) -> &[Arc] {
        let at = alternative as usize;
        &self.arcs[self.arc_starts[at] as usize..self.arc_starts[at + 1] as usize]
    }

    /// What taking an alternative means, if there is such a one.
    pub(crate) fn reason(&self, alternative: u32) -> Option<&str> {
        self.reasons.get(alternative as usize).map(String::as_str)
    }

    /// Whether there is a choice without alternatives.
    pub(crate) fn has_empty(&self) -> bool {
        self.starts.windows(2).any(|ends| ends[0] == ends[1])
    }

    /// Whether one alternative has only edges for which something holds.
    pub(crate) fn has_one(&self, choice: u32, mut holds: impl FnMut(Arc) -> bool) -> bool {
        self.alternatives(choice).any(|a| self.arcs(a).iter().all(|arc| holds(*arc)))
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        let reasons: usize = self.reasons.iter().map(|r| r.capacity() + size_of::<String>()).sum();
        let numbers = self.starts.len() + self.choice_of.len() + self.arc_starts.len();
        reasons + numbers * size_of::<u32>() + self.arcs.len() * size_of::<Arc>()
    }
}
