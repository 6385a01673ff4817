//! Read atomic: a transaction's writes are seen together or not at all.
//!
//! AWDIT, Algorithm 2. For a reader that read `x` from `t1` while `t2`, which wrote `x` too, comes
//! before it in its session or was read from, `t2` was committed before `t1`. Of the session's
//! writers of `x` only the last matters, since the others come before it. A writer that is both
//! in the reader's session and read from needs no intersection: the session covers it. So a
//! history of one session takes linear time (AWDIT, Theorem 1.6).

use isolario_model::{History, KeyId, OpId, Outcome, SessionId, TxnId};

use super::first_reads::FirstReads;
use super::inference::{Inference, Visibility};
use crate::resolved::Dependencies;
use crate::resolved::Source;
use crate::resolved::{KeySet, WriteSets};

/// Readers with at most so many reads are looked at more closely before a writer is fetched.
const FEW: usize = 32;

/// Infers the orders that the reads of sessions demand.
pub(crate) struct Inferrer<'a> {
    history: &'a History,
    dependencies: &'a Dependencies<'a>,
    writes: &'a WriteSets<'a>,
    /// Per key, the session and its last writer so far.
    last_write: Vec<Option<(SessionId, TxnId)>>,
    /// Per key, the reader at hand, and whom and where it first read it from.
    read_from: Vec<Option<(TxnId, TxnId, OpId)>>,
    keys_read: KeySet,
    /// The external reads of the reader at hand: key and writer.
    reads: Vec<(KeyId, TxnId)>,
    /// The first read from each writer.
    writers: Vec<(TxnId, OpId)>,
    first_reads: FirstReads,
}

impl<'a> Inferrer<'a> {
    pub(crate) fn new(dependencies: &'a Dependencies<'a>, writes: &'a WriteSets<'a>) -> Self {
        let history = dependencies.history;
        Inferrer {
            history,
            dependencies,
            writes,
            last_write: vec![None; history.key_count()],
            read_from: vec![None; history.key_count()],
            keys_read: KeySet::default(),
            reads: Vec::new(),
            writers: Vec::new(),
            first_reads: FirstReads::default(),
        }
    }

    /// Infers from a kept transaction. Those of a session have to be taken in their order.
    pub(crate) fn infer(&mut self, reader: TxnId, emit: &mut impl FnMut(Inference)) {
        let session = self.history.session_of(reader);
        self.infer_from_session(session, reader, emit);
        self.infer_from_reads(reader, emit);
        // Nothing follows a transaction of unknown outcome.
        if self.dependencies.session_order && self.history.outcome(reader) == Outcome::Committed {
            for key in self.writes.of(reader) {
                self.last_write[key.index()] = Some((session, reader));
            }
        }
    }

    /// Infers from one kept transaction, as far as its reads tell and its session does not.
    pub(crate) fn infer_seen(&mut self, reader: TxnId, emit: &mut impl FnMut(Inference)) {
        // No session's writes are known, so this collects the reads and infers nothing.
        self.infer_from_session(self.history.session_of(reader), reader, emit);
        self.infer_from_reads(reader, emit);
    }

    /// The session's last writer of each key read; collects the reads on the way.
    fn infer_from_session(
        &mut self,
        session: SessionId,
        reader: TxnId,
        emit: &mut impl FnMut(Inference),
    ) {
        self.keys_read.clear();
        self.reads.clear();
        self.writers.clear();
        self.first_reads.clear();
        for read in self.history.txn_ops(reader) {
            let Source::Txn(after) = self.dependencies.reads.source(read) else { continue };
            let key = self.history.op_keys()[read.index()];
            self.reads.push((key, after));
            if self.read_from[key.index()].is_none_or(|(by, ..)| by != reader) {
                self.read_from[key.index()] = Some((reader, after, read));
                self.keys_read.push(key);
            }
            if !after.is_init() && self.first_reads.insert(after) {
                self.writers.push((after, read));
            }
            if let Some((by, before)) = self.last_write[key.index()]
                && by == session
                && before != after
            {
                let visible = Visibility::Session;
                emit(Inference { before, after, reader, key, read, visible });
            }
        }
    }

    /// The writers read from, where they wrote another key that was read, too.
    fn infer_from_reads(&self, reader: TxnId, emit: &mut impl FnMut(Inference)) {
        for (before, seen) in &self.writers {
            let (before, seen) = (*before, *seen);
            if self.dependencies.precedes_in_session(before, reader) {
                continue;
            }
            // What was read from the writer itself needs no order, so only what was read from others
            // counts. For a few reads that is quickly gone through, and saves fetching the writer.
            if self.reads.len() <= FEW {
                let of_others = self.reads.iter().filter(|(_, from)| *from != before);
                if !self.writes.may_write_any(before, of_others.map(|(key, _)| *key)) {
                    continue;
                }
            }
            let is_read =
                |key: KeyId| self.read_from[key.index()].is_some_and(|(by, ..)| by == reader);
            self.writes.for_each_common(before, &self.keys_read, is_read, |key| {
                let Some((_, after, read)) = self.read_from[key.index()] else { return };
                if after != before {
                    let visible = if seen < read {
                        Visibility::EarlierRead(seen)
                    } else {
                        Visibility::LaterRead(seen)
                    };
                    emit(Inference { before, after, reader, key, read, visible });
                }
            });
        }
    }
}
