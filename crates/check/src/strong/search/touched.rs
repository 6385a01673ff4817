//! Which choices have edges at a node.

use crate::strong::problem::Problem;

/// The choices that are written down, by the nodes of their edges.
pub(super) struct Touched {
    /// Node and choice, sorted.
    at: Vec<(u32, u32)>,
}

impl Touched {
    pub(super) fn new(problem: &Problem) -> Self {
        let mut at: Vec<(u32, u32)> = Vec::new();
        for choice in 0..problem.choices.len() as u32 {
            for alternative in problem.choices.alternatives(choice) {
                let arcs = problem.choices.arcs(alternative).iter();
                at.extend(arcs.flat_map(|(from, to)| [(*from, choice), (*to, choice)]));
            }
        }
        at.sort_unstable();
        at.dedup();
        Touched { at }
    }

    /// The choices with edges at some nodes, each once.
    pub(super) fn by(&self, nodes: &[u32]) -> Vec<u32> {
        if self.at.is_empty() {
            return Vec::new();
        }
        let mut choices: Vec<u32> = Vec::new();
        for node in nodes {
            let start = self.at.partition_point(|(other, _)| other < node);
            let here = self.at[start..].iter().take_while(|(other, _)| other == node);
            choices.extend(here.map(|(_, choice)| *choice));
        }
        choices.sort_unstable();
        choices.dedup();
        choices
    }
}
