//! Following a history while it is recorded, at a cost that depends on what is new.
//!
//! A follower keeps the end of the history and, of all that came before, the current version of each
//! key. What it has let go is *settled*: a set of transactions that no later one can come before. Say
//! the settled part satisfies the level by some order, it holds whatever its transactions depend on, and
//! the rest satisfies the level by another order if it begins with the current versions. Then the one order
//! after the other shows that the whole history does:
//!
//! - What settled transactions saw is settled, too, so that nothing that comes later is visible to them.
//! - The others see, of the settled versions, only the current ones. Whatever else is settled and
//!   wrote the same key comes before these.
//! - Snapshots of the others begin after all settled commits; and no other had finished when a settled
//!   one started.
//!
//! So the checkers are asked about the rest alone, with the current versions in place of the initial
//! ones, and that the level holds is certain. That it does not hold is not: the rest may be wrong about
//! what was let go. Then the whole history has to be looked at ([`Look::Doubtful`]), and what that
//! says is the answer.

mod retire;

use isolario_model::{
    AnomalyKind, Batch, Evidence, Findings, History, Initial, KeyId, Level, LevelResult, Meta, Op,
    OpInput, OpKind, OpNotes, Outcome, Point, SinkError, TxnEnd, TxnId, TxnSink, TxnStart, Value,
    ValueRef, Verdict, Witness,
};
use rustc_hash::FxHashSet;

use crate::{Options, check};
use retire::{Cut, Settled};

/// Why a history cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// It has operations other than reads and writes of registers with values.
    Operation,
    /// Its format has another rule for initial values than one value for all keys.
    Initial,
    /// Somebody writes the initial value.
    WritesInitial,
}

/// What can be said of a history so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Look {
    /// The level holds of all transactions but so many: they read what nobody here has written, or
    /// depend on one that did. The writers may be on their way; after a while they are doubted.
    Holds {
        /// How many wait.
        waiting: usize,
    },
    /// What is kept does not tell: see [`Follower::reload`].
    Doubtful,
}

/// Follows one level of a history, to which transactions are added as to any sink.
#[derive(Debug)]
pub struct Follower {
    level: Level,
    options: Options,
    /// So many transactions are kept, however settled they are; and so long is a writer waited for.
    tail: usize,
    initial: Value,
    settled: Settled,
    /// What is kept, and what is new.
    batch: Batch,
    unfit: Option<Unfit>,
    /// Whether somebody finished before a settled transaction had started.
    is_late: bool,
    /// Whether what is kept did not tell, so that more has to be kept.
    is_doubtful: bool,
    /// How many transactions there were.
    arrived: u64,
    reloads: u32,
}

impl Follower {
    /// How many transactions are kept at least, unless told otherwise.
    pub const USUAL_TAIL: usize = 4096;

    /// Follows a level, if it can be followed.
    pub fn new(level: Level, options: Options, tail: usize) -> Option<Follower> {
        Follower::levels().contains(&level).then(|| Follower {
            level,
            options,
            tail: tail.max(1),
            initial: Value::Nil,
            settled: Settled::default(),
            batch: Batch::new(),
            unfit: None,
            is_late: false,
            is_doubtful: false,
            arrived: 0,
            reloads: 0,
        })
    }

    /// The levels that can be followed: those that ask for an order of all transactions.
    pub fn levels() -> &'static [Level] {
        &[
            Level::AdyaReadCommitted,
            Level::ReadCommitted,
            Level::ReadAtomic,
            Level::Causal,
            Level::Prefix,
            Level::SnapshotIsolation,
            Level::StrongSnapshotIsolation,
            Level::Serializable,
            Level::StrictSerializable,
        ]
    }

    /// The level that it follows.
    pub fn level(&self) -> Level {
        self.level
    }

    /// How many transactions there were.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// How many transactions are kept.
    pub fn kept(&self) -> usize {
        self.batch.len()
    }

    /// How often the whole history had to be looked at.
    pub fn reloads(&self) -> u32 {
        self.reloads
    }

    /// Why the history cannot be followed, if so.
    pub fn unfit(&self) -> Option<&Unfit> {
        self.unfit.as_ref()
    }

    /// Looks at what is new, and lets go what is settled.
    pub fn look(&mut self) -> Result<Look, SinkError> {
        let judged = match self.is_late || self.unfit.is_some() {
            true => None,
            false => {
                let history = std::mem::take(&mut self.batch).build()?;
                Some(self.judge(history)?)
            }
        };
        match judged {
            Some(Judged::Holds(held)) => Ok(Look::Holds { waiting: self.retire(&held)? }),
            _ => {
                self.is_doubtful = true;
                Ok(Look::Doubtful)
            }
        }
    }

    /// Looks at the whole history, everything that was added so far, and goes on from there; or says
    /// what came of the level if it cannot go on. If there was doubt, it keeps more from then on.
    pub fn reload(&mut self, whole: &History) -> Result<Result<Look, LevelResult>, SinkError> {
        self.reloads += 1;
        if std::mem::take(&mut self.is_doubtful) {
            self.tail = self.tail.saturating_mul(2);
        }
        self.is_late = false;
        self.settled = Settled::default();
        self.batch = Batch::new();
        self.arrived = whole.txn_count() as u64;
        let whole = by_arrival(whole)?;
        Ok(match self.judge(whole)? {
            Judged::Holds(held) => Ok(Look::Holds { waiting: self.retire(&held)? }),
            Judged::Open(result) => Err(result),
        })
    }

    /// Decides the level of what is kept, but for what waits for its writers.
    fn judge(&self, history: History) -> Result<Judged, SinkError> {
        let result = self.check(&history);
        let waiting = match result.verdict {
            Verdict::Satisfied(witness) => {
                return Ok(Judged::Holds(Box::new(Held { history, witness, waiting: 0 })));
            }
            Verdict::Violated(ref findings) => unwritten(&history, findings),
            _ => Vec::new(),
        };
        if waiting.is_empty() || !waiting.iter().all(|txn| self.is_recent(&history, *txn)) {
            return Ok(Judged::Open(result));
        }
        let waits = self.depends_on(&history, &waiting);
        let mut rest = Batch::new();
        rest.meta(history.meta())?;
        for txn in history.txns().filter(|txn| !waits[txn.index()]) {
            history.replay_txn(txn, &mut rest)?;
        }
        let rest = rest.build()?;
        let result = self.check(&rest);
        let witness = match result.verdict {
            Verdict::Satisfied(witness) => renumbered(witness, &rest, &history),
            // It may be that only those that wait have times.
            Verdict::NotApplicable(_) => Witness::Empty,
            _ => return Ok(Judged::Open(result)),
        };
        let waiting = waits.into_iter().filter(|waits| *waits).count();
        Ok(Judged::Holds(Box::new(Held { history, witness, waiting })))
    }

    /// Whether a transaction came so late that those that it waits for may still be on their way.
    fn is_recent(&self, history: &History, txn: TxnId) -> bool {
        self.arrived.saturating_sub(arrival(history, txn)) <= self.tail as u64
    }

    fn check(&self, history: &History) -> LevelResult {
        let mut results = check(history, &[self.level], &self.options);
        results.swap_remove(0)
    }

    /// By transaction, whether it is one of these or depends on one: by sessions, by reads, or by real
    /// time where that counts. A history without such transactions satisfies whatever it satisfies with
    /// them.
    fn depends_on(&self, history: &History, these: &[TxnId]) -> Vec<bool> {
        let mut depends = vec![false; history.txn_count()];
        let mut versions: FxHashSet<(KeyId, u64)> = FxHashSet::default();
        let mut earliest_finish = i64::MAX;
        let mut new: Vec<TxnId> = these.to_vec();
        while !new.is_empty() {
            for txn in new.drain(..) {
                depends[txn.index()] = true;
                versions.extend(accesses(history, txn, OpKind::Write));
                let committed = history.outcome(txn) == Outcome::Committed;
                let finish = history.finish(txn).filter(|_| committed && self.in_time());
                earliest_finish = earliest_finish.min(finish.unwrap_or(i64::MAX));
            }
            for session in history.sessions() {
                let mut follows = false;
                for txn in history.session_txns(session) {
                    if depends[txn.index()] {
                        follows |= history.outcome(txn) == Outcome::Committed;
                    } else if follows && self.options.session_order
                        || history.start(txn).is_some_and(|start| start > earliest_finish)
                        || accesses(history, txn, OpKind::Read).any(|seen| versions.contains(&seen))
                    {
                        new.push(txn);
                    }
                }
            }
        }
        depends
    }

    /// Whether real time counts.
    fn in_time(&self) -> bool {
        self.level.shape().real_time
    }

    /// Lets go what is settled, and keeps the rest; says how many wait.
    fn retire(&mut self, held: &Held) -> Result<usize, SinkError> {
        let Held { history, witness, waiting } = held;
        let cut = Cut::new(history, witness, self.tail);
        // What aborted is known for a while. Later its writes are those of nobody here, and the whole
        // history tells whose they are.
        let stays = |txn: &TxnId| match history.outcome(*txn) {
            Outcome::Aborted => self.is_recent(history, *txn),
            _ => !cut.is_settled(*txn),
        };
        let mut kept: Vec<TxnId> = history.txns().filter(stays).collect();
        kept.sort_unstable_by_key(|txn| arrival(history, *txn));
        let displaced = self.settled.extend(history, &cut);
        let (settled, initial) = (&self.settled, self.initial.as_ref());
        let mut batch = Batch::new();
        batch.meta(&self.meta_inside(history.meta()))?;
        for txn in kept {
            tell(history, txn, arrival(history, txn), &mut batch, |key, value, read| {
                let value = settled.original(&displaced, key, value, initial);
                read(settled.inside(key, value, initial))
            })?;
        }
        self.batch = batch;
        Ok(*waiting)
    }

    /// What holds for the part that is kept.
    fn meta_inside(&self, meta: &Meta) -> Meta {
        Meta { initial: Initial::Value(self.initial.clone()), ..meta.clone() }
    }
}

/// What is kept, and why the level holds of it.
struct Held {
    history: History,
    /// An order of all transactions but those that wait.
    witness: Witness,
    waiting: usize,
}

enum Judged {
    Holds(Box<Held>),
    Open(LevelResult),
}

/// When a transaction arrived, by number: that is what lines are used for here.
fn arrival(history: &History, txn: TxnId) -> u64 {
    history.line(txn).unwrap_or_default()
}

/// Who read what nobody wrote.
fn unwritten(history: &History, findings: &Findings) -> Vec<TxnId> {
    let reads = findings.anomalies.iter().filter_map(|anomaly| match anomaly.evidence {
        Evidence::Read { read, .. } if anomaly.kind == AnomalyKind::ThinAirRead => Some(read),
        _ => None,
    });
    reads.map(|read| history.op_txn(read)).collect()
}

/// A witness of a part of a history, in the numbers of the whole.
fn renumbered(witness: Witness, part: &History, whole: &History) -> Witness {
    let mut arrivals: Vec<(u64, TxnId)> =
        whole.txns().map(|txn| (arrival(whole, txn), txn)).collect();
    arrivals.sort_unstable();
    let number = |txn: TxnId| {
        let arrived = arrival(part, txn);
        arrivals[arrivals.partition_point(|(at, _)| *at < arrived)].1
    };
    match witness {
        Witness::CommitOrder(txns) => Witness::CommitOrder(txns.into_iter().map(number).collect()),
        Witness::Points(points) => {
            let point = |point| match point {
                Point::Start(txn) => Point::Start(number(txn)),
                Point::Commit(txn) => Point::Commit(number(txn)),
            };
            Witness::Points(points.into_iter().map(point).collect())
        }
        _ => Witness::Empty,
    }
}

/// The key and the version of the operations of a kind.
fn accesses(history: &History, txn: TxnId, kind: OpKind) -> impl Iterator<Item = (KeyId, u64)> {
    let ops = history.txn_ops(txn).filter(move |op| history.op_kinds()[op.index()] == kind);
    ops.map(|op| (history.op_keys()[op.index()], history.version_word(op)))
}

/// Takes the value of a read.
type Read<'r> = &'r mut dyn FnMut(ValueRef<'_>) -> Result<(), SinkError>;

/// Tells a transaction to a batch. What it read of a key is told by `renamed`.
fn tell(
    history: &History,
    txn: TxnId,
    arrived: u64,
    batch: &mut Batch,
    renamed: impl Fn(ValueRef<'_>, ValueRef<'_>, Read<'_>) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let session = history.session_name(history.session_of(txn));
    let id = history.txn_name(txn);
    batch.begin(&TxnStart { session, id, line: Some(arrived) })?;
    for op in history.txn_ops(txn) {
        history.with_op_input(op, |op| match op {
            Op::Read { key, value: Some(value) } => renamed(*key, *value, &mut |value| {
                batch.op(&Op::Read { key: *key, value: Some(value) })
            }),
            op => batch.op(op),
        })?;
    }
    batch.end(&history.txn_end(txn))
}

/// The same history with transactions numbered in the order of their lines.
fn by_arrival(history: &History) -> Result<History, SinkError> {
    let mut order: Vec<TxnId> = history.txns().collect();
    order.sort_by_key(|txn| history.line(*txn));
    let mut batch = Batch::new();
    batch.meta(history.meta())?;
    for (arrived, txn) in (1..).zip(order) {
        tell(history, txn, arrived, &mut batch, |_, value, read| read(value))?;
    }
    batch.build()
}

impl TxnSink for Follower {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        match &meta.initial {
            Initial::Value(initial) => self.initial = initial.clone(),
            _ => self.unfit = Some(Unfit::Initial),
        }
        self.batch.meta(&self.meta_inside(meta))
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.arrived += 1;
        self.batch.begin(&TxnStart { line: Some(self.arrived), ..*start })
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        match op {
            _ if notes.version.is_some() => self.unfit = Some(Unfit::Operation),
            Op::Read { key, value: Some(value) } => {
                let value = self.settled.inside(*key, *value, self.initial.as_ref());
                return self.batch.op(&Op::Read { key: *key, value: Some(value) });
            }
            Op::Write { value, .. } if *value == self.initial.as_ref() => {
                self.unfit = Some(Unfit::WritesInitial);
            }
            Op::Read { value: None, .. } | Op::Write { .. } => return self.batch.op(op),
            _ => self.unfit = Some(Unfit::Operation),
        }
        Ok(())
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if self.in_time()
            && end.outcome == Outcome::Committed
            && let (Some(finish), Some(latest)) = (end.finish, self.settled.latest_start)
        {
            // Skew removes orders: without it, one is doubted too often, and never too seldom.
            self.is_late |= finish < latest;
        }
        self.batch.end(end)
    }
}
