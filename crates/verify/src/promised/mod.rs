//! Verdicts by an order that the database promises.
//!
//! What is said to be satisfied comes with the events in an order: it must be one that the promise
//! leaves open, and everything must come out right in it. What is said to be violated is compared with
//! what a replay finds to be wrong, by code of its own.

mod index;
mod replay;
mod table;

use isolario_model::{
    AnomalyKind, Evidence, Findings, History, Inapplicable, KeyId, Level, LevelNodes, LevelResult,
    Op, OpId, Outcome, Point, PromisedOrder, PromisedPoints, Reason, TxnId, Verdict,
    VisibilityRule, Witness,
};

use crate::anomalies::are_counted;
use crate::predicates::deletes;
use crate::times::{InTurn, Times};
use crate::{Refusal, VerifyOptions};
use replay::Replay;
use table::{Difference, Table, is_open};

/// A level, and the promise by which it is to be decided.
#[derive(Clone, Copy)]
pub(crate) struct Promise<'h> {
    pub(crate) history: &'h History,
    pub(crate) options: VerifyOptions,
    /// None where nothing is promised: then any order will do.
    pub(crate) order: Option<&'h PromisedOrder>,
    pub(crate) level: Level,
    /// Whether transactions start and commit, or have one moment.
    pub(crate) has_starts: bool,
}

/// Re-checks a result that was found by a promised order.
pub(crate) fn verify(
    history: &History,
    options: VerifyOptions,
    order: &PromisedOrder,
    result: &LevelResult,
) -> Result<(), Refusal> {
    let shape = result.level.shape();
    let has_starts = match (shape.nodes, shape.visible) {
        (LevelNodes::One, VisibilityRule::Everything) => Some(false),
        (LevelNodes::StartAndCommit, VisibilityRule::Prefix) if order.is_by_stamps() => Some(true),
        _ => None,
    };
    let has_starts = has_starts.filter(|_| !result.level.needs().version_order);
    let promise = has_starts.map(|has_starts| Promise {
        history,
        options,
        order: Some(order),
        level: result.level,
        has_starts,
    });
    match (&result.verdict, promise) {
        (Verdict::Undecided(_), _) => Ok(()),
        (Verdict::NotApplicable(Inapplicable::NotByPromisedOrder), None) => Ok(()),
        (Verdict::NotApplicable(reason), Some(promise)) => promise.does_not_apply(reason),
        (Verdict::Satisfied(witness), Some(promise)) => promise.verify_witness(witness),
        (Verdict::Violated(findings), Some(promise)) => promise.verify_findings(findings),
        _ => Err(Refusal::Unsupported("a verdict about this level by a promised order")),
    }
}

impl<'h> Promise<'h> {
    /// The moment of a point; none where nothing is promised.
    fn moment(&self, point: Point, table: &Table<'_>) -> Option<u32> {
        match point {
            Point::Start(txn) => self.place(txn).map(|place| place.start),
            // Who wrote nothing leaves nothing behind: all of it happens at its start.
            Point::Commit(txn) if self.has_starts && !self.may_write(txn, table) => {
                self.place(txn).map(|place| place.start)
            }
            Point::Commit(txn) => self.place(txn).map(|place| place.commit),
        }
    }

    pub(super) fn place(&self, txn: TxnId) -> Option<PromisedPoints> {
        self.order?.points(txn)
    }

    /// Whether a transaction may have written anything, as far as the table knows its effects.
    fn may_write(&self, txn: TxnId, table: &Table<'_>) -> bool {
        let is_unobserved =
            |op| matches!(self.history.op(op), Op::PredicateWrite { rows: None, .. });
        !self.written(txn, table).is_empty() || self.history.txn_ops(txn).any(is_unobserved)
    }

    fn takes_part(&self, txn: TxnId) -> bool {
        match self.history.outcome(txn) {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => self.order.is_none() || self.place(txn).is_some(),
        }
    }

    /// Whether a transaction must not be missing.
    fn is_needed(&self, txn: TxnId) -> bool {
        let may_lack = self.order.is_none() && self.history.outcome(txn) == Outcome::Unknown;
        self.takes_part(txn) && !may_lack
    }

    /// Whether one transaction must have committed before another starts, by their session.
    pub(crate) fn follows_in_session(&self, first: TxnId, second: TxnId) -> bool {
        self.options.session_order
            && first < second
            && self.history.session_of(first) == self.history.session_of(second)
            && self.history.outcome(first) == Outcome::Committed
    }

    /// Whether one transaction must have committed before another starts, by their session or by real time.
    fn must_precede(&self, first: TxnId, second: TxnId) -> bool {
        let times = Times::new(self.history, self.options.clock_skew);
        self.follows_in_session(first, second)
            || self.level.shape().real_time && times.in_order(first, second)
    }

    /// The keys that a transaction wrote, with the writes; those that it may have written where the table does
    /// not know yet.
    fn written(&self, txn: TxnId, table: &Table<'_>) -> Vec<(KeyId, OpId)> {
        let mut written = Vec::new();
        for op in self.history.txn_ops(txn).filter(|op| !table.has_no_effect(*op)) {
            match self.history.op(op) {
                Op::Write { key, .. } | Op::Delete { key } | Op::Append { key, .. } => {
                    written.push((key, op));
                }
                Op::InsertIfAbsent { key, applied, .. }
                | Op::CompareAndSet { key, applied, .. }
                    if applied != Some(false) =>
                {
                    written.push((key, op));
                }
                Op::PredicateWrite { rows: Some(rows), .. } => {
                    written.extend(rows.iter().map(|row| (row.key, op)));
                }
                _ => {}
            }
        }
        written
    }
}

/// Satisfied.
impl Promise<'_> {
    pub(crate) fn verify_witness(&self, witness: &Witness) -> Result<(), Refusal> {
        let points: Vec<Point> = match witness {
            Witness::CommitOrder(order) if !self.has_starts => {
                order.iter().map(|txn| Point::Commit(*txn)).collect()
            }
            Witness::Points(points) if self.has_starts => points.clone(),
            _ => return Err(Refusal::WrongWitness(self.level)),
        };
        self.is_complete(&points)?;
        self.keeps_sessions_and_times(&points)?;
        let mut table = Table::new(self.history);
        for (at, point) in points.iter().enumerate() {
            let wrong = self.happen(*point, &mut table);
            if let Some(Difference { op: read, .. }) = wrong.into_iter().next() {
                let why = "something else was there at its turn";
                return Err(Refusal::Unexplained { read, why });
            }
            self.excludes_rivals(&points[..at], *point, &table)?;
        }
        self.keeps_the_promise(&points, &table)?;
        match table.unknown() {
            Some(_) => Err(Refusal::Unsupported("a predicate that cannot be evaluated")),
            None => Ok(()),
        }
    }

    /// Each transaction that takes part starts once, if it does, and then commits once.
    fn is_complete(&self, points: &[Point]) -> Result<(), Refusal> {
        let count = self.history.txn_count();
        let (mut started, mut committed) = (vec![!self.has_starts; count], vec![false; count]);
        for point in points {
            let (Point::Start(txn) | Point::Commit(txn)) = *point;
            if txn.index() >= count {
                return Err(Refusal::NoSuchTxn(txn));
            }
            if !self.takes_part(txn) {
                return Err(Refusal::NotCommitted(txn));
            }
            let (done, before) = match point {
                Point::Start(_) => (&mut started, true),
                Point::Commit(_) => (&mut committed, started[txn.index()]),
            };
            if !before {
                return Err(Refusal::NotStarted(txn));
            }
            if std::mem::replace(&mut done[txn.index()], true) {
                return Err(Refusal::Repeated(txn));
            }
        }
        let is_missing = |txn: &TxnId| {
            let has_started = self.has_starts && started[txn.index()];
            (self.is_needed(*txn) || has_started) && !committed[txn.index()]
        };
        self.history.txns().find(is_missing).map_or(Ok(()), |txn| Err(Refusal::Missing(txn)))
    }

    fn keeps_the_promise(&self, points: &[Point], table: &Table<'_>) -> Result<(), Refusal> {
        let mut latest: Option<(u32, TxnId)> = None;
        for point in points {
            let (Point::Start(txn) | Point::Commit(txn)) = *point;
            let Some(moment) = self.moment(*point, table) else { continue };
            match latest {
                Some((later, second)) if later > moment => {
                    let why = "the promised order";
                    return Err(Refusal::OutOfOrder { first: txn, second, why });
                }
                _ => latest = Some((moment, txn)),
            }
        }
        Ok(())
    }

    fn keeps_sessions_and_times(&self, points: &[Point]) -> Result<(), Refusal> {
        let mut in_turn = InTurn::new(Times::new(self.history, self.options.clock_skew));
        let mut last_start = vec![None; self.history.session_count()];
        for point in points {
            let (Point::Start(txn) | Point::Commit(txn)) = *point;
            let session = self.history.session_of(txn).index();
            if matches!(point, Point::Start(_)) || !self.has_starts {
                in_turn.start(txn);
                last_start[session] = last_start[session].max(Some(txn));
            }
            if matches!(point, Point::Commit(_)) {
                if let Some(second) = last_start[session]
                    && self.follows_in_session(txn, second)
                {
                    let why = "session order";
                    return Err(Refusal::OutOfOrder { first: txn, second, why });
                }
                if self.level.shape().real_time {
                    in_turn.commit(txn)?;
                }
            }
        }
        Ok(())
    }

    fn excludes_rivals(
        &self,
        past: &[Point],
        point: Point,
        table: &Table<'_>,
    ) -> Result<(), Refusal> {
        let Point::Commit(second) = point else { return Ok(()) };
        if !self.level.shape().exclusive_writers {
            return Ok(());
        }
        let mut written: Vec<KeyId> =
            self.written(second, table).iter().map(|(key, _)| *key).collect();
        let since_start = past.iter().rev().take_while(|other| **other != Point::Start(second));
        for other in since_start {
            let Point::Commit(first) = *other else { continue };
            for (key, _) in self.written(first, table) {
                if !written.contains(&key) {
                    continue;
                }
                if self.order.is_some() || !deletes(self.history, first, key) {
                    return Err(Refusal::Conflict { key, first, second });
                }
                // What comes after a delete is another row.
                written.retain(|other| *other != key);
            }
        }
        Ok(())
    }

    /// Lets a point happen. Gives what does not come out right.
    pub(crate) fn happen(&self, point: Point, table: &mut Table<'_>) -> Vec<Difference> {
        let (Point::Start(txn) | Point::Commit(txn)) = point;
        let is_start = matches!(point, Point::Start(_));
        let mark = table.mark();
        let mut differences = Vec::new();
        for op in self.history.txn_ops(txn) {
            if is_start || !self.has_starts {
                differences.extend(table.difference(op));
                table.decide(op);
            }
            table.write(op);
        }
        if is_start {
            table.take_back(mark);
        }
        differences
    }
}

/// Violated, and not applicable.
impl Promise<'_> {
    fn verify_findings(&self, findings: &Findings) -> Result<(), Refusal> {
        are_counted(findings)?;
        let replay = Replay::run(self)?;
        let is_left_out = self.leaves_out_a_writer();
        for anomaly in &findings.anomalies {
            if anomaly.kind != AnomalyKind::OrderContradiction {
                return Err(Refusal::Unsupported("an anomaly of this kind in a promised order"));
            }
            if is_left_out && self.depends_on_results(&anomaly.evidence) {
                let (kind, why) =
                    (anomaly.kind, "a transaction without a position may be the reason");
                return Err(Refusal::WrongKind { kind, why });
            }
            let is_right = match &anomaly.evidence {
                Evidence::Unexpected { op, expected, result } => {
                    replay.differences.iter().any(|difference| {
                        difference.op == *op
                            && difference.result == *result
                            && !(expected.is_empty() && result.is_none())
                            && expected.iter().all(|one| difference.versions.contains(one))
                    })
                }
                Evidence::Concurrent { key, first, second } => {
                    self.are_concurrent(*key, *first, *second, &replay.table)
                }
                Evidence::Cycle { edges } => self.contradicts(edges, &replay.table),
                _ => return Err(Refusal::Unsupported("evidence of this kind")),
            };
            if !is_right {
                let (kind, why) = (anomaly.kind, "everything comes out right there");
                return Err(Refusal::WrongKind { kind, why });
            }
        }
        Ok(())
    }

    /// Whether a transaction that may have committed and written something has no place.
    fn leaves_out_a_writer(&self) -> bool {
        let table = Table::new(self.history);
        let mut txns = self.history.txns();
        txns.any(|txn| {
            self.history.outcome(txn) == Outcome::Unknown
                && self.place(txn).is_none()
                && self.may_write(txn, &table)
        })
    }

    /// Whether evidence depends on what operations saw, and so on what every transaction wrote.
    fn depends_on_results(&self, evidence: &Evidence) -> bool {
        let ops = self.history.op_count();
        let is_open = |op: OpId| op.index() < ops && is_open(self.history, op);
        match evidence {
            Evidence::Concurrent { first, second, .. } => is_open(*first) || is_open(*second),
            // A transaction whose conditional writes take no effect commits at its start.
            Evidence::Cycle { edges } => edges.first().is_some_and(|known| {
                self.has_starts
                    && known.from.index() < self.history.txn_count()
                    && self.history.txn_ops(known.from).any(is_open)
            }),
            _ => true,
        }
    }

    /// Whether two writers of a key ran at the same time, by their timestamps.
    fn are_concurrent(&self, key: KeyId, first: OpId, second: OpId, table: &Table<'_>) -> bool {
        let ops = self.history.op_count();
        if first.index() >= ops || second.index() >= ops || !self.level.shape().exclusive_writers {
            return false;
        }
        let (a, b) = (self.history.op_txn(first), self.history.op_txn(second));
        let wrote = |txn, op| self.takes_part(txn) && self.written(txn, table).contains(&(key, op));
        match (self.place(a), self.place(b)) {
            (Some(one), Some(two)) => {
                a != b
                    && wrote(a, first)
                    && wrote(b, second)
                    && two.start < one.commit
                    && one.start < two.commit
            }
            _ => false,
        }
    }

    /// Whether a pair of edges says that one must come before another by its session or by real
    /// time, and the other before the one by the promise.
    fn contradicts(&self, edges: &[isolario_model::Edge], table: &Table<'_>) -> bool {
        let [known, stated] = edges else { return false };
        let (first, second) = (known.from, known.to);
        let count = self.history.txn_count();
        let turns = stated.from == second && stated.to == first;
        if !turns || first.index() >= count || second.index() >= count {
            return false;
        }
        let is_known = match known.reason {
            Reason::Session => self.follows_in_session(first, second),
            Reason::RealTime { finish, start } => {
                let times = Times::new(self.history, self.options.clock_skew);
                self.level.shape().real_time && times.order(first, second, finish, start)
            }
            _ => false,
        };
        let begin = if self.has_starts { Point::Start(second) } else { Point::Commit(second) };
        let is_stated = matches!(stated.reason, Reason::Stated { .. })
            && match (self.moment(begin, table), self.moment(Point::Commit(first), table)) {
                (Some(begin), Some(commit)) => begin < commit,
                _ => false,
            };
        is_known && is_stated && self.takes_part(first) && self.takes_part(second)
    }

    fn does_not_apply(&self, reason: &Inapplicable) -> Result<(), Refusal> {
        let holds = match *reason {
            Inapplicable::NotInPromisedOrder { txn } => {
                txn.index() < self.history.txn_count() && self.place(txn).is_none()
            }
            Inapplicable::NoTimes => !self.history.has_times(),
            Inapplicable::NotByPromisedOrder => false,
            _ => true,
        };
        if holds { Ok(()) } else { Err(Refusal::Applicable("the promised order decides it")) }
    }
}
