//! The versions of every key and who read them.

use isolario_model::{History, KeyId, OpId, OpKind, TxnId};

use crate::reads::Source;
use crate::weak::Dependencies;

/// A version: a position in the list of all versions, those of a key together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Version(pub(crate) u32);

/// A read of a version by another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) txn: TxnId,
    /// Its first read of the key.
    pub(crate) read: OpId,
}

/// The registers of a history: per key its versions, one per kept transaction that wrote the key,
/// and per version its readers, all by transaction.
pub(crate) struct Registers {
    writers: Vec<TxnId>,
    key_of: Vec<KeyId>,
    /// Where the versions of each key begin, and one more.
    key_starts: Vec<u32>,
    /// The readers of all versions, those of the initial version of each key at the end.
    readers: Vec<Reader>,
    /// Where the readers of each version begin, then those of each key's initial version, and one
    /// more.
    reader_starts: Vec<u32>,
    /// The keys that transactions access, and where those of each begin, and one more.
    accesses: Vec<KeyId>,
    access_starts: Vec<u32>,
}

impl Registers {
    pub(crate) fn new(dependencies: &Dependencies<'_>) -> Self {
        let keys = dependencies.history.key_count();
        let writes = written(dependencies);
        let (key_starts, writes) = grouped(keys, writes, |(key, _)| key.0);
        let mut registers = Registers {
            writers: writes.iter().map(|(_, txn)| *txn).collect(),
            key_of: writes.iter().map(|(key, _)| *key).collect(),
            key_starts,
            readers: Vec::new(),
            reader_starts: Vec::new(),
            accesses: dependencies.history.op_keys().to_vec(),
            access_starts: access_starts(dependencies.history),
        };
        drop(writes);
        let reads = registers.resolved(dependencies);
        let groups = registers.len() + keys;
        let (starts, reads) = grouped(groups, reads, |(group, _)| *group);
        registers.reader_starts = starts;
        registers.readers = reads.into_iter().map(|(_, reader)| reader).collect();
        registers
    }

    /// No keys at all.
    pub(crate) fn none() -> Registers {
        Registers {
            writers: Vec::new(),
            key_of: Vec::new(),
            key_starts: vec![0],
            readers: Vec::new(),
            reader_starts: vec![0],
            accesses: Vec::new(),
            access_starts: vec![0],
        }
    }

    /// Some groups of versions, each as a key of its own, with other numbers for transactions. Who
    /// read initial versions is not among them.
    pub(crate) fn restricted(
        &self,
        groups: &[Vec<Version>],
        txns: usize,
        number: impl Fn(TxnId) -> Option<TxnId>,
    ) -> Registers {
        let mut part = Registers::none();
        let mut accesses: Vec<(TxnId, KeyId)> = Vec::new();
        for (key, group) in groups.iter().enumerate() {
            let key = KeyId::at(key);
            for version in group {
                part.writers.extend(number(self.writer(*version)));
                part.key_of.push(key);
                let own = |reader: &Reader| Some(Reader { txn: number(reader.txn)?, ..*reader });
                let readers = self.readers(*version).iter().filter_map(own);
                let before = part.readers.len();
                part.readers.extend(readers);
                part.reader_starts.push(part.readers.len() as u32);
                accesses.extend(part.readers[before..].iter().map(|reader| (reader.txn, key)));
                accesses.extend(part.writers.last().map(|writer| (*writer, key)));
            }
            part.key_starts.push(part.writers.len() as u32);
        }
        part.reader_starts.resize(part.writers.len() + groups.len() + 1, part.readers.len() as u32);
        let (starts, accesses) = grouped(txns, accesses, |(txn, _)| txn.0);
        part.access_starts = starts;
        part.accesses = accesses.into_iter().map(|(_, key)| key).collect();
        part
    }

    /// The keys that a transaction accesses; may name one more than once.
    pub(crate) fn accessed(&self, txn: TxnId) -> &[KeyId] {
        let (start, end) = (self.access_starts[txn.index()], self.access_starts[txn.index() + 1]);
        &self.accesses[start as usize..end as usize]
    }

    /// The first read of each key from others by each kept transaction, with the group it belongs
    /// to: the version it saw, or beyond those the key whose initial version it saw.
    fn resolved(&self, dependencies: &Dependencies<'_>) -> Vec<(u32, Reader)> {
        let (history, reads) = (dependencies.history, dependencies.reads);
        let mut found: Vec<(u32, Reader)> = Vec::new();
        for txn in history.txns().filter(|txn| reads.is_kept(*txn)) {
            let begin = found.len();
            for read in history.txn_ops(txn) {
                let Source::Txn(writer) = reads.source(read) else { continue };
                let key = history.op_keys()[read.index()];
                let group = match self.version(key, writer) {
                    Some(version) => version.0,
                    None => self.len() as u32 + key.0,
                };
                if found[begin..].iter().all(|(other, _)| *other != group) {
                    found.push((group, Reader { txn, read }));
                }
            }
        }
        found
    }

    /// How many versions there are, the initial ones not counted.
    pub(crate) fn len(&self) -> usize {
        self.writers.len()
    }

    /// How many pairs of versions of one key there are.
    pub(crate) fn pairs(&self) -> u64 {
        let counts = self.key_starts.windows(2).map(|ends| u64::from(ends[1] - ends[0]));
        counts.map(|versions| versions * versions.saturating_sub(1) / 2).sum()
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> u64 {
        let starts = self.key_starts.len() + self.reader_starts.len();
        let accesses = self.accesses.len() + self.access_starts.len();
        let readers = self.readers.len() * size_of::<Reader>();
        ((self.len() * 2 + starts + accesses) * size_of::<u32>() + readers) as u64
    }

    /// How many keys there are.
    pub(crate) fn key_count(&self) -> usize {
        self.key_starts.len() - 1
    }

    /// The versions of a key.
    #[inline]
    pub(crate) fn versions(&self, key: KeyId) -> impl ExactSizeIterator<Item = Version> + use<> {
        (self.key_starts[key.index()]..self.key_starts[key.index() + 1]).map(Version)
    }

    /// The version of a key that a transaction wrote; none for `init`.
    pub(crate) fn version(&self, key: KeyId, writer: TxnId) -> Option<Version> {
        let start = self.key_starts[key.index()] as usize;
        let of_key = &self.writers[start..self.key_starts[key.index() + 1] as usize];
        of_key.binary_search(&writer).ok().map(|at| Version((start + at) as u32))
    }

    /// Who wrote a version.
    #[inline]
    pub(crate) fn writer(&self, version: Version) -> TxnId {
        self.writers[version.0 as usize]
    }

    /// The key of a version.
    #[inline]
    pub(crate) fn key(&self, version: Version) -> KeyId {
        self.key_of[version.0 as usize]
    }

    /// Who read a version.
    #[inline]
    pub(crate) fn readers(&self, version: Version) -> &[Reader] {
        self.group(version.0 as usize)
    }

    /// Who read the initial version of a key.
    pub(crate) fn initial_readers(&self, key: KeyId) -> &[Reader] {
        self.group(self.len() + key.index())
    }

    #[inline]
    fn group(&self, group: usize) -> &[Reader] {
        &self.readers[self.reader_starts[group] as usize..self.reader_starts[group + 1] as usize]
    }
}

/// Which keys each kept transaction writes, once per key, by transaction.
fn written(dependencies: &Dependencies<'_>) -> Vec<(KeyId, TxnId)> {
    let history = dependencies.history;
    let mut writes: Vec<(KeyId, TxnId)> = Vec::new();
    for txn in history.txns().filter(|txn| dependencies.reads.is_kept(*txn)) {
        let begin = writes.len();
        for op in history.op_range(txn) {
            if matches!(history.op_kinds()[op], OpKind::Write | OpKind::Delete) {
                writes.push((history.op_keys()[op], txn));
            }
        }
        writes[begin..].sort_unstable();
        let mut kept = begin;
        for at in begin..writes.len() {
            if at == begin || writes[at] != writes[at - 1] {
                writes[kept] = writes[at];
                kept += 1;
            }
        }
        writes.truncate(kept);
    }
    writes
}

/// Where the operations of each transaction begin, and one more.
fn access_starts(history: &History) -> Vec<u32> {
    let ends = history.txns().map(|txn| history.op_range(txn).end as u32);
    std::iter::once(0).chain(ends).collect()
}

/// Sorts items by group, the items of a group as they come; also where each group begins, and one
/// more.
fn grouped<T: Copy>(groups: usize, items: Vec<T>, group: impl Fn(&T) -> u32) -> (Vec<u32>, Vec<T>) {
    let mut starts = vec![0u32; groups + 1];
    items.iter().for_each(|item| starts[group(item) as usize + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut sorted = items.clone();
    for item in items {
        let place = &mut next[group(&item) as usize];
        sorted[*place as usize] = item;
        *place += 1;
    }
    (starts, sorted)
}
