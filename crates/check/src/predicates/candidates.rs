//! The versions of a row that a transaction may have observed.
//!
//! These are the last versions of the transactions that committed or may have, and the initial one. What an
//! aborted transaction wrote, or what its writer replaced, was never observed at the levels that are decided
//! here.

use isolario_model::{
    Anomaly, History, Inapplicable, ItemView, KeyId, MatchedRow, MatchedValue, Outcome, TxnId,
    ValueRef,
};

use super::conditions::{self, Condition};
use crate::rows::{LastWrite, RowVersions};

/// A row that a transaction matched or excluded, with the writers of all versions of it that agree with
/// that.
#[derive(Clone, Debug)]
pub(super) struct RowMatch {
    pub(super) row: MatchedRow,
    /// May be `init`.
    pub(super) writers: Vec<TxnId>,
}

/// The versions of all rows.
pub(super) struct Candidates<'h> {
    pub(super) history: &'h History,
    versions: RowVersions,
    /// Per transaction, whether its versions may have been observed.
    may_be_observed: Vec<bool>,
}

impl<'h> Candidates<'h> {
    /// The versions of all transactions but the aborted ones; some of them cannot have been observed.
    pub(super) fn new(history: &'h History, view: &ItemView, may_be_observed: &[bool]) -> Self {
        let versions = RowVersions::new(view, |txn| history.outcome(txn) != Outcome::Aborted);
        Candidates { history, versions, may_be_observed: may_be_observed.to_vec() }
    }

    /// A row with all versions of it that agree with what a transaction says about it. None if it says
    /// nothing about the row.
    pub(super) fn matched(&self, txn: TxnId, key: KeyId) -> Result<Option<RowMatch>, Inapplicable> {
        let history = self.history;
        let conditions = conditions::conditions(history, txn, key);
        let Some(first) = conditions.first() else { return Ok(None) };
        let writers = self.agreeing(&conditions, txn, key)?;
        let held = self.held((txn, key), &writers);
        Ok(Some(RowMatch { row: MatchedRow { op: first.op, key, held }, writers }))
    }

    /// The anomaly that no version agrees.
    pub(super) fn unexplained(&self, txn: TxnId, key: KeyId) -> Result<Anomaly, Inapplicable> {
        let conditions = conditions::conditions(self.history, txn, key);
        let agrees =
            |conditions: &[Condition<'_>]| Ok(!self.agreeing(conditions, txn, key)?.is_empty());
        conditions::unexplained(&conditions, key, agrees)
    }

    /// The writers of the versions of a row that agree with what a transaction says about it; may be `init`.
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
        let others = self.versions.of(key).iter().filter(|version| version.writer != txn);
        for version in others.filter(|version| self.may_be_observed[version.writer.index()]) {
            if self.agrees(conditions, key, self.history.value(version.row.value))? {
                writers.push(version.writer);
            }
        }
        Ok(writers)
    }

    /// What a transaction left of a row that it wrote.
    pub(super) fn last(&self, key: KeyId, writer: TxnId) -> Option<&LastWrite> {
        self.versions.of(key).iter().find(|version| version.writer == writer)
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

    /// The value of a row, if all candidates have the same and no other version has: then the read may be
    /// taken as one of that value.
    fn held(&self, (txn, key): (TxnId, KeyId), writers: &[TxnId]) -> Option<MatchedValue> {
        if self.history.names_versions() {
            return None;
        }
        let may_be_initial = writers.first() == Some(&TxnId::INIT);
        // The rest is by transaction.
        let writers = &writers[usize::from(may_be_initial)..];
        let is_candidate = |version: &&LastWrite| writers.binary_search(&version.writer).is_ok();
        let mut others = self.versions.of(key).iter().filter(|version| version.writer != txn);
        let initial = self.history.find_value(self.initial());
        let value = match others.clone().find(is_candidate) {
            Some(version) => Some(version.row.value),
            None if may_be_initial => initial,
            None => return None,
        };
        let is_one = (initial == value) == may_be_initial
            && others.all(|other| (Some(other.row.value) == value) == is_candidate(&other));
        is_one.then(|| value.map_or(MatchedValue::Initial, MatchedValue::Value))
    }

    fn initial(&self) -> ValueRef<'h> {
        self.history.initial_value().map_or(ValueRef::Nil, |value| value.as_ref())
    }
}
