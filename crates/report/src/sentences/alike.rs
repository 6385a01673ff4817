//! Cases of an argument that are the same but for who is who.
//!
//! If three transactions could each have been the first, an argument has the same case three times, with
//! the roles exchanged. A person tells one of them, and says whom else it holds for.

use std::collections::BTreeMap;

use isolario_model::{Edge, EdgeKind, KeyId, Reason, TxnId, VersionOrder};

use crate::names::{Names, listed};

/// How many others are named that a case holds for, too.
const MOST_NAMED: usize = 8;

/// A case that is told, and those that are like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    /// Which of the cases it is.
    pub(crate) case: usize,
    /// Its transactions.
    roles: Vec<TxnId>,
    /// In which order it names them.
    order: Vec<usize>,
    /// Who takes these roles in the others.
    others: Vec<Vec<TxnId>>,
}

/// The cases of an argument, those that are alike together, in the order of the first of each.
pub(crate) fn alike(cycles: &[Vec<Edge>]) -> Vec<Alike> {
    let mut shapes: BTreeMap<Vec<Word>, usize> = BTreeMap::new();
    let mut told: Vec<Alike> = Vec::new();
    for (case, cycle) in cycles.iter().enumerate() {
        let (shape, roles) = shape(cycle);
        match shapes.get(&shape) {
            Some(at) => told[*at].others.push(roles),
            None => {
                shapes.insert(shape, told.len());
                let order = by_appearance(cycle, &roles);
                told.push(Alike { case, roles, order, others: Vec::new() });
            }
        }
    }
    told
}

/// The roles in the order in which the edges of a cycle name them.
fn by_appearance(cycle: &[Edge], roles: &[TxnId]) -> Vec<usize> {
    let named: Vec<TxnId> = cycle.iter().flat_map(|edge| [edge.from, edge.to]).collect();
    let mut order: Vec<usize> = (0..roles.len()).collect();
    let place = |at: &usize| named.iter().position(|txn| *txn == roles[*at]);
    order.sort_by_key(|at| place(at).unwrap_or(named.len()));
    order
}

impl Alike {
    /// How many cases it stands for.
    pub(crate) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Whom else it holds for, in a sentence; nothing if it is alone.
    pub(crate) fn likewise(&self, names: Names<'_>) -> Option<String> {
        // Who is the same in all of them is not worth a word.
        let changes = |at: &usize| self.others.iter().any(|other| other[*at] != self.roles[*at]);
        let changing: Vec<usize> = self.order.iter().copied().filter(changes).collect();
        let named = |roles: &[TxnId]| {
            let roles: Vec<String> = changing.iter().map(|at| names.txn(roles[*at])).collect();
            listed(&roles)
        };
        let told = named(&self.roles);
        let mut others: Vec<String> = Vec::new();
        for other in self.others.iter().map(|other| named(other)) {
            // Another read of the same transactions is not worth a word either.
            if other != told && !others.contains(&other) {
                others.push(other);
            }
        }
        if others.is_empty() {
            return None;
        }
        if others.len() > MOST_NAMED {
            let more = format!("{} more", others.len() - MOST_NAMED);
            others.truncate(MOST_NAMED);
            others.push(more);
        }
        Some(match changing.len() {
            1 => format!("the same goes for {} in place of {told}", listed(&others)),
            _ => format!("the same goes for {}, in place of {told}", others.join("; ")),
        })
    }
}

/// Part of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    /// A transaction, by when it is named first; none for the initial state.
    Role(Option<usize>),
    Kind(EdgeKind),
    Key(Option<KeyId>),
    /// How an order of versions is known.
    Known(u8),
    /// What follows, up to the end, is what an edge rests on.
    Rests,
    End,
}

/// What a cycle is whoever takes part in it, and who takes part. A cycle may begin anywhere: of all
/// ways to tell it, the first in the order of words is its shape.
fn shape(cycle: &[Edge]) -> (Vec<Word>, Vec<TxnId>) {
    let rotations = (0..cycle.len().max(1)).map(|at| {
        let mut shape = Shape::default();
        let (before, after) = cycle.split_at(at.min(cycle.len()));
        shape.edges(after.iter().chain(before));
        (shape.words, shape.roles)
    });
    rotations.min().unwrap_or_default()
}

#[derive(Default)]
struct Shape {
    words: Vec<Word>,
    roles: Vec<TxnId>,
}

impl Shape {
    fn role(&mut self, txn: TxnId) {
        let known = self.roles.iter().position(|other| *other == txn);
        let at = known.unwrap_or(self.roles.len());
        if known.is_none() && !txn.is_init() {
            self.roles.push(txn);
        }
        self.words.push(Word::Role((!txn.is_init()).then_some(at)));
    }

    /// Edges, and what they rest on. With a list of its own instead of recursion: how deep a proof goes
    /// is not ours to choose.
    fn edges<'e>(&mut self, edges: impl Iterator<Item = &'e Edge>) {
        let mut waiting: Vec<Option<&Edge>> = edges.map(Some).collect();
        waiting.reverse();
        while let Some(next) = waiting.pop() {
            let Some(edge) = next else {
                self.words.push(Word::End);
                continue;
            };
            self.role(edge.from);
            self.role(edge.to);
            self.words.push(Word::Kind(edge.reason.kind()));
            self.words.push(Word::Key(edge.reason.key()));
            match &edge.reason {
                Reason::AntiDependency { writer, known, .. } => {
                    self.role(*writer);
                    self.words.push(Word::Known(how(known)));
                }
                Reason::Overwrite { known, .. } => self.words.push(Word::Known(how(known))),
                Reason::Visible { reader, .. } => self.role(*reader),
                _ => {}
            }
            let support = edge.reason.support();
            if !support.is_empty() {
                self.words.push(Word::Rests);
                waiting.push(None);
                waiting.extend(support.iter().rev().map(Some));
            }
        }
    }
}

fn how(known: &VersionOrder) -> u8 {
    match known {
        VersionOrder::Initial => 0,
        VersionOrder::ReadModifyWrite { .. } => 1,
        VersionOrder::List { .. } => 2,
        VersionOrder::AppendedLater { .. } => 3,
        VersionOrder::Stated { .. } => 4,
        VersionOrder::Guaranteed { .. } => 5,
        VersionOrder::Refuted { .. } => 6,
        VersionOrder::Assumed => 7,
        VersionOrder::Path { .. } => 8,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{History as Builder, edge, r, w};

    const X: KeyId = KeyId(0);

    fn ww(from: u32, to: u32) -> Edge {
        edge(from, to, Reason::Overwrite { key: X, known: VersionOrder::Assumed })
    }

    fn session(from: u32, to: u32) -> Edge {
        edge(from, to, Reason::Session)
    }

    #[test]
    fn cases_that_differ_only_in_who_is_who_are_told_once_wherever_they_begin() {
        let cycles = [
            vec![ww(0, 1), session(1, 0)],
            vec![session(2, 0), ww(0, 2)],
            vec![ww(1, 2), ww(2, 1)],
            vec![ww(3, 4), session(4, 3)],
        ];
        let alike = alike(&cycles);
        let told: Vec<(usize, usize)> = alike.iter().map(|one| (one.case, one.count())).collect();
        assert_eq!(told, [(0, 3), (2, 1)]);
        let history = (0..5).fold(Builder::new(), |history, value| {
            history.session().txn(&[r("x", 0), w("x", value + 1)])
        });
        let history = history.build();
        let names = Names::new(&history);
        let likewise = alike[0].likewise(names);
        assert_eq!(
            likewise.as_deref(),
            Some("the same goes for T1 and T3; T4 and T5, in place of T1 and T2")
        );
        assert_eq!(alike[1].likewise(names), None);
    }

    #[test]
    fn another_key_or_another_reason_is_another_case() {
        let other_key = Reason::Overwrite { key: KeyId(1), known: VersionOrder::Assumed };
        let known = VersionOrder::Path { edges: vec![session(0, 1)] };
        let other_reason = Reason::Overwrite { key: X, known };
        let cycles = [
            vec![ww(0, 1), session(1, 0)],
            vec![edge(0, 1, other_key), session(1, 0)],
            vec![edge(0, 1, other_reason), session(1, 0)],
            vec![edge(0, TxnId::INIT.0, Reason::Session), ww(0, 1)],
        ];
        assert_eq!(alike(&cycles).len(), 4);
    }
}
