//! Orders that are replayed on a store.
//!
//! Serializable: one transaction runs after the other.
//!
//! Prefix and the snapshot levels: start and commit points are replayed in their order. A
//! transaction runs on the state as of its start, and what it wrote becomes part of the state at its
//! commit. That is the axiom of prefix (MTC, Definition 12): a read sees the last writer, in commit
//! order, of the snapshot; session order puts commits before later starts. Snapshot isolation adds
//! that writers of one key do not overlap, and its strong form that real time, too, puts commits
//! before later starts.

use isolario_model::{KeyId, Level, Outcome, Point, TxnId};

use crate::facts::Facts;
use crate::order::Order;
use crate::store::Store;
use crate::times::InTurn;
use crate::{Refusal, guaranteed};

/// Every read must return what the store holds at its turn.
pub(crate) fn verify_order(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let mut store = Store::new(order.facts);
    order.txns.iter().try_for_each(|txn| store.run(*txn))
}

/// Refuses points that are not those of all committed transactions, or that do not explain the
/// history at the level. One pass, linear in the operations.
pub(crate) fn verify_points(
    facts: &Facts<'_>,
    level: Level,
    points: &[Point],
) -> Result<(), Refusal> {
    let mut replay = Replay::new(facts, level);
    for point in points {
        match *point {
            Point::Start(txn) => replay.start(txn)?,
            Point::Commit(txn) => replay.commit(txn)?,
        }
    }
    replay.end()
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    NotStarted,
    Started,
    Committed,
}

struct Replay<'f, 'h> {
    facts: &'f Facts<'h>,
    level: Level,
    store: Store<'f, 'h>,
    phases: Vec<Phase>,
    /// Per transaction, the one before it in its session.
    predecessors: Vec<Option<TxnId>>,
    /// Per key, the last transaction that has committed a write of it, and how many had committed before.
    writers: Vec<Option<(TxnId, usize)>>,
    /// Per transaction that has started, how many had committed then.
    starts: Vec<usize>,
    /// Who committed, in order.
    commits: Vec<TxnId>,
    in_turn: InTurn<'h>,
}

impl<'f, 'h> Replay<'f, 'h> {
    fn new(facts: &'f Facts<'h>, level: Level) -> Self {
        Replay {
            facts,
            level,
            store: Store::new(facts),
            phases: vec![Phase::NotStarted; facts.history.txn_count()],
            predecessors: facts.session_predecessors(),
            writers: vec![None; facts.history.key_count()],
            starts: vec![0; facts.history.txn_count()],
            commits: Vec::with_capacity(facts.history.txn_count()),
            in_turn: InTurn::new(facts.times),
        }
    }

    fn start(&mut self, txn: TxnId) -> Result<(), Refusal> {
        self.facts.may_have_committed(txn)?;
        if self.phases[txn.index()] != Phase::NotStarted {
            return Err(Refusal::Repeated(txn));
        }
        self.phases[txn.index()] = Phase::Started;
        self.respects_session(txn)?;
        self.store.run_on_snapshot(txn)?;
        self.starts[txn.index()] = self.commits.len();
        self.in_turn.start(txn);
        Ok(())
    }

    fn commit(&mut self, txn: TxnId) -> Result<(), Refusal> {
        self.facts.may_have_committed(txn)?;
        match self.phases[txn.index()] {
            Phase::NotStarted => return Err(Refusal::NotStarted(txn)),
            Phase::Started => self.phases[txn.index()] = Phase::Committed,
            Phase::Committed => return Err(Refusal::Repeated(txn)),
        }
        self.facts.written(txn).iter().try_for_each(|key| self.overwrite(*key, txn))?;
        self.store.commit(txn);
        self.commits.push(txn);
        if self.level.shape().real_time { self.in_turn.commit(txn) } else { Ok(()) }
    }

    /// The committed transaction before it in its session must have committed; those before that
    /// one were asked for when it started itself.
    fn respects_session(&self, txn: TxnId) -> Result<(), Refusal> {
        match self.predecessors[txn.index()] {
            Some(first) if self.phases[first.index()] != Phase::Committed => {
                Err(Refusal::OutOfOrder { first, second: txn, why: "session order" })
            }
            _ => Ok(()),
        }
    }

    /// A transaction that wrote the key and committed since the start of this one must not have, unless
    /// it deleted a row.
    fn overwrite(&mut self, key: KeyId, txn: TxnId) -> Result<(), Refusal> {
        let last = self.writers[key.index()].replace((txn, self.commits.len()));
        let is_exclusive = self.level.shape().exclusive_writers;
        match last.filter(|(_, place)| is_exclusive && *place >= self.starts[txn.index()]) {
            Some((first, _)) if !self.facts.ends_row(key, first) => {
                Err(Refusal::Conflict { key, first, second: txn })
            }
            _ => Ok(()),
        }
    }

    /// Whoever committed must be there, and whoever started must have committed.
    fn end(&self) -> Result<(), Refusal> {
        let history = self.facts.history;
        let is_missing = |txn: &TxnId| match self.phases[txn.index()] {
            Phase::NotStarted => history.outcome(*txn) == Outcome::Committed,
            Phase::Started => true,
            Phase::Committed => false,
        };
        match history.txns().find(is_missing) {
            Some(txn) => Err(Refusal::Missing(txn)),
            None => {
                self.facts.agree_on_initial_values(&self.commits)?;
                self.agrees_with_statements()
            }
        }
    }

    fn agrees_with_statements(&self) -> Result<(), Refusal> {
        let mut places = vec![None; self.facts.history.txn_count()];
        for (place, txn) in (0..).zip(&self.commits) {
            places[txn.index()] = Some(place);
        }
        let place = |txn: TxnId| places.get(txn.index()).copied().flatten();
        self.facts.stated.agrees_with(place)?;
        guaranteed::agrees_with(self.facts, self.level, place)
    }
}
