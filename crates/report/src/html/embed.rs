//! The history inside the page: every transaction's session, times and outcome, and as many
//! operations as fit.
//!
//! `assets/unpack.js` reads what this writes; both follow the order of the functions here.

use std::collections::BTreeMap;
use std::io;

use isolario_model::{
    Anomaly, Clock, History, KeyId, Op, OpId, Outcome, Point, TxnId, ValueId, ValueRef, Verdict,
    Witness,
};

use super::pack::Pack;
use crate::involved::involved;
use crate::names::Names;
use crate::report::Report;

/// How large the page may become, in bytes, with some room below five million.
const PAGE: usize = 4_800_000;
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
    /// Operations, block by block.
    pub(super) blocks: Vec<String>,
    /// How many transactions have their operations in the page.
    pub(super) with_ops: usize,
}

impl Embedded {
    /// `taken` is how large the rest of the page is; `shown` are the anomalies it shows.
    pub(super) fn of(
        report: &Report<'_>,
        shown: &[&Anomaly],
        taken: usize,
    ) -> io::Result<Embedded> {
        let history = report.history;
        let near = neighbourhood(history, shown);
        let txns: Vec<TxnId> = match history.txn_count() {
            many if many > MOST_TXNS => near.clone(),
            _ => history.txns().collect(),
        };
        let frame = frame(report, &txns).letters()?;
        let mut embedded = Embedded { txns, frame, blocks: Vec::new(), with_ops: 0 };
        embedded.operations(history, &near, PAGE.saturating_sub(taken))?;
        Ok(embedded)
    }

    /// The position of a transaction.
    pub(super) fn position(&self, txn: TxnId) -> Option<usize> {
        self.txns.binary_search(&txn).ok()
    }

    /// Operations of the neighbourhood first, then of all others while they fit, in the order in which
    /// they began: so what is there is there of all sessions.
    fn operations(&mut self, history: &History, near: &[TxnId], room: usize) -> io::Result<()> {
        let mut room = room.saturating_sub(self.frame.len());
        let far = self.txns.iter().copied().filter(|txn| near.binary_search(txn).is_err());
        let mut far: Vec<TxnId> = far.collect();
        far.sort_by_key(|txn| beginning(history, *txn));
        let order = [near, &far[..]].concat();
        let mut tables = Tables { names: Names::new(history), keys: BTreeMap::new() };
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
    witness(report, txns, &mut pack);
    pack
}

/// Starts as distances from the time before, finishes as distances from the start.
fn times(history: &History, txns: &[TxnId], pack: &mut Pack) {
    let known = |txn: &TxnId| [history.start(*txn), history.finish(*txn)].into_iter().flatten();
    let mut last = txns.iter().flat_map(known).min().unwrap_or(0);
    for txn in txns {
        for time in known(txn) {
            pack.signed(time.wrapping_sub(last));
            last = time;
        }
    }
}

/// The order of commits that shows the strongest satisfied level, if there is one: its level, and the
/// positions of transactions as distances.
fn witness(report: &Report<'_>, txns: &[TxnId], pack: &mut Pack) {
    let found = report.results.iter().rev().find_map(|result| match &result.verdict {
        Verdict::Satisfied(Witness::CommitOrder(order)) => Some((result.level, order.clone())),
        Verdict::Satisfied(Witness::Points(points)) => {
            let commits = points.iter().filter_map(|point| match point {
                Point::Commit(txn) => Some(*txn),
                Point::Start(_) => None,
            });
            Some((result.level, commits.collect()))
        }
        _ => None,
    });
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

/// Keys are named once, where they first occur; then they are numbers.
struct Tables<'h> {
    names: Names<'h>,
    keys: BTreeMap<KeyId, u64>,
}

impl Tables<'_> {
    fn op(&mut self, op: OpId, pack: &mut Pack) {
        let names = self.names;
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
            pack.text(&self.names.key(key));
        }
    }

    fn value(&self, value: ValueId, pack: &mut Pack) {
        pack.either(value.as_inline(), || self.names.value(value));
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
