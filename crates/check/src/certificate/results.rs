//! Compares the results of operations with the versions that these observed.
//!
//! A result that does not fit its version set is wrong whatever the order of transactions: Adya's model
//! takes for granted that it fits, a database may get it wrong (Clark et al., Section 3.1). Sums and
//! extremes are also reads of the rows that they are taken over: a write may change them without
//! changing what matches. Counts are not.

use isolario_model::{
    Aggregate, Evidence, History, Inapplicable, KeyId, Op, OpId, RowView, ValueRef,
};
use isolario_predicate::EvalError;

use super::chains::Version;
use super::observed::StatedOp;
use super::{Certificate, Objects};
use crate::rows::{Contents, OwnWrites, WrittenRow, by_key};

/// The result of an operation, compared.
#[derive(Default)]
pub(super) struct Comparison {
    /// The difference if a row is one object, and if each of its incarnations is one.
    differs: [Option<Evidence>; 2],
    /// The versions of other transactions that a sum or an extreme was taken over, and those of former rows.
    pub(super) reads: Vec<Version>,
}

impl Comparison {
    /// The difference, by what an object is.
    pub(super) fn differs(&self, objects: Objects) -> Option<&Evidence> {
        self.differs[objects as usize].as_ref()
    }
}

impl Certificate<'_> {
    /// Compares the result of an operation with what it had to be.
    pub(super) fn compare(&self, operation: &StatedOp) -> Result<Comparison, Inapplicable> {
        let StatedOp { txn, op, .. } = *operation;
        let own = OwnWrites::before(self.history, txn, op);
        let observed = ObservedRows { certificate: self, operation, own };
        observed.compare().map_err(|_| Inapplicable::Predicate { op })
    }
}

/// The rows that an operation observed: its transaction's own writes, and the versions that are stated.
struct ObservedRows<'c, 'h> {
    certificate: &'c Certificate<'h>,
    operation: &'c StatedOp,
    own: OwnWrites,
}

impl<'h> Contents<'h> for ObservedRows<'_, 'h> {
    fn history(&self) -> &'h History {
        self.certificate.history
    }

    fn value(&self, key: KeyId) -> ValueRef<'h> {
        let Certificate { chains, history, .. } = self.certificate;
        match self.own.of(key) {
            Some(own) => history.value(own.value),
            None => chains.value(self.version_of(key)).unwrap_or(ValueRef::Nil),
        }
    }

    fn write(&self, key: KeyId) -> Option<OpId> {
        match self.own.of(key) {
            Some(own) => Some(own.write),
            None => self.certificate.chains.written(self.version_of(key)).write,
        }
    }

    fn shows(&self, key: KeyId, encoded: u64) -> bool {
        match self.own.of(key) {
            Some(own) => own.encoded == encoded,
            None => self.certificate.chains.shows(self.version_of(key), encoded),
        }
    }
}

impl ObservedRows<'_, '_> {
    /// The version of a row that the operation observed, own writes aside.
    fn version_of(&self, key: KeyId) -> Version {
        self.certificate.observed(self.operation, key)
    }

    fn compare(&self) -> Result<Comparison, EvalError> {
        let op = self.operation.op;
        let matching = self.matching()?;
        let formers = self.former_rows()?;
        match self.history().op(op) {
            Op::PredicateRead { rows: Some(rows), .. }
            | Op::PredicateWrite { rows: Some(rows), .. } => {
                Ok(self.compare_with(rows, &matching, &formers))
            }
            Op::Aggregate { function, result: Some(result), .. } => {
                let function_and_result = (function, result);
                let strictly = self.compare_function(op, function_and_result, &matching, &[])?;
                let chains = &self.certificate.chains;
                let former = |key: &KeyId| chains.row(self.version_of(*key));
                let others: Vec<_> = formers.iter().filter_map(former).collect();
                let has_formers = strictly.is_some()
                    && !others.is_empty()
                    && self
                        .compare_function(op, function_and_result, &matching, &others)?
                        .is_none();
                let apart = strictly.clone().filter(|_| !has_formers);
                let mut reads = Vec::new();
                if !matches!(function, Aggregate::Count | Aggregate::Exists) {
                    let of_others = matching.iter().filter(|key| self.own.of(**key).is_none());
                    let formers = formers.iter().filter(|_| has_formers);
                    reads.extend(of_others.chain(formers).map(|key| self.version_of(*key)));
                }
                Ok(Comparison { differs: [strictly, apart], reads })
            }
            _ => Ok(Comparison::default()),
        }
    }

    /// The rows that match among those that the operation observed, in the order of their keys.
    fn matching(&self) -> Result<Vec<KeyId>, EvalError> {
        let Certificate { matches, chains, .. } = self.certificate;
        let predicate = self.operation.predicate;
        let mut matching = Vec::new();
        for WrittenRow { key, .. } in self.own.rows().iter().copied() {
            if matches.is_row(predicate, self.row(key))? {
                matching.push(key);
            }
        }
        for key in matches.rows(predicate) {
            if matches.is(chains, predicate, self.version_of(*key))? && self.own.of(*key).is_none()
            {
                matching.push(*key);
            }
        }
        matching.sort_unstable();
        Ok(matching)
    }

    /// The rows of an incarnation that had ended when the transaction itself inserted the row anew: unless it
    /// saw the delete, it may see both rows until it deletes the key.
    fn former_rows(&self) -> Result<Vec<KeyId>, EvalError> {
        let Certificate { matches, chains, history, .. } = self.certificate;
        let StatedOp { txn, op, predicate, .. } = *self.operation;
        let mut formers = Vec::new();
        for WrittenRow { key, .. } in self.own.rows().iter().copied() {
            let former = self.version_of(key);
            let is_over = chains.version(key, txn).is_some_and(|own| chains.is_cut(former, own));
            if is_over
                && history.may_see_former_row(op, key)
                && matches.is(chains, predicate, former)?
            {
                formers.push(key);
            }
        }
        Ok(formers)
    }

    /// Compares rows with those that match, with a row as one object and with each incarnation as one: then
    /// former rows may be among them, and were read if the operation is a read.
    fn compare_with(&self, rows: &[RowView], matching: &[KeyId], formers: &[KeyId]) -> Comparison {
        let op = self.operation.op;
        let Certificate { chains, history, .. } = self.certificate;
        let is_read = matches!(history.op(op), Op::PredicateRead { .. });
        let mut rows = by_key(rows);
        let strictly = self.compare_rows(op, &rows, matching);
        if strictly.is_none() {
            return Comparison::default();
        }
        let mut reads = Vec::new();
        for key in formers {
            let former = self.version_of(*key);
            let is_former = |row: &&RowView| {
                let shows = || chains.shows(former, history.encoded_row_version(row));
                row.key == *key && (!is_read || shows())
            };
            let expected = usize::from(matching.binary_search(key).is_ok());
            if rows.iter().filter(|row| row.key == *key).count() > expected
                && let Some(at) = rows.iter().position(is_former)
            {
                rows.remove(at);
                reads.extend(is_read.then_some(former));
            }
        }
        let apart = self.compare_rows(op, &rows, matching);
        Comparison { differs: [strictly, apart], reads }
    }
}
