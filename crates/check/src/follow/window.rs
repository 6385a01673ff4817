//! What is looked at: what was kept, and what is new, with the current versions in the place of the
//! initial ones.

use isolario_model::{
    Batch, BatchEntries, History, Initial, KeyId, NameTable, Op, OpKind, Outcome, SessionId,
    SinkError, TxnId, TxnSink, TxnStart, Value, ValueId, ValueRef,
};

use super::Unfollowable;
use super::excerpt::PartPositions;
use super::retire::Settled;

/// The initial value where it is no longer the current one: nobody writes this.
const GONE: ValueRef<'static> = ValueRef::Text("\u{0}the initial version, which is gone");

/// Where a transaction comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// How many transactions there were when it was first looked at.
    pub(super) arrived: u64,
    /// Its place among all transactions of its session.
    pub(super) index: u64,
}

/// What there was so far, counted.
#[derive(Clone, Debug, Default)]
pub struct Census {
    tally: Tally,
    keys: NameTable,
    has_times: bool,
}

/// The same without the keys, of which there may be many.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    sessions: NameTable,
    /// By session, how many transactions it had.
    counts: Vec<u64>,
    figures: HistoryCounts,
}

/// How large a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryCounts {
    /// Sessions.
    pub sessions: u64,
    /// Transactions, by outcome: committed, aborted, unknown.
    pub outcomes: [u64; 3],
    /// Operations.
    pub operations: u64,
    /// Keys.
    pub keys: u64,
    /// Whether a committed transaction wrote, or learnt what it read.
    pub has_evidence: bool,
}

impl Census {
    /// Counts the next transactions of a history.
    pub fn count(&mut self, batches: Vec<Batch>) -> Result<(), SinkError> {
        let history = History::from_batches(batches, BatchEntries::Whole)?;
        self.add_keys(&history);
        self.has_times |= history.has_times();
        for session in history.sessions() {
            self.tally.add(&history, session, 0);
        }
        Ok(())
    }

    /// The same without the keys.
    pub(super) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Whether a transaction has a time.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    /// The names of the sessions, in the order in which they first appear.
    pub(super) fn sessions(&self) -> impl Iterator<Item = ValueRef<'_>> {
        self.tally.sessions()
    }

    pub(super) fn add_keys(&mut self, history: &History) {
        number_keys(&mut self.keys, history);
    }

    /// The place of a transaction among all, session by session, by its place in its session.
    pub(super) fn position(&self, session: ValueRef<'_>, index: u64) -> u64 {
        let session = self.tally.sessions.find(session).unwrap_or_default() as usize;
        self.tally.counts[..session].iter().sum::<u64>() + index
    }

    /// How large the history is.
    pub fn figures(&self) -> HistoryCounts {
        self.tally.figures(&self.keys)
    }
}

/// The numbers of the keys of a history among those of all that there was.
pub(super) fn number_keys(keys: &mut NameTable, history: &History) -> Vec<u32> {
    (0..history.key_count()).map(|key| keys.intern(history.key_name(KeyId::at(key)))).collect()
}

impl Tally {
    /// The number of a session, in the order in which they first appear, and how many transactions it
    /// has.
    pub(super) fn session(&mut self, name: ValueRef<'_>) -> (u32, &mut u64) {
        let number = self.sessions.intern(name);
        if self.counts.len() <= number as usize {
            self.counts.push(0);
        }
        (number, &mut self.counts[number as usize])
    }

    /// Number of transactions of a session.
    pub(super) fn count(&self, session: ValueRef<'_>) -> u64 {
        self.sessions.find(session).map_or(0, |number| self.counts[number as usize])
    }

    /// The names of the sessions, in the order in which they first appear.
    pub(super) fn sessions(&self) -> impl Iterator<Item = ValueRef<'_>> {
        (0..self.counts.len() as u32).map(|session| self.sessions.get(session))
    }

    /// How large the history is, which has these keys.
    pub(super) fn figures(&self, keys: &NameTable) -> HistoryCounts {
        let (sessions, keys) = (self.sessions.len() as u64, keys.len() as u64);
        HistoryCounts { sessions, keys, ..self.figures }
    }

    /// Counts the transactions of a session but for the first few; says which number it has, and how many
    /// there were of it before.
    pub(super) fn add(
        &mut self,
        history: &History,
        session: SessionId,
        but_for: usize,
    ) -> (u32, u64) {
        let mut new = 0;
        for txn in history.session_txns(session).skip(but_for) {
            let (outcome, ops) = (history.outcome(txn), history.op_range(txn));
            let figures = &mut self.figures;
            figures.outcomes[outcome as usize] += 1;
            figures.operations += ops.len() as u64;
            let shows = |kind: &OpKind| *kind != OpKind::ReadUnobserved;
            figures.has_evidence = figures.has_evidence
                || outcome == Outcome::Committed && history.op_kinds()[ops].iter().any(shows);
            new += 1;
        }
        let (number, count) = self.session(history.session_name(session));
        *count += new;
        (number, *count - new)
    }
}

/// Transactions that were kept, in the user's own values.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// None before anything was looked at.
    batch: Option<Batch>,
    /// By transaction, session by session.
    origins: Vec<Origin>,
    /// How many there are of each session.
    sessions: Vec<usize>,
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    pub(super) fn op_count(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::op_count)
    }
}

/// What was kept, and what is new.
#[derive(Debug)]
pub(super) struct Window {
    /// Reads of current versions are told as reads of initial ones.
    pub(super) history: History,
    /// By transaction.
    pub(super) origins: Vec<Origin>,
    initial: ValueId,
    gone: ValueId,
    /// By key, its number among all.
    pub(super) keys: Vec<u32>,
    /// By key, its current value, as it is encoded in the history; no value is encoded as either constant.
    pub(super) current: Vec<u64>,
}

/// The key has no settled version.
const NOT_SETTLED: u64 = u64::MAX;
/// The key has one, and nobody here has its value.
const NOT_HERE: u64 = u64::MAX - 2;

impl Window {
    /// Puts what is new behind what was kept. So many transactions are there by now.
    pub(super) fn new(
        kept: Kept,
        new: Vec<Batch>,
        (keys, tally): (&mut NameTable, &mut Tally),
        arrived: u64,
    ) -> Result<Window, SinkError> {
        let batches = kept.batch.into_iter().chain(new).collect();
        let mut history = History::from_batches(batches, BatchEntries::Whole)?;
        let mut origins = Vec::with_capacity(history.txn_count());
        let mut old = kept.origins.into_iter();
        for session in history.sessions() {
            let of_session = kept.sessions.get(session.index()).copied().unwrap_or_default();
            origins.extend(old.by_ref().take(of_session));
            let (_, first) = tally.add(&history, session, of_session);
            let new = history.session_txns(session).len() - of_session;
            origins.extend((first..).take(new).map(|index| Origin { arrived, index }));
        }
        let keys = number_keys(keys, &history);
        let initial = match history.initial() {
            Initial::Value(initial) => initial.clone(),
            _ => Value::Nil,
        };
        let initial = history.intern_value(initial.as_ref());
        let gone = history.intern_value(GONE);
        Ok(Window { history, origins, initial, gone, keys, current: Vec::new() })
    }

    /// Why this cannot be followed, if so.
    pub(super) fn unfit(&self) -> Option<Unfollowable> {
        if !matches!(self.history.initial(), Initial::Value(_)) {
            return Some(Unfollowable::Initial);
        }
        let kinds = self.history.op_kinds();
        let is_known =
            |kind: &OpKind| matches!(kind, OpKind::Read | OpKind::ReadUnobserved | OpKind::Write);
        if self.history.names_versions() || !kinds.iter().all(is_known) {
            return Some(Unfollowable::Operation);
        }
        let mut ops = kinds.iter().zip(self.history.encoded_values());
        let writes_initial = |(kind, word): (&OpKind, &u64)| {
            *kind == OpKind::Write && *word == self.initial.to_bits()
        };
        ops.any(writes_initial).then_some(Unfollowable::WritesInitial)
    }

    /// Tells reads of current versions as reads of initial ones.
    pub(super) fn rename(&mut self, settled: &Settled) {
        if settled.is_empty() {
            self.current = vec![NOT_SETTLED; self.history.key_count()];
            return;
        }
        let word = |key: &u32| match settled.current(*key) {
            None => NOT_SETTLED,
            Some(value) => {
                self.history.find_value(value.as_ref()).map_or(NOT_HERE, ValueId::to_bits)
            }
        };
        self.current = self.keys.iter().map(word).collect();
        let Window { history, initial, gone, current, .. } = self;
        history.map_reads(|key, value| match current[key.index()] {
            NOT_SETTLED => value,
            word if word == value.to_bits() => *initial,
            _ if value == *initial => *gone,
            _ => value,
        });
    }

    /// Says something of the history without some transactions, from which none of the others read: it is
    /// as if these had aborted.
    pub(super) fn without<R>(&mut self, txns: &[TxnId], say: impl FnOnce(&History) -> R) -> R {
        let outcomes: Vec<Outcome> = txns.iter().map(|txn| self.history.outcome(*txn)).collect();
        txns.iter().for_each(|txn| self.history.set_outcome(*txn, Outcome::Aborted));
        let said = say(&self.history);
        let outcomes = txns.iter().zip(outcomes);
        outcomes.for_each(|(txn, outcome)| self.history.set_outcome(*txn, outcome));
        said
    }

    /// Keeps the transactions that stay, as they were told at first.
    pub(super) fn keep(
        &self,
        stays: impl Fn(TxnId) -> bool,
        settled: &Settled,
    ) -> Result<Kept, SinkError> {
        let mut kept = Kept::default();
        let mut retold = Retold::new(self, settled)?;
        for session in self.history.sessions() {
            let before = kept.origins.len();
            for txn in self.history.session_txns(session).filter(|txn| stays(*txn)) {
                retold.tell(txn, None)?;
                kept.origins.push(self.origins[txn.index()]);
            }
            if kept.origins.len() > before {
                kept.sessions.push(kept.origins.len() - before);
            }
        }
        kept.batch = Some(retold.batch);
        Ok(kept)
    }

    /// All of it, as it was told at first, with the names that transactions go by in the whole.
    pub(super) fn named(
        &self,
        settled: &Settled,
        census: &Census,
    ) -> Result<(History, PartPositions), SinkError> {
        let (mut retold, mut places) = (Retold::new(self, settled)?, PartPositions::default());
        for txn in self.history.txns() {
            let session = self.history.session_name(self.history.session_of(txn));
            let index = self.origins[txn.index()].index;
            let label = places.add_txn(census.position(session, index), index);
            retold.tell(txn, Some(ValueRef::Text(&label)))?;
            places.ops.extend(0..self.history.op_range(txn).len() as u32);
        }
        Ok((retold.batch.build()?, places))
    }

    /// A part of it that has only these transactions.
    pub(super) fn part(&self, txns: &[TxnId]) -> Result<Window, SinkError> {
        let mut part = Batch::new();
        part.meta(self.history.meta())?;
        txns.iter().try_for_each(|txn| self.history.replay_txn(*txn, &mut part))?;
        let mut history = part.build()?;
        let here = |key| self.history.find_key(history.key_name(KeyId::at(key)));
        let here: Vec<KeyId> = (0..history.key_count()).filter_map(here).collect();
        let keys = here.iter().map(|key| self.keys[key.index()]).collect();
        let word = |key: &KeyId| match self.current[key.index()] {
            NOT_SETTLED => NOT_SETTLED,
            _ => NOT_HERE,
        };
        let current = here.iter().map(word).collect();
        let initial = history.intern_value(self.history.value(self.initial));
        let gone = history.intern_value(GONE);
        let origins = txns.iter().map(|txn| self.origins[txn.index()]).collect();
        Ok(Window { history, origins, initial, gone, keys, current })
    }

    /// What a value that was read is called by its writer.
    pub(super) fn original<'w>(
        &'w self,
        key: KeyId,
        value: ValueId,
        settled: &'w Settled,
    ) -> ValueRef<'w> {
        let current = || settled.current(self.keys[key.index()]);
        match self.current.get(key.index()) {
            Some(&NOT_SETTLED) | None => self.history.value(value),
            _ if value == self.gone => self.history.value(self.initial),
            _ if value == self.initial => {
                current().map_or(self.history.value(value), Value::as_ref)
            }
            _ => self.history.value(value),
        }
    }
}

/// Transactions of a window, told as they were at first. Each key is looked up once.
struct Retold<'w> {
    window: &'w Window,
    settled: &'w Settled,
    batch: Batch,
    /// By key of the window, its id in the batch; [`KeyId::NONE`] if it was not told yet.
    key_ids: Vec<KeyId>,
    /// Operations of a transaction on their way.
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    values: Vec<ValueId>,
}

impl<'w> Retold<'w> {
    fn new(window: &'w Window, settled: &'w Settled) -> Result<Retold<'w>, SinkError> {
        let mut batch = Batch::new();
        batch.meta(window.history.meta())?;
        let key_ids = vec![KeyId::NONE; window.history.key_count()];
        let (kinds, keys, values) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Retold { window, settled, batch, key_ids, kinds, keys, values })
    }

    fn tell(&mut self, txn: TxnId, name: Option<ValueRef<'_>>) -> Result<(), SinkError> {
        let history = &self.window.history;
        self.batch.begin(&TxnStart {
            session: history.session_name(history.session_of(txn)),
            id: history.txn_name(txn).or(name),
            line: history.line(txn),
        })?;
        for op in history.txn_ops(txn) {
            match history.op(op) {
                Op::Read { key, value: Some(value) } => {
                    let value = self.window.original(key, value, self.settled);
                    self.add(OpKind::Read, key, value);
                }
                Op::Write { key, value } => self.add(OpKind::Write, key, history.value(value)),
                _ => {
                    self.flush()?;
                    history.with_op_input(op, |op| self.batch.op(op))?;
                }
            }
        }
        self.flush()?;
        self.batch.end(&history.txn_end(txn))
    }

    #[inline]
    fn add(&mut self, kind: OpKind, key: KeyId, value: ValueRef<'_>) {
        let id = &mut self.key_ids[key.index()];
        if *id == KeyId::NONE {
            *id = self.batch.key_id(self.window.history.key_name(key));
        }
        self.kinds.push(kind);
        self.keys.push(*id);
        self.values.push(self.batch.value_id(value));
    }

    /// Passes on what is on its way.
    fn flush(&mut self) -> Result<(), SinkError> {
        self.batch.ops_by_id(&self.kinds, &self.keys, &self.values)?;
        self.kinds.clear();
        self.keys.clear();
        self.values.clear();
        Ok(())
    }
}
