//! The versions of every register, who wrote and who read them.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, History, KeyAssumption, KeyId, OpId, Reason, StatedOrder,
    TxnId, VersionOrder,
};

use super::{Dependencies, Reads, writes};
use crate::blocks;
use crate::graph::{Order, Rows};
use crate::order::{Demand, OrderRule};
use crate::plan::Conclusion;

/// A version: a position in the list of all versions, those of a key together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Version(pub(crate) u32);

/// A read of a version by another transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) txn: TxnId,
    /// Its first read of the key.
    pub(crate) read: OpId,
}

/// `before` wrote a version of a key that comes before the one of `after`, whatever the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionEdge {
    pub(crate) before: TxnId,
    pub(crate) after: TxnId,
    pub(crate) key: KeyId,
    pub(crate) known: KnownBy,
}

/// Where the knowledge of an order of versions comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// A list read shows the one element before the other.
    List { read: OpId },
    /// A list read ends with the earlier one and does not show the later one. A version of a list
    /// holds every append before it, so what it does not hold came later.
    NotShown { read: OpId },
    /// The later writer had read the version of the earlier one before it wrote.
    ReadModifyWrite { read: OpId },
    /// The database or the user stated it, at this line or position.
    Stated { at: u64 },
    /// It is assumed of every key, and the second operation accessed the later version after the first
    /// one had accessed the earlier one.
    Guaranteed { by: KeyAssumption, first: OpId, second: OpId },
}

/// The orders that are stated about those transactions that count, as part of what is asked. The
/// initial version comes first by itself; where a statement has it after another one, nothing can
/// satisfy that.
pub(crate) fn stated(
    history: &History,
    is_kept: impl Fn(TxnId) -> bool,
    statements: &[StatedOrder],
) -> Vec<VersionEdge> {
    let mut edges = Vec::new();
    for StatedOrder { key, writers, at } in statements {
        let counts =
            |txn: &TxnId| txn.is_init() || is_kept(*txn) && writes_key(history, *txn, *key);
        let writers: Vec<TxnId> = writers.iter().copied().filter(counts).collect();
        let pairs = writers.windows(2).filter(|pair| pair[0] != pair[1] && !pair[0].is_init());
        edges.extend(pairs.map(|pair| VersionEdge {
            before: pair[0],
            after: pair[1],
            key: *key,
            known: KnownBy::Stated { at: *at },
        }));
    }
    edges
}

/// Whether a transaction writes a key.
pub(crate) fn writes_key(history: &History, txn: TxnId, key: KeyId) -> bool {
    let mut ops = history.op_range(txn);
    ops.any(|op| history.op_keys()[op] == key && writes(history.op_kinds()[op]))
}

impl KnownBy {
    /// As a reason tells it.
    pub(crate) fn told(self) -> VersionOrder {
        match self {
            KnownBy::List { read } => VersionOrder::List { read },
            KnownBy::NotShown { read } => VersionOrder::AppendedLater { read },
            KnownBy::ReadModifyWrite { read } => VersionOrder::ReadModifyWrite { read },
            KnownBy::Stated { at } => VersionOrder::Stated { at },
            KnownBy::Guaranteed { by, first, second } => {
                VersionOrder::Guaranteed { by, first, second }
            }
        }
    }
}

impl VersionEdge {
    /// The edge of the commit relation that it is.
    pub(crate) fn edge(&self) -> Edge {
        let reason = Reason::Overwrite { key: self.key, known: self.known.told() };
        Edge { from: self.before, to: self.after, reason }
    }

    /// What is wrong with it if it has something before the initial version: only a wrong statement or
    /// a wrong assumption can.
    pub(crate) fn before_init(&self) -> Option<Anomaly> {
        self.after.is_init().then(|| {
            let first = Edge { from: TxnId::INIT, to: self.before, reason: Reason::Initial };
            let kind = match self.known {
                KnownBy::Guaranteed { .. } => AnomalyKind::CyclicVersions,
                _ => AnomalyKind::OrderContradiction,
            };
            Anomaly::new(kind, Evidence::Cycle { edges: vec![first, self.edge()] })
        })
    }
}

/// The order of versions that is shown, stated or assumed.
impl OrderRule for Reads {
    fn denied(&self, order: &Order) -> Result<Vec<Demand>, Conclusion> {
        if self.version_order.iter().any(|edge| edge.after.is_init()) {
            return Err(Conclusion::Pass);
        }
        Ok(self.demands().filter(|demand| order.denies(*demand)).collect())
    }

    fn among(&self, _order: &Order, _denied: &[Demand]) -> Option<Vec<Demand>> {
        Some(self.demands().collect())
    }

    fn explain(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.order_of(from, to).next().map(VersionEdge::edge)
    }
}

impl Reads {
    /// The order of versions that is shown, stated or assumed, as an order of transactions.
    pub(crate) fn demands(&self) -> impl Iterator<Item = Demand> {
        self.version_order.iter().map(|edge| (edge.before.0, edge.after.0))
    }
}

/// Per key its versions, one per kept transaction that wrote the key, and per version its readers,
/// all by transaction.
pub(crate) struct Versions {
    /// By key, who wrote it: a version is a place among all of these.
    writers: Rows<TxnId>,
    key_of: Vec<KeyId>,
    /// By version, and at the end by key those of its initial version.
    readers: Rows<Reader>,
    /// By transaction, the keys that it accesses.
    accesses: Rows<KeyId>,
}

impl Versions {
    pub(crate) fn new(dependencies: &Dependencies<'_>) -> Self {
        Versions::with(dependencies, &[])
    }

    /// With those of some other transactions. What these read is not among the readers.
    pub(crate) fn with(dependencies: &Dependencies<'_>, others: &[TxnId]) -> Self {
        let keys = dependencies.history.key_count();
        let writes = written(dependencies, others);
        let items = || writes.iter().flatten().copied();
        let writers = Rows::group(keys, items().map(|(key, txn)| (key.0, txn)));
        let mut next: Vec<usize> = (0..keys).map(|key| writers.span(key).start).collect();
        let numbered = items().map(|(key, txn)| {
            let version = Version(next[key.index()] as u32);
            next[key.index()] += 1;
            (key, txn, version)
        });
        let written =
            Written::new(dependencies.history.txn_count(), writers.entries().len(), numbered);
        drop(writes);
        let of_key = |key: usize| std::iter::repeat_n(KeyId::at(key), writers.span(key).len());
        let key_of = (0..keys).flat_map(of_key).collect();
        let ends = dependencies.history.txns().map(|txn| dependencies.history.op_range(txn).end);
        let accesses = Rows::cut(dependencies.history.op_keys().to_vec(), ends);
        let mut versions = Versions { writers, key_of, readers: Rows::default(), accesses };
        let reads = versions.resolved(dependencies, &written);
        versions.readers = Rows::group(versions.len() + keys, reads.iter().flatten().copied());
        versions.readers.iter_mut().for_each(|readers| readers.sort_unstable_by_key(|r| r.txn));
        versions
    }

    /// Some groups of versions, each as a key of its own, with other numbers for transactions. Who
    /// read initial versions is not among them. `others` access these keys, too.
    pub(crate) fn restricted(
        &self,
        groups: &[Vec<Version>],
        others: impl Iterator<Item = (TxnId, KeyId)>,
        txns: usize,
        number: impl Fn(TxnId) -> Option<TxnId>,
    ) -> Versions {
        let (mut writers, mut readers) = (Rows::default(), Rows::default());
        for group in groups {
            writers.push(group.iter().filter_map(|version| number(self.writer(*version))));
            for version in group {
                let own = |reader: &Reader| Some(Reader { txn: number(reader.txn)?, ..*reader });
                readers.push(self.readers(*version).iter().filter_map(own));
            }
        }
        let others = others.filter_map(|(txn, key)| Some((number(txn)?, key)));
        Versions::of_few(txns, writers, readers, others)
    }

    /// Versions by who wrote each key and who read each of them, without readers of initial versions.
    /// `others` access these keys, too.
    pub(crate) fn of_few(
        txns: usize,
        writers: Rows<TxnId>,
        mut readers: Rows<Reader>,
        others: impl Iterator<Item = (TxnId, KeyId)>,
    ) -> Versions {
        let mut accesses: Vec<(u32, KeyId)> = others.map(|(txn, key)| (txn.0, key)).collect();
        let mut key_of = Vec::with_capacity(writers.entries().len());
        for key in 0..writers.len() {
            for version in writers.span(key) {
                let of_version = readers.get(version).iter().map(|reader| reader.txn);
                let all = of_version.chain([writers.entries()[version]]);
                accesses.extend(all.map(|txn| (txn.0, KeyId::at(key))));
                key_of.push(KeyId::at(key));
            }
        }
        (0..writers.len()).for_each(|_| readers.push([]));
        let accesses = Rows::group(txns, accesses.iter().copied());
        Versions { writers, key_of, readers, accesses }
    }

    /// The keys that a transaction accesses; may name one more than once.
    pub(crate) fn accessed(&self, txn: TxnId) -> &[KeyId] {
        self.accesses.get(txn.index())
    }

    /// The first read of each key from others by each kept transaction, with the group it belongs
    /// to: the version it saw, or beyond those the key whose initial version it saw.
    fn resolved(
        &self,
        dependencies: &Dependencies<'_>,
        written: &Written,
    ) -> Vec<Vec<(u32, Reader)>> {
        let Dependencies { history, reads, .. } = dependencies;
        let visit = |(): &mut (), txn, found: &mut Vec<(u32, Reader)>| {
            if !reads.is_kept(txn) {
                return;
            }
            let begin = found.len();
            reads.for_each_writer(history.op_range(txn), |read, writer| {
                let key = history.op_keys()[read];
                let group = match written.version(key, writer) {
                    Some(version) => version.0,
                    None => self.len() as u32 + key.0,
                };
                if found[begin..].iter().all(|(other, _)| *other != group) {
                    found.push((group, Reader { txn, read: OpId::at(read) }));
                }
            });
        };
        blocks::gather(&blocks::blocks(history), || (), visit)
    }

    /// How many versions there are, the initial ones not counted.
    pub(crate) fn len(&self) -> usize {
        self.key_of.len()
    }

    /// How many pairs of versions of one key there are.
    pub(crate) fn pairs(&self) -> u64 {
        let counts = (0..self.key_count()).map(|key| self.writers.span(key).len() as u64);
        counts.map(|versions| versions * versions.saturating_sub(1) / 2).sum()
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> u64 {
        let keys = self.key_of.len() * size_of::<KeyId>();
        (keys + self.writers.bytes() + self.readers.bytes() + self.accesses.bytes()) as u64
    }

    /// How many keys there are.
    pub(crate) fn key_count(&self) -> usize {
        self.writers.len()
    }

    /// The versions of a key.
    #[inline]
    pub(crate) fn of(&self, key: KeyId) -> impl ExactSizeIterator<Item = Version> + Clone + use<> {
        let span = self.writers.span(key.index());
        (span.start as u32..span.end as u32).map(Version)
    }

    /// The version of a key that a transaction wrote; none for `init`.
    pub(crate) fn version(&self, key: KeyId, writer: TxnId) -> Option<Version> {
        let at = self.writers.get(key.index()).binary_search(&writer).ok()?;
        Some(Version((self.writers.span(key.index()).start + at) as u32))
    }

    /// Who wrote a version.
    #[inline]
    pub(crate) fn writer(&self, version: Version) -> TxnId {
        self.writers.entries()[version.0 as usize]
    }

    /// The key of a version.
    #[inline]
    pub(crate) fn key(&self, version: Version) -> KeyId {
        self.key_of[version.0 as usize]
    }

    /// Who read a version.
    #[inline]
    pub(crate) fn readers(&self, version: Version) -> &[Reader] {
        self.readers.get(version.0 as usize)
    }

    /// Who read the initial version of a key.
    pub(crate) fn initial_readers(&self, key: KeyId) -> &[Reader] {
        self.readers.get(self.len() + key.index())
    }
}

/// By transaction, the versions that it wrote. To find one here takes a look at a transaction that was
/// recently looked at, as a rule; among all versions of its key it would be anywhere.
struct Written {
    /// By key.
    rows: Rows<(KeyId, Version)>,
}

/// Up to this many a row is searched from end to end.
const SMALL: usize = 32;

impl Written {
    /// Takes so many versions by transaction, and by key for each one.
    fn new(
        txns: usize,
        count: usize,
        versions: impl Iterator<Item = (KeyId, TxnId, Version)>,
    ) -> Self {
        let mut ends = vec![0usize; txns];
        let mut entries = Vec::with_capacity(count);
        for (key, txn, version) in versions {
            entries.push((key, version));
            ends[txn.index()] = entries.len();
        }
        let mut last = 0;
        let up_to = |end: usize| {
            last = last.max(end);
            last
        };
        Written { rows: Rows::cut(entries, ends.into_iter().map(up_to)) }
    }

    /// The version of a key that a transaction wrote; none for `init`.
    #[inline]
    fn version(&self, key: KeyId, writer: TxnId) -> Option<Version> {
        if writer.is_init() {
            return None;
        }
        let row = self.rows.get(writer.index());
        let at = match row.len() {
            ..=SMALL => row.iter().position(|(other, _)| *other == key),
            _ => row.binary_search_by_key(&key, |(other, _)| *other).ok(),
        };
        at.map(|at| row[at].1)
    }
}

/// Which keys each kept transaction and some others write, once per key, by transaction.
fn written(dependencies: &Dependencies<'_>, others: &[TxnId]) -> Vec<Vec<(KeyId, TxnId)>> {
    let history = dependencies.history;
    let counts = |txn: TxnId| dependencies.reads.is_kept(txn) || others.binary_search(&txn).is_ok();
    let visit = |(): &mut (), txn, found: &mut Vec<(KeyId, TxnId)>| {
        if !counts(txn) {
            return;
        }
        let begin = found.len();
        for op in history.op_range(txn) {
            if writes(history.op_kinds()[op]) {
                found.push((history.op_keys()[op], txn));
            }
        }
        found[begin..].sort_unstable();
        let mut kept = begin;
        for at in begin..found.len() {
            if at == begin || found[at] != found[at - 1] {
                found[kept] = found[at];
                kept += 1;
            }
        }
        found.truncate(kept);
    };
    blocks::gather(&blocks::consecutive(history, TXNS_PER_TASK), || (), visit)
}

/// Transactions per task.
const TXNS_PER_TASK: usize = 1 << 13;
