//! Lost commits: what was acknowledged before the server ended, and is missing after it has come back.
//!
//! In the history alone, this is a stale read: somebody reads an older version than what was committed
//! before. But the run knows that the server ended in between, and that nobody else could serve the read.
//! So it can say that the newer version is gone, and not merely late.
//!
//! - *Registers.* A transaction read a version of a key, wrote over it and was told that it had committed.
//!   After the fault, somebody finds the version that it wrote over. The database has applied the write
//!   after that version, whatever the isolation level: it is gone, and so is what others wrote over it in
//!   turn before the fault. Of writes without a read before them, nobody knows what they wrote over, so they
//!   are not counted. That nothing is there again tells something only where nobody has deleted the key.
//! - *Rows* are registers. A write by predicate may have touched any row if its client did not get an answer: where
//!   one of these may have committed, nothing is counted but appends.
//! - *Lists.* An append was acknowledged before the fault, and a read after it does not show the element:
//!   lists never forget.
//!
//! What is counted is certain, since a transaction of unknown outcome is none that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, Findings, History, KeyId, Op, OpId, Outcome, PatternResult,
    TxnId, ValueId, ValueRef, Verdict, Witness,
};
use isolario_report::sentences::summary;
use isolario_report::{LostCommitsResult, Names, grouped};
use isolario_verify::LostCommit;
pub use isolario_verify::Outage;

/// Transactions that were acknowledged before a fault and are missing after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostCommits {
    /// How many.
    pub total: u64,
    /// The first of them, in words.
    pub words: String,
    /// An anomaly for each of them, as reports show it.
    pub result: PatternResult,
    /// Evidence, to be [re-checked](isolario_verify::verify_lost): those that wrote over what was found again, and
    /// appended what was not found. Others have written over what these wrote.
    pub evidence: Vec<LostCommit>,
}

impl fmt::Display for LostCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let txns = if self.total == 1 { "transaction is" } else { "transactions are" };
        let LostCommits { total, words, .. } = self;
        write!(f, "{} acknowledged {txns} missing after a fault: {words}", grouped(*total))
    }
}

/// The answer where the server was down and everything was there again.
static NOTHING_LOST: PatternResult =
    PatternResult { kind: AnomalyKind::LostCommit, verdict: Verdict::Satisfied(Witness::Empty) };

/// What a report has to say of lost commits: nothing, unless the server was down during the history.
pub fn report_of_lost<'h>(
    lost: Option<&'h LostCommits>,
    outages: &[Outage],
    durability: &'h str,
) -> Option<LostCommitsResult<'h>> {
    let result = match lost {
        Some(lost) => &lost.result,
        None if outages.is_empty() => return None,
        None => &NOTHING_LOST,
    };
    Some(LostCommitsResult { result, durability })
}

impl LostCommits {
    /// Looks for them in the history of a server that was down at these times, one after the other.
    pub fn find(history: &History, outages: &[Outage]) -> Option<LostCommits> {
        if outages.is_empty() {
            return None;
        }
        let mut search = Search::new(history, outages);
        let committed = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
        committed.for_each(|txn| search.look_at(txn));
        let words = summary(Names::new(history), search.anomalies.first()?);
        // More may be lost than certainly are: of what was written over blindly, nothing is known.
        let verdict = Verdict::Violated(Findings::new(search.anomalies, false));
        let result = PatternResult { kind: AnomalyKind::LostCommit, verdict };
        let (total, evidence) = (search.lost.len() as u64, search.evidence);
        Some(LostCommits { total, words, result, evidence })
    }
}

/// A version of a register: values are written once.
type Version = (KeyId, ValueId);

struct Search<'h> {
    history: &'h History,
    outages: &'h [Outage],
    /// Who read a version and wrote over it, and with what.
    overwritten: BTreeMap<Version, Vec<(TxnId, Access)>>,
    /// Who appended what.
    appended: BTreeMap<KeyId, Vec<(TxnId, Access)>>,
    /// Keys that somebody may have deleted.
    deleted: BTreeSet<KeyId>,
    /// Whether some write by predicate may have committed, and nobody knows what it wrote.
    has_unanswered: bool,
    /// Versions that were found again, and lists that were looked at, each with the outage.
    found_again: BTreeSet<(Version, usize)>,
    lists: BTreeSet<(KeyId, usize)>,
    lost: BTreeSet<TxnId>,
    evidence: Vec<LostCommit>,
    /// One for each of those lost.
    anomalies: Vec<Anomaly>,
}

impl<'h> Search<'h> {
    fn new(history: &'h History, outages: &'h [Outage]) -> Search<'h> {
        let mut overwritten: BTreeMap<Version, Vec<(TxnId, Access)>> = BTreeMap::new();
        let mut appended: BTreeMap<KeyId, Vec<(TxnId, Access)>> = BTreeMap::new();
        let mut deleted = BTreeSet::new();
        let mut has_unanswered = false;
        let nil = history.find_value(ValueRef::Nil);
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            for (key, (read, written)) in registers(history, txn) {
                if let (Some((_, read)), Some(written)) = (read, written) {
                    overwritten.entry((key, read)).or_default().push((txn, written));
                }
            }
            for op in history.txn_ops(txn) {
                match history.op(op) {
                    Op::Append { key, element } => {
                        appended.entry(key).or_default().push((txn, (op, element)));
                    }
                    Op::Delete { key } => _ = deleted.insert(key),
                    Op::PredicateWrite { rows: None, .. } => has_unanswered = true,
                    Op::PredicateWrite { rows: Some(rows), .. } => {
                        let gone = rows.iter().filter(|row| Some(row.value) == nil);
                        deleted.extend(gone.map(|row| row.key));
                    }
                    _ => {}
                }
            }
        }
        Search {
            history,
            outages,
            overwritten,
            appended,
            deleted,
            has_unanswered,
            found_again: BTreeSet::new(),
            lists: BTreeSet::new(),
            lost: BTreeSet::new(),
            evidence: Vec::new(),
            anomalies: Vec::new(),
        }
    }

    /// Whether a transaction was acknowledged before an outage.
    fn is_acknowledged(&self, txn: TxnId, outage: usize) -> bool {
        let finish = self.history.finish(txn).unwrap_or(i64::MAX);
        self.history.outcome(txn) == Outcome::Committed && finish < self.outages[outage].begun
    }

    /// What a transaction shows of outages before it. Who was acknowledged before an earlier one was so
    /// before the last one, too.
    fn look_at(&mut self, txn: TxnId) {
        let start = self.history.start(txn).unwrap_or(i64::MIN);
        let Some(outage) = self.outages.iter().rposition(|outage| outage.over < start) else {
            return;
        };
        for (key, (read, _)) in registers(self.history, txn) {
            if let Some(read) = read {
                self.look_at_register(key, read, outage);
            }
        }
        for op in self.history.txn_ops(txn) {
            if let Op::ReadList { key, elements: Some(elements) } = self.history.op(op) {
                let shown: BTreeSet<ValueId> = elements.iter().copied().collect();
                self.look_at_list(op, key, &shown, outage);
            }
        }
    }

    /// Somebody reads a version again that others have written over.
    fn look_at_register(&mut self, key: KeyId, (found, version): Access, outage: usize) {
        let is_nothing = matches!(self.history.value(version), ValueRef::Nil);
        if self.has_unanswered || (is_nothing && self.deleted.contains(&key)) {
            return;
        }
        // With the unknown ones since then, as long as nobody is lost.
        let mut open = vec![(version, Some(Vec::new()))];
        while let Some((version, via)) = open.pop() {
            let version = (key, version);
            if !self.found_again.insert((version, outage)) {
                continue;
            }
            for (txn, (lost, written)) in
                self.overwritten.get(&version).cloned().unwrap_or_default()
            {
                if self.is_acknowledged(txn, outage) {
                    self.note(version.0, lost, found, outage);
                    if let Some(via) = via.clone() {
                        self.evidence.push(LostCommit { lost, via, found });
                    }
                    open.push((written, None));
                } else if self.history.outcome(txn) == Outcome::Unknown {
                    // Whoever wrote over an unknown one tells that it did commit.
                    let via = via.clone().map(|via| [via, vec![lost]].concat());
                    open.push((written, via));
                }
            }
        }
    }

    /// Somebody reads a list for the first time after an outage.
    fn look_at_list(&mut self, found: OpId, key: KeyId, shown: &BTreeSet<ValueId>, outage: usize) {
        if !self.lists.insert((key, outage)) {
            return;
        }
        for (txn, (lost, element)) in self.appended.get(&key).cloned().unwrap_or_default() {
            if !shown.contains(&element) && self.is_acknowledged(txn, outage) {
                self.note(key, lost, found, outage);
                self.evidence.push(LostCommit { lost, via: Vec::new(), found });
            }
        }
    }

    /// Counts the transaction of a write, once.
    fn note(&mut self, key: KeyId, write: OpId, found: OpId, outage: usize) {
        if self.lost.insert(self.history.op_txn(write)) {
            let Outage { begun, over } = self.outages[outage];
            let evidence = Evidence::Lost { key, write, down: [begun, over], found };
            self.anomalies.push(Anomaly::new(AnomalyKind::LostCommit, evidence));
        }
    }
}

/// An operation, and the version that it saw or wrote.
type Access = (OpId, ValueId);
/// What a transaction read first and wrote last.
type Use = (Option<Access>, Option<Access>);

/// What a transaction read of each register before it wrote it, and what it wrote there last.
fn registers(history: &History, txn: TxnId) -> BTreeMap<KeyId, Use> {
    let mut found: BTreeMap<KeyId, Use> = BTreeMap::new();
    for op in history.txn_ops(txn) {
        let (key, read, written) = match history.op(op) {
            Op::Read { key, value } => (key, value, None),
            Op::Write { key, value } => (key, None, Some(value)),
            Op::CompareAndSet { key, expected, new, applied: Some(true), .. } => {
                (key, Some(expected), Some(new))
            }
            Op::InsertIfAbsent { key, value, applied: Some(true), .. } => {
                (key, history.find_value(ValueRef::Nil), Some(value))
            }
            Op::CompareAndSet { key, seen, applied: Some(false), .. }
            | Op::InsertIfAbsent { key, seen, applied: Some(false), .. } => (key, seen, None),
            // What it wrote before is not what it left.
            Op::Delete { key } => {
                found.entry(key).or_default().1 = None;
                continue;
            }
            _ => continue,
        };
        let entry = found.entry(key).or_default();
        if entry.1.is_none() {
            entry.0 = entry.0.or(read.map(|read| (op, read)));
        }
        entry.1 = written.map(|written| (op, written)).or(entry.1);
    }
    found
}
