//! Read committed: what a transaction has seen, it never goes back behind.
//!
//! AWDIT, Algorithm 1. For a reader that reads anything from `t2` and after that a key `x` from
//! `t1`, where `t2` wrote `x` too, `t2` was committed before `t1`. Only the first read from each
//! `t2` matters, and of the later reads of `x` only the first from another transaction: the
//! orders among the later ones are inferred at their own first reads.

use isolario_model::{History, KeyId, OpId, TxnId};

use super::first_reads::FirstReads;
use super::inference::{Inference, Visibility};
use crate::resolved::Dependencies;
use crate::resolved::Source;
use crate::resolved::{KeySet, WriteSets};

/// The next two reads of a key from distinct writers, going backwards through a transaction: their
/// positions among its external reads.
#[derive(Clone, Copy)]
struct NextReads {
    /// The transaction that these are of.
    reader: u32,
    nearest: u32,
    /// `NONE` if there is but one writer.
    other: u32,
}

const NONE: u32 = u32::MAX;

/// Infers the orders that one transaction's reads demand. Reused from one to the next; stamps say
/// whose entries are whose.
pub(crate) struct Inferrer<'a> {
    history: &'a History,
    dependencies: &'a Dependencies<'a>,
    writes: &'a WriteSets<'a>,
    next_reads: Vec<NextReads>,
    /// The keys read after the read at hand.
    keys_read: KeySet,
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
            next_reads: vec![
                NextReads { reader: NONE, nearest: NONE, other: NONE };
                history.key_count()
            ],
            keys_read: KeySet::default(),
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
            self.remember(reader, at);
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
        let is_read_later = |key: KeyId| self.next_reads[key.index()].reader == reader.0;
        self.writes.for_each_common(before, &self.keys_read, is_read_later, |key| {
            let NextReads { nearest, other, .. } = self.next_reads[key.index()];
            let mut next =
                [nearest, other].into_iter().filter_map(|at| self.external.get(at as usize));
            if let Some((read, after, _)) = next.find(|(_, writer, _)| *writer != before) {
                let visible = Visibility::EarlierRead(first);
                emit(Inference { before, after: *after, reader, key, read: *read, visible });
            }
        });
    }

    /// Puts an external read in front of those that come after it.
    fn remember(&mut self, reader: TxnId, at: usize) {
        let (read, writer, _) = self.external[at];
        let key = self.history.op_keys()[read.index()];
        let next = &mut self.next_reads[key.index()];
        if next.reader != reader.0 {
            self.keys_read.push(key);
            *next = NextReads { reader: reader.0, nearest: at as u32, other: NONE };
        } else if self.external[next.nearest as usize].1 == writer {
            next.nearest = at as u32;
        } else {
            (next.other, next.nearest) = (next.nearest, at as u32);
        }
    }
}
