//! Reads that may have seen any of several equal versions.
//!
//! A delete leaves nothing that tells it from another one. Who reads that a row is not there has seen
//! one of the versions in which it is not, the initial one perhaps, and the certificate does not say
//! which: the level is satisfied if some choice leaves no cycle that it forbids.
//!
//! A choice that fails leaves a cycle, and the cycle names the reads that it takes. Whoever chooses the
//! same for all of these has the same cycle. So the next choice is one that none of the cycles found so
//! far refutes. If there is one and it holds, the level is satisfied; if there is none, the cycles are the
//! proof that it is violated. Mostly few reads are involved, and few choices are tried: the first one,
//! by the database's own timestamps, is right wherever the database is.

use std::sync::Arc;

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, Level, Reason};

use super::Certificate;
use super::chains::Version;
use super::items::ItemRead;
use super::levels::Open;
use super::results::is_among;
use crate::plan::Conclusion;

/// How many choices are tried, and how many steps are taken to find the next one.
const TRIES: usize = 500;
const STEPS: usize = 200_000;

/// Open reads, by their numbers, with the versions that cannot all be right.
type Conflict = Vec<(usize, Version)>;

/// What is left of the choices.
enum Next {
    Chosen(Vec<ItemRead>),
    /// All of them are refuted.
    None,
    TooMany,
}

impl Certificate<'_> {
    /// Decides a level that is violated by the likely choice, and satisfied without open reads.
    pub(super) fn choose(&self, level: Level, likely: Conclusion) -> Conclusion {
        let candidates: Vec<Vec<Version>> =
            self.open.iter().map(|read| self.candidates(read)).collect();
        let (mut conflicts, mut cycles): (Vec<Conflict>, Vec<Vec<Edge>>) = (Vec::new(), Vec::new());
        let mut chosen = self.open.clone();
        let mut conclusion = likely;
        for _ in 0..TRIES {
            let Conclusion::Refuted(mut findings) = conclusion else { return conclusion };
            let is_open = |number: usize| candidates[number].len() > 1;
            let conflict =
                |anomaly: &Anomaly| conflict(self, anomaly.evidence.edges(), &chosen, is_open);
            let is_sure = |anomaly: &Arc<Anomaly>| conflict(anomaly).is_empty();
            if findings.anomalies.iter().any(is_sure) {
                findings.anomalies.retain(is_sure);
                findings.total = findings.anomalies.len() as u64;
                return Conclusion::Refuted(findings);
            }
            for anomaly in &findings.anomalies {
                conflicts.push(conflict(anomaly));
                cycles.push(anomaly.evidence.edges().to_vec());
            }
            chosen = match next_choice(&self.open, &candidates, &conflicts) {
                Next::Chosen(chosen) => chosen,
                Next::None => return refuted(level, cycles),
                Next::TooMany => break,
            };
            conclusion = self.decide(level, Open::Chosen(&chosen));
        }
        self.ambiguity().into()
    }

    /// The versions that an open read may have seen, the likely one first.
    fn candidates(&self, read: &ItemRead) -> Vec<Version> {
        let key = self.chains.written(read.version).key;
        // After a write of its own, the transaction may have read former rows alone.
        let own = is_among(&self.written_before(read.txn, read.op), key);
        let own = self.chains.version(key, read.txn).filter(|_| own);
        let others = self.chains.of(key).filter(move |version| {
            *version != read.version
                && self.chains.writer(*version) != read.txn
                && self.chains.are_equal(*version, read.version)
                && own.is_none_or(|own| self.chains.is_cut(*version, own))
        });
        std::iter::once(read.version).chain(others).collect()
    }
}

fn refuted(level: Level, mut cycles: Vec<Vec<Edge>>) -> Conclusion {
    cycles.sort_by_key(Vec::len);
    let anomaly = Anomaly::new(AnomalyKind::NoOrderPossible, Evidence::Cases { cycles });
    Conclusion::refuted(vec![anomaly.at(level)])
}

/// The open reads that a cycle takes.
fn conflict(
    certificate: &Certificate<'_>,
    edges: &[Edge],
    chosen: &[ItemRead],
    is_open: impl Fn(usize) -> bool,
) -> Conflict {
    let takes = |read: &ItemRead| {
        let key = certificate.chains.written(read.version).key;
        edges.iter().any(|edge| match &edge.reason {
            Reason::Read { key: of, read: op, .. }
            | Reason::AntiDependency { key: of, read: op, .. } => (*of, *op) == (key, read.op),
            _ => false,
        })
    };
    let numbered =
        chosen.iter().enumerate().filter(|(number, read)| is_open(*number) && takes(read));
    numbered.map(|(number, read)| (number, read.version)).collect()
}

/// A choice in which nothing is in conflict: the likely one, but for reads that are in one.
fn next_choice(likely: &[ItemRead], candidates: &[Vec<Version>], conflicts: &[Conflict]) -> Next {
    let mut involved: Vec<usize> = conflicts.iter().flatten().map(|(number, _)| *number).collect();
    involved.sort_unstable();
    involved.dedup();
    // Each conflict is looked at when the last of its reads is chosen.
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
            let place = involved.binary_search(number);
            place.is_ok_and(|place| candidates[*number][picks[place]] == *version)
        };
        match closing[at].iter().any(|conflict| conflict.iter().all(is_chosen)) {
            true => picks[at] += 1,
            false => at += 1,
        }
    }
    Next::TooMany
}
