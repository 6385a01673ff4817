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
//! what was let go. Then whoever has the whole history is asked about the few transactions that matter
//! ([`HistoryQuery`]), or more of it is kept, from an earlier moment on ([`Follower::return_to`]).

mod excerpt;
mod inquiry;
mod retire;
mod window;

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Batch, Evidence, History, KeyId, Level, LevelResult, Meta,
    NameTable, OpInput, OpKind, OpNotes, Outcome, Point, SinkError, TxnEnd, TxnId, TxnSink,
    TxnStart, ValueRef, Verdict, Witness,
};
use rustc_hash::FxHashSet;

use crate::{CheckOptions, Checker};
pub use excerpt::PartPositions;
pub use inquiry::{HistoryQuery, ProvenResult, QueryAnswer};
use retire::{Cut, Moment, Settled, for_each_point, needs_sources};
pub use window::{Census, HistoryCounts};
use window::{Kept, Tally, Window};

/// Why a history cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfollowable {
    /// It has operations other than reads and writes of registers with values.
    Operation,
    /// Its format has another rule for initial values than one value for all keys.
    Initial,
    /// Somebody writes the initial value.
    WritesInitial,
}

/// What can be said of a history so far.
#[derive(Debug)]
pub enum FollowStatus {
    /// The level holds of all transactions but so many: they read what nobody here has written, or
    /// depend on one that did. The writers may be on their way; after a while they are doubted.
    Holds {
        /// How many wait.
        waiting: usize,
    },
    /// What is kept does not tell.
    Inconclusive(Box<Inconclusive>),
    /// The history cannot be followed.
    Unfit(Unfollowable),
}

/// What is kept does not show that the level holds, or shows that it does not.
#[derive(Debug)]
pub struct Inconclusive {
    window: Window,
    /// What is said of what is kept; nothing where somebody came too late to be placed.
    found: Option<Box<Found>>,
    /// Whether something was let go.
    forgot: bool,
}

/// What is said of what is kept, or of a part of it.
#[derive(Debug)]
struct Found {
    result: LevelResult,
    /// All but those that wait, if it is about them.
    part: Option<Window>,
}

impl Inconclusive {
    /// The answer about what is kept, if there is one.
    pub fn result(&self) -> Option<&LevelResult> {
        self.found.as_ref().map(|found| &found.result)
    }

    /// Whether nothing was let go, so that the answer is about the whole history so far.
    pub fn is_about_everything(&self) -> bool {
        !self.forgot
    }
}

/// Follows one level of a history. Transactions are added in [batches](Follower::add), or one by one as to
/// any sink, about in the order in which they finished.
#[derive(Debug)]
pub struct Follower {
    level: Level,
    options: CheckOptions,
    /// So many transactions are kept, however settled they are; and so long is a writer waited for.
    tail: usize,
    /// All keys that there were.
    keys: NameTable,
    known: Checkpoint,
    new: Vec<Batch>,
    /// Whether there are no more to come.
    is_over: bool,
    restarts: u32,
    decided_by: Attempt,
    /// The level by whose orders the level is shown to hold: it, or a stronger one.
    by: Level,
    /// The order of what is settled, since somebody took it last; none if nobody wants it.
    order: Option<Vec<SettledPoint>>,
    /// Whether a transaction of the history has a time, also if none that is kept has.
    has_times: bool,
}

/// What a follower knows of what there was so far, but for the names of keys: all that it takes to
/// [return](Follower::return_to) there. The usual one is that of the beginning.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    settled: Settled,
    kept: Kept,
    tally: Tally,
    /// How many transactions there were.
    arrived: u64,
    /// Whether something was let go.
    forgot: bool,
    /// Whether the order of what is settled shows the level only with the writers that some reads saw.
    needs_sources: bool,
}

impl Checkpoint {
    /// How many transactions there were.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// How much is known: the keys that have versions, and the transactions and operations that are kept.
    pub fn size(&self) -> usize {
        self.settled.len() + self.kept.len() + self.kept.op_count()
    }
}

/// A moment in the order by which a level is satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledPoint {
    /// What a transaction does.
    pub step: PointKind,
    /// Its session, in the order in which they first came.
    pub session: u32,
    /// Its place in its session.
    pub index: u64,
}

/// What a transaction does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// It starts.
    Start,
    /// It commits.
    Commit,
    /// Both, at levels that do not tell the two apart.
    Both,
}

impl Follower {
    /// How many transactions are kept at least, unless told otherwise.
    pub const USUAL_TAIL: usize = 4096;

    /// Follows a level, if it can be followed.
    pub fn new(level: Level, options: CheckOptions, tail: usize) -> Option<Follower> {
        Follower::levels().contains(&level).then(|| Follower {
            level,
            options,
            tail: tail.max(1),
            keys: NameTable::default(),
            known: Checkpoint::default(),
            new: Vec::new(),
            is_over: false,
            restarts: 0,
            decided_by: Attempt::Nothing,
            by: if Level::Causal.implies(level) { Level::Causal } else { level },
            order: None,
            has_times: false,
        })
    }

    /// Keeps the order by which the level is satisfied, for somebody to [take](Follower::take_order).
    pub fn keep_order(&mut self) {
        self.order = Some(Vec::new());
    }

    /// What has been settled of the order since it was taken last. When nothing more is to come, that is all of
    /// it. None where nobody wants it, and where it is open what reads saw: there it takes more than an order.
    pub fn take_order(&mut self) -> Option<Vec<SettledPoint>> {
        self.order.as_mut().map(std::mem::take)
    }

    /// The names of the sessions, in the order in which they first came.
    pub fn sessions(&self) -> impl Iterator<Item = ValueRef<'_>> {
        self.known.tally.sessions()
    }

    /// The levels that can be followed: those that ask for an order of all transactions.
    pub fn levels() -> &'static [Level] {
        Level::by_order()
    }

    /// The level that it follows.
    pub fn level(&self) -> Level {
        self.level
    }

    /// How many transactions there were.
    pub fn arrived(&self) -> u64 {
        self.known.arrived
    }

    /// Number of transactions of a session that were considered.
    pub(crate) fn arrived_of(&self, session: ValueRef<'_>) -> u64 {
        self.known.tally.count(session)
    }

    /// How many transactions are kept.
    pub fn kept(&self) -> usize {
        self.known.kept.len()
    }

    /// How many transactions are kept at least.
    pub fn tail(&self) -> usize {
        self.tail
    }

    /// How large the history is, as far as it was looked at.
    pub fn figures(&self) -> HistoryCounts {
        self.known.tally.figures(&self.keys)
    }

    /// The attempt that decides the level, so far.
    pub fn decided_by(&self) -> Attempt {
        self.decided_by
    }

    /// How often it went back, to the beginning or to a later place.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Says whether more may come. If not, nobody is waited for.
    pub fn expect_more(&mut self, may_come: bool) {
        self.is_over = !may_come;
    }

    /// Says that a transaction of the history has a time. A level that needs times applies then, also to
    /// transactions without: nothing orders these by real time.
    pub fn expect_times(&mut self) {
        self.has_times = true;
    }

    /// Whether a transaction of the history is known to have a time.
    pub fn expects_times(&self) -> bool {
        self.has_times
    }

    /// Adds transactions.
    pub fn add(&mut self, batch: Batch) {
        self.known.arrived += batch.len() as u64;
        self.new.push(batch);
    }

    /// Looks at what is new, and lets go what is settled. After a doubt, it has to
    /// [resume](Follower::resume) or to [go back](Follower::return_to).
    pub fn check(&mut self) -> Result<FollowStatus, SinkError> {
        let (kept, new) = (std::mem::take(&mut self.known.kept), std::mem::take(&mut self.new));
        let names = (&mut self.keys, &mut self.known.tally);
        let mut window = Window::new(kept, new, names, self.known.arrived)?;
        if let Some(unfit) = window.unfit() {
            return Ok(FollowStatus::Unfit(unfit));
        }
        window.rename(self.settled());
        let judged = match self.is_late(&window) {
            true => Judged::Open { found: None },
            false => self.judge(&mut window)?,
        };
        match judged {
            Judged::Holds { witness, waiting, decided_by } => {
                self.decided_by = decided_by;
                self.retire(&window, &witness)?;
                Ok(FollowStatus::Holds { waiting })
            }
            Judged::Open { found } => {
                let forgot = self.known.forgot;
                Ok(FollowStatus::Inconclusive(Box::new(Inconclusive { window, found, forgot })))
            }
        }
    }

    /// Goes on as if those that were doubted had just come: somebody knows that their writers are on
    /// their way.
    pub fn resume(&mut self, mut doubt: Inconclusive) -> Result<(), SinkError> {
        for origin in &mut doubt.window.origins {
            origin.arrived = self.known.arrived;
        }
        self.known.kept = doubt.window.keep(|_| true, self.settled())?;
        Ok(())
    }

    /// What is said of what is kept, with what it is said of. What transactions go by in the whole history
    /// takes a census of all of it.
    pub fn prove(&self, doubt: Inconclusive, whole: &Census) -> Result<ProvenResult, SinkError> {
        let Inconclusive { window, found, .. } = doubt;
        let Some(Found { result, part }) = found.map(|found| *found) else {
            return Err(SinkError::Sequence("nothing is said of what is kept"));
        };
        let window = part.unwrap_or(window);
        let (part, places) = window.named(self.settled(), whole)?;
        Ok(ProvenResult { part, positions: places, result, figures: whole.figures() })
    }

    /// What is known after a look.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.known
    }

    /// Goes back to what was known once, and keeps so many from there on. What came after that is told
    /// again.
    pub fn return_to(&mut self, checkpoint: Checkpoint, tail: usize) {
        self.tail = tail;
        self.restarts += 1;
        self.known = checkpoint;
        self.new.clear();
        self.order.as_mut().map(Vec::clear);
        self.is_over = false;
    }

    /// Begins again with nothing, and keeps so many from then on.
    pub fn restart(&mut self, tail: usize) {
        self.return_to(Checkpoint::default(), tail);
    }

    fn settled(&self) -> &Settled {
        &self.known.settled
    }

    /// Whether somebody new finished before a settled transaction had started. Skew removes orders: without
    /// it, one is doubted too often, and never too seldom.
    fn is_late(&self, window: &Window) -> bool {
        let Some(latest) = self.settled().latest_start.filter(|_| self.in_time()) else {
            return false;
        };
        let history = &window.history;
        history.txns().any(|txn| {
            window.origins[txn.index()].arrived == self.known.arrived
                && history.outcome(txn) == Outcome::Committed
                && history.finish(txn).is_some_and(|finish| finish < latest)
        })
    }

    /// Decides the level of what is kept, but for what waits for its writers.
    fn judge(&mut self, window: &mut Window) -> Result<Judged, SinkError> {
        let checker = Checker::new(&window.history, self.options.clone());
        let waiting = unwritten(&window.history, checker.wrong_reads());
        if waiting.is_empty() || !waiting.iter().all(|txn| self.is_recent(window, *txn)) {
            return Ok(Judged::of(self.decide(&window.history, &checker), 0, None));
        }
        drop(checker);
        let waits = self.depends_on(&window.history, &waiting);
        let (waiting, others): (Vec<TxnId>, Vec<TxnId>) =
            window.history.txns().partition(|txn| waits[txn.index()]);
        let options = self.options.clone();
        let result = window
            .without(&waiting, |history| self.decide(history, &Checker::new(history, options)));
        if result.verdict.is_satisfied() {
            return Ok(Judged::of(result, waiting.len(), None));
        }
        // What is wrong is told of the others alone.
        let part = window.part(&others)?;
        let mut result =
            self.decide(&part.history, &Checker::new(&part.history, self.options.clone()));
        result.verdict = match result.verdict {
            Verdict::Satisfied(witness) => Verdict::Satisfied(renumbered(witness, &others)),
            // It may be that only those that wait have times.
            Verdict::NotApplicable(_) => Verdict::Satisfied(Witness::Empty),
            verdict => verdict,
        };
        Ok(Judged::of(result, waiting.len(), Some(part)))
    }

    /// Decides the level. An order by which causal holds is one by which the weaker levels do. It is tried
    /// first, since it leaves less to keep: at read committed the version that everybody reads may well
    /// come before another one that nobody has seen, and all who read it saw an old version then. Where
    /// causal does not hold, it is not asked for again.
    fn decide(&mut self, history: &History, checker: &Checker<'_>) -> LevelResult {
        let level = level_for(self.level, history, self.has_times);
        if self.by != self.level && checker.wrong_reads().is_empty() {
            let stronger = checker.check(self.by);
            if stronger.verdict.is_satisfied() {
                return LevelResult { level: self.level, ..stronger };
            }
            self.by = self.level;
        }
        LevelResult { level: self.level, ..checker.check(level) }
    }

    /// Whether a transaction came so late that those that it waits for may still be on their way.
    fn is_recent(&self, window: &Window, txn: TxnId) -> bool {
        let since = self.known.arrived.saturating_sub(window.origins[txn.index()].arrived);
        !self.is_over && since <= self.tail as u64
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

    /// Lets go what is settled, and keeps the rest.
    fn retire(&mut self, window: &Window, witness: &Witness) -> Result<(), SinkError> {
        let history = &window.history;
        let cut = Cut::new(history, witness, self.tail);
        // What aborted is known for a while. Later its writes are those of nobody here, and the whole
        // history tells whose they are.
        let stays = |txn: TxnId| match history.outcome(txn) {
            Outcome::Aborted => self.is_recent(window, txn),
            _ => !cut.is_settled(txn),
        };
        let kept = window.keep(stays, self.settled())?;
        self.known.forgot |= kept.len() < history.txn_count();
        self.known.kept = kept;
        self.known.settled.extend(history, &window.keys, &cut);
        self.settle_order(window, witness, &cut);
        Ok(())
    }

    /// Keeps the order of what is settled, if somebody wants it; at the end, that of everything.
    fn settle_order(&mut self, window: &Window, witness: &Witness, cut: &Cut<'_>) {
        let Some(order) = &mut self.order else { return };
        let history = &window.history;
        if let Witness::CommitOrder(txns) = witness {
            let (is_over, txns) = (self.is_over, txns.iter().copied());
            let settled = txns.filter(|txn| is_over || cut.is_settled(*txn));
            self.known.needs_sources |= needs_sources(history, &window.current, settled);
        }
        let sessions: Vec<u32> = history
            .sessions()
            .map(|one| self.known.tally.session(history.session_name(one)).0)
            .collect();
        for_each_point(witness, |moment| {
            let (txn, step) = match moment {
                Moment::Start(txn) => (txn, PointKind::Start),
                Moment::Commit(txn) => (txn, PointKind::Commit),
                Moment::Both(txn) => (txn, PointKind::Both),
            };
            if self.is_over || cut.is_settled(txn) {
                let session = sessions[history.session_of(txn).index()];
                order.push(SettledPoint {
                    step,
                    session,
                    index: window.origins[txn.index()].index,
                });
            }
        });
        let needs_sources = self.known.needs_sources || matches!(witness, Witness::Chosen { .. });
        if self.is_over && needs_sources {
            self.order = None;
        }
    }
}

/// The level to check a part of a history for: one without real time, where the history has times and the
/// part does not.
fn level_for(level: Level, part: &History, has_times: bool) -> Level {
    match level {
        _ if !has_times || part.has_times() => level,
        Level::StrongSnapshotIsolation => Level::SnapshotIsolation,
        Level::StrictSerializable => Level::Serializable,
        level => level,
    }
}

enum Judged {
    Holds {
        /// An order of all transactions but those that wait.
        witness: Witness,
        waiting: usize,
        decided_by: Attempt,
    },
    Open {
        found: Option<Box<Found>>,
    },
}

impl Judged {
    /// What follows from an answer about all, or about the part that does not wait.
    fn of(result: LevelResult, waiting: usize, part: Option<Window>) -> Judged {
        let decided_by = result.decided_by;
        match result.verdict {
            Verdict::Satisfied(witness) => Judged::Holds { witness, waiting, decided_by },
            _ => Judged::Open { found: Some(Box::new(Found { result, part })) },
        }
    }
}

/// Who read what nobody wrote.
fn unwritten(history: &History, wrong: &[Anomaly]) -> Vec<TxnId> {
    let reads = wrong.iter().filter_map(|anomaly| match anomaly.evidence {
        Evidence::Read { read, .. } if anomaly.kind == AnomalyKind::ThinAirRead => Some(read),
        _ => None,
    });
    reads.map(|read| history.op_txn(read)).collect()
}

/// A witness of a part of a history, in the numbers of the whole: what the transactions of the part are
/// there, in order.
fn renumbered(witness: Witness, part: &[TxnId]) -> Witness {
    let number = |txn: TxnId| part[txn.index()];
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
    ops.map(|op| (history.op_keys()[op.index()], history.encoded_version(op)))
}

/// The batch that transactions are added to one by one.
impl Follower {
    fn last(&mut self) -> &mut Batch {
        if self.new.is_empty() {
            self.new.push(Batch::new());
        }
        let last = self.new.len() - 1;
        &mut self.new[last]
    }
}

impl TxnSink for Follower {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.last().meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.known.arrived += 1;
        self.last().begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.last().op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.last().end(end)
    }
}
