//! A part of a history: some operations gone, and with them whatever rested on them.

mod rows;

use std::collections::HashSet;

use crate::batch::Batch;
use crate::op::{Op, OpNotes, Outcome, TxnStart};
use crate::sink::{SinkError, TxnSink};
use crate::table::ValueId;
use crate::value::ValueRef;
use crate::{History, KeyId, OpId, TxnId};
use rows::PartRows;

/// Which operations of a history to keep.
///
/// A part never looks worse than the whole. What a read saw is told only as long as everyone who may
/// have written it is there: a register is left out with any of its possible writers, a list with the
/// writer of its last element; of other lists the element goes. So whichever order explains the
/// history explains each of its parts, and a violation in a part is one of the history.
///
/// Lists need less than registers, because a list shows what it holds: with an element gone from
/// every list of its key, the versions that are left are those of a history in which nobody appended
/// it. Only where it was the last, the read would turn into one of an earlier version, which may have
/// been over by then.
///
/// An operation by predicate is left out if it may have met a version of a row that is gone and would
/// not have done the same with one that is kept; functions over rows with any version that counts. Nothing
/// can be told without a write of which nobody knows which rows it wrote: such a write always stays.
#[derive(Clone, Debug)]
pub struct HistoryPart {
    kept: Vec<bool>,
}

/// A version of a key, as [`History::encoded_version`] tells them apart.
type Version = (KeyId, u64);

impl HistoryPart {
    /// All of a history.
    pub fn whole(history: &History) -> HistoryPart {
        HistoryPart { kept: vec![true; history.op_count()] }
    }

    /// Nothing of a history but these transactions.
    pub fn of_txns(history: &History, txns: impl IntoIterator<Item = TxnId>) -> HistoryPart {
        let mut kept = vec![false; history.op_count()];
        for txn in txns {
            kept[history.op_range(txn)].fill(true);
        }
        HistoryPart { kept }
    }

    /// Nothing of a history but these operations.
    pub fn of_ops(history: &History, ops: impl IntoIterator<Item = OpId>) -> HistoryPart {
        let mut kept = vec![false; history.op_count()];
        ops.into_iter().for_each(|op| kept[op.index()] = true);
        HistoryPart { kept }
    }

    /// Leaves a transaction out.
    pub fn remove_txn(&mut self, history: &History, txn: TxnId) {
        self.kept[history.op_range(txn)].fill(false);
    }

    /// Leaves an operation out.
    pub fn remove_op(&mut self, op: OpId) {
        self.kept[op.index()] = false;
    }

    /// The part as a history of its own. Names, times and the order of sessions stay, and transactions
    /// without a name get the one that they go by in the whole; transactions without operations go, and
    /// so do the lines of the file.
    pub fn build(self, history: &History) -> Result<History, SinkError> {
        Ok(self.build_with_ids(history)?.0)
    }

    /// As [`HistoryPart::build`], with the operation of the whole that each operation of the part is.
    pub fn build_with_ids(mut self, history: &History) -> Result<(History, Vec<OpId>), SinkError> {
        let gone = self.settle(history);
        let mut batch = Batch::new();
        let mut ids: Vec<OpId> = Vec::new();
        batch.meta(history.meta())?;
        for txn in history.txns() {
            let kept: Vec<OpId> = history.txn_ops(txn).filter(|op| self.kept[op.index()]).collect();
            if kept.is_empty() {
                continue;
            }
            let label = history.txn_label(txn);
            batch.begin(&TxnStart {
                session: history.session_name(history.session_of(txn)),
                id: history.txn_name(txn).or(Some(ValueRef::Text(&label))),
                // It is in another file, or in none.
                line: None,
            })?;
            ids.extend_from_slice(&kept);
            kept.into_iter().try_for_each(|op| pass_on(history, op, &gone, &mut batch))?;
            batch.end(&history.txn_end(txn))?;
        }
        Ok((batch.build()?, ids))
    }

    /// Leaves out what rests on what is left out, until nothing more has to go. Only conditional
    /// writes and writes by predicate read and write at once, so few rounds change anything.
    fn settle(&mut self, history: &History) -> OmittedVersions {
        self.keep_unobserved(history);
        let mut gone = OmittedVersions::default();
        gone.gather(history, &self.kept);
        loop {
            let mut is_settled = true;
            let rows = PartRows::new(history, &self.kept);
            for txn in history.txns() {
                for op in history.txn_ops(txn) {
                    let rests_on = |op| {
                        self.rests_on(history, txn, op, &gone) || rows.rests_on(history, op, &gone)
                    };
                    if self.kept[op.index()] && rests_on(op) {
                        self.kept[op.index()] = false;
                        is_settled = false;
                    }
                }
            }
            if is_settled {
                return gone;
            }
            gone.gather(history, &self.kept);
        }
    }

    fn keep_unobserved(&mut self, history: &History) {
        for txn in history.txns().filter(|_| history.has_predicates()) {
            for op in history.txn_ops(txn) {
                let may_be_why = matches!(history.op(op), Op::PredicateWrite { rows: None, .. })
                    && history.outcome(txn) != Outcome::Aborted;
                self.kept[op.index()] |= may_be_why;
            }
        }
    }

    /// Whether what an operation observed cannot be told without what is gone.
    fn rests_on(&self, history: &History, txn: TxnId, op: OpId, gone: &OmittedVersions) -> bool {
        let saw = |key: KeyId, value: ValueId| gone.versions.contains(&(key, value.to_bits()));
        let conditional = |key, expected: Option<ValueId>, applied, seen| match (applied, seen) {
            (Some(true), _) => expected.is_some_and(|expected| saw(key, expected)),
            (_, Some(seen)) => saw(key, seen),
            // One that failed for a value it does not tell saw whatever else was written.
            (_, None) => gone.keys.contains(&key),
        };
        match history.op(op) {
            Op::Read { key, value: Some(_) } => {
                gone.versions.contains(&(key, history.encoded_version(op)))
            }
            Op::ReadList { key, elements: Some(elements) } => {
                if !gone.keys.contains(&key) {
                    return false;
                }
                let own = self.appends(history, txn, key);
                let last = elements.iter().rfind(|element| !own.contains(element));
                // Whose element it is that others appended as well, nobody can tell.
                let twice = |element: &ValueId| gone.twice.contains(&(key, element.to_bits()));
                last.is_some_and(|last| saw(key, *last)) || elements.iter().any(twice)
            }
            Op::InsertIfAbsent { key, applied, seen, .. } => {
                conditional(key, history.find_value(ValueRef::Nil), applied, seen)
            }
            Op::CompareAndSet { key, expected, applied, seen, .. } => {
                conditional(key, Some(expected), applied, seen)
            }
            _ => false,
        }
    }

    /// What a transaction appends to a list, in operations that are kept.
    fn appends(&self, history: &History, txn: TxnId, key: KeyId) -> Vec<ValueId> {
        let kept = history.txn_ops(txn).filter(|op| self.kept[op.index()]);
        kept.filter_map(|op| match history.op(op) {
            Op::Append { key: of, element } if of == key => Some(element),
            _ => None,
        })
        .collect()
    }
}

/// What nobody writes any more.
#[derive(Default)]
struct OmittedVersions {
    /// The versions that somebody wrote who is gone.
    versions: HashSet<Version>,
    /// Those among them that somebody else wrote, too, who is kept.
    twice: HashSet<Version>,
    /// The keys of these versions.
    keys: HashSet<KeyId>,
}

impl OmittedVersions {
    /// Only what is gone of keys that are still there matters. Of a large history few are as a rule, and
    /// nothing else is looked at closely.
    fn gather(&mut self, history: &History, kept: &[bool]) {
        let keys = history.op_keys();
        let mut is_there = vec![history.has_predicates(); history.key_count()];
        for (key, _) in keys.iter().zip(kept).filter(|(_, kept)| **kept) {
            if let Some(is_there) = is_there.get_mut(key.index()) {
                *is_there = true;
            }
        }
        let matters =
            |op: &OpId| is_there.get(keys[op.index()].index()).is_none_or(|is_there| *is_there);
        let writes = || {
            let ops = (0..keys.len()).map(OpId::at).filter(matters);
            ops.flat_map(|op| written(history, op).map(move |version| (kept[op.index()], version)))
        };
        self.versions = writes().filter(|(kept, _)| !kept).map(|(_, version)| version).collect();
        let is_gone = |version: &Version| self.versions.contains(version);
        self.twice = writes().filter(|(kept, _)| *kept).map(|(_, v)| v).filter(is_gone).collect();
        self.keys = self.versions.iter().map(|(key, _)| *key).collect();
    }
}

/// The versions that an operation wrote, or may have written.
fn written(history: &History, op: OpId) -> impl Iterator<Item = Version> {
    let one = match history.op(op) {
        Op::Write { key, .. } | Op::Delete { key } | Op::Append { key, .. } => {
            Some((key, history.encoded_version(op)))
        }
        Op::InsertIfAbsent { key, value: new, applied, .. }
        | Op::CompareAndSet { key, new, applied, .. } => {
            (applied != Some(false)).then(|| match history.op_version_id(op) {
                Some(_) => (key, history.encoded_version(op)),
                None => (key, new.to_bits()),
            })
        }
        _ => None,
    };
    let rows = match history.op(op) {
        Op::PredicateWrite { rows: Some(rows), .. } => rows,
        _ => &[],
    };
    one.into_iter().chain(rows.iter().map(|row| (row.key, history.encoded_row_version(row))))
}

/// Writes a kept operation into a sink; a list without the elements whose writers are gone.
fn pass_on(
    history: &History,
    op: OpId,
    gone: &OmittedVersions,
    sink: &mut dyn TxnSink,
) -> Result<(), SinkError> {
    let notes = OpNotes { version: history.op_version(op), sql: history.op_sql(op) };
    if let Op::ReadList { key, elements: Some(elements) } = history.op(op) {
        let left =
            elements.iter().filter(|element| !gone.versions.contains(&(key, element.to_bits())));
        let left: Vec<_> = left.map(|element| history.value(*element)).collect();
        let read = Op::ReadList { key: history.key_name(key), elements: Some(&left[..]) };
        return sink.op_with(&read, &notes);
    }
    history.with_op_input(op, |input| sink.op_with(input, &notes))
}
