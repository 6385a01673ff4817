//! Arguments by cases: of equal versions, nothing says which of them a read saw.
//!
//! A cycle that takes such a read shows something only of those cases in which the read saw what the
//! cycle says. Several cycles refute a level if every choice has one of them.

use std::collections::BTreeMap;

use isolario_model::{AnomalyKind, Edge, KeyId, Level, OpId, Reason, TxnId};

use super::refuse;
use super::rows::Certificate;
use crate::Refusal;

/// Supposed versions of reads of rows, by position in the order of the row: any one of several.
type Supposed = BTreeMap<(OpId, KeyId), Vec<usize>>;

/// How many steps it may take to find a choice that no cycle refutes.
const STEPS: usize = 10_000_000;

impl Certificate<'_> {
    /// Refuses cycles that leave a choice.
    pub(super) fn are_all_cases(&self, level: Level, cycles: &[Vec<Edge>]) -> Result<(), Refusal> {
        let kind = AnomalyKind::NoOrderPossible;
        let mut refuted: Vec<Supposed> = Vec::new();
        for cycle in cycles {
            self.is_forbidden_cycle(level, kind, cycle)?;
            // One that takes a read to have seen two versions is no case at all.
            refuted.extend(self.supposes(level, cycle));
        }
        let mut reads: BTreeMap<(OpId, KeyId), Vec<usize>> = BTreeMap::new();
        for (op, key) in refuted.iter().flat_map(|supposed| supposed.keys()) {
            reads.entry((*op, *key)).or_insert_with(|| self.candidates(*op, *key));
        }
        let reads: Vec<_> = reads.into_iter().collect();
        match is_choice_left(&reads, &refuted) {
            false => Ok(()),
            true => refuse(kind, "the cycles do not close every case"),
        }
    }

    /// What a cycle takes open reads to have seen; none if it contradicts itself.
    pub(super) fn supposes(&self, level: Level, cycle: &[Edge]) -> Option<Supposed> {
        let mut supposed = Supposed::new();
        for edge in cycle {
            let (key, read, writer, is_read) = match edge.reason {
                Reason::Read { key, read, .. } => (key, read, edge.from, true),
                Reason::AntiDependency { key, read, writer, .. } => (key, read, writer, false),
                _ => continue,
            };
            let place = self.place(writer, key)?;
            let candidates = self.candidates(read, key);
            if candidates.len() < 2 {
                continue;
            }
            // A search for the key depends on an insert or a delete whether it saw that version or a later one.
            let is_change =
                is_read && self.is_search(level, read, key) && self.changes_presence(key, place);
            let fits = |seen: &usize| *seen == place || is_change && *seen > place;
            let of_read = supposed.entry((read, key)).or_insert(candidates);
            of_read.retain(fits);
            if of_read.is_empty() {
                return None;
            }
        }
        // What is the case whichever version was read takes nothing for granted.
        supposed.retain(|(read, key), seen| seen.len() < self.candidates(*read, *key).len());
        Some(supposed)
    }

    /// The versions of a row that an operation may have read.
    pub(super) fn candidates(&self, op: OpId, key: KeyId) -> Vec<usize> {
        let reader: TxnId = self.history.op_txn(op);
        let may = |place: &usize| self.may_have_read(reader, op, key, *place);
        (0..self.row(key).len()).filter(may).collect()
    }
}

/// Whether reads may have seen versions so that none of these is the case. Where that is not found out in
/// many steps, there may be a choice.
fn is_choice_left(reads: &[((OpId, KeyId), Vec<usize>)], refuted: &[Supposed]) -> bool {
    if refuted.iter().any(BTreeMap::is_empty) {
        return false;
    }
    let mut picks: Vec<usize> = vec![0];
    for _ in 0..STEPS {
        let Some(last) = picks.len().checked_sub(1) else { return false };
        if last == reads.len() {
            return true;
        }
        if picks[last] == reads[last].1.len() {
            picks.pop();
            if let Some(before) = picks.last_mut() {
                *before += 1;
            }
            continue;
        }
        let seen = |read: &(OpId, KeyId)| {
            let at = reads[..=last].binary_search_by_key(read, |(read, _)| *read).ok()?;
            Some(reads[at].1[picks[at]])
        };
        let is_case = |supposed: &Supposed| {
            let mut reads = supposed.iter();
            reads.all(|(read, places)| seen(read).is_some_and(|seen| places.contains(&seen)))
        };
        match refuted.iter().any(is_case) {
            true => picks[last] += 1,
            false => picks.push(0),
        }
    }
    true
}
