//! Read committed: what a transaction has seen, it never goes back behind.
//!
//! AWDIT, Algorithm 1. For a reader that reads anything from `t2` and after that a key `x` from
//! `t1`, where `t2` wrote `x` too, `t2` was committed before `t1`. Only the first read from each
//! `t2` matters, and of the later reads of `x` only the first from another transaction: the
//! orders among the later ones are inferred at their own first reads.

use isolario_model::{History, KeyId, OpId, TxnId};

use super::Dependencies;
use super::first_reads::FirstReads;
use super::saturated::{Inference, Visibility};
use super::writes::WriteSets;
use crate::reads::Source;

/// The next two distinct writers that a key is read from, going backwards through a transaction.
#[derive(Clone, Copy)]
struct NextWriters {
    reader: TxnId,
    nearest: (TxnId, OpId),
    other: Option<(TxnId, OpId)>,
}

/// Infers the orders that one transaction's reads demand. Reused from one to the next; stamps say
/// whose entries are whose.
pub(crate) struct Inferrer<'a> {
    history: &'a History,
    dependencies: &'a Dependencies<'a>,
    writes: &'a WriteSets<'a>,
    next_writers: Vec<Option<NextWriters>>,
    /// The keys read after the read at hand.
    keys_read: Vec<KeyId>,
    /// The reads of the transaction from others, and whether each is the first from its writer.
    external: Vec<(OpId, TxnId, bool)>,
    first_reads: FirstReads,
}

impl<'a> Inferrer<'a> {
    pub(crate) fn new(dependencies: &'a Dependencies<'a>, writes: &'a WriteSets<'a>) -> Self {
        let history = dependencies.history;
        Inferrer {
            history,
            dependencies,
            writes,
            next_writers: vec![None; history.key_count()],
            keys_read: Vec::new(),
            external: Vec::new(),
            first_reads: FirstReads::default(),
        }
    }

    /// Infers from one kept transaction.
    pub(crate) fn infer(&mut self, reader: TxnId, emit: &mut impl FnMut(Inference)) {
        self.collect_external(reader);
        self.keys_read.clear();
        for at in (0..self.external.len()).rev() {
            let (read, writer, is_first) = self.external[at];
            if is_first && !writer.is_init() {
                self.infer_from(reader, read, writer, emit);
            }
            self.remember(reader, read, writer);
        }
    }

    fn collect_external(&mut self, reader: TxnId) {
        self.external.clear();
        self.first_reads.clear();
        for op in self.history.txn_ops(reader) {
            if let Source::Txn(writer) = self.dependencies.reads.source(op) {
                let is_first = self.first_reads.insert(writer);
                self.external.push((op, writer, is_first));
            }
        }
    }

    /// `before` was first seen at `first`; which of the keys read later did it write?
    fn infer_from(
        &self,
        reader: TxnId,
        first: OpId,
        before: TxnId,
        emit: &mut impl FnMut(Inference),
    ) {
        self.writes.for_each_common(
            before,
            &self.keys_read,
            |key| self.is_read_later(reader, key),
            |key| {
                let Some(next) = self.next_writers[key.index()] else { return };
                let (nearest, other) = (Some(next.nearest), next.other);
                let from_another = |found: &(TxnId, OpId)| found.0 != before;
                if let Some((after, read)) =
                    nearest.filter(from_another).or(other.filter(from_another))
                {
                    let visible = Visibility::EarlierRead(first);
                    emit(Inference { before, after, reader, key, read, visible });
                }
            },
        );
    }

    fn is_read_later(&self, reader: TxnId, key: KeyId) -> bool {
        self.next_writers[key.index()].is_some_and(|next| next.reader == reader)
    }

    fn remember(&mut self, reader: TxnId, read: OpId, writer: TxnId) {
        let key = self.history.op_keys()[read.index()];
        let slot = &mut self.next_writers[key.index()];
        *slot = Some(match *slot {
            Some(next) if next.reader == reader => {
                let pushed_out =
                    if next.nearest.0 == writer { next.other } else { Some(next.nearest) };
                NextWriters { reader, nearest: (writer, read), other: pushed_out }
            }
            _ => {
                self.keys_read.push(key);
                NextWriters { reader, nearest: (writer, read), other: None }
            }
        });
    }
}
