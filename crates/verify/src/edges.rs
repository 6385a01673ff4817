//! Edges: what the history must show for each reason.

use isolario_model::{Edge, KeyId, Level, Nodes, OpId, Reason, TxnId, VersionOrder, Visible};

use crate::facts::Facts;
use crate::justify::Before;
use crate::span::{Moment, Span, is_causal, is_dependency, path_span};
use crate::{Refusal, allows_dirty_reads, lists};

/// Where a path of edges begins and ends; none if it is empty. Refuses edges that do not follow
/// each other.
pub(crate) fn ends(path: &[Edge]) -> Result<Option<(TxnId, TxnId)>, Refusal> {
    if let Some(pair) = path.windows(2).find(|pair| pair[0].to != pair[1].from) {
        return Err(Refusal::Disconnected { from: pair[0].to, to: pair[1].from });
    }
    Ok(path.first().zip(path.last()).map(|(first, last)| (first.from, last.to)))
}

/// One edge that has to be justified at a level.
pub(crate) struct Claim<'a, 'h> {
    pub(crate) facts: &'a Facts<'h>,
    pub(crate) level: Level,
    pub(crate) edge: &'a Edge,
}

/// What an edge rests on.
pub(crate) enum RestsOn<'a> {
    /// The history alone.
    History,
    /// A path of further edges.
    Path(&'a [Edge]),
    /// An order that is assumed.
    Assumption(Before),
    /// That the opposite of this order closes a cycle.
    Refutation(Before, &'a [Edge]),
}

impl<'a> Claim<'a, '_> {
    /// Refuses an edge that the history contradicts, whatever it rests on.
    pub(crate) fn check(&self) -> Result<RestsOn<'a>, Refusal> {
        let Edge { from, to, reason } = self.edge;
        match reason {
            Reason::Initial => self.holds(from.is_init() && !to.is_init(), "it is not from init"),
            Reason::Session => {
                self.holds(self.level.shape().session_order, "the level knows no sessions")?;
                let holds = self.facts.in_session_order(*from, *to);
                self.holds(holds, "session order does not order them")
            }
            Reason::RealTime { finish, start } => self.real_time(*finish, *start),
            Reason::Read { key, read, write } => {
                self.reads_from(*to, *read, *key, *from)?;
                let holds = self.facts.external(*read)? == Some((*from, *write));
                self.holds(holds, "it names another write")
            }
            Reason::Visible { rule, key, reader, read, path } => {
                self.visible(*rule, *key, *reader, *read, path)
            }
            Reason::Overwrite { key, known } => self.overwrites(*from, *key, known),
            Reason::AntiDependency { key, read, writer, known } => {
                self.reads_from(*from, *read, *key, *writer)?;
                self.holds(from != to && writer != to, "a transaction does not depend on itself")?;
                self.overwrites(*writer, *key, known)
            }
            Reason::Refuted { cycle } => {
                self.holds(!from.is_init() && !to.is_init(), "init comes first anyway")?;
                Ok(RestsOn::Refutation(Before { first: *from, second: *to }, cycle))
            }
            _ => Err(Refusal::Unsupported("an edge for this reason")),
        }
    }

    fn refuse<T>(&self, why: &'static str) -> Result<T, Refusal> {
        Err(Refusal::WrongEdge { from: self.edge.from, to: self.edge.to, why })
    }

    fn holds(&self, holds: bool, otherwise: &'static str) -> Result<RestsOn<'a>, Refusal> {
        if holds { Ok(RestsOn::History) } else { self.refuse(otherwise) }
    }

    fn real_time(&self, finish: i64, start: i64) -> Result<RestsOn<'a>, Refusal> {
        let Edge { from, to, .. } = *self.edge;
        self.holds(self.level.shape().real_time, "the level knows no real time")?;
        let ordered = self.facts.times.order(from, to, finish, start);
        self.holds(ordered, "the times do not order them")
    }

    /// Refuses unless a transaction read a key from another one by this read.
    fn reads_from(
        &self,
        reader: TxnId,
        read: OpId,
        key: KeyId,
        writer: TxnId,
    ) -> Result<(), Refusal> {
        if self.facts.txn(self.facts.known_op(read)?) != reader || self.facts.key(read) != key {
            return self.refuse("the read is another transaction's, or of another key");
        }
        match self.facts.external(read)? {
            Some((source, _)) if source == writer => self.facts.committed(writer),
            _ => self.refuse("the read saw something else"),
        }
    }

    /// The rule of a level: `from` writes the key and is visible to a reader that read it from
    /// `to`.
    fn visible(
        &self,
        rule: Level,
        key: KeyId,
        reader: TxnId,
        read: OpId,
        path: &'a [Edge],
    ) -> Result<RestsOn<'a>, Refusal> {
        let Edge { from, to, .. } = *self.edge;
        self.holds(self.level.implies(rule), "the rule is not one of the level")?;
        self.holds(from != to && from != reader, "a transaction does not precede itself")?;
        self.holds(
            !from.is_init() && self.facts.writes_key(from, key),
            "it does not write the key",
        )?;
        self.facts.committed(reader)?;
        self.reads_from(reader, read, key, to)?;
        self.holds(ends(path)? == Some((from, reader)), "its path does not lead to the reader")?;
        self.holds(
            makes_visible(self.facts, rule, read, path),
            "its path does not make it visible",
        )?;
        Ok(RestsOn::Path(path))
    }

    /// Refuses unless the transaction at the end of the edge overwrote what a writer wrote.
    fn overwrites(
        &self,
        writer: TxnId,
        key: KeyId,
        known: &'a VersionOrder,
    ) -> Result<RestsOn<'a>, Refusal> {
        let to = self.edge.to;
        let both_write = self.facts.writes_key(writer, key) && self.facts.writes_key(to, key);
        // Only a statement may have the initial version after another one.
        let stated = matches!(known, VersionOrder::Stated { .. });
        let may_follow = writer != to && (stated || !to.is_init());
        self.holds(both_write && may_follow, "they do not both write the key")?;
        let before = Before { first: writer, second: to };
        match known {
            VersionOrder::Initial => {
                self.holds(writer.is_init(), "the first version is not initial")
            }
            VersionOrder::ReadModifyWrite { read } => {
                self.reads_from(to, *read, key, writer)?;
                // Elsewhere, a read that does not see the own write is wrong by itself.
                let first =
                    !allows_dirty_reads(self.level) || self.facts.own_before(*read).is_none();
                self.holds(first, "the later writer read only after it had written")
            }
            VersionOrder::List { read } => {
                let shown = lists::shows_order(self.facts, self.level, *read, key, writer, to)?;
                self.holds(shown, "the list does not show the one before the other")
            }
            VersionOrder::NotShown { read } => {
                let hidden = lists::leaves_out(self.facts, self.level, *read, key, writer, to)?;
                self.holds(hidden, "the list does not end with the one, or shows the other")
            }
            VersionOrder::Path { edges } => {
                self.holds(ends(edges)? == Some((writer, to)), "its path leads elsewhere")?;
                self.holds(self.orders_writers(edges), "its path does not order commits")?;
                Ok(RestsOn::Path(edges))
            }
            VersionOrder::Stated { at } => {
                let has_order = self.level.shape().nodes != Nodes::None;
                self.holds(has_order, "the level knows no order of versions")?;
                let stated = self.facts.stated.says(*at, key, writer, to);
                self.holds(stated, "no trusted order of versions says so there")
            }
            VersionOrder::Assumed => Ok(RestsOn::Assumption(before)),
            VersionOrder::Refuted { cycle } => Ok(RestsOn::Refutation(before, cycle)),
            _ => Err(Refusal::Unsupported("an order of versions known in this way")),
        }
    }

    /// Whether a path from one writer of a key to another shows that the one commits before the
    /// other. At snapshot isolation the writers do not overlap, so that it is enough if the one
    /// starts before the other commits.
    fn orders_writers(&self, path: &[Edge]) -> bool {
        let overlap = !self.level.shape().exclusive_writers;
        path_span(self.facts, self.level, path)
            .is_some_and(|span| span.leaves == Moment::Commit || !overlap)
    }
}

/// Whether a path of edges makes a transaction visible by the rule of a level.
fn makes_visible(facts: &Facts<'_>, rule: Level, read: OpId, path: &[Edge]) -> bool {
    match (rule.shape().visible, path) {
        (Visible::EarlierReads, [edge]) => {
            matches!(edge.reason, Reason::Read { read: earlier, .. } if earlier < read)
        }
        (Visible::Direct, [edge]) => is_causal(edge),
        (Visible::Causes, path) => path.iter().all(is_causal),
        (Visible::Dependencies, path) => path.iter().all(is_dependency),
        (Visible::Prefix | Visible::Everything, path) => {
            let (leaves, arrives) = (Moment::Commit, Moment::Start);
            path_span(facts, rule, path) == Some(Span { leaves, arrives })
        }
        _ => false,
    }
}
