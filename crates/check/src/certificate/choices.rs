//! Suppositions: which of several equal versions each open read returned.
//!
//! A delete leaves nothing that distinguishes it from another one. A read that finds a row absent has
//! returned one of the versions in which it is, the initial one perhaps, and the certificate does not say
//! which. Such a read is *open*; the level is satisfied if some choice leaves no cycle that it forbids.
//!
//! A choice that fails leaves a cycle, and the cycle names the reads that it takes. Every choice with the
//! same versions for these has the same cycle. So the next choice is one that none of the cycles found so
//! far refutes. If there is one and it holds, the level is satisfied; if there is none, the cycles are the
//! proof that it is violated. Mostly few reads are involved, and few choices are tried: the first one,
//! by the database's own timestamps, is right wherever the database is.

use std::sync::Arc;

use isolario_model::{Anomaly, Level, Reason};

use super::Certificate;
use super::chains::Version;
use super::items::ItemRead;
use super::levels::Open;
use crate::plan::Conclusion;
use crate::rows::OwnWrites;

/// Number of choices that are tried, and of steps that are taken to find the next one.
const TRIES: usize = 500;
const STEPS: usize = 200_000;

/// Open reads, by number, with versions that they cannot all have returned.
type Conflict = Vec<(usize, Version)>;

/// The next choice.
enum Next {
    Chosen(Vec<ItemRead>),
    /// All choices are refuted.
    None,
    TooMany,
}

impl Certificate<'_> {
    /// Decides a level that is violated by the likely choice, and satisfied without open reads.
    pub(super) fn choose(&self, level: Level, likely: Conclusion) -> Conclusion {
        let candidates: Vec<Vec<Version>> =
            self.open.iter().map(|read| self.candidates(read)).collect();
        let (mut conflicts, mut cycles) = (Vec::new(), Vec::new());
        let mut chosen = self.open.clone();
        let mut conclusion = likely;
        for _ in 0..TRIES {
            let Conclusion::Refuted(mut findings) = conclusion else { return conclusion };
            let conflict = |anomaly: &Arc<Anomaly>| self.conflict(anomaly, &chosen, &candidates);
            let of_each: Vec<Conflict> = findings.anomalies.iter().map(conflict).collect();
            if of_each.iter().any(Vec::is_empty) {
                // Some cycles take no open read, and so are there whatever is chosen.
                findings.anomalies.retain(|anomaly| conflict(anomaly).is_empty());
                findings.total = findings.anomalies.len() as u64;
                return Conclusion::Refuted(findings);
            }
            conflicts.extend(of_each);
            cycles.extend(findings.anomalies.iter().map(|found| found.evidence.edges().to_vec()));
            chosen = match next_choice(&self.open, &candidates, &conflicts) {
                Next::Chosen(chosen) => chosen,
                Next::None => {
                    cycles.sort_by_key(Vec::len);
                    return Conclusion::by_cases(cycles);
                }
                Next::TooMany => break,
            };
            conclusion = self.decide(level, Open::Chosen(&chosen));
        }
        self.ambiguity().into()
    }

    /// The versions that an open read may have returned, the likely one first.
    fn candidates(&self, read: &ItemRead) -> Vec<Version> {
        let key = self.chains.written(read.version).key;
        // After a write of its own, the transaction may have read former rows alone.
        let own = OwnWrites::before(self.history, read.txn, read.op);
        let own = self.chains.version(key, read.txn).filter(|_| own.of(key).is_some());
        let others = self.chains.of(key).filter(move |version| {
            *version != read.version
                && self.chains.writer(*version) != read.txn
                && self.chains.are_equal(*version, read.version)
                && own.is_none_or(|own| self.chains.is_cut(*version, own))
        });
        std::iter::once(read.version).chain(others).collect()
    }

    /// The open reads that a cycle takes, of those with several candidates.
    fn conflict(
        &self,
        cycle: &Anomaly,
        chosen: &[ItemRead],
        candidates: &[Vec<Version>],
    ) -> Conflict {
        let takes = |read: &ItemRead| {
            let key = self.chains.written(read.version).key;
            cycle.evidence.edges().iter().any(|edge| match &edge.reason {
                Reason::Read { key: of, read: op, .. }
                | Reason::AntiDependency { key: of, read: op, .. } => (*of, *op) == (key, read.op),
                _ => false,
            })
        };
        let numbered = chosen.iter().enumerate();
        let taken = numbered.filter(|(number, read)| candidates[*number].len() > 1 && takes(read));
        taken.map(|(number, read)| (number, read.version)).collect()
    }
}

/// A choice without conflict: the likely one, but for reads that are in a conflict.
fn next_choice(likely: &[ItemRead], candidates: &[Vec<Version>], conflicts: &[Conflict]) -> Next {
    let mut involved: Vec<usize> = conflicts.iter().flatten().map(|(number, _)| *number).collect();
    involved.sort_unstable();
    involved.dedup();
    // Each conflict is checked when the version of its last read is chosen.
    let mut closing: Vec<Vec<&Conflict>> = vec![Vec::new(); involved.len()];
    for conflict in conflicts {
        let last = conflict.iter().filter_map(|(number, _)| involved.binary_search(number).ok());
        if let Some(last) = last.max() {
            closing[last].push(conflict);
        }
    }
    let mut picks = vec![0; involved.len()];
    let mut at = 0;
    for _ in 0..STEPS {
        if at == involved.len() {
            let mut chosen = likely.to_vec();
            for (number, pick) in involved.iter().zip(&picks) {
                chosen[*number].version = candidates[*number][*pick];
            }
            return Next::Chosen(chosen);
        }
        if picks[at] == candidates[involved[at]].len() {
            if at == 0 {
                return Next::None;
            }
            picks[at] = 0;
            at -= 1;
            picks[at] += 1;
            continue;
        }
        let is_chosen = |(number, version): &(usize, Version)| {
            let position = involved.binary_search(number);
            position.is_ok_and(|at| candidates[*number][picks[at]] == *version)
        };
        if closing[at].iter().any(|conflict| conflict.iter().all(is_chosen)) {
            picks[at] += 1;
        } else {
            at += 1;
        }
    }
    Next::TooMany
}
