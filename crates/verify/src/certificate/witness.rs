//! Orders that are said to explain a history by its certificate: every dependency is compared with them.

use std::collections::BTreeMap;

use isolario_model::{
    KeyId, Level, Op, OpId, Outcome, Point, Stamp, TxnId, VisibilityRule, Witness,
};

use super::by_rows;
use super::rows::Certificate;
use crate::Refusal;
use crate::times::{InTurn, Times};

/// When transactions read, and when what they wrote appears.
pub(super) struct Placed {
    reads: Vec<Option<usize>>,
    writes: Vec<Option<usize>>,
    /// Of some reads, whose version they are said to have seen, where several are equal.
    sources: BTreeMap<OpId, TxnId>,
}

/// Who comes first and who depends on it, and whether that is an anti-dependency.
type Dependency = (TxnId, TxnId, bool);

/// An operation by predicate, and the version of a row that it met.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    pub(super) txn: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    pub(super) met: usize,
}

impl Certificate<'_> {
    /// Refuses an order that does not explain the history.
    pub(super) fn is_explained(&self, level: Level, witness: &Witness) -> Result<(), Refusal> {
        let placed = self.placed(level, witness)?;
        self.respects_sessions(level, &placed)?;
        self.respects_overwrites(level, &placed)?;
        if level.shape().visible == VisibilityRule::Prefix {
            self.respects_snapshots(&placed)?;
        }
        if matches!(level, Level::ReadUncommitted | Level::StrongReadUncommitted) {
            return Ok(());
        }
        let mut edges = Vec::new();
        for txn in self.txns() {
            for op in self.history.txn_ops(txn) {
                self.explain(level, txn, op, &placed, &mut edges)?;
            }
        }
        match level.shape().visible {
            VisibilityRule::Dependencies => self.leads_nowhere_back(level, &placed, edges),
            _ => Ok(()),
        }
    }

    /// Takes the places of all transactions that take part, each once, and looks at real time.
    fn placed(&self, level: Level, witness: &Witness) -> Result<Placed, Refusal> {
        let snapshots = level.shape().visible == VisibilityRule::Prefix;
        let points: Vec<Point> = match witness {
            Witness::CommitOrder(txns) | Witness::Chosen { order: txns, .. } if !snapshots => {
                txns.iter().flat_map(|txn| [Point::Start(*txn), Point::Commit(*txn)]).collect()
            }
            Witness::Points(points) if snapshots => points.clone(),
            _ => return Err(Refusal::WrongWitness(level)),
        };
        let none = vec![None; self.history.txn_count()];
        let sources = match witness {
            Witness::Chosen { sources, .. } => {
                sources.iter().map(|source| (source.read, source.writer)).collect()
            }
            _ => BTreeMap::new(),
        };
        let mut placed = Placed { reads: none.clone(), writes: none, sources };
        let mut in_turn = InTurn::new(Times::new(self.history, self.options.clock_skew));
        for (at, point) in points.iter().enumerate() {
            let (Point::Start(txn) | Point::Commit(txn)) = *point;
            if txn.index() >= self.history.txn_count() {
                return Err(Refusal::NoSuchTxn(txn));
            }
            if !self.is_kept(txn) {
                return Err(Refusal::NotCommitted(txn));
            }
            let is_start = matches!(point, Point::Start(_));
            if !is_start && placed.reads[txn.index()].is_none() {
                return Err(Refusal::NotStarted(txn));
            }
            let places = if is_start { &mut placed.reads } else { &mut placed.writes };
            if places[txn.index()].replace(at).is_some() {
                return Err(Refusal::Repeated(txn));
            }
            if level.shape().real_time {
                match is_start {
                    true => in_turn.start(txn),
                    false => in_turn.commit(txn)?,
                }
            }
        }
        match self.txns().find(|txn| placed.writes[txn.index()].is_none()) {
            Some(missing) => Err(Refusal::Missing(missing)),
            None => Ok(placed),
        }
    }

    fn respects_sessions(&self, level: Level, placed: &Placed) -> Result<(), Refusal> {
        if !self.options.session_order || !level.shape().session_order {
            return Ok(());
        }
        for session in self.history.sessions() {
            let mut before: Option<TxnId> = None;
            for txn in self.history.session_txns(session).filter(|txn| self.is_kept(*txn)) {
                if let Some(first) = before {
                    placed.comes_before(first, txn, "session order")?;
                }
                if self.history.outcome(txn) == Outcome::Committed {
                    before = Some(txn);
                }
            }
        }
        Ok(())
    }

    fn respects_overwrites(&self, level: Level, placed: &Placed) -> Result<(), Refusal> {
        for key in self.keys() {
            let row = self.row(key);
            for later in 2..row.len() {
                if self.is_one_object(level, key, later - 1, later) {
                    let why = "the stated order of versions";
                    placed.comes_before(row[later - 1].writer, row[later].writer, why)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses an order in which a transaction starts before the commit of one that a snapshot of it shows.
    fn respects_snapshots(&self, placed: &Placed) -> Result<(), Refusal> {
        let mut commits: Vec<(Stamp, TxnId)> =
            self.txns().filter_map(|txn| Some((self.history.db_commit(txn)?, txn))).collect();
        commits.sort_unstable();
        // Of the commits up to each, the one that comes last in the order.
        for at in 1..commits.len() {
            let (before, here) = (commits[at - 1].1, commits[at].1);
            if placed.writes[before.index()] > placed.writes[here.index()] {
                commits[at].1 = before;
            }
        }
        for (op, snapshot) in self.snapshots() {
            let reader = self.history.op_txn(op);
            let own = self.history.db_commit(reader);
            let shown = commits.partition_point(|(commit, _)| {
                *commit <= snapshot && own.is_none_or(|own| *commit < own)
            });
            if let (true, Some(last)) = (self.is_kept(reader), shown.checked_sub(1)) {
                placed.comes_before(commits[last].1, reader, "what a stated snapshot shows")?;
            }
        }
        Ok(())
    }

    /// Refuses an order in which an operation did not see what it had to. Gathers what its transaction
    /// depends on, and what it missed.
    fn explain(
        &self,
        level: Level,
        txn: TxnId,
        op: OpId,
        placed: &Placed,
        edges: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), Refusal> {
        let unexplained = |why| Err(Refusal::Unexplained { read: op, why });
        if let Op::Read { key, value: Some(_) } = self.history.op(op) {
            let word = self.history.encoded_version(op);
            let own = self.written_before(txn, op).get(&key).map(|(_, _, own)| *own);
            if own == Some(word) {
                return Ok(());
            }
            let row = self.row(key);
            // Of equal versions, the one that is named, else the last one that is there.
            let named = placed.sources.get(&op);
            let mut candidates = (0..row.len()).rev().filter(|place| {
                let writer = row[*place].writer;
                row[*place].word == Some(word)
                    && writer != txn
                    && named.is_none_or(|named| *named == writer)
                    && (own.is_none() || !by_rows(level) && self.is_former(txn, op, key, *place))
            });
            let found = candidates.find_map(|place| {
                let reads_well = self.reads_well(level, txn, key, place, placed);
                let of_key = self.presence_around(level, (txn, op), key, place, placed);
                Some((place, of_key.filter(|_| reads_well)?))
            });
            return match (found, own) {
                (Some((place, of_key)), _) => {
                    self.gather(txn, key, place, edges);
                    edges.extend(of_key);
                    Ok(())
                }
                (None, Some(_)) => unexplained("it does not show the transaction's own write"),
                (None, None) => unexplained("no version that it may have seen is there"),
            };
        }
        if !self.is_asked(op) {
            return Ok(());
        }
        if self.is_unstated(op) {
            return match self.is_possible(level, txn, op, placed, edges) {
                true => Ok(()),
                false => unexplained("no versions that it may have matched explain it"),
            };
        }
        let own = self.written_before(txn, op);
        let mut of_others = self.keys().filter(|key| !own.contains_key(key));
        of_others.try_for_each(|key| match self.named(op, key) {
            Some(writer) if self.place(writer, key).is_none() => {
                unexplained("it matched a version that was never committed")
            }
            Some(writer) if writer == txn => {
                unexplained("it matched a version that its transaction wrote later")
            }
            _ => Ok(()),
        })?;
        if !self.fits(txn, op, level) {
            return unexplained("the result does not follow from the versions that it matched");
        }
        for (key, place) in self.rows_read(txn, op) {
            if !self.reads_well(level, txn, key, place, placed) {
                return unexplained("a version that it read is not there");
            }
            self.gather(txn, key, place, edges);
        }
        self.meets_well(level, txn, op, placed, edges)
    }

    /// Whether a version is there when a transaction reads, as far as the level asks.
    pub(super) fn reads_well(
        &self,
        level: Level,
        txn: TxnId,
        key: KeyId,
        place: usize,
        placed: &Placed,
    ) -> bool {
        let row = self.row(key);
        let is_there = row[place].write.is_none() || placed.has_seen(row[place].writer, txn);
        let next = row.get(place + 1).filter(|next| next.writer != txn);
        let is_over = next.is_some_and(|next| placed.has_seen(next.writer, txn));
        is_there && !(is_over && counts_missed(level))
    }

    /// The dependencies of a read by key on the changes of whether the row is there; none if the order has one
    /// of them the wrong way round.
    fn presence_around(
        &self,
        level: Level,
        (txn, op): (TxnId, OpId),
        key: KeyId,
        returned: usize,
        placed: &Placed,
    ) -> Option<Vec<Dependency>> {
        let mut edges = Vec::new();
        if !self.is_search(level, op, key) {
            return Some(edges);
        }
        let ways = level.shape().visible == VisibilityRule::Dependencies;
        for at in self.changes_of_presence(key) {
            let writer = self.row(key)[*at].writer;
            let has_seen = placed.has_seen(writer, txn);
            let is_earlier = *at <= returned;
            let is_wrong = if is_earlier { !has_seen } else { has_seen && counts_missed(level) };
            if writer != txn && is_wrong {
                return None;
            }
            if ways {
                let (first, second) = if is_earlier { (writer, txn) } else { (txn, writer) };
                edges.push((first, second, !is_earlier));
            }
        }
        Some(edges)
    }

    pub(super) fn gather(
        &self,
        txn: TxnId,
        key: KeyId,
        place: usize,
        edges: &mut Vec<(TxnId, TxnId, bool)>,
    ) {
        let row = self.row(key);
        edges.push((row[place].writer, txn, false));
        if let Some(next) = row.get(place + 1) {
            edges.push((txn, next.writer, true));
        }
    }

    /// Refuses an order in which a change that an operation met comes later, or one that it did not
    /// meet comes earlier.
    fn meets_well(
        &self,
        level: Level,
        txn: TxnId,
        op: OpId,
        placed: &Placed,
        edges: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), Refusal> {
        let own = self.written_before(txn, op);
        let exactly = counts_missed_by_predicate(level);
        for key in self.keys().filter(|key| !own.contains_key(key)) {
            let meeting = Meeting { txn, op, key, met: self.met(txn, op, key) };
            let why = "a predicate of one of them matched, or did not match, a change of the other";
            let around = self.changes_around(level, meeting, placed, exactly);
            let out_of_order = |(first, second)| Refusal::OutOfOrder { first, second, why };
            edges.extend(around.map_err(out_of_order)?);
        }
        Ok(())
    }

    /// The dependencies that follow from the changes of what an operation matches, at the levels where ways
    /// of dependencies count. Gives two transactions instead that an order has the wrong way round: a change
    /// that was met must not come later, and one that was not met must not come earlier if what was met
    /// is told exactly.
    pub(super) fn changes_around(
        &self,
        level: Level,
        meeting: Meeting,
        placed: &Placed,
        exactly: bool,
    ) -> Result<Vec<Dependency>, (TxnId, TxnId)> {
        let ways = level.shape().visible == VisibilityRule::Dependencies;
        let Meeting { txn, op, key, met } = meeting;
        let row = self.row(key);
        let mut edges = Vec::new();
        for place in (1..row.len()).filter(|place| row[*place].writer != txn) {
            let writer = row[place].writer;
            let (is_met, has_seen) = (place <= met, placed.has_seen(writer, txn));
            let contradicts = if is_met { !has_seen } else { has_seen && exactly };
            if (contradicts || ways) && self.changes(op, key, place) {
                let (first, second) = if is_met { (writer, txn) } else { (txn, writer) };
                if contradicts {
                    return Err((first, second));
                }
                edges.push((first, second, !is_met));
            }
        }
        Ok(edges)
    }

    /// Refuses a history in which somebody depends on one whose write it missed.
    fn leads_nowhere_back(
        &self,
        level: Level,
        placed: &Placed,
        edges: Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), Refusal> {
        let mut next: Vec<Vec<TxnId>> = vec![Vec::new(); self.history.txn_count()];
        let mut add = |from: TxnId, to: TxnId| {
            if !from.is_init() && from != to {
                next[from.index()].push(to);
            }
        };
        edges.iter().filter(|edge| !edge.2).for_each(|(from, to, _)| add(*from, *to));
        for key in self.keys() {
            for later in 2..self.row(key).len() {
                if self.is_one_object(level, key, later - 1, later) {
                    add(self.row(key)[later - 1].writer, self.row(key)[later].writer);
                }
            }
        }
        if self.options.session_order && level.shape().session_order {
            for second in self.txns() {
                let of_session = self.history.session_txns(self.history.session_of(second));
                let first = { of_session }
                    .rev()
                    .find(|first| self.is_kept(*first) && self.in_session(*first, second));
                first.into_iter().for_each(|first| add(first, second));
            }
        }
        for (reader, writer, _) in edges.into_iter().filter(|edge| edge.2 && edge.0 != edge.1) {
            if !placed.has_seen(writer, reader) {
                continue;
            }
            let mut seen = vec![false; self.history.txn_count()];
            let mut open = vec![writer];
            while let Some(txn) = open.pop() {
                if txn == reader {
                    let why = "it depends on the transaction whose write it missed";
                    return Err(Refusal::OutOfOrder { first: reader, second: writer, why });
                }
                if !std::mem::replace(&mut seen[txn.index()], true) {
                    open.extend(next[txn.index()].iter().copied());
                }
            }
        }
        Ok(())
    }
}

/// Whether who read a version comes before who overwrote it, in the order of the level.
fn counts_missed(level: Level) -> bool {
    matches!(level.shape().visible, VisibilityRule::Prefix | VisibilityRule::Everything)
}

/// The same of what predicates matched.
pub(super) fn counts_missed_by_predicate(level: Level) -> bool {
    level.shape().visible == VisibilityRule::Prefix || by_rows(level)
}

impl Placed {
    /// Whether what one transaction wrote had appeared when another read.
    pub(super) fn has_seen(&self, writer: TxnId, reader: TxnId) -> bool {
        self.writes[writer.index()] < self.reads[reader.index()]
    }

    fn comes_before(&self, first: TxnId, second: TxnId, why: &'static str) -> Result<(), Refusal> {
        match self.has_seen(first, second) {
            true => Ok(()),
            false => Err(Refusal::OutOfOrder { first, second, why }),
        }
    }
}
