//! Operations of which the certificate does not say what they met.
//!
//! An order explains such an operation if there is, of each row, a version that it may have met: one that
//! gives what was returned of the row, with every change of the matches where it has to be.

use isolario_model::{Level, Op, OpId, TxnId, VisibilityRule};

use super::rows::Certificate;
use super::witness::{Meeting, Placed, counts_missed_by_predicate};

impl Certificate<'_> {
    /// Whether an operation may have met versions, at its place in an order, that give its result. At
    /// the levels where ways of dependencies count, gathers those that follow.
    pub(super) fn is_possible(
        &self,
        level: Level,
        txn: TxnId,
        op: OpId,
        placed: &Placed,
        edges: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> bool {
        let (rows, is_write) = match self.history.op(op) {
            Op::PredicateRead { rows: Some(rows), .. } => (rows, false),
            Op::PredicateWrite { rows: Some(rows), .. } => (rows, true),
            _ => return false,
        };
        let own = self.written_before(txn, op);
        let ways = level.shape().visible == VisibilityRule::Dependencies;
        let exactly = ways || counts_missed_by_predicate(level);
        self.keys().all(|key| {
            let of_key: Vec<u64> = { rows.iter() }
                .filter(|row| row.key == key)
                .map(|row| self.history.encoded_row_version(row))
                .collect();
            let shown = match of_key[..] {
                [] => None,
                [word] => Some(word),
                _ => return false,
            };
            let gives = |value, word: Option<u64>| {
                let is_same = is_write || shown.is_none() || word == shown;
                self.matches(op, key, value) == shown.is_some() && is_same
            };
            if let Some((_, value, word)) = own.get(&key) {
                return gives(*value, Some(*word));
            }
            let row = self.row(key);
            let is_read = shown.is_some() && !is_write;
            let met = (0..row.len()).rev().find_map(|met| {
                let may_be = row[met].writer != txn
                    && gives(row[met].value, row[met].word)
                    && (!is_read || self.reads_well(level, txn, key, met, placed));
                let meeting = Meeting { txn, op, key, met };
                let around =
                    may_be.then(|| self.changes_around(level, meeting, placed, exactly))?;
                around.ok().map(|around| (met, around))
            });
            if let Some((met, around)) = &met {
                edges.extend(around);
                if is_read {
                    self.gather(txn, key, *met, edges);
                }
            }
            met.is_some()
        })
    }
}
