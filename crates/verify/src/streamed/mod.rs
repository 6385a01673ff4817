//! Replays the order of a history that is not in memory.
//!
//! History and order are read side by side. A recording has transactions about in the order in which they finished, and
//! that is about the order in which they can be replayed: a transaction that the history has brought waits
//! until the order has come to it, and the other way round. What is asked of the order is what the replay of a
//! history in memory asks:
//!
//! - Everybody who committed is in it, once, and nobody who aborted. Whoever waits in the end and committed is
//!   missing; whoever was told and does not wait when the order names him was there before, or aborted.
//! - Whoever precedes a transaction in its session does not wait any more when it has its turn.
//! - Of all that have started, the last start in real time is enough to compare others with.
//! - Reads are explained: by a [store](store) where an order or points are replayed, which holds one value per key, by
//!   the [end of the order](recent) at the weak levels. What nobody wrote who is in the order, nobody
//!   can find there: so the writes of aborted transactions need not be known, nor whether a transaction of unknown
//!   outcome that is left out was read from.
//!
//! A transaction of unknown outcome that is not in the order waits to the end.

mod recent;
mod store;
mod txn;
mod wrong;

use isolario_model::{
    History, Initial, Level, LevelNodes, OpKind, Outcome, SinkError, Value, VisibilityRule,
};
use rustc_hash::FxHashMap;

use crate::VerifyOptions;
use crate::proof::{OrderPoint, ReplayLimits, TxnPositions};
use crate::times::{Interval, LatestStart};
use recent::{Recent, Sought};
use store::Store;
use txn::{Keys, Txn, Write};
use wrong::{REAL_TIME, SESSION_ORDER};

pub(crate) use wrong::Wrong;

/// Whether a history, of which this is a piece, is of a kind that can be replayed piece by piece: it has
/// operations on registers alone, whose versions go by their values, one initial value for all keys or
/// none, and no rows that come back.
pub(crate) fn is_fit(piece: &History) -> bool {
    let is_known =
        |kind: &OpKind| matches!(kind, OpKind::Read | OpKind::ReadUnobserved | OpKind::Write);
    !piece.names_versions()
        && piece.op_kinds().iter().all(is_known)
        && !piece.may_reuse_rows()
        && matches!(piece.initial(), Initial::Value(_) | Initial::None)
}

/// Why a replay does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    Wrong(Wrong),
    /// Somebody saw a version that was overwritten before all that is kept; if anybody wrote it.
    Beyond {
        key: u32,
        value: Value,
    },
    /// The order names nobody of the history.
    NoSuchTxn(u64),
}

impl From<Wrong> for Halt {
    fn from(wrong: Wrong) -> Halt {
        Halt::Wrong(wrong)
    }
}

/// The replay of an order at a level.
pub(crate) struct Replay {
    level: Level,
    options: VerifyOptions,
    in_points: bool,
    room: ReplayLimits,
    sought: Option<(Value, Value)>,
    positions: TxnPositions,
    keys: Keys,
    /// By session, the position of the last one that committed.
    last: Vec<Option<u64>>,
    /// Who was told and has not had a turn.
    waiting: FxHashMap<u64, Txn>,
    /// How much that is, in operations.
    size: usize,
    /// Who has started and not committed.
    open: FxHashMap<u64, Open>,
    /// By key, who has started and will write it; only where writers exclude each other.
    writers: FxHashMap<u32, u64>,
    latest: LatestStart<u64>,
    /// None before the first piece.
    state: Option<State>,
}

/// A transaction between its start and its commit.
struct Open {
    interval: Interval,
    writes: Box<[Write]>,
}

/// What reads are explained by.
enum State {
    Store(Store),
    Recent(Box<Recent>),
}

impl Replay {
    /// Replays an order of commits or of points; none if it shows nothing about the level.
    pub(crate) fn new(
        level: Level,
        in_points: bool,
        options: VerifyOptions,
        positions: TxnPositions,
        room: ReplayLimits,
    ) -> Option<Replay> {
        let level = match (level.shape().nodes, in_points) {
            (LevelNodes::One, false) | (LevelNodes::StartAndCommit, true) => level,
            // Points that show a stronger level.
            (LevelNodes::One, true) if Level::Prefix.implies(level) => Level::Prefix,
            _ => return None,
        };
        Some(Replay {
            level,
            options,
            in_points,
            room,
            sought: None,
            last: vec![None; positions.sessions()],
            positions,
            keys: Keys::default(),
            waiting: FxHashMap::default(),
            size: 0,
            open: FxHashMap::default(),
            writers: FxHashMap::default(),
            latest: LatestStart::default(),
            state: None,
        })
    }

    /// Looks out for somebody who writes this value to this key.
    pub(crate) fn seek(&mut self, key: Value, value: Value) {
        self.sought = Some((key, value));
    }

    /// The name of a key.
    pub(crate) fn key_name(&self, key: u32) -> Option<&Value> {
        self.keys.name(key)
    }

    /// Whether more waits than may.
    pub(crate) fn is_too_large(&self) -> bool {
        self.size > self.room.waiting
    }

    /// Tells the next piece of the history.
    pub(crate) fn tell(&mut self, piece: &History) -> Result<(), SinkError> {
        let mut pieced = self.keys.of_piece(piece);
        let of_sessions = self.positions.tell(piece)?;
        let counts = self.options.session_order && self.level.shape().session_order;
        for of_session in of_sessions {
            let last = &mut self.last[of_session.number];
            let txns = piece.session_txns(of_session.session);
            for (txn, position) in txns.zip(of_session.positions) {
                let outcome = piece.outcome(txn);
                if outcome == Outcome::Aborted {
                    continue;
                }
                let before = last.filter(|_| counts);
                let waiting = pieced.txn(txn, position, of_session.number as u32, before);
                self.size += waiting.size();
                self.waiting.insert(position, waiting);
                if outcome == Outcome::Committed {
                    *last = Some(position);
                }
            }
        }
        self.grow(piece);
        Ok(())
    }

    /// Makes room for new keys.
    fn grow(&mut self, piece: &History) {
        if self.state.is_none() {
            self.state = Some(self.begin(piece));
        }
        match &mut self.state {
            Some(State::Store(store)) => store.grow(self.keys.count()),
            Some(State::Recent(recent)) => recent.grow(self.keys.count()),
            None => {}
        }
    }

    fn begin(&mut self, piece: &History) -> State {
        let initial = piece.initial_value().cloned();
        let visible = self.level.shape().visible;
        if self.in_points || visible == VisibilityRule::Everything {
            return State::Store(Store::new(initial));
        }
        let sought = self.sought.take();
        let sought =
            sought.map(|(key, value)| Sought::new(self.keys.number(key), value, initial.as_ref()));
        let session_order = self.options.session_order;
        State::Recent(Box::new(Recent::new(
            visible,
            session_order,
            initial,
            self.room.recent,
            sought,
        )))
    }

    /// Whether the history has brought whom a moment is about, or never will.
    pub(crate) fn is_ready(&self, moment: OrderPoint) -> bool {
        let position = moment.position();
        self.positions.is_told(position) || position >= self.positions.count()
    }

    /// The next moment of the order.
    pub(crate) fn step(&mut self, moment: OrderPoint) -> Result<(), Halt> {
        match moment {
            _ if moment.position() >= self.positions.count() => {
                Err(Halt::NoSuchTxn(moment.position()))
            }
            OrderPoint::Takes(position) => self.take(position),
            OrderPoint::Starts(position) => self.start(position),
            OrderPoint::Commits(position) => self.commit(position),
        }
    }

    fn take(&mut self, position: u64) -> Result<(), Halt> {
        let txn = self.turn(position)?;
        self.starts(position, &txn.interval);
        self.commits(position, &txn.interval)?;
        match &mut self.state {
            Some(State::Store(store)) => {
                store.explains(&txn)?;
                store.take(txn.writes);
            }
            Some(State::Recent(recent)) => recent.take(txn)?,
            None => {}
        }
        Ok(())
    }

    fn start(&mut self, position: u64) -> Result<(), Halt> {
        let txn = self.turn(position)?;
        if let Some(State::Store(store)) = &self.state {
            store.explains(&txn)?;
        }
        if self.level.shape().exclusive_writers {
            for Write { key, .. } in &txn.writes {
                if let Some(first) = self.writers.insert(*key, position) {
                    return Err(Wrong::Conflict { first, second: position }.into());
                }
            }
        }
        self.starts(position, &txn.interval);
        let Txn { interval, writes, .. } = txn;
        self.open.insert(position, Open { interval, writes });
        Ok(())
    }

    fn commit(&mut self, position: u64) -> Result<(), Halt> {
        let Some(Open { interval, writes }) = self.open.remove(&position) else {
            let is_waiting = self.waiting.contains_key(&position);
            let wrong = if is_waiting { Wrong::NotStarted } else { Wrong::NotThere };
            return Err(wrong(position).into());
        };
        for Write { key, .. } in &writes {
            self.writers.remove(key);
        }
        if let Some(State::Store(store)) = &mut self.state {
            store.take(writes);
        }
        self.commits(position, &interval)
    }

    /// A transaction that was waiting, and whom no other one of its session has to precede.
    fn turn(&mut self, position: u64) -> Result<Txn, Halt> {
        let txn = self.waiting.remove(&position).ok_or(Wrong::NotThere(position))?;
        self.size -= txn.size();
        let has_come =
            |other: &u64| !self.waiting.contains_key(other) && !self.open.contains_key(other);
        match txn.before.filter(|before| !has_come(before)) {
            Some(first) => {
                let why = SESSION_ORDER;
                Err(Wrong::OutOfOrder { first, second: position, why }.into())
            }
            None => Ok(txn),
        }
    }

    /// A transaction starts in real time.
    fn starts(&mut self, position: u64, interval: &Interval) {
        self.latest.start(interval.earliest_start(self.options.clock_skew), position);
    }

    /// Refuses a commit by one who had finished before another started who has started here.
    fn commits(&self, position: u64, interval: &Interval) -> Result<(), Halt> {
        let finish = interval.latest_finish(self.options.clock_skew);
        match self.latest.after(finish).filter(|_| self.level.shape().real_time) {
            Some(second) => {
                let why = REAL_TIME;
                Err(Wrong::OutOfOrder { first: position, second, why }.into())
            }
            None => Ok(()),
        }
    }

    /// History and order are over. Whoever committed must have been there, and whoever started must have
    /// committed.
    pub(crate) fn finish(&self) -> Result<(), Wrong> {
        let committed = self.waiting.values().filter(|txn| txn.is_committed());
        let missing = committed.map(|txn| txn.position).chain(self.open.keys().copied());
        missing.min().map_or(Ok(()), |missing| Err(Wrong::Missing(missing)))
    }
}
