//! Saturation of choices that are written down.
//!
//! An alternative with an edge that leads back along what is settled is out. The last one that is
//! left is taken. Where none is left, the first is taken nevertheless: its edge closes the cycle
//! that shows the contradiction.

use super::choices::Choices;
use super::problem::Arc;
use super::reach::Reach;

/// The alternatives that had to be taken.
#[derive(Default)]
pub(crate) struct Forced {
    /// Each with the round in which it was taken.
    pub(crate) alternatives: Vec<(u32, u32)>,
    /// The edges they add, each with the alternative, by its place in the list.
    pub(crate) arcs: Vec<(Arc, u32)>,
    /// Per choice, whether nothing is left to choose.
    is_done: Vec<bool>,
    rounds: u32,
}

impl Forced {
    /// Looks at every open choice once. Returns whether it took anything.
    pub(crate) fn round(&mut self, choices: &Choices, reach: &Reach<'_>) -> bool {
        self.is_done.resize(choices.len(), false);
        let before = self.arcs.len();
        for choice in 0..choices.len() as u32 {
            if !self.is_done[choice as usize] {
                self.look_at(choices, choice, reach);
            }
        }
        self.rounds += 1;
        self.arcs.len() > before
    }

    fn look_at(&mut self, choices: &Choices, choice: u32, reach: &Reach<'_>) {
        if choices.has_one(choice, |(from, to)| from != to && reach.reaches(from, to)) {
            self.is_done[choice as usize] = true;
            return;
        }
        let leads_back = |(from, to): &Arc| reach.reaches(*to, *from);
        let is_out = |alternative: &u32| choices.arcs(*alternative).iter().any(leads_back);
        let mut left = choices.alternatives(choice).filter(|alternative| !is_out(alternative));
        let taken = match (left.next(), left.next()) {
            (Some(_), Some(_)) => return,
            (Some(last), None) => last,
            _ => choices.alternatives(choice).start,
        };
        self.is_done[choice as usize] = true;
        let number = self.alternatives.len() as u32;
        self.alternatives.push((taken, self.rounds));
        self.arcs.extend(choices.arcs(taken).iter().map(|arc| (*arc, number)));
    }
}
