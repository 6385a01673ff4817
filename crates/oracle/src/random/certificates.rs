//! Random small tables with a version certificate: who wrote the versions of each row in which order,
//! and which of them every predicate operation met.
//!
//! The certificate is that of the store that ran the transactions; now and then it says something else, or
//! does not say what an operation met.

use std::collections::BTreeMap;

use isolario_model::{
    History, KeyId, OpId, Outcome, SinkError, Stamp, StatedOrder, StatedSet, TxnId, Value,
    ValueRef, VersionSet,
};

use super::Rng;
use super::tables::{
    Asked, Done, Draft, Rows, Store, drafts, matching, other_times, record, row_key,
};

/// A history of a table, and its certificate.
#[derive(Debug)]
pub struct CertificateCase {
    /// The history.
    pub history: History,
    /// The order of versions.
    pub orders: Vec<StatedOrder>,
    /// What predicate operations met.
    pub sets: Vec<StatedSet>,
}

/// What a row was last written by, and what it held.
type Seen = BTreeMap<i64, (usize, Value)>;

/// The history of a seed, with its certificate.
pub fn certificate_case(seed: u64) -> Result<CertificateCase, SinkError> {
    let mut rng = Rng::new(seed);
    let on_snapshots = rng.percent(80);
    let mut drafts = drafts(&mut rng, on_snapshots);
    for draft in &mut drafts {
        // The database knows whether it committed.
        draft.has_place |= draft.outcome == Outcome::Unknown;
    }
    other_times(&mut drafts, &mut rng);
    let mut recorded = Store::new(&mut rng).run(&drafts);
    show_both(&drafts, &mut recorded, &mut rng);
    let history = record(&drafts, &recorded)?;
    Ok(state(&mut rng, history, &drafts, &recorded, true))
}

/// The certificate of a history, perhaps with mistakes.
pub(super) fn state(
    rng: &mut Rng,
    history: History,
    drafts: &[Draft],
    recorded: &[Vec<Done>],
    may_err: bool,
) -> CertificateCase {
    let (seen, commits) = replay(drafts, recorded);
    let mut certificate = Certificate { rng, history: &history, drafts, recorded, may_err };
    let orders = certificate.orders(&commits);
    let sets = certificate.sets(&seen);
    CertificateCase { history, orders, sets }
}

/// Per transaction, what was committed when it began; and who committed, in order.
fn replay(drafts: &[Draft], recorded: &[Vec<Done>]) -> (Vec<Seen>, Vec<usize>) {
    let mut points: Vec<(u64, usize, bool)> = Vec::new();
    for (at, draft) in drafts.iter().enumerate() {
        points.extend([(draft.start, at, false), (draft.commit, at, true)]);
    }
    points.sort_unstable();
    let mut now = Seen::new();
    let mut seen: Vec<Seen> = drafts.iter().map(|_| Seen::new()).collect();
    let mut commits = Vec::new();
    for (_, at, is_commit) in points {
        if !is_commit {
            seen[at] = now.clone();
        } else if drafts[at].has_committed() {
            commits.push(at);
            for (key, value) in last_writes(&recorded[at]) {
                now.insert(key, (at, value));
            }
        }
    }
    (seen, commits)
}

/// Of each row that a transaction wrote, what it holds in the end.
fn last_writes(ops: &[Done]) -> BTreeMap<i64, Value> {
    let mut rows = BTreeMap::new();
    for op in ops {
        match &op.asked {
            Asked::Write(key, _) | Asked::Delete(key) => {
                rows.insert(*key, op.result.clone());
            }
            Asked::Update(..) => rows.extend(op.rows.iter().cloned()),
            _ => {}
        }
    }
    rows
}

/// Lets operations find rows as they were before their transactions inserted them anew, too.
pub(super) fn show_both(drafts: &[Draft], recorded: &mut [Vec<Done>], rng: &mut Rng) {
    let (seen, _) = replay(drafts, recorded);
    recorded.iter_mut().zip(&seen).for_each(|(ops, seen)| both_in_txn(ops, seen, rng));
}

fn both_in_txn(ops: &mut [Done], seen: &Seen, rng: &mut Rng) {
    for at in 1..ops.len() {
        let own = last_writes(&ops[..at]);
        let Asked::Select(predicate) = &ops[at].asked else { continue };
        let old: Rows = own
            .keys()
            .filter_map(|key| Some((*key, seen.get(key)?.1.clone())))
            .filter(|(_, value)| *value != Value::Nil)
            .collect();
        let found = matching(predicate, &old);
        if rng.percent(40) {
            ops[at].rows.extend(found);
        }
    }
}

struct Certificate<'a> {
    rng: &'a mut Rng,
    history: &'a History,
    drafts: &'a [Draft],
    recorded: &'a [Vec<Done>],
    may_err: bool,
}

impl Certificate<'_> {
    /// Whether to make a mistake, this often of a hundred times.
    fn errs(&mut self, share: usize) -> bool {
        self.may_err && self.rng.percent(share)
    }

    fn txn(&self, draft: usize) -> TxnId {
        let name = ValueRef::Int(draft as i64);
        let is_it = |txn: &TxnId| self.history.txn_name(*txn) == Some(name);
        self.history.txns().find(is_it).unwrap_or(TxnId::INIT)
    }

    fn key(&self, row: i64) -> Option<KeyId> {
        self.history.find_key(row_key(row).as_ref())
    }

    fn orders(&mut self, commits: &[usize]) -> Vec<StatedOrder> {
        let mut orders = Vec::new();
        for row in 1..=3 {
            let wrote = |draft: &&usize| last_writes(&self.recorded[**draft]).contains_key(&row);
            let mut writers: Vec<TxnId> =
                commits.iter().filter(wrote).map(|draft| self.txn(*draft)).collect();
            let Some(key) = self.key(row).filter(|_| writers.len() > 1) else { continue };
            if self.errs(15) {
                let at = self.rng.below(writers.len() - 1);
                writers.swap(at, at + 1);
            }
            if self.errs(1) {
                writers.pop();
            }
            orders.push(StatedOrder { key, writers, at: row as u64 });
        }
        orders
    }

    fn sets(&mut self, seen: &[Seen]) -> Vec<StatedSet> {
        let mut sets = Vec::new();
        // So many operations have no set.
        let mut unstated = match self.rng.below(16) {
            _ if !self.may_err => 0,
            0 => 2,
            1 | 2 => 1,
            _ => 0,
        };
        for draft in 0..self.drafts.len() {
            let ops: Vec<OpId> = self.history.txn_ops(self.txn(draft)).collect();
            for (number, op) in ops.iter().enumerate() {
                if self.history.op_predicate(*op).is_none() {
                    continue;
                }
                if unstated > 0 && self.rng.percent(50) {
                    unstated -= 1;
                } else {
                    let versions = self.set(draft, number, seen);
                    sets.push(StatedSet { op: *op, versions, at: 100 + u64::from(op.0) });
                }
            }
        }
        sets
    }

    fn set(&mut self, draft: usize, op: usize, seen: &[Seen]) -> VersionSet {
        let at = self.drafts[draft].start;
        let has_stamps = self.drafts.iter().all(|draft| draft.has_place);
        if has_stamps && self.rng.percent(50) {
            let late = if self.errs(25) { self.rng.between(1, 6) as u64 } else { 0 };
            return VersionSet::Snapshot(Stamp { physical: at + late, logical: 0 });
        }
        let mut writers: Vec<(KeyId, TxnId)> = Vec::new();
        for (row, (writer, _)) in &seen[draft] {
            let writer = match self.errs(8) {
                true => self.rng.below(self.drafts.len()),
                false => *writer,
            };
            let writes = |draft: usize| last_writes(&self.recorded[draft]).contains_key(row);
            if writes(writer)
                && !self.errs(5)
                && let Some(key) = self.key(*row)
            {
                writers.push((key, self.txn(writer)));
            }
        }
        // What the transaction itself wrote before may be named as well, or anything else in its place.
        for (row, _) in last_writes(&self.recorded[draft][..op]) {
            let writer = match self.rng.percent(70) {
                true => draft,
                false => self.rng.below(self.drafts.len()),
            };
            if self.errs(30)
                && last_writes(&self.recorded[writer]).contains_key(&row)
                && let Some(key) = self.key(row)
            {
                writers.retain(|(named, _)| *named != key);
                writers.push((key, self.txn(writer)));
            }
        }
        VersionSet::Writers(writers)
    }
}
