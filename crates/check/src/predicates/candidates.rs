//! The versions of a row that a transaction may have met.
//!
//! These are the last versions of those who committed or may have, and the initial one. What an
//! aborted transaction wrote, or what its writer replaced, nobody met at the levels that are decided
//! here.

use isolario_model::{
    Anomaly, History, Inapplicable, ItemView, KeyId, MatchedRow, MatchedValue, Outcome, TxnId,
    ValueId, ValueRef,
};

use super::conditions::{self, Condition};
use crate::rows::{LastWrite, last_writes};

/// A row that a transaction met without being told which version, and who may have written it.
#[derive(Clone, Debug)]
pub(super) struct Met {
    pub(super) row: MatchedRow,
    /// May be `init`.
    pub(super) writers: Vec<TxnId>,
}

/// The versions of all rows.
pub(super) struct Candidates<'h> {
    history: &'h History,
    /// By key.
    versions: Vec<LastWrite>,
    /// Per transaction, whether its versions may have been observed.
    may_be_met: Vec<bool>,
}

impl<'h> Candidates<'h> {
    /// The versions of all transactions but the aborted ones; some of them cannot have been observed.
    pub(super) fn new(history: &'h History, view: &ItemView, may_be_met: &[bool]) -> Self {
        let mut versions = last_writes(view, |writer| history.outcome(writer) != Outcome::Aborted);
        versions.sort_by_key(|version| version.row.key);
        Candidates { history, versions, may_be_met: may_be_met.to_vec() }
    }

    /// The row that a transaction met, with all versions that agree with what it says about it. None
    /// if it says nothing about the row.
    pub(super) fn met(&self, txn: TxnId, key: KeyId) -> Result<Option<Met>, Inapplicable> {
        let history = self.history;
        let conditions = conditions::conditions(history, txn, key);
        let Some(first) = conditions.first() else { return Ok(None) };
        let writers = self.agreeing(&conditions, txn, key)?;
        let held = self.held((txn, key), &writers);
        Ok(Some(Met { row: MatchedRow { op: first.op, key, held }, writers }))
    }

    /// Why none of them agrees.
    pub(super) fn unexplained(&self, txn: TxnId, key: KeyId) -> Result<Anomaly, Inapplicable> {
        let conditions = conditions::conditions(self.history, txn, key);
        let agrees =
            |conditions: &[Condition<'_>]| Ok(!self.agreeing(conditions, txn, key)?.is_empty());
        conditions::unexplained(&conditions, key, agrees)
    }

    /// Who wrote the versions of a row that agree with what a transaction says about it; may be `init`.
    pub(super) fn agreeing(
        &self,
        conditions: &[Condition<'_>],
        txn: TxnId,
        key: KeyId,
    ) -> Result<Vec<TxnId>, Inapplicable> {
        let mut writers = Vec::new();
        if self.agrees(conditions, key, self.initial())? {
            writers.push(TxnId::INIT);
        }
        let others = self.of(key).iter().filter(|version| version.writer != txn);
        for version in others.filter(|version| self.may_be_met[version.writer.index()]) {
            if self.agrees(conditions, key, self.history.value(version.row.value))? {
                writers.push(version.writer);
            }
        }
        Ok(writers)
    }

    /// What a transaction left of a row that it wrote.
    pub(super) fn last(&self, key: KeyId, writer: TxnId) -> Option<&LastWrite> {
        self.of(key).iter().find(|version| version.writer == writer)
    }

    fn agrees(
        &self,
        conditions: &[Condition<'_>],
        key: KeyId,
        value: ValueRef<'_>,
    ) -> Result<bool, Inapplicable> {
        for condition in conditions {
            if !condition.agrees(self.history, key, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the row held, if all candidates hold the same and nobody else wrote that: then the read may
    /// be taken as one of that value.
    fn held(&self, (txn, key): (TxnId, KeyId), writers: &[TxnId]) -> Option<MatchedValue> {
        let may_be_initial = writers.first() == Some(&TxnId::INIT);
        // Both are by transaction.
        let mut others = writers[usize::from(may_be_initial)..].iter().copied().peekable();
        let is_agreeing = |version: &&LastWrite| others.next_if_eq(&version.writer).is_some();
        let values: Vec<ValueId> =
            self.of(key).iter().filter(is_agreeing).map(|version| version.row.value).collect();
        let initial = self.history.find_value(self.initial());
        let value = match (values.first(), may_be_initial) {
            _ if self.history.names_versions() => return None,
            (Some(value), _) => Some(*value),
            (None, true) => initial,
            (None, false) => return None,
        };
        let is_written =
            |version: &&LastWrite| version.writer != txn && Some(version.row.value) == value;
        let is_one = values.iter().all(|other| Some(*other) == value)
            && (initial == value) == may_be_initial
            && self.of(key).iter().filter(is_written).count() == values.len();
        is_one.then(|| value.map_or(MatchedValue::Initial, MatchedValue::Value))
    }

    fn of(&self, key: KeyId) -> &[LastWrite] {
        let begin = self.versions.partition_point(|version| version.row.key < key);
        let rest = &self.versions[begin..];
        &rest[..rest.partition_point(|version| version.row.key == key)]
    }

    fn initial(&self) -> ValueRef<'h> {
        self.history.initial_value().map_or(ValueRef::Nil, |value| value.as_ref())
    }
}
