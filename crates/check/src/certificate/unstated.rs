//! Whether an order explains the operations without a version set.
//!
//! Some statements have no snapshot. At PostgreSQL's read committed, an update, a delete and a locking
//! read check the newest version of each row again; those of MariaDB do so at every level. Nothing in
//! the database's log says what they observed of the rows that they did not return or write.
//!
//! So that is left open, as it is for a client: a history satisfies a level if there are versions that
//! such an operation may have observed, which give its result and leave no cycle that the level forbids.
//!
//! - *Violated* needs no such versions. The rows that the operation returned or wrote are reads and
//!   writes like any others. Whatever it observed adds dependencies and takes none away, so a cycle
//!   without them is one with them.
//! - *Satisfied* does. There is an order in which everything else is explained, and the operation has a
//!   position in it. Of each row there must be a version that it may have observed there: it matches the
//!   predicate if and only if the row was returned or written, every change of the matches up to
//!   it comes earlier in the order and, where anti-dependencies of predicates count, every later change
//!   comes later. Then all dependencies that follow lead forward in the order, and close no cycle.
//!   Below serializability and snapshots only the first half counts. There, of a row that was
//!   not returned, the operation may have observed the initial version, if that does not match.
//!
//! If the order does not explain such an operation, another one might: the level is neither
//! satisfied nor violated, and the operation is named. A function over rows without its rows is not
//! explained at all.

use isolario_model::{Inapplicable, KeyId, Op, OpId, RowRef};
use isolario_predicate::EvalError;
use rayon::prelude::*;

use super::Certificate;
use super::chains::Version;
use super::dependencies::OrderPositions;
use super::levels::{Counted, LevelQuestion};
use super::observed::UnstatedOp;
use crate::plan::Conclusion;
use crate::rows::{OwnWrites, by_key};

/// How an operation shows a row.
#[derive(Clone, Copy)]
enum ShownRow {
    /// It was returned, with this encoded value.
    Returned(u64),
    Written,
    Not,
}

impl ShownRow {
    /// Whether a version is shown in this way, given which values reads of it return and whether it matches.
    fn fits(
        self,
        shows: impl FnOnce(u64) -> bool,
        is_match: impl FnOnce() -> Result<bool, EvalError>,
    ) -> Result<bool, EvalError> {
        Ok(match self {
            ShownRow::Returned(encoded) => shows(encoded) && is_match()?,
            ShownRow::Written => is_match()?,
            ShownRow::Not => !is_match()?,
        })
    }
}

impl Certificate<'_> {
    /// Whether an operation has no version set.
    pub(super) fn is_unstated(&self, op: OpId) -> bool {
        self.unstated.binary_search_by_key(&op, |unstated| unstated.op).is_ok()
    }

    /// Number of operations without a version set.
    pub(crate) fn operations_without_set(&self) -> u64 {
        self.unstated.len() as u64
    }

    /// The answer where an order explains everything but operations without a version set.
    pub(super) fn left_open(&self) -> Conclusion {
        let op = self.unstated.first().map_or(OpId(0), |unstated| unstated.op);
        let total = self.operations_without_set();
        Inapplicable::NoVersionSet { op, total }.into()
    }

    /// Whether an order of nodes explains the operations without a version set.
    pub(super) fn are_explained(
        &self,
        question: LevelQuestion<'_>,
        order: &[u32],
    ) -> Result<bool, Inapplicable> {
        if self.unstated.is_empty() || question.counted == Counted::Nothing {
            return Ok(true);
        }
        let positions = self.positions(question, order);
        let in_order = self.chains.rows().map(|row| positions.is_in_order(row)).collect();
        let order = InOrder { certificate: self, positions, in_order, counted: question.counted };
        let explained = self.unstated.par_iter().map(|unstated| {
            order.explains(unstated).map_err(|_| Inapplicable::Predicate { op: unstated.op })
        });
        let explained: Result<Vec<bool>, Inapplicable> = explained.collect();
        Ok(explained?.into_iter().all(|is_explained| is_explained))
    }
}

/// An order that explains everything else.
struct InOrder<'e, 'h> {
    certificate: &'e Certificate<'h>,
    positions: OrderPositions,
    /// Per row, whether its versions appear one after the other.
    in_order: Vec<bool>,
    counted: Counted,
}

impl InOrder<'_, '_> {
    fn explains(&self, unstated: &UnstatedOp) -> Result<bool, EvalError> {
        let Certificate { history, matches, .. } = self.certificate;
        let (rows, is_write) = match history.op(unstated.op) {
            Op::PredicateRead { rows: Some(rows), .. } => (rows, false),
            Op::PredicateWrite { rows: Some(rows), .. } => (rows, true),
            _ => return Ok(false),
        };
        let shown = by_key(rows);
        let own = OwnWrites::before(history, unstated.txn, unstated.op);
        let of_table = matches.rows(unstated.predicate);
        // Two rows of one key, or one of another table: no versions give that.
        let is_twice = shown.windows(2).any(|pair| pair[0].key == pair[1].key);
        let is_own = |key: KeyId| own.of(key).is_some();
        let is_known = |key: KeyId| is_own(key) || of_table.binary_search(&key).is_ok();
        if is_twice || !shown.iter().all(|row| is_known(row.key)) {
            return Ok(false);
        }
        let shown = |key: KeyId| match shown.binary_search_by_key(&key, |row| row.key) {
            Err(_) => ShownRow::Not,
            Ok(_) if is_write => ShownRow::Written,
            Ok(at) => ShownRow::Returned(history.encoded_row_version(shown[at])),
        };
        for row in own.rows() {
            let content =
                RowRef { key: history.key_name(row.key), value: history.value(row.value) };
            let is_match = matches.is_row(unstated.predicate, content)?;
            if !shown(row.key).fits(|encoded| row.encoded == encoded, || Ok(is_match))? {
                return Ok(false);
            }
        }
        for key in of_table.iter().filter(|key| !is_own(**key)) {
            if !self.fits(unstated, *key, shown(*key))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there is a version of a row that the operation may have observed.
    fn fits(&self, unstated: &UnstatedOp, key: KeyId, shown: ShownRow) -> Result<bool, EvalError> {
        let Certificate { matches, chains, .. } = self.certificate;
        let versions = chains.of(key);
        // The version that is there is the one that was observed, as a rule.
        let is_in_order = self.in_order[key.index()];
        let there = is_in_order.then(|| self.positions.last_seen(unstated.txn, versions.clone()));
        let is_only = is_in_order && self.counted == Counted::AntiDependencies;
        let others = if is_only { 0..0 } else { versions };
        for version in there.into_iter().chain(others) {
            let shows = |encoded| chains.shows(version, encoded);
            let is_match = || matches.is(chains, unstated.predicate, version);
            if chains.writer(version) != unstated.txn
                && shown.fits(shows, is_match)?
                && self.reads_well(unstated, version, shown)
                && (there == Some(version) || self.agrees(unstated, key, version)?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a version that was returned can be read at that position, as any other read of a row.
    fn reads_well(&self, unstated: &UnstatedOp, version: Version, shown: ShownRow) -> bool {
        let ShownRow::Returned(_) = shown else { return true };
        let is_initial = self.certificate.chains.writer(version).is_init();
        let is_there = is_initial || self.positions.has_seen(unstated.txn, version);
        let next = self.certificate.next(version);
        let next = next.filter(|next| self.certificate.chains.writer(*next) != unstated.txn);
        let is_over = next.is_some_and(|next| self.positions.has_seen(unstated.txn, next));
        is_there && !(is_over && self.counted != Counted::Reads)
    }

    /// Whether the changes of what the operation matches are where they have to be if it observed a version.
    fn agrees(
        &self,
        unstated: &UnstatedOp,
        key: KeyId,
        observed: Version,
    ) -> Result<bool, EvalError> {
        let UnstatedOp { txn, predicate, .. } = *unstated;
        let chains = &self.certificate.chains;
        let versions = chains.of(key);
        for version in versions.start + 1..versions.end {
            let is_up_to = version <= observed;
            let contradicts = if self.positions.has_seen(txn, version) {
                !is_up_to && self.counted == Counted::AntiDependencies
            } else {
                is_up_to
            };
            if contradicts
                && chains.writer(version) != txn
                && self.certificate.matches.is_changed_by(chains, predicate, version)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
