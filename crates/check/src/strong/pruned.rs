//! Saturation of the sources of reads.
//!
//! A candidate of a read goes if its writer comes after the reader, or if the version is overwritten
//! by somebody who comes before the reader; the initial version goes if anybody who comes before the
//! reader wrote the key. The last candidate that is left is the source: its writer comes before the
//! reader, who counts as a reader of that version from then on.
//!
//! It is enough to look at the last writer of the key in each chain who comes before the reader: if an
//! earlier one overwrote a version, so did the last.
//!
//! The reads of a transaction that may not be there settle nothing before it is known that somebody
//! saw its writes. If no candidate of one of them is left, it is not there, and nobody did.

use super::chains::Chains;
use super::problem::{Arc, Precedes, Problem};
use super::reach::Reach;
use super::saturate::{Member, last_members, members};
use super::sources::{Candidate, OpenRead, Sources};
use crate::resolved::{Reader, Version};

/// Not yet.
const NEVER: u32 = u32::MAX;

/// What is known of the sources of reads.
#[derive(Default)]
pub(crate) struct Pruned {
    /// Per candidate, whether it is known that the read did not see it, and since which round.
    pub(crate) gone: Vec<bool>,
    gone_since: Vec<u32>,
    /// Per read, since which round its source is known; and the source.
    fixed_since: Vec<u32>,
    fixed: Vec<Candidate>,
    /// The edges that known sources add, each with the read.
    pub(crate) arcs: Vec<(Arc, u32)>,
    /// Per version, who is known to have read it.
    readers: Vec<Vec<Reader>>,
    /// Per transaction that may not be there, the read that shows that it is, or is not.
    there: Vec<Option<u32>>,
    not_there: Vec<Option<u32>>,
    rounds: u32,
}

/// A read that has no candidate left.
pub(crate) struct NoSource(pub(crate) u32);

impl Pruned {
    pub(crate) fn new(problem: &Problem) -> Self {
        let sources = &problem.sources;
        if sources.is_empty() {
            return Pruned::default();
        }
        let (reads, candidates) = (sources.len(), sources.candidate_count());
        Pruned {
            gone: vec![false; candidates],
            gone_since: vec![NEVER; candidates],
            fixed_since: vec![NEVER; reads],
            fixed: vec![0; reads],
            arcs: Vec::new(),
            readers: vec![Vec::new(); problem.versions.len()],
            there: vec![None; sources.maybe().len()],
            not_there: vec![None; sources.maybe().len()],
            rounds: 0,
        }
    }

    /// Who is known to have read a version, though others wrote the same.
    #[inline]
    pub(crate) fn readers(&self, version: Version) -> &[Reader] {
        self.readers.get(version.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The edges that these readers come before with, if another version follows the one they read.
    #[inline]
    pub(crate) fn joint_arcs<'a>(
        &'a self,
        problem: &'a Problem,
        precedes: Precedes,
    ) -> impl Iterator<Item = Arc> + 'a {
        let second = problem.versions.writer(precedes.second);
        let others = self.readers(precedes.first).iter().filter(move |r| r.txn != second);
        let layout = problem.layout;
        others.map(move |reader| (layout.start(reader.txn), layout.commit(second)))
    }

    /// The source of a read, if it is known, and since which round.
    pub(crate) fn source(&self, read: u32) -> Option<(Candidate, u32)> {
        let since = *self.fixed_since.get(read as usize)?;
        (since != NEVER).then(|| (self.fixed[read as usize], since))
    }

    /// The candidates of a read that are left.
    pub(crate) fn left<'a>(
        &'a self,
        sources: &Sources,
        read: u32,
    ) -> impl Iterator<Item = Candidate> + Clone + use<'a> {
        sources.candidates(read).filter(|candidate| !self.gone[*candidate as usize])
    }

    /// Since which round a candidate is gone.
    pub(crate) fn gone_since(&self, candidate: Candidate) -> Option<u32> {
        let since = *self.gone_since.get(candidate as usize)?;
        (since != NEVER).then_some(since)
    }

    /// The read that shows that a transaction is there.
    pub(crate) fn shows_there(&self, number: u32) -> Option<u32> {
        self.there[number as usize]
    }

    /// The read that shows that a transaction is not there.
    pub(crate) fn shows_not_there(&self, number: u32) -> Option<u32> {
        self.not_there[number as usize]
    }

    /// Looks at every open read once. Returns whether it found anything. Where it is over on the way, not
    /// all of them were looked at.
    pub(crate) fn round(
        &mut self,
        problem: &Problem,
        chains: &Chains,
        reach: &Reach<'_>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, NoSource> {
        self.rounds += 1;
        if problem.sources.is_empty() {
            return Ok(false);
        }
        let mut of_key: Vec<Member> = Vec::new();
        let mut is_new = false;
        for key in problem.sources.keys() {
            let reads = problem.sources.of_key(key);
            if reads.iter().all(|read| self.fixed_since[*read as usize] != NEVER) {
                continue;
            }
            if is_over() {
                break;
            }
            members(problem, chains, key, |txn| problem.layout.commit(txn), &mut of_key);
            for read in reads {
                if self.fixed_since[*read as usize] == NEVER {
                    self.prune(problem, reach, &of_key, *read);
                    is_new |= self.conclude(problem, reach, *read)?;
                }
            }
        }
        Ok(is_new)
    }

    /// Takes out candidates that the read cannot have seen.
    fn prune(&mut self, problem: &Problem, reach: &Reach<'_>, of_key: &[Member], read: u32) {
        let (layout, sources, versions) = (problem.layout, &problem.sources, &problem.versions);
        let OpenRead { reader, .. } = sources.read(read);
        let start = layout.start(reader);
        let mut last: Vec<Version> = Vec::new();
        let is_own = |version| versions.writer(version) == reader;
        last_members(of_key, reach.row(start), is_own, |version| last.push(version));
        for candidate in sources.candidates(read) {
            let is_absent = sources
                .writer_if_there(candidate)
                .is_some_and(|n| self.not_there[n as usize].is_some());
            let is_wrong = || match sources.version(candidate) {
                None => !last.is_empty(),
                Some(version) => {
                    let commit = layout.commit(versions.writer(version));
                    let overwrites = |other: &Version| {
                        *other != version
                            && reach.reaches(commit, layout.commit(versions.writer(*other)))
                    };
                    reach.reaches(start, commit) || last.iter().any(overwrites)
                }
            };
            if !self.gone[candidate as usize] && (is_absent || is_wrong()) {
                self.gone[candidate as usize] = true;
                self.gone_since[candidate as usize] = self.rounds;
            }
        }
    }

    /// Takes the last candidate that is left. Returns whether that is news, or that there is none, and the
    /// reader not there.
    fn conclude(
        &mut self,
        problem: &Problem,
        reach: &Reach<'_>,
        read: u32,
    ) -> Result<bool, NoSource> {
        let sources = &problem.sources;
        let OpenRead { reader, read: op, if_there, .. } = sources.read(read);
        let (first, second) = {
            let mut left = self.left(sources, read);
            (left.next(), left.next())
        };
        let Some(source) = first else {
            return match if_there {
                Some(number) if self.there[number as usize].is_none() => {
                    let is_new = self.not_there[number as usize].is_none();
                    self.not_there[number as usize].get_or_insert(read);
                    Ok(is_new)
                }
                _ => Err(NoSource(read)),
            };
        };
        let is_asked = if_there.is_none_or(|number| self.there[number as usize].is_some());
        if second.is_some() || !is_asked {
            return Ok(false);
        }
        self.fixed[read as usize] = source;
        self.fixed_since[read as usize] = self.rounds;
        let arcs = problem.source_arcs(source).filter(|(from, to)| !reach.reaches(*from, *to));
        self.arcs.extend(arcs.map(|arc| (arc, read)));
        if let Some(version) = sources.version(source) {
            self.readers[version.0 as usize].push(Reader { txn: reader, read: op });
        }
        if let Some(number) = sources.writer_if_there(source) {
            self.there[number as usize].get_or_insert(read);
        }
        Ok(true)
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.gone.len() * 5
            + self.fixed.len() * 8
            + self.arcs.capacity() * size_of::<(Arc, u32)>()
            + self.readers.len() * size_of::<Vec<Reader>>()
            + self.fixed.len() * size_of::<Reader>()
    }
}
