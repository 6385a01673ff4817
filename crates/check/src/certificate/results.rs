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
use crate::rows::{Contents, OwnWrites, by_key, left_by};

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
        let stated = || self.certificate.chains.value(self.version_of(key));
        let value = match self.own.of(key) {
            Some(write) => left_by(self.history(), write, key).map(|(value, _)| value),
            None => stated(),
        };
        value.unwrap_or(ValueRef::Nil)
    }

    fn write(&self, key: KeyId) -> Option<OpId> {
        let stated = || self.certificate.chains.written(self.version_of(key)).write;
        self.own.of(key).or_else(stated)
    }

    fn shows(&self, key: KeyId, encoded: u64) -> bool {
        match self.own.of(key) {
            Some(write) => {
                left_by(self.history(), write, key).is_some_and(|(_, own)| own == encoded)
            }
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
            Op::PredicateRead { rows: Some(rows), .. } => {
                let (differs, formers) = self.compare_with(rows, &matching, &formers);
                let reads = formers.into_iter().map(|key| self.version_of(key)).collect();
                Ok(Comparison { differs, reads })
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                let (differs, _) = self.compare_with(rows, &matching, &formers);
                Ok(Comparison { differs, reads: Vec::new() })
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
                    let of_others = matching.iter().filter(|key| !self.own.has(**key));
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
        for (key, _) in self.own.iter() {
            if matches.is_row(predicate, self.row(key))? {
                matching.push(key);
            }
        }
        for key in matches.rows(predicate) {
            if matches.is(chains, predicate, self.version_of(*key))? && !self.own.has(*key) {
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
        for (key, _) in self.own.iter() {
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

    /// Compares rows with those that match, with a row as one object and with each incarnation as one. Returns
    /// the differences, and the former rows among those that the operation found.
    fn compare_with(
        &self,
        rows: &[RowView],
        matching: &[KeyId],
        formers: &[KeyId],
    ) -> ([Option<Evidence>; 2], Vec<KeyId>) {
        let op = self.operation.op;
        let Certificate { chains, history, .. } = self.certificate;
        let is_read = matches!(history.op(op), Op::PredicateRead { .. });
        let mut rows = by_key(rows);
        let strictly = self.compare_rows(op, &rows, matching);
        let mut found = Vec::new();
        if strictly.is_none() {
            return ([None, None], found);
        }
        for key in formers {
            let expected = usize::from(matching.binary_search(key).is_ok());
            let is_former = |row: &&RowView| {
                let shows = |encoded| chains.shows(self.version_of(*key), encoded);
                row.key == *key && (!is_read || shows(history.encoded_row_version(row)))
            };
            if rows.iter().filter(|row| row.key == *key).count() > expected
                && let Some(at) = rows.iter().position(is_former)
            {
                rows.remove(at);
                found.push(*key);
            }
        }
        let apart = self.compare_rows(op, &rows, matching);
        ([strictly, apart], found)
    }
}
