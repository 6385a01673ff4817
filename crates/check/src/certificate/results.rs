//! Whether operations returned what the versions that they met had to give.
//!
//! A result that does not fit its version set is wrong whatever the order of transactions: Adya's model
//! takes for granted that it fits, a database may get it wrong (Clark et al., Section 3.1). Sums and
//! extremes are also reads of the rows that they are taken over: a write may change them without
//! changing what matches. Counts are not.

use isolario_model::{
    Aggregate, Evidence, ExpectedVersion, History, Inapplicable, KeyId, Op, OpId, PredicateId,
    RowRef, RowView, TxnId, Value, ValueId, ValueRef,
};
use isolario_predicate::{Dialect, EvalError};

use super::asked::Asked;
use super::chains::Version;
use super::{Certificate, Objects};

/// How many of the rows that make a difference are told.
const ROWS_TOLD: usize = 10;

/// What came of comparing a result.
pub(super) struct Compared {
    /// What differs if a row is one object, and if each of its incarnations is one.
    pub(super) differs: [Option<Evidence>; 2],
    /// The versions of other transactions that a sum or an extreme was taken over, and those of former rows.
    pub(super) reads: Vec<Version>,
}

/// A row that an operation had to find.
#[derive(Clone, Copy)]
struct Due {
    key: KeyId,
    version: Met,
}

impl Due {
    /// The version, if another transaction wrote it.
    fn of_other(&self) -> Option<Version> {
        match self.version {
            Met::Version(version) => Some(version),
            Met::Own(_) => None,
        }
    }
}

/// Which version of a row an operation met.
#[derive(Clone, Copy)]
enum Met {
    Version(Version),
    /// What the transaction itself had written before.
    Own(OpId),
}

impl Certificate<'_> {
    /// Compares the result of an operation with what it had to be.
    pub(super) fn compare(&self, asked: &Asked) -> Result<Compared, Inapplicable> {
        self.due(asked)
            .and_then(|(due, maybe)| self.compare_with(asked, &due, &maybe))
            .map_err(|_| Inapplicable::Predicate { op: asked.op })
    }

    /// The rows that match among those that an operation met, by key. And rows of an incarnation
    /// that was over when the transaction itself inserted the row anew: if it did not see the
    /// delete, it may see both rows until it deletes the key.
    fn due(&self, asked: &Asked) -> Result<(Vec<Due>, Vec<Due>), EvalError> {
        let Asked { op, txn, predicate, .. } = *asked;
        let (mut due, mut maybe) = (Vec::new(), Vec::new());
        let own = self.written_before(txn, op);
        for (key, write) in &own {
            let row =
                RowRef { key: self.history.key_name(*key), value: self.own_value(*write, *key) };
            if self.matches.is_row(predicate, row)? {
                due.push(Due { key: *key, version: Met::Own(*write) });
            }
            let met = self.met(asked, *key);
            let is_over =
                self.chains.version(*key, txn).is_some_and(|v| self.chains.is_cut(met, v));
            let may_be_shown = is_over && self.history.may_see_former_row(asked.op, *key);
            if may_be_shown && self.matches.is(&self.chains, predicate, met)? {
                maybe.push(Due { key: *key, version: Met::Version(met) });
            }
        }
        for key in self.matches.rows(predicate) {
            let met = self.met(asked, *key);
            if self.matches.is(&self.chains, predicate, met)? && !is_among(&own, *key) {
                due.push(Due { key: *key, version: Met::Version(met) });
            }
        }
        if !own.is_empty() {
            due.sort_by_key(|due| due.key);
        }
        Ok((due, maybe))
    }

    fn compare_with(
        &self,
        asked: &Asked,
        due: &[Due],
        maybe: &[Due],
    ) -> Result<Compared, EvalError> {
        let history = self.history;
        let mut reads = Vec::new();
        let differs = match history.op(asked.op) {
            Op::PredicateRead { rows: Some(rows), .. } => {
                let shows =
                    |due: &Due, row: &RowView| self.shows(due, history.encoded_row_version(row));
                let (differs, formers) = self.compare_rows(asked, rows, due, maybe, shows);
                reads.extend(formers.iter().filter_map(Due::of_other));
                differs
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                self.compare_rows(asked, rows, due, maybe, |_, _| true).0
            }
            Op::Aggregate { function, result: Some(result), .. } => {
                let differs = self.compare_aggregate(asked, function, result, due, maybe)?;
                if !matches!(function, Aggregate::Count | Aggregate::Exists) {
                    let has_formers = matches!(differs, [Some(_), None]);
                    let formers = if has_formers { maybe } else { &[] };
                    reads.extend(due.iter().chain(formers).filter_map(Due::of_other));
                }
                differs
            }
            _ => [None, None],
        };
        Ok(Compared { differs, reads })
    }

    /// Returns what differs, and the former rows that the operation found.
    fn compare_rows(
        &self,
        asked: &Asked,
        rows: &[RowView],
        due: &[Due],
        maybe: &[Due],
        shows: impl Fn(&Due, &RowView) -> bool,
    ) -> ([Option<Evidence>; 2], Vec<Due>) {
        let mut seen: Vec<&RowView> = rows.iter().collect();
        seen.sort_by_key(|row| row.key);
        let strictly = self.different_rows(asked, &seen, due, &shows);
        if strictly.is_none() || maybe.is_empty() {
            return ([strictly.clone(), strictly], Vec::new());
        }
        let mut formers = Vec::new();
        for old in maybe {
            let due = due.iter().filter(|due| due.key == old.key).count();
            let of_key = seen.iter().filter(|row| row.key == old.key).count();
            let is_old = |row: &&RowView| row.key == old.key && shows(old, row);
            if of_key > due
                && let Some(at) = seen.iter().position(is_old)
            {
                seen.remove(at);
                formers.push(*old);
            }
        }
        let apart = self.different_rows(asked, &seen, due, &shows);
        ([strictly, apart], formers)
    }

    /// What tells rows from those that are due, both sorted by key.
    fn different_rows(
        &self,
        asked: &Asked,
        rows: &[&RowView],
        due: &[Due],
        shows: &impl Fn(&Due, &RowView) -> bool,
    ) -> Option<Evidence> {
        let mut expected: Vec<ExpectedVersion> = Vec::new();
        let mut due = due.iter().peekable();
        for of_key in rows.chunk_by(|a, b| a.key == b.key) {
            let key = of_key[0].key;
            let missing = std::iter::from_fn(|| due.next_if(|due| due.key < key));
            expected.extend(missing.map(|due| self.expected(due)));
            match due.next_if(|due| due.key == key) {
                Some(due) if of_key.len() == 1 && shows(due, of_key[0]) => {}
                Some(due) => expected.push(self.expected(due)),
                None => expected.push(self.met_instead(asked, key)),
            }
        }
        expected.extend(due.map(|due| self.expected(due)));
        expected.truncate(ROWS_TOLD);
        let op = asked.op;
        (!expected.is_empty()).then_some(Evidence::Unexpected { op, expected, result: None })
    }

    fn compare_aggregate(
        &self,
        asked: &Asked,
        function: &Aggregate,
        result: ValueId,
        due: &[Due],
        maybe: &[Due],
    ) -> Result<[Option<Evidence>; 2], EvalError> {
        let over = |due: &[Due]| -> Result<(bool, Value), EvalError> {
            let rows: Option<Vec<RowRef<'_>>> = due.iter().map(|due| self.row(due)).collect();
            let rows = rows.ok_or(EvalError::Unparsed)?;
            let value = function.over(rows.iter().copied(), Dialect::Postgres)?;
            let seen = self.history.value(result).operand();
            let is = seen.map_or(Ok(false), |seen| value.is(seen, Dialect::Postgres));
            Ok((is.unwrap_or(false), value.into()))
        };
        let (is_right, value) = over(due)?;
        if is_right {
            return Ok([None, None]);
        }
        let expected = due.iter().take(ROWS_TOLD).map(|due| self.expected(due)).collect();
        let differs = Evidence::Unexpected { op: asked.op, expected, result: Some(value) };
        let apart = maybe.is_empty() || !over(&[due, maybe].concat())?.0;
        Ok([Some(differs.clone()), apart.then_some(differs)])
    }

    fn row(&self, due: &Due) -> Option<RowRef<'_>> {
        match due.version {
            Met::Version(version) => self.chains.row(version),
            Met::Own(op) => {
                let key = self.history.key_name(due.key);
                Some(RowRef { key, value: self.own_value(op, due.key) })
            }
        }
    }

    fn shows(&self, due: &Due, word: u64) -> bool {
        match due.version {
            Met::Version(version) => self.chains.shows(version, word),
            Met::Own(op) => written(self.history, op, due.key).is_some_and(|(_, own)| own == word),
        }
    }

    pub(super) fn own_value(&self, op: OpId, key: KeyId) -> ValueRef<'_> {
        written(self.history, op, key).map_or(ValueRef::Nil, |(value, _)| value)
    }

    fn expected(&self, due: &Due) -> ExpectedVersion {
        let write = match due.version {
            Met::Version(version) => self.chains.written(version).write,
            Met::Own(op) => Some(op),
        };
        ExpectedVersion { key: due.key, write }
    }

    /// What an operation met of a row that it had not to find.
    fn met_instead(&self, asked: &Asked, key: KeyId) -> ExpectedVersion {
        let own = self.written_before(asked.txn, asked.op);
        let version = match own.iter().find(|(written, _)| *written == key) {
            Some((_, op)) => Met::Own(*op),
            None => Met::Version(self.met(asked, key)),
        };
        self.expected(&Due { key, version })
    }

    /// The rows that a transaction wrote before one of its operations, each with the last write.
    pub(super) fn written_before(&self, txn: TxnId, op: OpId) -> Vec<(KeyId, OpId)> {
        let mut found: Vec<(KeyId, OpId)> = Vec::new();
        let mut note = |key: KeyId, write: OpId| match found.iter_mut().find(|(k, _)| *k == key) {
            Some(known) => known.1 = write,
            None => found.push((key, write)),
        };
        for earlier in self.history.txn_ops(txn).take_while(|earlier| *earlier < op) {
            match self.history.op(earlier) {
                Op::Write { key, .. } | Op::Delete { key } => note(key, earlier),
                Op::PredicateWrite { rows: Some(rows), .. } => {
                    rows.iter().for_each(|row| note(row.key, earlier));
                }
                _ => {}
            }
        }
        found
    }
}

/// Whether a row is among those that were written before.
pub(super) fn is_among(own: &[(KeyId, OpId)], key: KeyId) -> bool {
    own.iter().any(|(written, _)| *written == key)
}

/// What an operation left of a row, and what reads of that show.
pub(super) fn written(history: &History, op: OpId, row: KeyId) -> Option<(ValueRef<'_>, u64)> {
    match history.op(op) {
        Op::Write { value, .. } => Some((history.value(value), history.encoded_version(op))),
        Op::Delete { .. } => Some((ValueRef::Nil, history.encoded_version(op))),
        Op::PredicateWrite { rows: Some(rows), .. } => {
            let row = rows.iter().rfind(|written| written.key == row)?;
            Some((history.value(row.value), history.encoded_row_version(row)))
        }
        _ => None,
    }
}

impl Compared {
    /// What differs, by what an object is.
    pub(super) fn differs(&self, objects: Objects) -> Option<&Evidence> {
        self.differs[objects as usize].as_ref()
    }
}

impl Certificate<'_> {
    /// The version of a row that an operation met, own writes aside.
    #[inline]
    pub(super) fn met(&self, asked: &Asked, key: KeyId) -> Version {
        asked.met(&self.chains, &self.moments, key)
    }

    /// Whether a version changes what the predicate of an operation matches.
    #[inline]
    pub(super) fn is_changer(
        &self,
        predicate: PredicateId,
        version: Version,
    ) -> Result<bool, EvalError> {
        self.matches.is_changed_by(&self.chains, predicate, version)
    }
}
