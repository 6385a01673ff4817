//! Edges: what the history must show for each reason.

use isolario_model::{
    Edge, KeyId, Level, LevelNodes, OpId, OpKind, Reason, TxnId, VersionOrder, VisibilityRule,
};

use crate::facts::{Facts, Source};
use crate::guaranteed::Guarantee;
use crate::justify::{Assumption, Before};
use crate::span::{Moment, Span, is_causal, is_dependency, path_span};
use crate::{Refusal, allows_dirty_reads, lists, may_suppose_sources, single_reads};

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
    /// Whether it may lead from or to a transaction of which nobody knows whether it committed. Such a
    /// transaction has a place in the order all the same (see `alternatives`), so that nothing has to
    /// be known where the edge follows from places, from what it saw under that condition, or from what
    /// comes before it whenever it commits.
    pub(crate) fn is_about_maybe(&self) -> bool {
        let is_placed = |known: &VersionOrder| {
            use VersionOrder::{AppendedLater, Assumed, Initial, Path, ReadModifyWrite, Refuted};
            matches!(
                known,
                Assumed
                    | Initial
                    | AppendedLater { .. }
                    | Path { .. }
                    | ReadModifyWrite { .. }
                    | Refuted { .. }
            )
        };
        let ends = [self.edge.from, self.edge.to];
        let exist = ends.iter().all(|txn| self.facts.known_txn(*txn).is_ok());
        exist
            && may_suppose_sources(self.level)
            && ends.iter().any(|txn| self.facts.is_uncertain(*txn))
            && ends
                .iter()
                .all(|txn| self.facts.is_uncertain(*txn) || self.facts.committed(*txn).is_ok())
            && match &self.edge.reason {
                Reason::Initial
                | Reason::Session
                | Reason::RealTime { .. }
                | Reason::Read { .. } => true,
                // Its writer is there, since the path says that somebody saw its write; or it is one
                // that certainly committed.
                Reason::Visible { .. } => true,
                Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
                    is_placed(known)
                }
                _ => false,
            }
    }

    /// Refuses an edge that the history contradicts, whatever it rests on. Also returns which of
    /// several writes a read is said to have seen.
    pub(crate) fn check(&self) -> Result<(RestsOn<'a>, Option<Assumption>), Refusal> {
        let Edge { from, to, reason } = self.edge;
        match reason {
            Reason::Read { key, read, write } => {
                let saw = self.saw(*to, *read, *key, *from)?;
                let is_one_of_several =
                    saw.is_some() || self.facts.source(*read) == Some(Source::Ambiguous);
                let names_write = match is_one_of_several {
                    true => self.wrote(*read, *from) == *write,
                    false => self.facts.external(*read)? == Some((*from, *write)),
                };
                Ok((self.holds(names_write, "it names another write")?, saw))
            }
            Reason::AntiDependency { key, read, writer, known } => {
                let saw = self.saw(*from, *read, *key, *writer)?;
                self.holds(from != to && writer != to, "a transaction does not depend on itself")?;
                Ok((self.overwrites(*writer, *key, known)?, saw))
            }
            Reason::Overwrite { key, known: VersionOrder::ReadModifyWrite { read } } => {
                self.both_write(*from, *key, false)?;
                let saw = self.saw(*to, *read, *key, *from)?;
                Ok((self.is_overwritten_read(*read)?, saw))
            }
            Reason::Visible { rule, key, reader, read, path } => {
                self.visible(*rule, *key, *reader, *read, path)
            }
            _ => Ok((self.check_certain()?, None)),
        }
    }

    /// The write that a read would have seen of a transaction.
    fn wrote(&self, read: OpId, writer: TxnId) -> Option<OpId> {
        if self.facts.met.contains_key(&read) && !writer.is_init() {
            let is_of_key =
                |op: &OpId| self.facts.is_write(*op) && self.facts.key(*op) == self.facts.key(read);
            return self.facts.history.txn_ops(writer).rfind(is_of_key);
        }
        self.facts.candidates(read).rfind(|write| self.facts.txn(*write) == writer)
    }

    /// Refuses unless a transaction read a key from another one by this read, or may have. Returns the
    /// assumption that it did where nobody knows.
    fn saw(
        &self,
        reader: TxnId,
        read: OpId,
        key: KeyId,
        writer: TxnId,
    ) -> Result<Option<Assumption>, Refusal> {
        let facts = self.facts;
        let is_of_reader = facts.txn(facts.known_op(read)?) == reader && facts.key(read) == key;
        let is_open = is_of_reader
            && may_suppose_sources(self.level)
            && (facts.met.contains_key(&read)
                || facts.history.op_kinds()[read.index()] == OpKind::Read
                    && (facts.is_uncertain(reader)
                        || facts.source(read) == Some(Source::Ambiguous)));
        if !is_open {
            facts.committed_at(self.level, reader)?;
            return self.reads_from(reader, read, key, writer).map(|()| None);
        }
        match single_reads::explaining(facts, read).as_slice() {
            // Nobody else explains it, and both certainly committed.
            [only] if *only == writer && !facts.is_uncertain(reader) => {
                facts.committed_at(self.level, reader)?;
                let is_certain = !facts.is_uncertain(writer);
                Ok((!is_certain).then_some(Assumption::Saw { read, writer }))
            }
            several if several.contains(&writer) => Ok(Some(Assumption::Saw { read, writer })),
            _ => self.refuse("the read cannot have seen that"),
        }
    }

    /// As [`Claim::check`], of edges that do not rest on what a read saw of several writes.
    fn check_certain(&self) -> Result<RestsOn<'a>, Refusal> {
        let Edge { from, to, reason } = self.edge;
        match reason {
            Reason::Initial => self.holds(from.is_init() && !to.is_init(), "it is not from init"),
            Reason::Session => {
                self.holds(self.level.shape().session_order, "the level knows no sessions")?;
                let holds = self.facts.in_session_order(*from, *to);
                self.holds(holds, "session order does not order them")
            }
            Reason::RealTime { finish, start } => self.real_time(*finish, *start),
            Reason::Overwrite { key, known } => self.overwrites(*from, *key, known),
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
    ) -> Result<(RestsOn<'a>, Option<Assumption>), Refusal> {
        let Edge { from, to, .. } = *self.edge;
        self.holds(self.level.implies(rule), "the rule is not one of the level")?;
        self.holds(from != to && from != reader, "a transaction does not precede itself")?;
        self.holds(
            !from.is_init() && self.facts.writes_key(from, key),
            "it does not write the key",
        )?;
        let saw = self.saw(reader, read, key, to)?;
        self.holds(ends(path)? == Some((from, reader)), "its path does not lead to the reader")?;
        self.holds(
            makes_visible(self.facts, rule, read, path),
            "its path does not make it visible",
        )?;
        Ok((RestsOn::Path(path), saw))
    }

    /// Refuses unless the transaction at the end of the edge overwrote what a writer wrote.
    fn overwrites(
        &self,
        writer: TxnId,
        key: KeyId,
        known: &'a VersionOrder,
    ) -> Result<RestsOn<'a>, Refusal> {
        let to = self.edge.to;
        let is_given =
            matches!(known, VersionOrder::Stated { .. } | VersionOrder::Guaranteed { .. });
        self.both_write(writer, key, is_given)?;
        let before = Before { first: writer, second: to };
        match known {
            VersionOrder::Initial => {
                self.holds(writer.is_init(), "the first version is not initial")
            }
            VersionOrder::ReadModifyWrite { read } => {
                self.reads_from(to, *read, key, writer)?;
                self.is_overwritten_read(*read)
            }
            VersionOrder::List { read } => {
                let shown = lists::shows_order(self.facts, self.level, *read, key, writer, to)?;
                self.holds(shown, "the list does not show the one before the other")
            }
            VersionOrder::AppendedLater { read } => {
                let hidden = lists::leaves_out(self.facts, self.level, *read, key, writer, to)?;
                self.holds(hidden, "the list does not end with the one, or shows the other")
            }
            VersionOrder::Path { edges } => {
                self.holds(ends(edges)? == Some((writer, to)), "its path leads elsewhere")?;
                let in_order = self.orders_writers(key, writer, edges);
                self.holds(in_order, "its path does not order commits")?;
                Ok(RestsOn::Path(edges))
            }
            VersionOrder::Stated { at } => {
                let has_order = self.level.shape().nodes != LevelNodes::None;
                self.holds(has_order, "the level knows no order of versions")?;
                let stated = self.facts.stated.says(*at, key, writer, to);
                self.holds(stated, "no trusted order of versions says so there")
            }
            VersionOrder::Guaranteed { by, first, second } => {
                let has_order = self.level.shape().nodes != LevelNodes::None;
                self.holds(has_order, "the level knows no order of versions")?;
                let (first, second) = ((*first, writer), (*second, to));
                let guarantee = Guarantee { by: *by, key, first, second };
                let holds = guarantee.holds(self.facts, self.level)?;
                self.holds(holds, "no assumption has one access before the other")
            }
            VersionOrder::Assumed => Ok(RestsOn::Assumption(before)),
            VersionOrder::Refuted { cycle } => Ok(RestsOn::Refutation(before, cycle)),
            _ => Err(Refusal::Unsupported("an order of versions known in this way")),
        }
    }

    /// Refuses unless a writer and the transaction at the end of the edge both write the key. Only a
    /// statement or an assumption may have the initial version after another one.
    fn both_write(&self, writer: TxnId, key: KeyId, stated: bool) -> Result<(), Refusal> {
        let to = self.edge.to;
        let both_write = self.facts.writes_key(writer, key) && self.facts.writes_key(to, key);
        let may_follow = writer != to && (stated || !to.is_init());
        self.holds(both_write && may_follow, "they do not both write the key").map(|_| ())
    }

    /// Refuses a read after the own write; elsewhere than at the lowest level, one that does not see
    /// the own write is wrong by itself. At the lowest level, what is stated counts more than what was read.
    fn is_overwritten_read(&self, read: OpId) -> Result<RestsOn<'a>, Refusal> {
        if allows_dirty_reads(self.level) {
            let first = self.facts.own_before(read).is_none();
            self.holds(first, "the later writer read only after it had written")?;
            let Edge { from, to, .. } = *self.edge;
            let is_version = self.facts.is_of_version(read, from);
            self.holds(is_version, "the earlier writer replaced what was read")?;
            let is_reverse = self.facts.is_stated(self.facts.key(read), to, from);
            self.holds(!is_reverse, "the stated order of versions is the reverse")?;
        }
        Ok(RestsOn::History)
    }

    /// Whether a path from one writer of a key to another shows that the one commits before the
    /// other. At snapshot isolation the writers do not overlap, so that it is enough if the one
    /// starts before the other commits.
    fn orders_writers(&self, key: KeyId, writer: TxnId, path: &[Edge]) -> bool {
        let exclude = || self.facts.exclude(key, self.edge.to, writer);
        let overlap = !self.level.shape().exclusive_writers || !exclude();
        path_span(self.facts, self.level, path)
            .is_some_and(|span| span.leaves == Moment::Commit || !overlap)
    }
}

/// Whether a path of edges makes a transaction visible by the rule of a level.
fn makes_visible(facts: &Facts<'_>, rule: Level, read: OpId, path: &[Edge]) -> bool {
    match (rule.shape().visible, path) {
        (VisibilityRule::EarlierReads, [edge]) => {
            matches!(edge.reason, Reason::Read { read: earlier, .. } if earlier < read)
        }
        (VisibilityRule::Direct, [edge]) => is_causal(edge),
        (VisibilityRule::Causes, path) => path.iter().all(is_causal),
        (VisibilityRule::Dependencies, path) => path.iter().all(is_dependency),
        (VisibilityRule::Prefix | VisibilityRule::Everything, path) => {
            let (leaves, arrives) = (Moment::Commit, Moment::Start);
            path_span(facts, rule, path) == Some(Span { leaves, arrives })
        }
        _ => false,
    }
}
