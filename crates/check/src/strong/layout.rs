//! Which node of the graph stands for what, and what an order of two versions asks of it.

use isolario_model::{Level, LevelNodes, LevelShape, Point, TxnId};

use crate::graph::{commit_of, is_commit, start_of, txn_of};

/// A level as a shape of graph.
///
/// For the serializable levels a transaction is one node. For the others it is two: its start, where
/// it takes its snapshot, and its commit, where its writes appear. Nodes after those of the
/// transactions are moments in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The level.
    pub(crate) level: Level,
    txns: u32,
    split: bool,
    /// Whether of two writers of a key one must start after the other has committed.
    exclusive: bool,
    /// Whether a transaction that had finished before another started comes before it.
    pub(crate) real_time: bool,
}

impl Layout {
    /// The shape of a level, if it is one of those that are decided here.
    pub(crate) fn of(level: Level, txns: usize) -> Option<Layout> {
        if !level.is_decided() || !level.implies(Level::Prefix) {
            return None;
        }
        let LevelShape { nodes, exclusive_writers: exclusive, real_time, .. } = level.shape();
        let split = match nodes {
            LevelNodes::One => false,
            LevelNodes::StartAndCommit => true,
            _ => return None,
        };
        Some(Layout { level, txns: txns as u32, split, exclusive, real_time })
    }

    /// The same for another number of transactions.
    pub(crate) fn with_txns(self, txns: usize) -> Layout {
        Layout { txns: txns as u32, ..self }
    }

    /// The serial level that implies this one, if it is not one itself.
    pub(crate) fn serial(self) -> Option<Layout> {
        self.split.then_some(Layout { split: false, exclusive: false, ..self })
    }

    /// Whether start and commit are two nodes.
    #[inline]
    pub(crate) fn is_split(self) -> bool {
        self.split
    }

    /// Whether two writers of a key may not overlap.
    #[inline]
    pub(crate) fn is_exclusive(self) -> bool {
        self.exclusive
    }

    /// How many nodes stand for transactions.
    pub(crate) fn txn_nodes(self) -> usize {
        self.txns as usize * if self.split { 2 } else { 1 }
    }

    /// Where a transaction reads.
    #[inline]
    pub(crate) fn start(self, txn: TxnId) -> u32 {
        if self.split { start_of(txn.0) } else { txn.0 }
    }

    /// Where its writes appear.
    #[inline]
    pub(crate) fn commit(self, txn: TxnId) -> u32 {
        if self.split { commit_of(txn.0) } else { txn.0 }
    }

    /// Where a writer must come after the earlier writer of the same key: at its start if writers
    /// may not overlap.
    #[inline]
    pub(crate) fn overwrite(self, txn: TxnId) -> u32 {
        if self.exclusive { self.start(txn) } else { self.commit(txn) }
    }

    /// The transaction of a node; none for moments in real time.
    #[inline]
    pub(crate) fn txn(self, node: u32) -> Option<TxnId> {
        let txn = if self.split { txn_of(node) } else { node };
        (txn < self.txns).then_some(TxnId(txn))
    }

    /// The point in a transaction's life that a node of a split graph is.
    pub(crate) fn point(self, node: u32) -> Option<Point> {
        let txn = self.txn(node)?;
        Some(if is_commit(node) { Point::Commit(txn) } else { Point::Start(txn) })
    }
}
