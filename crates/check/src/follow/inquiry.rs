//! What becomes of a doubt: the few transactions that matter are picked out of the whole history, and
//! decided by themselves.
//!
//! A part of a history never looks worse than the whole, as long as nobody is missing who may have written
//! what is read in it ([`HistoryPart`](isolario_model::HistoryPart) has the argument). So if the part violates the level,
//! the history does, whatever the rest of it is; and if it does not, that says nothing.
//!
//! A longer suffix would often decide the same. But where a read saw what no transaction wrote, or what was
//! settled long before, the suffix grows until it is the whole history: more than a limit of memory allows,
//! and without one about three times the processor time.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Anomaly, Batch, BatchEntries, Evidence, History, Inapplicable, KeyId, Level, LevelResult, Meta,
    NameTable, Op, OpId, OpKind, Reason, SinkError, TxnId, TxnSink, TxnStart, Value, ValueId,
    ValueRef, Verdict, VersionOrder,
};

use super::excerpt::PartPositions;
use super::window::{Census, HistoryCounts};
use super::{Follower, Inconclusive, level_for};
use crate::{CheckOptions, check};

/// More transactions than these are not picked: a part is to be small.
const MOST: usize = 20_000;

/// Transactions that write a key which matters are picked up to this many.
const MOST_WRITERS: usize = 2000;

/// So many anomalies are followed up.
const MOST_ANOMALIES: usize = 20;

/// A question about the whole history, whose transactions are [added](HistoryQuery::add) from its beginning.
#[derive(Clone, Debug)]
pub struct HistoryQuery {
    level: Level,
    /// Whether a transaction of the history has a time.
    has_times: bool,
    /// Who is part of what is wrong, by session and place in it.
    suspects: BTreeMap<Value, BTreeSet<u64>>,
    /// What they read, by key.
    wanted: BTreeMap<Value, BTreeSet<Value>>,
    meta: Option<Meta>,
    census: Census,
    picked: Batch,
    /// Of each that was picked, the number of its session and its place in it.
    positions: Vec<(u32, u64)>,
    /// More transactions than these are not picked.
    most: usize,
    /// Whether one that has not ended yet wrote what is wanted.
    is_awaited: bool,
}

/// What came of an inquiry.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueryAnswer {
    /// The doubt was right.
    Proven(Box<ProvenResult>),
    /// The writer of what was read has not ended yet.
    Awaited,
    /// These transactions alone do not tell.
    Inconclusive,
}

/// An answer, with the transactions that prove it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProvenResult {
    /// A part of the history, in which those without a name have the one that they go by in the whole.
    pub part: History,
    /// Where the part is in the whole.
    pub positions: PartPositions,
    /// What is said of the part, and so of the whole.
    pub result: LevelResult,
    /// How large the history is, as far as it was read.
    pub figures: HistoryCounts,
}

impl HistoryQuery {
    /// What has to be asked about a doubt; none if nobody can tell who matters.
    pub fn new(doubt: &Inconclusive, follower: &Follower) -> Option<HistoryQuery> {
        let found = doubt.found.as_ref()?;
        let window = found.part.as_ref().unwrap_or(&doubt.window);
        let history = &window.history;
        let txns = match &found.result.verdict {
            Verdict::Violated(findings) => {
                let mut suspects = Suspects { history, txns: Vec::new() };
                let anomalies = findings.anomalies.iter().take(MOST_ANOMALIES);
                anomalies.for_each(|anomaly| suspects.add_anomaly(anomaly));
                suspects.txns
            }
            Verdict::NotApplicable(Inapplicable::AmbiguousRead { read, .. }) => {
                vec![history.op_txn(*read)]
            }
            _ => return None,
        };
        let mut inquiry = HistoryQuery::of(found.result.level, MOST);
        inquiry.has_times = follower.expects_times();
        for txn in txns.into_iter().filter(|txn| !txn.is_init()) {
            let session = history.session_name(history.session_of(txn)).to_owned();
            let index = window.origins[txn.index()].index;
            inquiry.suspects.entry(session).or_default().insert(index);
            for op in history.txn_ops(txn) {
                if let Op::Read { key, value: Some(value) } = history.op(op) {
                    let value = window.original(key, value, follower.settled()).to_owned();
                    let key = history.key_name(key).to_owned();
                    inquiry.wanted.entry(key).or_default().insert(value);
                }
            }
        }
        (!inquiry.suspects.is_empty()).then_some(inquiry)
    }

    /// Asks about all that is in some parts, each of which proves something: what it proves, it does with
    /// more transactions, too.
    pub fn about<'p>(
        parts: impl IntoIterator<Item = (&'p History, &'p PartPositions)>,
    ) -> HistoryQuery {
        let mut inquiry = HistoryQuery::of(Level::ReadCommitted, usize::MAX);
        for (part, places) in parts {
            for (txn, index) in part.txns().zip(&places.in_session) {
                let session = part.session_name(part.session_of(txn)).to_owned();
                inquiry.suspects.entry(session).or_default().insert(*index);
                for op in part.txn_ops(txn) {
                    if let Op::Read { key, value: Some(value) } = part.op(op) {
                        let wanted = inquiry.wanted.entry(part.key_name(key).to_owned());
                        wanted.or_default().insert(part.value(value).to_owned());
                    }
                }
            }
        }
        inquiry
    }

    fn of(level: Level, most: usize) -> HistoryQuery {
        HistoryQuery {
            level,
            has_times: false,
            suspects: BTreeMap::new(),
            wanted: BTreeMap::new(),
            meta: None,
            census: Census::default(),
            picked: Batch::new(),
            positions: Vec::new(),
            most,
            is_awaited: false,
        }
    }

    /// Tells the next transactions of the history.
    pub fn add(&mut self, batches: Vec<Batch>) -> Result<(), SinkError> {
        let history = History::from_batches(batches, BatchEntries::Whole)?;
        self.meta.get_or_insert_with(|| history.meta().clone());
        let wanted = self.wanted_in(&history);
        self.census.add_keys(&history);
        for session in history.sessions() {
            let name = history.session_name(session);
            let suspects = self.suspects.get(&name.to_owned());
            let (number, first) = self.census.tally().add(&history, session, 0);
            for (index, txn) in (first..).zip(history.session_txns(session)) {
                let is_suspect = suspects.is_some_and(|places| places.contains(&index));
                if self.positions.len() < self.most
                    && (is_suspect || matters(&history, txn, &wanted))
                {
                    history.replay_txn(txn, &mut self.picked)?;
                    self.positions.push((number, index));
                }
            }
        }
        Ok(())
    }

    /// Tells the transactions that have begun and not ended by the end of what was told.
    pub fn add_unended(&mut self, batch: Batch) -> Result<(), SinkError> {
        let before = self.positions.len();
        self.add(vec![batch])?;
        self.is_awaited = self.positions.len() > before;
        Ok(())
    }

    /// By key of a history, the words of what is wanted.
    fn wanted_in(&self, history: &History) -> Vec<Vec<u64>> {
        let mut wanted = vec![Vec::new(); history.key_count()];
        for (key, values) in &self.wanted {
            if let Some(key) = history.find_key(key.as_ref()) {
                let words = values.iter().filter_map(|value| history.find_value(value.as_ref()));
                wanted[key.index()] = words.map(ValueId::to_bits).collect();
            }
        }
        wanted
    }

    /// Whether a transaction that the follower has yet to come to may have written what is read in what is
    /// wrong: with it, less may be wrong.
    pub fn is_ahead_of(&self, follower: &Follower) -> bool {
        // One that was left out may be ahead.
        let is_full = self.positions.len() >= self.most;
        let names: Vec<ValueRef<'_>> = self.census.sessions().collect();
        let is_ahead = |(session, index): &(u32, u64)| {
            names.get(*session as usize).is_none_or(|name| *index >= follower.arrived_of(*name))
        };
        is_full || self.positions.iter().any(is_ahead)
    }

    /// Decides the level of what was picked.
    pub fn answer(self, options: &CheckOptions) -> Result<QueryAnswer, SinkError> {
        // One that was left out may have written what is read here.
        if self.positions.len() >= self.most {
            return Ok(QueryAnswer::Inconclusive);
        }
        let awaited = self.is_awaited;
        let (level, has_times, figures) = (self.level, self.has_times, self.census.figures());
        let (part, places) = self.into_part()?;
        let checked = level_for(level, &part, has_times);
        let result = LevelResult { level, ..check(&part, &[checked], options).swap_remove(0) };
        Ok(match &result.verdict {
            Verdict::Violated(_) | Verdict::NotApplicable(Inapplicable::AmbiguousRead { .. }) => {
                QueryAnswer::Proven(Box::new(ProvenResult {
                    part,
                    positions: places,
                    result,
                    figures,
                }))
            }
            _ if awaited => QueryAnswer::Awaited,
            _ => QueryAnswer::Inconclusive,
        })
    }

    /// What was picked, in the order and under the names that it has in the whole. What is read in it is
    /// told if all who may have written it are there.
    pub fn into_part(self) -> Result<(History, PartPositions), SinkError> {
        let HistoryQuery { wanted, meta, census, picked, positions: mut picks, .. } = self;
        let picked = picked.build()?;
        // Picked ones come session by session now, and in each in the order in which they were picked.
        let mut ranks = NameTable::default();
        picks.sort_by_cached_key(|(session, _)| ranks.intern(ValueRef::Int((*session).into())));
        let mut order: Vec<((u32, u64), TxnId)> = picks.into_iter().zip(picked.txns()).collect();
        order.sort_unstable();
        let (mut part, mut places) = (Batch::new(), PartPositions::default());
        part.meta(&meta.unwrap_or_default())?;
        for ((_, index), txn) in order {
            let session = picked.session_name(picked.session_of(txn));
            let label = places.add_txn(census.position(session, index), index);
            part.begin(&TxnStart {
                session,
                id: picked.txn_name(txn).or(Some(ValueRef::Text(&label))),
                line: picked.line(txn),
            })?;
            for (place, op) in (0..).zip(picked.txn_ops(txn)) {
                let is_told = picked.with_op_input(op, |op| match op {
                    Op::Read { key, value: Some(value) } => {
                        let values = wanted.get(&Value::from(*key));
                        values.is_some_and(|values| values.contains(&Value::from(*value)))
                    }
                    _ => true,
                });
                if is_told {
                    picked.with_op_input(op, |op| part.op(op))?;
                    places.ops.push(place);
                }
            }
            part.end(&picked.txn_end(txn))?;
        }
        Ok((part.build()?, places))
    }
}

/// Whether a transaction wrote what is wanted, or overwrote it after a read.
fn matters(history: &History, txn: TxnId, wanted: &[Vec<u64>]) -> bool {
    let ops = || history.txn_ops(txn);
    let (kinds, keys) = (history.op_kinds(), history.op_keys());
    let is_wanted =
        |op: &OpId| wanted[keys[op.index()].index()].contains(&history.encoded_version(*op));
    let writes =
        |key| ops().any(|op| kinds[op.index()] == OpKind::Write && keys[op.index()] == key);
    ops().any(|op| match kinds[op.index()] {
        OpKind::Write => is_wanted(&op),
        OpKind::Read => is_wanted(&op) && writes(keys[op.index()]),
        _ => false,
    })
}

/// Gathers the transactions that are part of what is wrong.
struct Suspects<'h> {
    history: &'h History,
    txns: Vec<TxnId>,
}

impl Suspects<'_> {
    fn add_anomaly(&mut self, anomaly: &Anomaly) {
        let ops: Vec<OpId> = match &anomaly.evidence {
            Evidence::Read { read, saw, instead } => {
                [Some(*read), *saw, *instead].into_iter().flatten().collect()
            }
            Evidence::Reads { first, second, .. } => vec![*first, *second],
            Evidence::Operations { ops, .. } => ops.clone(),
            _ => Vec::new(),
        };
        self.txns.extend(ops.into_iter().map(|op| self.history.op_txn(op)));
        for edge in anomaly.evidence.walk() {
            self.txns.extend([edge.from, edge.to]);
            let from_initial = match &edge.reason {
                Reason::Visible { reader, .. } => {
                    self.txns.push(*reader);
                    edge.to.is_init()
                }
                Reason::AntiDependency { writer, .. } => {
                    self.txns.push(*writer);
                    writer.is_init()
                }
                reason => matches!(reason.known(), Some(VersionOrder::Initial)),
            };
            // What is initial here was written by somebody: how it was overwritten, those tell who wrote
            // the key since.
            if let Some(key) = edge.reason.key().filter(|_| from_initial) {
                self.add_writers(key);
            }
        }
    }

    fn add_writers(&mut self, key: KeyId) {
        let history = self.history;
        let writes = |txn: &TxnId| {
            history.txn_ops(*txn).any(|op| {
                history.op_kinds()[op.index()] == OpKind::Write
                    && history.op_keys()[op.index()] == key
            })
        };
        self.txns.extend(history.txns().filter(writes).take(MOST_WRITERS));
    }
}
