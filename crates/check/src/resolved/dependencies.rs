//! Session order and reads, as a graph over the kept transactions.

use std::sync::Arc;

use isolario_model::{Edge, History, OpId, OpKind, Outcome, Reason, TxnId};

use super::{Inferred, Reads, Saturated, Source, writes};
use crate::blocks;
use crate::graph::{InEdges, Order};
use crate::order::{self, Demand, OrderOrCycle, OrderRule, Patience};
use crate::plan::Conclusion;

/// Where a transaction has no predecessor in its session.
const NONE: u32 = u32::MAX;

/// Session order ∪ write-read. The edges into a transaction are read off its operations; only its
/// predecessor in the session is stored.
pub(crate) struct Dependencies<'a> {
    pub(crate) history: &'a History,
    /// The same with and without session order, and shared by both.
    pub(crate) reads: Arc<Reads>,
    /// Whether the transactions of a session are ordered.
    pub(crate) session_order: bool,
    session_predecessor: Vec<u32>,
}

impl<'a> Dependencies<'a> {
    pub(crate) fn new(
        history: &'a History,
        reads: impl Into<Arc<Reads>>,
        session_order: bool,
    ) -> Self {
        let reads = reads.into();
        let mut session_predecessor = vec![NONE; history.txn_count()];
        if session_order {
            for session in history.sessions() {
                let mut last = NONE;
                for txn in history.session_txns(session).filter(|txn| reads.is_kept(*txn)) {
                    session_predecessor[txn.index()] = last;
                    // Nothing follows a transaction of unknown outcome: its commit may have come
                    // at any later time.
                    if history.outcome(txn) == Outcome::Committed {
                        last = txn.0;
                    }
                }
            }
        }
        Dependencies { history, reads, session_order, session_predecessor }
    }

    /// The last committed transaction before this one in its session.
    pub(crate) fn session_predecessor(&self, txn: TxnId) -> Option<TxnId> {
        let before = self.session_predecessor[txn.index()];
        (before != NONE).then_some(TxnId(before))
    }

    /// Calls `each` with the predecessors of a kept transaction, some perhaps more than once.
    #[inline]
    pub(crate) fn for_each_before(&self, txn: TxnId, mut each: impl FnMut(u32)) {
        let before = self.session_predecessor[txn.index()];
        if before != NONE {
            each(before);
        }
        self.reads.for_each_writer(self.history.op_range(txn), |_, writer| {
            if !writer.is_init() {
                each(writer.0);
            }
        });
    }

    /// An order that gives what some rules demand beyond session order and reads, which the guess gives already;
    /// or else the graph in which there is none.
    pub(crate) fn order(
        &self,
        guess: Vec<u32>,
        rules: &[&dyn OrderRule],
        patience: Patience,
    ) -> Result<OrderOrCycle<Inferred>, Conclusion> {
        order::find(guess, rules, patience, |order, demanded, denied| {
            let inferred = Inferred::new(self.node_count(), demanded);
            let graph = Saturated { dependencies: self, inferred: &inferred };
            order.mend(&graph, denied).ok_or(inferred)
        })
    }

    /// The first read of `reader` from `writer`.
    fn first_read_from(&self, reader: TxnId, writer: TxnId) -> Option<OpId> {
        self.history.txn_ops(reader).find(|op| self.reads.source(*op) == Source::Txn(writer))
    }

    /// The write of `writer` that a read saw. Of a list it saw all the writer's appends, the last
    /// of them last. A row that was met was met as its writer left it.
    fn write_seen(&self, writer: TxnId, read: OpId) -> Option<OpId> {
        let history = self.history;
        let kind = history.op_kinds()[read.index()];
        let (is_list, is_met) = (kind == OpKind::ReadList, kind == OpKind::ReadUnobserved);
        history.txn_ops(writer).rev().find(|op| {
            let seen = match history.op_kinds()[op.index()] {
                OpKind::Append => is_list,
                kind if writes(kind) => {
                    let is_same = || history.encoded_version(*op) == history.encoded_version(read);
                    !is_list && (is_met || is_same())
                }
                _ => false,
            };
            seen && history.op_keys()[op.index()] == history.op_keys()[read.index()]
        })
    }

    /// The edge from one transaction to another, with its reason. Session order is the simpler
    /// reason and comes first.
    pub(crate) fn edge(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        if self.session_predecessor(to) == Some(from) {
            return Some(Edge { from, to, reason: Reason::Session });
        }
        Some(self.read_edge(from, to, self.first_read_from(to, from)?))
    }

    /// As [`Dependencies::edge`], or the edge of an order of versions that is shown or stated.
    pub(crate) fn plain_edge(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.edge(from, to).or_else(|| self.reads.explain(from, to))
    }

    /// The edge that a read of `to` from `from` makes.
    pub(crate) fn read_edge(&self, from: TxnId, to: TxnId, read: OpId) -> Edge {
        let key = self.history.op_keys()[read.index()];
        let write = self.write_seen(from, read);
        Edge { from, to, reason: Reason::Read { key, read, write } }
    }

    /// Whether one transaction comes before another in their session.
    pub(crate) fn precedes_in_session(&self, before: TxnId, after: TxnId) -> bool {
        self.session_order
            && before < after
            && self.history.session_of(before) == self.history.session_of(after)
            && self.history.outcome(before) == Outcome::Committed
    }
}

impl OrderRule for Dependencies<'_> {
    fn denied(&self, order: &Order) -> Result<Vec<Demand>, Conclusion> {
        let (blocks, places) = (blocks::blocks(self.history), order.places());
        let denied = blocks::gather(
            &blocks,
            || (),
            |(), txn, denied| {
                if self.reads.is_kept(txn) {
                    let place = places[txn.index()];
                    self.for_each_before(txn, |before| {
                        if places[before as usize] >= place {
                            denied.push((before, txn.0));
                        }
                    });
                }
            },
        );
        Ok(denied.concat())
    }

    fn explain(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.edge(from, to)
    }
}

impl InEdges for Dependencies<'_> {
    fn node_count(&self) -> usize {
        self.history.txn_count()
    }

    /// The cursor is zero for the session, then one more than the next operation to look at.
    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let txn = TxnId(node);
        if !self.reads.is_kept(txn) {
            return None;
        }
        if *cursor == 0 {
            *cursor = 1;
            let before = self.session_predecessor[txn.index()];
            if before != NONE {
                return Some(before);
            }
        }
        let range = self.history.op_range(txn);
        for op in range.start + (*cursor as usize - 1)..range.end {
            *cursor += 1;
            if let Source::Txn(writer) = self.reads.source(OpId::at(op))
                && !writer.is_init()
            {
                return Some(writer.0);
            }
        }
        None
    }
}
