//! The history inside the page: every transaction's session, times and outcome, and as many
//! operations as fit.
//!
//! `assets/unpack.js` reads what this writes; both follow the order of the functions here.

use std::collections::BTreeMap;
use std::io;

use isolario_model::{
    Anomaly, Clock, History, KeyId, Level, Op, OpId, Outcome, Point, RunRecord, TxnId, ValueId,
    ValueRef, Verdict, Witness,
};

use super::facts::facts;
use super::pack::Pack;
use super::run::event_name;
use super::untimed;
use crate::involved::involved;
use crate::names::Names;
use crate::printable::printable;
use crate::report::Report;

/// How large the page may become, in bytes, with some room below five million.
pub(super) const PAGE: usize = 4_800_000;
/// Beyond so many transactions, only those around the anomalies are in the page.
const MOST_TXNS: usize = 1_000_000;
/// How many transactions of the same session are around one of an anomaly, on either side.
const AROUND: usize = 20;
/// How many transactions share a block of operations.
const BLOCK: usize = 2048;
/// Numbers up to here are told by their distance from the one before.
const LARGEST_NAME: u64 = 1 << 51;
/// Of a long list, how many of its last elements are kept.
const LAST_ELEMENTS: usize = 12;

/// The history as a page holds it.
pub(super) struct Embedded {
    /// The transactions, in order; scripts know them by their position here.
    pub(super) txns: Vec<TxnId>,
    /// What is known of each of them.
    pub(super) frame: String,
    /// The anomalies: which transactions they are about, and the arrows between them.
    pub(super) anomalies: String,
    /// What befell the run; empty where there was none.
    pub(super) events: String,
    /// Operations, block by block.
    pub(super) blocks: Vec<String>,
    /// How many transactions have their operations in the page.
    pub(super) with_ops: usize,
}

impl Embedded {
    /// `room` is how large it may become; `shown` are the anomalies it shows in full, and
    /// `all` are those that it marks, in the order of their numbers.
    pub(super) fn of(
        report: &Report<'_>,
        run: Option<&RunRecord>,
        shown: &[&Anomaly],
        all: &[&Anomaly],
        room: usize,
    ) -> io::Result<Embedded> {
        let history = report.history;
        let near = neighbourhood(history, shown);
        let mut txns: Vec<TxnId> = match history.txn_count() {
            many if many > MOST_TXNS => near.clone(),
            _ => history.txns().collect(),
        };
        let mut frame_of = frame(report, &txns).letters()?;
        if frame_of.len() > room {
            txns.clone_from(&near);
            frame_of = frame(report, &txns).letters()?;
        }
        let anomalies = anomalies(history, &txns, all).letters()?;
        let events = run.map_or(Ok(String::new()), |run| events(history, &txns, run).letters())?;
        let mut embedded =
            Embedded { txns, frame: frame_of, anomalies, events, blocks: Vec::new(), with_ops: 0 };
        embedded.operations(history, &near, room)?;
        Ok(embedded)
    }

    /// The position of a transaction.
    pub(super) fn position(&self, txn: TxnId) -> Option<usize> {
        self.txns.binary_search(&txn).ok()
    }

    /// Operations of the neighbourhood first, then of all others while they fit, in the order in which
    /// they began: so what is there is there of all sessions.
    fn operations(&mut self, history: &History, near: &[TxnId], room: usize) -> io::Result<()> {
        let mut room = room.saturating_sub(self.frame.len() + self.anomalies.len());
        let far = self.txns.iter().copied().filter(|txn| near.binary_search(txn).is_err());
        let mut far: Vec<TxnId> = far.collect();
        far.sort_by_key(|txn| beginning(history, *txn));
        let order = [near, &far[..]].concat();
        let mut tables = Tables::new(Names::new(history));
        for txns in order.chunks(BLOCK) {
            let mut pack = Pack::default();
            pack.number(txns.len() as u64);
            let mut last = 0;
            for txn in txns {
                let at = self.position(*txn).unwrap_or(0) as i64;
                pack.signed(at - last);
                last = at;
                pack.number(history.txn_ops(*txn).len() as u64);
                history.txn_ops(*txn).for_each(|op| tables.op(op, &mut pack));
                tables.facts(*txn, &mut pack);
            }
            let block = pack.letters()?;
            if block.len() > room {
                break;
            }
            room -= block.len();
            self.with_ops += txns.len();
            self.blocks.push(block);
        }
        Ok(())
    }
}

/// When a transaction began, or its position in its session where there are no times.
fn beginning(history: &History, txn: TxnId) -> i64 {
    let first = history.session_txns(history.session_of(txn)).next();
    let position = i64::from(txn.0 - first.map_or(0, |first| first.0));
    history.start(txn).unwrap_or(position)
}

/// The transactions of anomalies and those around them in their sessions, in order.
fn neighbourhood(history: &History, shown: &[&Anomaly]) -> Vec<TxnId> {
    let mut near = Vec::new();
    for anomaly in shown {
        for part in involved(history, anomaly) {
            let session: Vec<TxnId> = history.session_txns(history.session_of(part.txn)).collect();
            let at = session.partition_point(|txn| *txn < part.txn);
            near.extend(&session[at.saturating_sub(AROUND)..session.len().min(at + AROUND + 1)]);
        }
    }
    near.sort_unstable();
    near.dedup();
    near
}

/// What is known of every transaction but its operations.
fn frame(report: &Report<'_>, txns: &[TxnId]) -> Pack {
    let history = report.history;
    let mut pack = Pack::default();
    pack.number(match history.clock() {
        _ if !history.has_times() => 0,
        Clock::Nanoseconds => 1,
        _ => 2,
    });
    pack.number(txns.len() as u64);
    pack.number(history.session_count() as u64);
    for session in history.sessions() {
        pack.text(&history.session_name(session).to_string());
        let range = history.session_txns(session);
        pack.number(range.filter(|txn| txns.binary_search(txn).is_ok()).count() as u64);
    }
    for txn in txns {
        let outcome = match history.outcome(*txn) {
            Outcome::Committed => 0,
            Outcome::Aborted => 1,
            Outcome::Unknown => 2,
        };
        let (start, finish) = (history.start(*txn), history.finish(*txn));
        pack.number(outcome | u64::from(start.is_none()) << 2 | u64::from(finish.is_none()) << 3);
    }
    times(history, txns, &mut pack);
    let commits = commit_order(report);
    if !history.has_times() {
        let order = commits.as_ref().map_or(&[][..], |(_, order)| order);
        places(history, txns, order, &mut pack);
    }
    let mut last = 0;
    for txn in txns {
        let int = match history.txn_name(*txn) {
            Some(ValueRef::Int(int)) if int.unsigned_abs() < LARGEST_NAME => Some(int),
            _ => None,
        };
        pack.either(int.map(|int| int - last), || Names::new(history).txn(*txn));
        last = int.unwrap_or(last);
    }
    let mut last = 0;
    for txn in txns {
        let line = history.line(*txn).map_or(0, u64::cast_signed);
        pack.signed(line.wrapping_sub(last));
        last = line;
    }
    ids(history, txns, &mut pack);
    witness(commits, txns, &mut pack);
    pack
}

/// Which transactions these are, where some are left out: by distance.
fn ids(history: &History, txns: &[TxnId], pack: &mut Pack) {
    let some = txns.len() < history.txn_count();
    pack.number(u64::from(some));
    let mut last = 0;
    for txn in txns.iter().filter(|_| some) {
        pack.number(u64::from(txn.0 - last));
        last = txn.0;
    }
}

/// Where transactions without times are drawn, as distances.
fn places(history: &History, txns: &[TxnId], commits: &[TxnId], pack: &mut Pack) {
    let places = untimed::places(history, commits);
    let mut last = 0;
    for txn in txns {
        let place = i64::from(places[txn.index()]);
        pack.signed(place - last);
        last = place;
    }
}

/// The anomalies by position of their transactions: kind, transactions, arrows.
fn anomalies(history: &History, txns: &[TxnId], all: &[&Anomaly]) -> Pack {
    let mut pack = Pack::default();
    let mut kinds = Interned::default();
    let position = |txn: TxnId| txns.binary_search(&txn).ok();
    pack.number(all.len() as u64);
    for anomaly in all {
        kinds.text(anomaly.kind.title(), &mut pack);
        let parts = involved(history, anomaly);
        let at: Vec<usize> = parts.iter().filter_map(|part| position(part.txn)).collect();
        pack.number(at.len() as u64);
        at.iter().for_each(|at| pack.number(*at as u64));
        let edges = anomaly.evidence.edges().iter().filter_map(|edge| {
            let ends = position(edge.from).zip(position(edge.to))?;
            Some((ends, edge.reason.kind().name()))
        });
        let edges: Vec<_> = edges.collect();
        pack.number(edges.len() as u64);
        for ((from, to), kind) in edges {
            pack.number(from as u64);
            pack.number(to as u64);
            kinds.text(kind, &mut pack);
        }
    }
    pack
}

/// What befell a run, on the clock of the page: from, until (or 0: to the end), and a name.
fn events(history: &History, txns: &[TxnId], run: &RunRecord) -> Pack {
    let mut pack = Pack::default();
    let is_timed = history.has_times() && history.clock() == Clock::Nanoseconds;
    let shown = run.events.iter().filter(|_| is_timed);
    pack.number(shown.clone().count() as u64);
    let first = first_time(history, txns);
    let since = |ms: f64| ((ms * 1e6) as i64).saturating_sub(first).max(0).unsigned_abs();
    for event in shown {
        pack.number(since(event.from_ms));
        pack.number(event.to_ms.map_or(0, |end| since(end).max(1)));
        pack.text(&event_name(event));
    }
    pack
}

/// The earliest time of some transactions, from which the page counts.
fn first_time(history: &History, txns: &[TxnId]) -> i64 {
    let times = txns.iter().flat_map(|txn| [history.start(*txn), history.finish(*txn)]);
    times.flatten().min().unwrap_or(0)
}

/// Starts as distances from the time before, finishes as distances from the start.
fn times(history: &History, txns: &[TxnId], pack: &mut Pack) {
    let known = |txn: &TxnId| [history.start(*txn), history.finish(*txn)].into_iter().flatten();
    let mut last = first_time(history, txns);
    for txn in txns {
        for time in known(txn) {
            pack.signed(time.wrapping_sub(last));
            last = time;
        }
    }
}

/// The order of commits that shows the strongest satisfied level, if there is one.
fn commit_order(report: &Report<'_>) -> Option<(Level, Vec<TxnId>)> {
    report.results.iter().rev().find_map(|result| match &result.verdict {
        Verdict::Satisfied(Witness::CommitOrder(order) | Witness::Chosen { order, .. }) => {
            Some((result.level, order.clone()))
        }
        Verdict::Satisfied(Witness::Points(points)) => {
            let commits = points.iter().filter_map(|point| match point {
                Point::Commit(txn) => Some(*txn),
                Point::Start(_) => None,
            });
            Some((result.level, commits.collect()))
        }
        _ => None,
    })
}

/// An order of commits: its level, and the positions of transactions as distances.
fn witness(found: Option<(Level, Vec<TxnId>)>, txns: &[TxnId], pack: &mut Pack) {
    let (level, order) = found.map_or(("", Vec::new()), |(level, order)| (level.name(), order));
    pack.text(level);
    let at = order.iter().filter_map(|txn| txns.binary_search(txn).ok());
    let positions: Vec<i64> = at.map(|at| at as i64).collect();
    pack.number(positions.len() as u64);
    let mut last = 0;
    for at in positions {
        pack.signed(at - last);
        last = at;
    }
}

/// Texts that are written out once, where they first occur; then they are numbers.
#[derive(Default)]
struct Interned {
    known: BTreeMap<String, u64>,
}

impl Interned {
    fn text(&mut self, text: &str, pack: &mut Pack) {
        let next = self.known.len() as u64;
        let number = self.known.get(text).copied();
        pack.number(number.unwrap_or(next));
        if number.is_none() {
            self.known.insert(text.to_owned(), next);
            pack.text(text);
        }
    }
}

/// What operations have in common: names of keys, statements and errors.
struct Tables<'h> {
    names: Names<'h>,
    keys: BTreeMap<KeyId, u64>,
    texts: Interned,
}

impl<'h> Tables<'h> {
    fn new(names: Names<'h>) -> Tables<'h> {
        Tables { names, keys: BTreeMap::new(), texts: Interned::default() }
    }

    /// What is known of a transaction beside its operations: names and what they stand for.
    fn facts(&mut self, txn: TxnId, pack: &mut Pack) {
        let facts = facts(self.names.history(), txn);
        pack.number(facts.len() as u64);
        for (name, fact) in facts {
            self.texts.text(name, pack);
            self.texts.text(&fact, pack);
        }
    }

    /// An operation, after its statement: 0, or the statement.
    fn op(&mut self, op: OpId, pack: &mut Pack) {
        let names = self.names;
        match names.history().op_sql(op) {
            None => pack.number(0),
            Some(sql) => {
                pack.number(1);
                self.texts.text(&printable(sql), pack);
            }
        }
        match names.history().op(op) {
            Op::Read { key, value: None } => self.keyed(0, key, pack),
            Op::Read { key, value: Some(value) } => {
                self.keyed(1, key, pack);
                self.value(value, pack);
            }
            Op::Write { key, value } => {
                self.keyed(2, key, pack);
                self.value(value, pack);
            }
            Op::Append { key, element } => {
                self.keyed(3, key, pack);
                self.value(element, pack);
            }
            Op::ReadList { key, elements: Some(elements) } => {
                self.keyed(4, key, pack);
                pack.number(elements.len() as u64);
                let kept = &elements[elements.len().saturating_sub(LAST_ELEMENTS)..];
                kept.iter().for_each(|element| self.value(*element, pack));
            }
            Op::Delete { key } => self.keyed(5, key, pack),
            Op::ReadList { key, elements: None } => self.keyed(6, key, pack),
            other => {
                pack.number(7);
                match other.key() {
                    Some(key) => {
                        pack.number(1);
                        self.key(key, pack);
                    }
                    None => pack.number(0),
                }
                match written(&other) {
                    Some(value) => {
                        pack.number(1);
                        self.value(value, pack);
                    }
                    None => pack.number(0),
                }
                pack.text(&names.op(op));
            }
        }
    }

    fn keyed(&mut self, kind: u64, key: KeyId, pack: &mut Pack) {
        pack.number(kind);
        self.key(key, pack);
    }

    fn key(&mut self, key: KeyId, pack: &mut Pack) {
        let next = self.keys.len() as u64;
        let number = *self.keys.entry(key).or_insert(next);
        pack.number(number);
        if number == next {
            pack.number(key.index() as u64);
            pack.text(&self.names.full_key(key));
        }
    }

    fn value(&self, value: ValueId, pack: &mut Pack) {
        pack.either(value.as_inline(), || self.names.full_value(value));
    }
}

/// The value that a conditional write left, if it took effect.
fn written(op: &isolario_model::OpView<'_>) -> Option<ValueId> {
    match *op {
        Op::InsertIfAbsent { value, applied: Some(true), .. }
        | Op::CompareAndSet { new: value, applied: Some(true), .. } => Some(value),
        _ => None,
    }
}
