//! Cut isolation: reading a key again, from others, returns the same version.
//!
//! Plume, Definition 3. Nothing else is asked: a read that is wrong for another reason counts
//! here like any other, as long as a committed transaction or `init` wrote what it saw.

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Initial, KeyId, OpId, OpKind, Outcome, TxnId,
};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::resolved::Reads;
use crate::resolved::{Choices, filter_bit, writes};

/// What repeated reads show.
pub(crate) struct Repeated {
    /// Every read of a key whose transaction had read it from somebody else before.
    pub(crate) disagree: Vec<Anomaly>,
    /// Whether there are no others, whatever the reads saw that may have seen several writes.
    pub(crate) is_settled: bool,
}

impl Repeated {
    pub(crate) fn new(history: &History, reads: &Reads) -> Self {
        let mut disagree = non_repeatable_reads(history, reads);
        let Choices { refusal, refusal_at_cut, .. } = &reads.choices;
        if refusal.is_none() && refusal_at_cut.is_none() {
            return Repeated { disagree, is_settled: true };
        }
        if history.op_kinds().contains(&OpKind::ReadList) {
            return Repeated { disagree, is_settled: false };
        }
        let is_settled = Readings::new(history, reads).compare(&mut disagree);
        disagree.sort_by_key(|anomaly| match &anomaly.evidence {
            Evidence::Reads { second, .. } => *second,
            _ => OpId(0),
        });
        Repeated { disagree, is_settled }
    }
}

/// Transactions per task.
const TXNS_PER_TASK: usize = 1 << 14;

/// Every read of a key whose transaction had read it from somebody else before.
fn non_repeatable_reads(history: &History, reads: &Reads) -> Vec<Anomaly> {
    let starts: Vec<usize> = (0..history.txn_count()).step_by(TXNS_PER_TASK).collect();
    let found: Vec<Vec<Anomaly>> = starts
        .into_par_iter()
        .map_init(
            || vec![None; history.key_count()],
            |seen, start| {
                let end = (start + TXNS_PER_TASK).min(history.txn_count());
                let kept = (start..end).map(TxnId::at).filter(|txn| reads.is_kept(*txn));
                let mut found = Vec::new();
                kept.for_each(|txn| check(history, reads, txn, seen, &mut found));
                found
            },
        )
        .collect();
    found.into_iter().flatten().collect()
}

/// The first read of a key from others, by the transaction that is named in it.
type FirstRead = (TxnId, OpId, TxnId);

fn check(
    history: &History,
    reads: &Reads,
    txn: TxnId,
    seen: &mut [Option<FirstRead>],
    found: &mut Vec<Anomaly>,
) {
    if !may_repeat(history, txn) {
        return;
    }
    for op in history.txn_ops(txn) {
        let Some(writer) = reads.foreign_writer(op).filter(|writer| *writer != txn) else {
            continue;
        };
        let key = history.op_keys()[op.index()];
        match seen[key.index()] {
            Some((reader, first, from)) if reader == txn => {
                if from != writer || (writer.is_init() && differs(history, first, op)) {
                    let evidence = Evidence::Reads { key, first, second: op, edges: Vec::new() };
                    found.push(Anomaly::new(AnomalyKind::NonRepeatableRead, evidence));
                }
            }
            _ => seen[key.index()] = Some((txn, op, writer)),
        }
    }
}

/// Whether two reads of values that nobody wrote returned different ones, where any such value may be
/// the initial one.
fn differs(history: &History, first: OpId, second: OpId) -> bool {
    let is_register = history.op_kinds()[second.index()] == OpKind::Read;
    is_register
        && *history.initial() == Initial::Unwritten
        && history.encoded_version(first) != history.encoded_version(second)
}

/// Whether a transaction may read a key twice; never a false no. Few do, and of the others most are
/// known by a set of 64 bits to be none of them.
fn may_repeat(history: &History, txn: TxnId) -> bool {
    let range = history.op_range(txn);
    let mut filter = 0;
    history.op_keys()[range.clone()].iter().zip(&history.op_kinds()[range]).any(|(key, kind)| {
        use OpKind::{Read, ReadList, ReadUnobserved};
        // It may be supposed of a read without an answer what it saw.
        let is_read = matches!(kind, Read | ReadList | ReadUnobserved);
        let bit = if is_read { filter_bit(*key) } else { 0 };
        let repeats = filter & bit != 0;
        filter |= bit;
        repeats
    })
}

/// A version of a key, as an operation shows it.
type Version = (KeyId, u64);

/// Transactions that read different values of a key, and who wrote these. A transaction of unknown
/// outcome may have committed: if it reads nothing that does not agree, it may as well have.
struct Readings<'a> {
    history: &'a History,
    reads: &'a Reads,
    /// By transaction and key, its reads of the key.
    repeated: Vec<Vec<OpId>>,
    /// Who wrote what these saw, aborted or not, sorted.
    writers: Vec<(Version, TxnId)>,
}

impl<'a> Readings<'a> {
    fn new(history: &'a History, reads: &'a Reads) -> Self {
        let version = |op: OpId| (history.op_keys()[op.index()], history.encoded_version(op));
        let may_have_committed = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let mut repeated: Vec<Vec<OpId>> = Vec::new();
        for txn in history.txns().filter(may_have_committed) {
            if may_repeat(history, txn) {
                let kinds = history.op_kinds();
                let is_read = |op: &OpId| kinds[op.index()] == OpKind::Read;
                let mut ops: Vec<OpId> = history.txn_ops(txn).filter(is_read).collect();
                ops.sort_by_key(|op| history.op_keys()[op.index()]);
                let of_keys = ops.chunk_by(|one, other| version(*one).0 == version(*other).0);
                let differ = |ops: &&[OpId]| ops.iter().any(|op| version(*op) != version(ops[0]));
                repeated.extend(of_keys.filter(differ).map(<[OpId]>::to_vec));
            }
        }
        let wanted: FxHashSet<Version> = repeated.iter().flatten().map(|op| version(*op)).collect();
        let mut found = Vec::new();
        for txn in history.txns().filter(|_| !wanted.is_empty()) {
            let ops = history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()]));
            found.extend(ops.map(version).filter(|v| wanted.contains(v)).map(|v| (v, txn)));
        }
        found.sort_unstable();
        Readings { history, reads, repeated, writers: found }
    }

    /// Adds reads that cannot have seen the same transaction's writes. Returns whether the others can.
    fn compare(&self, disagree: &mut Vec<Anomaly>) -> bool {
        let mut is_settled = true;
        for ops in &self.repeated {
            let is_kept = self.reads.is_kept(self.history.op_txn(ops[0]));
            let counted: Vec<(OpId, Vec<TxnId>)> =
                ops.iter().filter_map(|op| Some((*op, self.seen(*op)?))).collect();
            let Some((_, all)) = counted.first() else { continue };
            let mut common = all.clone();
            for (at, (second, seen)) in counted.iter().enumerate().skip(1) {
                common.retain(|writer| seen.contains(writer));
                let is_apart = |(first, all): &&(OpId, Vec<TxnId>)| {
                    self.is_open(*first, *second) && !all.iter().any(|w| seen.contains(w))
                };
                if let Some((first, _)) = counted[..at].iter().find(is_apart).filter(|_| is_kept) {
                    let key = self.history.op_keys()[first.index()];
                    let (first, second) = (*first, *second);
                    let evidence = Evidence::Reads { key, first, second, edges: Vec::new() };
                    disagree.push(Anomaly::new(AnomalyKind::NonRepeatableRead, evidence));
                }
            }
            is_settled &= !common.is_empty();
        }
        is_settled
    }

    /// Whether it is open what one of two reads saw. Others were compared already.
    fn is_open(&self, first: OpId, second: OpId) -> bool {
        [first, second].iter().any(|read| self.reads.foreign_writer(*read).is_none())
    }

    /// Who may have written what a read saw; none if it may have been an own or an aborted write, or
    /// nobody's: such a read does not count.
    fn seen(&self, read: OpId) -> Option<Vec<TxnId>> {
        let history = self.history;
        let reader = history.op_txn(read);
        let version = (history.op_keys()[read.index()], history.encoded_version(read));
        let begin = self.writers.partition_point(|(other, _)| *other < version);
        let of_version = self.writers[begin..].iter().take_while(|(other, _)| *other == version);
        let mut seen: Vec<TxnId> = of_version.map(|(_, writer)| *writer).collect();
        let is_anybodys = !seen.is_empty();
        let is_initial = history.encoded_initial_version() == Some(version.1);
        if match history.initial() {
            Initial::Value(_) | Initial::Marked => is_initial,
            Initial::UnlessWritten(_) => is_initial && !is_anybodys,
            Initial::Unwritten => !is_anybodys,
            _ => false,
        } {
            seen.push(TxnId::INIT);
        }
        let counts = |writer: &TxnId| {
            writer.is_init() || *writer != reader && history.outcome(*writer) != Outcome::Aborted
        };
        (!seen.is_empty() && seen.iter().all(counts)).then_some(seen)
    }
}
