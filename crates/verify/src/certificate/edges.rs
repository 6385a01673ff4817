//! Edges of a cycle, each compared with what history and certificate say.

use isolario_model::{
    AnomalyKind, Edge, EdgeKind, KeyId, Level, Op, OpId, Outcome, Reason, TxnId, VersionOrder,
    VisibilityRule,
};

use super::rows::Certificate;
use super::{by_rows, refuse};
use crate::times::Times;
use crate::{Refusal, cycles, shapes, stated::Stated};

impl Certificate<'_> {
    /// Refuses a cycle that is none, that the level allows, that takes for granted what a read saw, or
    /// that is of another kind.
    pub(super) fn is_cycle(
        &self,
        level: Level,
        kind: AnomalyKind,
        cycle: &[Edge],
    ) -> Result<(), Refusal> {
        self.is_forbidden_cycle(level, kind, cycle)?;
        if self.supposes(level, cycle).is_none_or(|supposed| !supposed.is_empty()) {
            return refuse(kind, "a read may have seen another version, which is equal");
        }
        // Who read the same version as another one is overtaken by one of the two alone.
        match is_called(kind, cycle) && kind != AnomalyKind::LostUpdate {
            true => Ok(()),
            false => refuse(kind, "the cycle is of another kind"),
        }
    }

    /// Refuses a cycle that is none, or that the level allows.
    pub(super) fn is_forbidden_cycle(
        &self,
        level: Level,
        kind: AnomalyKind,
        cycle: &[Edge],
    ) -> Result<(), Refusal> {
        cycles::closes(cycle)?;
        for edge in cycle {
            for txn in [edge.from, edge.to] {
                if !txn.is_init() && txn.index() >= self.history.txn_count() {
                    return Err(Refusal::NoSuchTxn(txn));
                }
                if txn.is_init() || !self.is_kept(txn) {
                    return Err(Refusal::NotCommitted(txn));
                }
            }
            if !self.holds(level, edge) {
                return refuse(kind, "history and certificate do not bear out one of the edges");
            }
        }
        match is_forbidden(level, cycle) {
            true => Ok(()),
            false => refuse(kind, "the level allows such a cycle"),
        }
    }

    fn holds(&self, level: Level, edge: &Edge) -> bool {
        let Edge { from, to, ref reason } = *edge;
        let shape = level.shape();
        match *reason {
            Reason::Session => {
                shape.session_order && self.options.session_order && self.in_session(from, to)
            }
            Reason::RealTime { finish, start } => {
                let times = Times::new(self.history, self.options.clock_skew);
                shape.real_time && times.order(from, to, finish, start)
            }
            Reason::Read { key, read, write } => {
                let place = self.place(from, key);
                let version = place.and_then(|place| self.row(key).get(place));
                from != to
                    && version.is_some_and(|version| version.write == write)
                    && self.is_of(read, to)
                    && place.is_some_and(|place| {
                        self.may_have_read(to, read, key, place)
                            || self.is_search(level, read, key)
                                && self.changes_presence(key, place)
                                && self.candidates(read, key).iter().any(|seen| *seen > place)
                    })
            }
            Reason::Overwrite { key, ref known } => {
                let places = self.place(from, key).zip(self.place(to, key));
                places.is_some_and(|(earlier, later)| {
                    earlier < later
                        && self.is_one_object(level, key, earlier, later)
                        && self.knows(key, earlier, later, known)
                })
            }
            Reason::AntiDependency { key, read, writer, ref known } => {
                let places = self.place(writer, key).zip(self.place(to, key));
                from != to
                    && self.is_of(read, from)
                    && places.is_some_and(|(earlier, later)| {
                        let is_next = later == earlier + 1;
                        let is_missed = || {
                            self.is_one_object(level, key, earlier, later)
                                || self.is_search(level, read, key)
                                    && self.changes_presence(key, later)
                        };
                        (is_next || earlier < later && is_missed())
                            && self.may_have_read(from, read, key, earlier)
                            && self.knows(key, earlier, later, known)
                    })
            }
            Reason::StartDependency { op, snapshot } => {
                shape.visible == VisibilityRule::Prefix
                    && from != to
                    && self.is_of(op, to)
                    && self.snapshot(op) == Some(snapshot)
                    && self.is_in_snapshot(from, to, snapshot)
            }
            Reason::PredicateRead { read, key, write } => self
                .changer(to, from, read, key, write)
                .is_some_and(|place| place <= self.met(to, read, key)),
            Reason::PredicateAntiDependency { read, key, write, evaluated: None } => {
                from != to
                    && self
                        .changer(from, to, read, key, write)
                        .is_some_and(|place| place > self.met(from, read, key))
            }
            _ => false,
        }
    }

    /// Whether an operation reads a row by its key at a level at which that is a search for the key: of all rows
    /// that have had it.
    pub(super) fn is_search(&self, level: Level, op: OpId, key: KeyId) -> bool {
        let is_by_key = matches!(self.history.op(op), Op::Read { key: read, .. } if read == key);
        is_by_key && !by_rows(level) && self.history.is_row(key)
    }

    /// Whether a version inserts a row, or deletes it.
    pub(super) fn changes_presence(&self, key: KeyId, at: usize) -> bool {
        self.changes_of_presence(key).binary_search(&at).is_ok()
    }

    fn is_of(&self, op: OpId, txn: TxnId) -> bool {
        op.index() < self.history.op_count() && self.history.op_txn(op) == txn
    }

    pub(super) fn in_session(&self, first: TxnId, second: TxnId) -> bool {
        first < second
            && self.history.session_of(first) == self.history.session_of(second)
            && self.history.outcome(first) == Outcome::Committed
    }

    pub(super) fn is_one_object(&self, level: Level, key: KeyId, one: usize, other: usize) -> bool {
        by_rows(level) || self.incarnation(key, one) == self.incarnation(key, other)
    }

    /// Whether an operation of a transaction may have read a version of another one.
    pub(super) fn may_have_read(&self, txn: TxnId, op: OpId, key: KeyId, place: usize) -> bool {
        let Some(version) = self.row(key).get(place) else { return false };
        if version.writer == txn {
            return false;
        }
        match self.history.op(op) {
            Op::Read { key: read, value: Some(_) } => {
                read == key
                    && version.word == Some(self.history.encoded_version(op))
                    && (!self.written_before(txn, op).contains_key(&key)
                        || self.is_former(txn, op, key, place))
            }
            _ => self.rows_read(txn, op).contains(&(key, place)),
        }
    }

    /// The place of the version that a write made, if it changes what another's operation matches.
    fn changer(
        &self,
        reader: TxnId,
        writer: TxnId,
        op: OpId,
        key: KeyId,
        write: OpId,
    ) -> Option<usize> {
        let place = self.place(writer, key)?;
        let is_it = self.is_of(op, reader)
            && self.is_asked(op)
            && !self.is_unstated(op)
            && !self.written_before(reader, op).contains_key(&key)
            && self.row(key).get(place)?.write == Some(write)
            && self.changes(op, key, place);
        is_it.then_some(place)
    }

    /// Whether it is known in this way that a version comes after another.
    fn knows(&self, key: KeyId, earlier: usize, later: usize, known: &VersionOrder) -> bool {
        let row = self.row(key);
        let (first, second) = (row[earlier], row[later]);
        match *known {
            VersionOrder::Initial => earlier == 0,
            VersionOrder::Stated { at } => {
                let stated = Stated::new(self.orders);
                // The line that puts the later one after the one before it says so of all earlier ones.
                let before = row[later - 1].writer;
                stated.says(at, key, first.writer, second.writer)
                    || stated.says(at, key, before, second.writer)
            }
            VersionOrder::ReadModifyWrite { read } => {
                self.is_of(read, second.writer)
                    && second.write.is_some_and(|write| read < write)
                    && self.candidates(read, key) == [earlier]
            }
            _ => false,
        }
    }
}

fn is_anti(edge: &Edge) -> bool {
    edge.reason.kind() == EdgeKind::ReadWrite
}

fn is_missed(edge: &Edge) -> bool {
    matches!(edge.reason, Reason::PredicateAntiDependency { .. })
}

/// Whether two anti-dependencies follow each other.
fn has_adjacent(cycle: &[Edge]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    cycle.iter().zip(next).any(|(one, other)| is_anti(one) && is_anti(other))
}

/// Whether a level forbids a cycle of such edges.
fn is_forbidden(level: Level, cycle: &[Edge]) -> bool {
    use Level as L;
    let antis = cycle.iter().filter(|edge| is_anti(edge)).count();
    let reads = cycle.iter().any(|edge| edge.reason.kind() == EdgeKind::WriteRead);
    match level {
        L::ReadUncommitted | L::StrongReadUncommitted => antis == 0 && !reads,
        L::AdyaReadCommitted | L::StrongAdyaReadCommitted => antis == 0,
        L::ConsistentView | L::ParallelSnapshotIsolation => antis < 2,
        L::SnapshotIsolation | L::StrongSnapshotIsolation => !has_adjacent(cycle),
        L::RepeatableRead | L::StrongRepeatableRead => !cycle.iter().any(is_missed),
        _ => true,
    }
}

fn is_of_one_key(cycle: &[Edge]) -> bool {
    cycle.windows(2).all(|pair| pair[0].reason.key() == pair[1].reason.key())
}

/// Two reads of one row that saw different versions, the older one in the end or first: what reads of two
/// rows are called, too.
fn is_of_one_row(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    let [one, other] = cycle else { return false };
    match (&one.reason, &other.reason) {
        (
            Reason::AntiDependency { key, read: stale, known, .. },
            Reason::Read { key: k, read, .. },
        )
        | (
            Reason::Read { key: k, read, .. },
            Reason::AntiDependency { key, read: stale, known, .. },
        ) => {
            let by_clients =
                matches!(known, VersionOrder::Initial | VersionOrder::ReadModifyWrite { .. });
            let called = match read < stale {
                true => AnomalyKind::NonMonoReadCo,
                false => AnomalyKind::FracturedReadCo,
            };
            key == k && by_clients && kind == called
        }
        _ => false,
    }
}

/// Whether a cycle with edges of predicates is what its name says.
pub(crate) fn is_called(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    use AnomalyKind as A;
    if cycle.iter().any(|edge| matches!(edge.reason, Reason::StartDependency { .. })) {
        return kind == A::OrderContradiction;
    }
    if !cycle.iter().any(|edge| edge.reason.is_about_predicate()) {
        return shapes::is_of_kind(kind, cycle) || is_of_one_row(kind, cycle);
    }
    let count = |kind| cycle.iter().filter(|edge| edge.reason.kind() == kind).count();
    let (antis, length) = (count(EdgeKind::ReadWrite), cycle.len());
    if count(EdgeKind::RealTime) > 0 {
        let is_stale = length == 2 && antis == 1;
        return kind == if is_stale { A::StaleRead } else { A::RealTimeCycle };
    }
    if cycle.iter().any(is_missed) {
        let by_item = cycle.iter().any(|edge| matches!(edge.reason, Reason::Read { .. }));
        let by_predicate =
            cycle.iter().any(|edge| matches!(edge.reason, Reason::PredicateRead { .. }));
        return kind
            == match (antis, length) {
                (1, 2) if by_item => A::Phantom,
                (1, 2) if by_predicate => A::PredicateManyPreceders,
                (1, _) => A::PredicateSingleAntiDependency,
                (2, 2) if is_of_one_key(cycle) => A::PredicateSingleAntiDependency,
                (2, 2) => A::PredicateWriteSkew,
                _ => A::PredicateAntiDependencyCycle,
            };
    }
    match kind {
        A::CyclicCo => antis == 0,
        A::ReadSkew => antis == 1 && length == 2,
        A::SingleAntiDependency => antis == 1 && length > 2,
        A::LongFork => {
            antis == 2 && length == 4 && count(EdgeKind::WriteRead) == 2 && !has_adjacent(cycle)
        }
        A::NonadjacentAntiDependencies => antis > 1 && !has_adjacent(cycle),
        A::ItemAntiDependencyCycle => antis > 1 && has_adjacent(cycle),
        _ => false,
    }
}
