//! Reads that may have seen the write of one of several transactions.
//!
//! Each is a choice of its own: it saw one of its *candidates*. If it saw the version `w`, the writer
//! of `w` comes before the reader; and if `w` comes before another version `v`, the reader comes
//! before the writer of `v`. That edge is there under two conditions, the source of the read and the
//! order of the versions. To see two candidates closes a cycle, so that only "one of them" needs to be
//! said.
//!
//! A transaction that only *may* have committed is a node like any other. If it did not, nobody saw
//! its writes, and all that asks anything of the others are its own reads. So it may as well commit
//! after everything else with reads that are not looked at. Only these reads are under a condition:
//! that the transaction is *there*.

use isolario_model::{KeyId, OpId, TxnId};

use super::layout::Layout;
use super::problem::Arc;
use super::pruned::Pruned;
use crate::graph::Rows;
use crate::resolved::{Dependencies, OpenReads, Version, Versions};

/// One of several versions that a read may have seen: its place among the candidates of all reads.
pub(crate) type Candidate = u32;

/// A read with several candidates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRead {
    pub(crate) reader: TxnId,
    pub(crate) read: OpId,
    pub(crate) key: KeyId,
    /// The number of the reader among those that may not be there.
    pub(crate) if_there: Option<u32>,
}

/// What a candidate is.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The version; none for the initial one.
    version: Option<Version>,
    /// The number of its writer among those that may not be there.
    if_there: Option<u32>,
}

/// All such reads of a history.
#[derive(Default)]
pub(crate) struct Sources {
    reads: Vec<OpenRead>,
    /// By read, its candidates, and the read of each of them.
    seen: Rows<Seen>,
    read_of: Vec<u32>,
    by_key: Rows<u32>,
    by_version: Rows<Candidate>,
    /// By key, those writers that all others come after; only where an initial version is a candidate.
    first_writers: Rows<TxnId>,
    /// The transactions that may not be there, by their numbers.
    maybe: Vec<TxnId>,
}

impl Sources {
    pub(crate) fn new(
        dependencies: &Dependencies<'_>,
        open: &OpenReads,
        versions: &Versions,
    ) -> Self {
        let history = dependencies.history;
        let number = |txn: TxnId| open.maybe.binary_search(&txn).ok().map(|at| at as u32);
        let mut sources = Sources { maybe: open.maybe.clone(), ..Sources::default() };
        for (at, read) in open.reads.iter().enumerate() {
            let (reader, key) = (history.op_txn(*read), history.op_keys()[read.index()]);
            sources.reads.push(OpenRead { reader, read: *read, key, if_there: number(reader) });
            let seen = |writer: &TxnId| Seen {
                version: versions.version(key, *writer),
                if_there: number(*writer),
            };
            sources.seen.push(open.writers.get(at).iter().map(seen));
            sources.read_of.resize(sources.seen.entries().len(), at as u32);
        }
        sources.index(versions);
        let keys = versions.key_count();
        sources.find_first_writers(keys, |key| first_writers(dependencies, versions, key));
        sources
    }

    fn index(&mut self, versions: &Versions) {
        let reads = self.reads.iter().zip(0u32..).map(|(read, at)| (read.key.0, at));
        self.by_key = Rows::group(versions.key_count(), reads);
        let candidates = self.seen.entries().iter().zip(0u32..);
        let versioned = candidates.filter_map(|(seen, at)| Some((seen.version?.0, at)));
        self.by_version = Rows::group(versions.len(), versioned);
    }

    /// Takes note of the first writers of each key whose initial version may have been read.
    fn find_first_writers(&mut self, keys: usize, first_writers: impl Fn(KeyId) -> Vec<TxnId>) {
        for key in (0..keys).map(KeyId::at) {
            let may_be_initial = |read: &u32| {
                self.seen.get(*read as usize).iter().any(|seen| seen.version.is_none())
            };
            let is_needed = self.by_key.get(key.index()).iter().any(may_be_initial);
            self.first_writers.push(if is_needed { first_writers(key) } else { vec![] });
        }
    }

    /// Some reads with the candidates that are left, in a part that has its own numbers for all things.
    /// Returns the number that each candidate has in the whole, too.
    pub(crate) fn restricted(
        &self,
        pruned: &Pruned,
        reads: &[(u32, KeyId)],
        versions: &Versions,
        (of_txn, of_version): (
            impl Fn(TxnId) -> Option<TxnId>,
            impl Fn(Version) -> Option<Version>,
        ),
    ) -> (Sources, Vec<Candidate>) {
        // Who is known to be there is like any other.
        let is_open = |number: &u32| pruned.shows_there(*number).is_none();
        let writers = |read| pruned.left(self, read).map(|c| self.writer_if_there(c));
        let may_be_there = |(read, _): &(u32, KeyId)| {
            writers(*read).chain([self.read(*read).if_there]).flatten().filter(is_open)
        };
        let mut maybe: Vec<u32> = reads.iter().flat_map(may_be_there).collect();
        maybe.sort_unstable();
        maybe.dedup();
        let number = |there: Option<u32>| Some(maybe.binary_search(&there?).ok()? as u32);
        let mut part = Sources::default();
        let mut candidates: Vec<Candidate> = Vec::new();
        for (read, key) in reads {
            let OpenRead { reader, read: op, if_there, .. } = self.read(*read);
            let Some(reader) = of_txn(reader) else { continue };
            let at = part.reads.len() as u32;
            part.reads.push(OpenRead { reader, read: op, key: *key, if_there: number(if_there) });
            let left = pruned.left(self, *read);
            part.seen.push(left.clone().map(|candidate| Seen {
                version: self.version(candidate).and_then(&of_version),
                if_there: number(self.writer_if_there(candidate)),
            }));
            candidates.extend(left);
            part.read_of.resize(candidates.len(), at);
        }
        part.maybe = maybe.iter().filter_map(|n| of_txn(self.maybe[*n as usize])).collect();
        part.index_all(versions);
        (part, candidates)
    }

    /// Reads of a part in which everybody is there, each with the versions that it may have seen; none is
    /// the one before all others.
    pub(crate) fn of_few(
        reads: impl Iterator<Item = (OpenRead, Vec<Option<Version>>)>,
        versions: &Versions,
    ) -> Sources {
        let mut part = Sources::default();
        for (at, (read, seen)) in (0u32..).zip(reads) {
            part.reads.push(read);
            part.seen.push(seen.into_iter().map(|version| Seen { version, if_there: None }));
            part.read_of.resize(part.seen.entries().len(), at);
        }
        part.index_all(versions);
        part
    }

    /// In a part, nobody knows of writers that others follow.
    fn index_all(&mut self, versions: &Versions) {
        self.index(versions);
        let writers = |key| versions.of(key).map(|version| versions.writer(version)).collect();
        self.find_first_writers(versions.key_count(), writers);
    }

    /// How many reads there are.
    pub(crate) fn len(&self) -> usize {
        self.reads.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// A read, by its number.
    #[inline]
    pub(crate) fn read(&self, number: u32) -> OpenRead {
        self.reads[number as usize]
    }

    /// The candidates of a read.
    #[inline]
    pub(crate) fn candidates(&self, read: u32) -> std::ops::Range<Candidate> {
        let span = self.seen.span(read as usize);
        span.start as u32..span.end as u32
    }

    /// How many candidates all reads have.
    pub(crate) fn candidate_count(&self) -> usize {
        self.read_of.len()
    }

    /// The read of a candidate.
    #[inline]
    pub(crate) fn read_of(&self, candidate: Candidate) -> u32 {
        self.read_of[candidate as usize]
    }

    /// The version that a candidate is; none for the initial one.
    #[inline]
    pub(crate) fn version(&self, candidate: Candidate) -> Option<Version> {
        self.seen.entries()[candidate as usize].version
    }

    /// The number of the writer of a candidate among those that may not be there.
    #[inline]
    pub(crate) fn writer_if_there(&self, candidate: Candidate) -> Option<u32> {
        self.seen.entries()[candidate as usize].if_there
    }

    /// The reads of a key.
    #[inline]
    pub(crate) fn of_key(&self, key: KeyId) -> &[u32] {
        if self.reads.is_empty() { &[] } else { self.by_key.get(key.index()) }
    }

    /// The candidates that are a version.
    #[inline]
    pub(crate) fn of_version(&self, version: Version) -> &[Candidate] {
        if self.reads.is_empty() { &[] } else { self.by_version.get(version.0 as usize) }
    }

    /// The transactions that may not be there.
    pub(crate) fn maybe(&self) -> &[TxnId] {
        &self.maybe
    }

    /// The keys that such reads read, each once.
    pub(crate) fn keys(&self) -> Vec<KeyId> {
        let mut keys: Vec<KeyId> = self.reads.iter().map(|read| read.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The edges that a candidate adds by itself.
    pub(crate) fn arcs<'a>(
        &'a self,
        layout: Layout,
        versions: &'a Versions,
        candidate: Candidate,
    ) -> impl Iterator<Item = Arc> + 'a {
        let OpenRead { reader, key, .. } = self.read(self.read_of(candidate));
        let start = layout.start(reader);
        let version = self.version(candidate);
        let firsts = match version {
            Some(_) => &[],
            None => self.first_writers.get(key.index()),
        };
        let writer = version.map(|version| (layout.commit(versions.writer(version)), start));
        let others = firsts.iter().filter(move |writer| **writer != reader);
        writer.into_iter().chain(others.map(move |writer| (start, layout.commit(*writer))))
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.reads.len() * size_of::<OpenRead>()
            + self.seen.bytes()
            + self.read_of.len() * size_of::<u32>()
            + self.by_key.bytes()
            + self.by_version.bytes()
            + self.first_writers.bytes()
    }
}

/// Of each session, the first writer of a key: the others follow it.
pub(crate) fn first_writers(
    dependencies: &Dependencies<'_>,
    versions: &Versions,
    key: KeyId,
) -> Vec<TxnId> {
    let history = dependencies.history;
    let mut firsts: Vec<TxnId> = Vec::new();
    for writer in versions.of(key).map(|version| versions.writer(version)) {
        // Writers come by session and position, and nothing follows those of unknown outcome.
        let follows = firsts
            .iter()
            .rev()
            .take_while(|first| history.session_of(**first) == history.session_of(writer))
            .any(|first| dependencies.precedes_in_session(*first, writer));
        if !follows {
            firsts.push(writer);
        }
    }
    firsts
}
