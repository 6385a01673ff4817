//! Edges with all they rest on: paths, refutations, assumptions.
//!
//! Some order of two versions is known because the other one is impossible: it closes a cycle. The
//! edges of that cycle may assume the other order, and whatever is assumed around them. Orders of
//! versions follow the one commit order, so an assumption is about two transactions, whatever the
//! key: that the one commits before the other. Or it is about a read that may have seen the writes of
//! several transactions: that it saw this one's.

use isolario_model::{Edge, Level, OpId, TxnId};

use crate::edges::{Claim, RestsOn};
use crate::facts::Facts;
use crate::{Refusal, cycles, span};

/// Of two writers of a key, the first commits before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Before {
    pub(crate) first: TxnId,
    pub(crate) second: TxnId,
}

impl Before {
    /// The other order. Commits are ordered totally, so one of the two holds.
    pub(crate) fn opposite(self) -> Before {
        Before { first: self.second, second: self.first }
    }
}

/// What an edge may rest on beside the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assumption {
    Before(Before),
    /// A read saw the write of a transaction, or of `init`.
    Saw {
        read: OpId,
        writer: TxnId,
    },
}

/// Refuses edges of which one is not justified at the level.
pub(crate) fn all(facts: &Facts<'_>, level: Level, edges: &[Edge]) -> Result<(), Refusal> {
    match under_assumptions(facts, level, edges)?.first() {
        None => Ok(()),
        Some(Assumption::Saw { read, .. }) => Err(Refusal::Ambiguous(*read)),
        Some(Assumption::Before(Before { first, second })) => {
            let why = "it is only assumed, and nothing rules out the other order";
            Err(Refusal::WrongEdge { from: *first, to: *second, why })
        }
    }
}

/// Refuses edges of which one is not justified at the level. Returns what they assume, sorted.
pub(crate) fn under_assumptions(
    facts: &Facts<'_>,
    level: Level,
    edges: &[Edge],
) -> Result<Vec<Assumption>, Refusal> {
    let mut arguments = Arguments { facts, level, waiting: Vec::new(), scopes: Vec::new() };
    arguments.waiting.push((edges, None));
    let mut open = Vec::new();
    while let Some((edges, scope)) = arguments.waiting.pop() {
        for edge in edges {
            arguments.check(edge, scope, &mut open)?;
        }
    }
    open.sort_unstable();
    open.dedup();
    Ok(open)
}

/// Where an edge stands: the last assumption around it, of all that are in force.
type Scope = Option<usize>;

/// Reasons may hold further edges to any depth, so these wait on a stack of our own.
struct Arguments<'a, 'h> {
    facts: &'a Facts<'h>,
    level: Level,
    waiting: Vec<(&'a [Edge], Scope)>,
    /// Assumptions, each with the scope around it.
    scopes: Vec<(Before, Scope)>,
}

impl<'a> Arguments<'a, '_> {
    /// Refuses an edge that nothing justifies, and lets wait what it rests on. Adds what it assumes
    /// beyond its scope.
    fn check(
        &mut self,
        edge: &'a Edge,
        scope: Scope,
        open: &mut Vec<Assumption>,
    ) -> Result<(), Refusal> {
        let claim = Claim { facts: self.facts, level: self.level, edge };
        if !claim.is_about_maybe() {
            self.facts.committed_at(self.level, edge.from)?;
            self.facts.committed_at(self.level, edge.to)?;
        }
        let (rests_on, saw) = claim.check()?;
        open.extend(saw);
        match rests_on {
            RestsOn::History => {}
            RestsOn::Path(edges) => self.waiting.push((edges, scope)),
            RestsOn::Assumption(before) if self.is_assumed(before, scope) => {}
            RestsOn::Assumption(before) => open.push(Assumption::Before(before)),
            RestsOn::Refutation(before, cycle) => self.refute(edge, before, cycle, scope)?,
        }
        Ok(())
    }

    /// The opposite order is assumed, and the cycle must follow.
    fn refute(
        &mut self,
        edge: &Edge,
        before: Before,
        cycle: &'a [Edge],
        scope: Scope,
    ) -> Result<(), Refusal> {
        cycles::closes(cycle)?;
        if !span::is_contradiction(self.facts, self.level, cycle) {
            let why = "the level allows the cycle that is said to rule out the other order";
            return Err(Refusal::WrongEdge { from: edge.from, to: edge.to, why });
        }
        self.scopes.push((before.opposite(), scope));
        self.waiting.push((cycle, Some(self.scopes.len() - 1)));
        Ok(())
    }

    fn is_assumed(&self, before: Before, scope: Scope) -> bool {
        let mut at = scope;
        while let Some((assumed, around)) = at.map(|at| self.scopes[at]) {
            if assumed == before {
                return true;
            }
            at = around;
        }
        false
    }
}
