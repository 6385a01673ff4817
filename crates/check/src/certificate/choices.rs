//! Suppositions: which of several equal versions each open read returned.
//!
//! A delete leaves nothing that distinguishes it from another one. A read that finds a row absent has
//! returned one of the versions in which it is, the initial one perhaps, and the certificate does not say
//! which. Such a read is *open*; the level is satisfied if some choice leaves no cycle that it forbids.
//!
//! A choice that fails leaves a cycle, and the cycle names the reads that it takes. Every choice with the
//! same versions for these has the same cycle ([`suppose`]). Mostly few reads are involved, and few choices are
//! tried: the first one, by the database's own timestamps, is right wherever the database is.

use std::time::Instant;

use isolario_model::{Edge, Level};

use super::Certificate;
use super::chains::Version;
use super::items::ItemRead;
use super::levels::Open;
use crate::plan::Conclusion;
use crate::rows::OwnWrites;
use crate::suppose::{self, Excluded, Question, Round, Supposed};

/// A level by a certificate with open reads. Points are open reads, by number.
struct VersionQuestion<'c, 'h> {
    certificate: &'c Certificate<'h>,
    level: Level,
    /// By read, the versions that it may have returned.
    candidates: Vec<Vec<Version>>,
    chosen: Vec<ItemRead>,
    /// The conclusion for the first choice.
    likely: Option<Conclusion>,
}

impl Question for VersionQuestion<'_, '_> {
    type Point = usize;

    fn decide(&mut self, supposed: &Supposed<usize>) -> Round<usize> {
        for (number, candidate) in supposed {
            self.chosen[*number].version = self.candidates[*number][*candidate as usize];
        }
        let decide = || self.certificate.decide(self.level, Open::Chosen(&self.chosen));
        let conclusion = self.likely.take().unwrap_or_else(decide);
        suppose::excluded_by(conclusion, |anomaly| {
            let cycle = anomaly.evidence.edges().to_vec();
            Some(Excluded { rests_on: self.taken(&cycle), cycle })
        })
    }

    fn by_preference(&self, number: usize) -> Vec<u32> {
        (0..self.candidates[number].len() as u32).collect()
    }
}

impl VersionQuestion<'_, '_> {
    /// The open reads that a cycle takes, of those with several candidates.
    fn taken(&self, cycle: &[Edge]) -> Vec<(usize, u32)> {
        let taken = suppose::reads_of(cycle);
        let reads = self.chosen.iter().zip(&self.candidates).enumerate();
        let open = reads.filter(|(_, (read, candidates))| {
            let key = self.certificate.chains.written(read.version).key;
            candidates.len() > 1 && taken.binary_search(&(read.op, key)).is_ok()
        });
        let supposed = open.filter_map(|(number, (read, candidates))| {
            let candidate = candidates.iter().position(|version| *version == read.version)?;
            Some((number, candidate as u32))
        });
        supposed.collect()
    }
}

impl Certificate<'_> {
    /// Decides a level that is violated by the likely choice, and satisfied without open reads.
    pub(super) fn choose(&self, level: Level, likely: Conclusion) -> Conclusion {
        let question = VersionQuestion {
            certificate: self,
            level,
            candidates: self.open.iter().map(|read| self.candidates(read)).collect(),
            chosen: self.open.clone(),
            likely: Some(likely),
        };
        suppose::decide(question, &self.options, Instant::now())
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
}
