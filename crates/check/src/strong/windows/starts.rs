//! An order to begin with: transactions by when they commit, and what follows from that.
//!
//! A start comes after all commits that it has to come after: those of its session, of whomever the
//! transaction read from, of whoever had ended by then if real time counts, and of the writers before it
//! of what it writes if these may not overlap. It comes before the commits that overwrite what it read. So
//! right after the last of those that it has to wait for is the best place for it: if that is too late, so is
//! every other.
//!
//! Where a transaction is one node, the same goes for those that only read.

use isolario_model::TxnId;
use rayon::prelude::*;

use super::Question;
use crate::graph::{Rows, interval, places};
use crate::resolved::writes;

/// All nodes, with the commits of those that write in the order of transactions that is given.
pub(super) fn first_order(question: &Question<'_>, commits: &[u32]) -> Vec<u32> {
    match question.layout.is_split() {
        true => with_starts(question, commits),
        false => with_early_readers(question, commits),
    }
}

fn with_early_readers(question: &Question<'_>, commits: &[u32]) -> Vec<u32> {
    let history = question.history();
    let only_reads = |txn: u32| {
        let kinds = &history.op_kinds()[history.op_range(TxnId(txn))];
        question.reads().is_kept(TxnId(txn)) && !kinds.iter().any(|kind| writes(*kind))
    };
    let only_reads: Vec<bool> = (0..commits.len() as u32).into_par_iter().map(only_reads).collect();
    if !only_reads.contains(&true) {
        return commits.to_vec();
    }
    let ended = Ended::new(question, &places(commits));
    // Per transaction, how many commits come before whoever follows it.
    let mut follows = vec![0u32; commits.len()];
    let mut early: Vec<(u32, u32)> = Vec::new();
    for (place, txn) in (0u32..).zip(commits) {
        follows[*txn as usize] = place + 1;
        if only_reads[*txn as usize] {
            let mut waits = ended.before(question, TxnId(*txn));
            question.dependencies.for_each_before(TxnId(*txn), |before| {
                waits = waits.max(follows[before as usize]);
            });
            follows[*txn as usize] = waits.min(place);
            early.push((waits.min(place), *txn));
        }
    }
    let early = Rows::group(commits.len() + 1, early.into_iter());
    let mut nodes = Vec::with_capacity(commits.len());
    for (place, txn) in commits.iter().enumerate() {
        nodes.extend_from_slice(early.get(place));
        nodes.extend(Some(*txn).filter(|txn| !only_reads[*txn as usize]));
    }
    nodes
}

/// All starts and commits.
fn with_starts(question: &Question<'_>, commits: &[u32]) -> Vec<u32> {
    let layout = question.layout;
    let waits = waits(question, commits);
    let after = commits.iter().zip(waits).map(|(txn, commits)| (commits, *txn));
    let starts = Rows::group(commits.len() + 1, after);
    let mut nodes = Vec::with_capacity(2 * commits.len());
    for place in 0..=commits.len() {
        nodes.extend(starts.get(place).iter().map(|txn| layout.start(TxnId(*txn))));
        nodes.extend(commits.get(place).map(|txn| layout.commit(TxnId(*txn))));
    }
    nodes
}

/// For each transaction of the order, how many commits have to come before its start.
fn waits<'c>(
    question: &'c Question<'_>,
    commits: &'c [u32],
) -> impl Iterator<Item = u32> + Clone + use<'c> {
    let (history, places) = (question.history(), places(commits));
    let ended = Ended::new(question, &places);
    let mut last_writes = vec![0u32; history.key_count()];
    let waits: Vec<u32> = (0u32..)
        .zip(commits)
        .map(|(place, txn)| {
            let txn = TxnId(*txn);
            if !question.reads().is_kept(txn) {
                return place;
            }
            let mut waits = ended.before(question, txn);
            question.dependencies.for_each_before(txn, |before| {
                waits = waits.max(places[before as usize] + 1);
            });
            if question.layout.is_exclusive() {
                for op in history.op_range(txn).filter(|op| writes(history.op_kinds()[*op])) {
                    let last = &mut last_writes[history.op_keys()[op].index()];
                    let before = std::mem::replace(last, place + 1);
                    // Nobody waits for an earlier write of its own.
                    waits = if before > place { waits } else { waits.max(before) };
                }
            }
            waits.min(place)
        })
        .collect();
    waits.into_iter()
}

/// Who had ended by a time.
struct Ended {
    /// By time of the end, how many commits it takes to have all those in it that had ended by then.
    commits: Vec<(i64, u32)>,
}

impl Ended {
    fn new(question: &Question<'_>, places: &[u32]) -> Self {
        let end = |txn: TxnId| {
            let end = interval(question.history(), question.clock_skew, txn).1?;
            Some((end, places[txn.index()] + 1))
        };
        let counts = |txn: &TxnId| question.layout.real_time && question.reads().is_kept(*txn);
        let mut commits: Vec<(i64, u32)> =
            question.history().txns().filter(counts).filter_map(end).collect();
        commits.sort_unstable();
        let mut most = 0;
        for (_, count) in &mut commits {
            most = most.max(*count);
            *count = most;
        }
        Ended { commits }
    }

    /// How many commits come before whatever starts with a transaction.
    fn before(&self, question: &Question<'_>, txn: TxnId) -> u32 {
        let Some(start) = question.history().start(txn) else { return 0 };
        let count = self.commits.partition_point(|(end, _)| *end < start);
        self.commits[..count].last().map_or(0, |(_, commits)| *commits)
    }
}
