//! Which versions each predicate operation met.

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyId, Op, OpId, Outcome, PredicateId,
    Stamp, StatedSet, TxnId, VersionSet,
};

use super::chains::{Chains, Version};

/// A predicate operation with a result.
pub(super) struct Asked {
    pub(super) op: OpId,
    pub(super) txn: TxnId,
    pub(super) predicate: PredicateId,
    met: Met,
}

/// A predicate operation with a result, of which nothing says what it met.
pub(super) struct Unstated {
    pub(super) op: OpId,
    pub(super) txn: TxnId,
    pub(super) predicate: PredicateId,
}

/// The versions that an operation met.
enum Met {
    /// Those of writers that committed at one of the first moments.
    UpTo(u32),
    /// These, by row; of all other rows the initial version.
    Named(Vec<(KeyId, Version)>),
}

/// When the writers of versions committed, by the database's own clock.
pub(super) struct Moments {
    /// All commits, sorted.
    stamps: Vec<Stamp>,
    /// Per version, one more than its commit's place among these: 0 for the initial one.
    of_version: Vec<u32>,
    /// Per row, whether its versions are in the order of their commits.
    in_order: Vec<bool>,
}

/// Where the commit of a writer is not known. No snapshot has its versions.
const NEVER: u32 = u32::MAX;

impl Moments {
    pub(super) fn new(history: &History, chains: &Chains<'_>) -> Moments {
        let mut stamps: Vec<Stamp> =
            history.txns().filter_map(|txn| history.db_commit(txn)).collect();
        stamps.sort_unstable();
        stamps.dedup();
        let of_txn: Vec<u32> = history
            .txns()
            .map(|txn| {
                let place = |stamp| stamps.partition_point(|other| *other <= stamp) as u32;
                history.db_commit(txn).map_or(NEVER, place)
            })
            .collect();
        let moment = |version| match chains.writer(version) {
            TxnId::INIT => 0,
            writer => of_txn[writer.index()],
        };
        let of_version: Vec<u32> = (0..chains.len()).map(moment).collect();
        let is_in_order = |key| {
            let of_key = chains.of(KeyId::at(key));
            of_version[of_key.start as usize..of_key.end as usize].is_sorted()
        };
        let in_order = (0..history.key_count()).map(is_in_order).collect();
        Moments { stamps, of_version, in_order }
    }

    /// The last version of a row whose writer had committed by then.
    #[inline]
    fn last(&self, chains: &Chains<'_>, key: KeyId, up_to: u32) -> Version {
        let of_key = chains.of(key);
        let moments = &self.of_version[of_key.start as usize..of_key.end as usize];
        let last = match self.in_order[key.index()] {
            true => moments.partition_point(|moment| *moment <= up_to),
            false => moments.iter().rposition(|moment| *moment <= up_to).map_or(1, |at| at + 1),
        };
        of_key.start + last as Version - 1
    }
}

impl Moments {
    /// The last one before a version whose writer had committed by then.
    fn last_before(&self, chains: &Chains<'_>, key: KeyId, before: Version, up_to: u32) -> Version {
        let is_there = |version: &Version| self.of_version[*version as usize] <= up_to;
        let start = chains.of(key).start;
        (start..before).rev().find(is_there).unwrap_or(start)
    }
}

impl Asked {
    /// The version of a row that the operation met.
    #[inline]
    pub(super) fn met(&self, chains: &Chains<'_>, moments: &Moments, key: KeyId) -> Version {
        match &self.met {
            Met::UpTo(moment) => {
                let last = moments.last(chains, key, *moment);
                // A database may read as of its own commit. What the transaction itself has not
                // written yet is not there for it.
                match chains.writer(last) == self.txn {
                    true => moments.last_before(chains, key, last, *moment),
                    false => last,
                }
            }
            Met::Named(versions) => {
                match versions.binary_search_by_key(&key, |(named, _)| *named) {
                    Ok(at) => versions[at].1,
                    Err(_) => chains.of(key).start,
                }
            }
        }
    }
}

/// The predicate operations of transactions that count.
pub(super) struct Gathered {
    /// Those with what they met.
    pub(super) asked: Vec<Asked>,
    /// Those of which that is not stated.
    pub(super) unstated: Vec<Unstated>,
    /// What is wrong with what was met by itself.
    pub(super) wrong: Vec<Anomaly>,
}

/// Puts predicate operations together with what is stated about them. Fails where nothing says what an
/// operation wrote.
pub(super) fn gather(
    history: &History,
    chains: &Chains<'_>,
    moments: &Moments,
    sets: &[StatedSet],
    is_kept: impl Fn(TxnId) -> bool,
) -> Result<Gathered, Inapplicable> {
    let mut by_op: Vec<&StatedSet> = sets.iter().collect();
    by_op.sort_by_key(|set| set.op);
    let mut gathering = Gathering { history, chains, moments, wrong: Vec::new() };
    let (mut asked, mut unstated) = (Vec::new(), Vec::new());
    for txn in history.txns().filter(|txn| is_kept(*txn)) {
        for op in history.txn_ops(txn) {
            match history.op(op) {
                Op::PredicateRead { rows: Some(_), .. }
                | Op::PredicateWrite { rows: Some(_), .. }
                | Op::Aggregate { result: Some(_), .. } => {}
                Op::PredicateWrite { rows: None, .. } => {
                    return Err(Inapplicable::Operation { op });
                }
                _ => continue,
            }
            let Some(predicate) = history.op_predicate(op) else { continue };
            match by_op.binary_search_by_key(&op, |set| set.op) {
                Ok(at) => {
                    let met = gathering.met(txn, op, &by_op[at].versions);
                    asked.push(Asked { op, txn, predicate, met });
                }
                Err(_) => unstated.push(Unstated { op, txn, predicate }),
            }
        }
    }
    Ok(Gathered { asked, unstated, wrong: gathering.wrong })
}

struct Gathering<'a, 'h> {
    history: &'h History,
    chains: &'a Chains<'h>,
    moments: &'a Moments,
    wrong: Vec<Anomaly>,
}

impl Gathering<'_, '_> {
    fn met(&mut self, txn: TxnId, op: OpId, set: &VersionSet) -> Met {
        match set {
            VersionSet::Snapshot(stamp) => {
                let stamps = &self.moments.stamps;
                Met::UpTo(stamps.partition_point(|other| other <= stamp) as u32)
            }
            VersionSet::Writers(writers) => {
                let mut versions = Vec::with_capacity(writers.len());
                for (key, writer) in writers {
                    match self.chains.version(*key, *writer) {
                        Some(version) => versions.push((*key, version)),
                        // Of a row that it wrote itself, an operation met what it left there.
                        None if self.wrote_before(txn, op, *key) => {}
                        None => self.no_version(op, *key, *writer),
                    }
                    if *writer == txn && !self.wrote_before(txn, op, *key) {
                        self.note(AnomalyKind::FutureRead, op, *key, txn);
                    }
                }
                versions.sort_unstable();
                Met::Named(versions)
            }
        }
    }

    /// A version that was never committed. What a writer that aborted left behind may have been met
    /// without being returned.
    fn no_version(&mut self, op: OpId, key: KeyId, writer: TxnId) {
        if self.history.outcome(writer) == Outcome::Aborted {
            self.note(AnomalyKind::AbortedRead, op, key, writer);
        }
    }

    fn note(&mut self, kind: AnomalyKind, read: OpId, key: KeyId, writer: TxnId) {
        let mut writes = self.history.txn_ops(writer).rev();
        let saw = writes.find(|op| writes_row(self.history, *op, key));
        let evidence = Evidence::Row { key, read, saw, instead: None };
        self.wrong.push(Anomaly::new(kind, evidence));
    }

    fn wrote_before(&self, txn: TxnId, op: OpId, key: KeyId) -> bool {
        let mut earlier = self.history.txn_ops(txn).take_while(|earlier| *earlier < op);
        earlier.any(|earlier| writes_row(self.history, earlier, key))
    }
}

/// Whether an operation wrote a row.
pub(super) fn writes_row(history: &History, op: OpId, row: KeyId) -> bool {
    match history.op(op) {
        Op::Write { key, .. } | Op::Delete { key } => key == row,
        Op::PredicateWrite { rows: Some(rows), .. } => {
            rows.iter().any(|written| written.key == row)
        }
        _ => false,
    }
}
