//! Names what is wrong with a read. Only suspects come here, so this may look things up slowly.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, History, Initial, KeyId, Level, OpId, OpKind, Outcome,
    Reason, TxnId,
};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::ASIDE;
use super::join::{Saw, Suspect};
use crate::resolved::{AmbiguousRead, writes};

/// The anomalies of the suspects that count, by operation, and of these reads whose write they
/// saw. Wrong reads are set aside, so that checking can go on without them.
pub(super) fn classify(
    history: &History,
    kept: &[bool],
    suspects: &[Suspect],
    sources: &mut [u32],
) -> (Vec<Anomaly>, Vec<(OpId, TxnId)>) {
    let wrong = |suspect: &Suspect| {
        let reader = history.op_txn(suspect.read);
        let mut anomalies = Vec::new();
        if kept[reader.index()] {
            Classifier::new(history, reader, suspect.read).classify(suspect.saw, &mut anomalies);
        }
        (!anomalies.is_empty()).then_some((*suspect, reader, anomalies))
    };
    // Most suspects turn out to be right, and there may be many.
    let found: Vec<(Suspect, TxnId, Vec<Anomaly>)> =
        suspects.par_iter().filter_map(wrong).collect();
    let (mut anomalies, mut seen) = (Vec::new(), Vec::new());
    for (suspect, reader, of_read) in found {
        anomalies.extend(of_read);
        sources[suspect.read.index()] = ASIDE;
        if let Saw::One(writer) = suspect.saw
            && writer != reader
            && (writer.is_init() || kept[writer.index()])
        {
            seen.push((suspect.read, writer));
        }
    }
    (anomalies, seen)
}

/// Ambiguous reads that are wrong whichever write they saw.
#[derive(Default)]
pub(super) struct WrongAnyhow {
    /// What is wrong with one of the writes, where each is wrong by itself.
    pub(super) anomalies: Vec<Anomaly>,
    /// Where the reader's own session made the others only later: a cycle for each of these.
    pub(super) from_later: Vec<Anomaly>,
    /// Of those that are wrong by themselves, the ones whose transaction reads the key more than once:
    /// which write they saw matters to cut isolation, where they are not wrong.
    pub(super) repeated: Vec<AmbiguousRead>,
}

/// Takes out the ambiguous reads of registers that are wrong by themselves, whichever write they saw.
/// Those that are wrong by session order stay: it may not count.
pub(super) fn wrong_anyhow(history: &History, ambiguous: &mut Vec<AmbiguousRead>) -> WrongAnyhow {
    let reader = |read: OpId| Classifier::new(history, history.op_txn(read), read);
    let may_be_wrong = |a: &AmbiguousRead| {
        let reader = reader(a.read);
        history.op_kinds()[a.read.index()] == OpKind::Read
            && reader.own_write_before().is_none()
            && !reader.may_be_initial()
            && [a.first, a.second]
                .iter()
                .all(|w| !reader.is_explained_by(*w) || reader.precedes(*w))
    };
    let suspects: Vec<AmbiguousRead> = ambiguous.iter().copied().filter(may_be_wrong).collect();
    if suspects.is_empty() {
        return WrongAnyhow::default();
    }
    // There may be further candidates, and who wrote a value is not kept: all writes are gone
    // through again, once for all suspects.
    let version = |op: OpId| (history.op_keys()[op.index()], history.encoded_version(op));
    let wanted: FxHashSet<(KeyId, u64)> = suspects.iter().map(|a| version(a.read)).collect();
    let mut writers: Vec<((KeyId, u64), TxnId)> = Vec::new();
    for txn in history.txns() {
        let ops = history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()]));
        writers.extend(ops.map(version).filter(|v| wanted.contains(v)).map(|v| (v, txn)));
    }
    writers.sort_unstable();
    writers.dedup();
    let mut found = WrongAnyhow::default();
    for suspect in suspects {
        let reader = reader(suspect.read);
        let begin = writers.partition_point(|(v, _)| *v < version(suspect.read));
        let of_version = writers[begin..].iter().take_while(|(v, _)| *v == version(suspect.read));
        let explain: Vec<TxnId> =
            of_version.map(|(_, w)| *w).filter(|w| reader.is_explained_by(*w)).collect();
        if explain.is_empty() {
            reader.classify(Saw::One(suspect.first), &mut found.anomalies);
            // What was updated, nobody can tell.
            found.anomalies.retain(|anomaly| anomaly.kind != AnomalyKind::DirtyUpdate);
            ambiguous.retain(|a| *a != suspect);
            found.repeated.extend(reader.is_repeated().then_some(suspect));
        } else if explain.iter().all(|writer| reader.precedes(*writer)) {
            found.from_later.push(reader.read_from_later(&explain));
        }
    }
    found
}

/// Where any value that nobody wrote may be the initial one, a key still has only one. Of two reads
/// that returned different ones, one saw what came out of thin air; which of them, nobody can tell.
pub(super) fn two_initial_values(
    history: &History,
    kept: &[bool],
    sources: &[u32],
) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    if *history.initial() != Initial::Unwritten {
        return anomalies;
    }
    let mut first_reads: Vec<Option<OpId>> = vec![None; history.key_count()];
    for second in history.txns().filter(|txn| kept[txn.index()]).flat_map(|t| history.txn_ops(t)) {
        let is_read = history.op_kinds()[second.index()] == OpKind::Read;
        if is_read && sources[second.index()] == TxnId::INIT.0 {
            let key = history.op_keys()[second.index()];
            let first = *first_reads[key.index()].get_or_insert(second);
            if history.encoded_version(first) != history.encoded_version(second) {
                let evidence = Evidence::Reads { key, first, second, edges: Vec::new() };
                anomalies.push(Anomaly::new(AnomalyKind::ThinAirRead, evidence));
            }
        }
    }
    anomalies
}

/// The last write by which a transaction wrote what a read saw.
pub(crate) fn write_seen(history: &History, read: OpId, writer: TxnId) -> Option<OpId> {
    Classifier::new(history, history.op_txn(read), read).write_seen(writer)
}

struct Classifier<'h> {
    history: &'h History,
    reader: TxnId,
    read: OpId,
    key: KeyId,
    word: u64,
}

impl<'h> Classifier<'h> {
    fn new(history: &'h History, reader: TxnId, read: OpId) -> Self {
        let (key, word) = (history.op_keys()[read.index()], history.encoded_version(read));
        Classifier { history, reader, read, key, word }
    }

    fn classify(&self, saw: Saw, out: &mut Vec<Anomaly>) {
        match saw {
            Saw::Nothing => self.report(out, AnomalyKind::ThinAirRead, None, None),
            Saw::One(writer) if writer == self.reader => self.own(out),
            Saw::One(writer) => self.foreign(writer, out),
            Saw::Several(..) if self.own_write_before().is_none() => {}
            // Whichever it saw, it should have seen its own last write.
            Saw::Several(first, second) if [first, second].contains(&self.reader) => self.own(out),
            Saw::Several(first, _) => self.foreign(first, out),
        }
    }

    /// It saw a write of its own transaction, but not the last one before it.
    fn own(&self, out: &mut Vec<Anomaly>) {
        let earlier = self.writes_of(self.reader).filter(|w| *w < self.read && self.is_seen(*w));
        match earlier.last() {
            Some(seen) => {
                let last = self.own_write_before();
                self.report(out, AnomalyKind::NotMyLastWrite, Some(seen), last);
            }
            None => {
                let seen = self.write_seen(self.reader);
                self.report(out, AnomalyKind::FutureRead, seen, None);
            }
        }
    }

    /// It saw a write of somebody else.
    fn foreign(&self, writer: TxnId, out: &mut Vec<Anomaly>) {
        let seen = self.write_seen(writer);
        if let Some(own) = self.own_write_before() {
            self.report(out, AnomalyKind::NotMyOwnWrite, seen, Some(own));
        }
        if self.history.outcome(writer) == Outcome::Aborted {
            self.report(out, AnomalyKind::AbortedRead, seen, None);
            let update = self.writes_of(self.reader).next().filter(|write| *write > self.read);
            if update.is_some() {
                self.report(out, AnomalyKind::DirtyUpdate, seen, update);
            }
            return;
        }
        let last = self.writes_of(writer).last();
        if last != seen {
            self.report(out, AnomalyKind::IntermediateRead, seen, last);
        }
    }

    /// Whether its transaction reads the key more than once.
    fn is_repeated(&self) -> bool {
        let mut others = self.history.txn_ops(self.reader).filter(|op| *op != self.read);
        others.any(|op| {
            self.history.op_kinds()[op.index()] == OpKind::Read
                && self.history.op_keys()[op.index()] == self.key
        })
    }

    /// Whether it may have seen the initial version, although others wrote the same.
    fn may_be_initial(&self) -> bool {
        let is_shared = matches!(self.history.initial(), Initial::Value(_) | Initial::Marked);
        is_shared && self.history.encoded_initial_version() == Some(self.word)
    }

    /// Whether it is a right read if it saw the write of this transaction.
    fn is_explained_by(&self, writer: TxnId) -> bool {
        writer != self.reader
            && self.history.outcome(writer) != Outcome::Aborted
            && self.writes_of(writer).last() == self.write_seen(writer)
    }

    /// Whether the reader comes before a writer in their session.
    fn precedes(&self, writer: TxnId) -> bool {
        !writer.is_init()
            && self.reader < writer
            && self.history.session_of(self.reader) == self.history.session_of(writer)
            && self.history.outcome(self.reader) == Outcome::Committed
    }

    /// It saw a write of one of these, all of which come later in its session.
    fn read_from_later(&self, writers: &[TxnId]) -> Anomaly {
        let (key, read, reader) = (self.key, self.read, self.reader);
        let cycle = |writer: &TxnId| {
            let saw = Reason::Read { key, read, write: self.write_seen(*writer) };
            vec![
                Edge { from: reader, to: *writer, reason: Reason::Session },
                Edge { from: *writer, to: reader, reason: saw },
            ]
        };
        let evidence = Evidence::Cases { cycles: writers.iter().map(cycle).collect() };
        Anomaly::new(AnomalyKind::CyclicCo, evidence).at(Level::AdyaReadCommitted)
    }

    fn report(
        &self,
        out: &mut Vec<Anomaly>,
        kind: AnomalyKind,
        saw: Option<OpId>,
        instead: Option<OpId>,
    ) {
        out.push(Anomaly::new(kind, Evidence::Read { read: self.read, saw, instead }));
    }

    fn own_write_before(&self) -> Option<OpId> {
        self.writes_of(self.reader).take_while(|w| *w < self.read).last()
    }

    /// The last write by which a transaction wrote what was seen.
    fn write_seen(&self, writer: TxnId) -> Option<OpId> {
        self.writes_of(writer).filter(|w| self.is_seen(*w)).last()
    }

    fn is_seen(&self, write: OpId) -> bool {
        self.history.encoded_version(write) == self.word
    }

    /// The writes of the key by a transaction, in program order.
    fn writes_of(&self, txn: TxnId) -> impl Iterator<Item = OpId> {
        self.history.txn_ops(txn).filter(move |op| {
            writes(self.history.op_kinds()[op.index()])
                && self.history.op_keys()[op.index()] == self.key
        })
    }
}
