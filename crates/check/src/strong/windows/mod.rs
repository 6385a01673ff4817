//! Window by window: an order that the history suggests is mended where it is wrong.
//!
//! Most of a history is in order by the times of its clients or the stamps of the database. So that order is
//! played back ([`replay`]), and where something is wrong a window is cut out of it. Each window is solved as a
//! problem of its own, on all cores ([`window`]), under the assumption that what is before it and
//! after it stays there. If nothing is wrong any more, the order is a solution, and no edge, version or choice was
//! ever written down outside of the windows.
//!
//! A window without an order is no violation: the assumptions may be to blame. It is one if the transactions of the
//! window, with those that they read from, have no order as a history of their own; what is
//! wrong with them is told of the whole. Else the windows grow, and those that meet become one. Where they have grown so
//! much that there is nothing to gain, everything is looked at, at once.

mod few;
mod known;
mod read_later;
mod replay;
mod starts;
#[cfg(test)]
mod tests;
mod window;

use std::ops::Range;
use std::time::Instant;

use isolario_model::{Findings, History, HistoryPart, KeyId, TxnId, Witness};
use rayon::prelude::*;

use super::layout::Layout;
use super::limits::Limits;
use super::{Steps, search};
use crate::CheckOptions;
use crate::graph::{Rows, cut, joined, places, points};
use crate::minimal::Whole;
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, OpenReads, Reads, Resolved, VersionEdge};
use read_later::{OUTSIDE, read_later};
use replay::{Played, replay};
use window::{Answer, Row, Window};

/// A version, by its key and who wrote it.
type WrittenBy = (KeyId, TxnId);

/// By how much windows grow from one round to the next.
const GROWTH: usize = 4;

/// After so many rounds, windows have either grown to everything or do not help.
const MOST_ROUNDS: u32 = 12;

/// What is asked, and of which history.
struct Question<'a> {
    dependencies: &'a Dependencies<'a>,
    layout: Layout,
    open: &'a OpenReads,
    clock_skew: u64,
}

impl<'a> Question<'a> {
    fn history(&self) -> &'a History {
        self.dependencies.history
    }

    fn reads(&self) -> &'a Reads {
        &self.dependencies.reads
    }

    /// The reads of a transaction that may have seen one of several versions, by number.
    fn open_reads(&self, txn: TxnId) -> Range<usize> {
        let reads = &self.open.reads;
        if reads.is_empty() {
            return 0..0;
        }
        let ops = self.history().op_range(txn);
        let first = |end: usize| reads.partition_point(|read| read.index() < end);
        first(ops.start)..first(ops.end)
    }

    /// Who may have written what such a read saw. Nobody is taken to be there who may not be.
    fn candidates(&self, read: usize) -> impl Iterator<Item = TxnId> + use<'a> {
        let (reads, writers) = (self.reads(), self.open.writers.get(read));
        writers.iter().copied().filter(|writer| writer.is_init() || reads.is_kept(*writer))
    }

    /// Whether a node is of a transaction that counts.
    fn counts(&self, node: u32) -> bool {
        self.layout.txn(node).is_some_and(|txn| self.reads().is_kept(txn))
    }

    /// The transactions of some nodes that count.
    fn kept(&self, nodes: &'a [u32]) -> impl Iterator<Item = TxnId> {
        nodes.iter().filter(|node| self.counts(**node)).filter_map(|node| self.layout.txn(*node))
    }

    /// The orders of versions that are known.
    fn version_edges(&self) -> impl Iterator<Item = &'a VersionEdge> {
        let reads = self.reads();
        let counts = |txn: TxnId| !txn.is_init() && reads.is_kept(txn);
        reads.version_order.iter().filter(move |edge| counts(edge.before) && counts(edge.after))
    }
}

/// Decides a level window by window, as long as no more than a share of the order is in some window. Passes
/// where that is not enough to tell.
pub(super) fn decide(
    resolved: &Resolved<'_>,
    limits: &Limits<'_>,
    widest_percent: usize,
) -> Conclusion {
    let (dependencies, options) = (&resolved.dependencies, limits.options);
    let (open, commits) = (&dependencies.reads.choices.open, &resolved.order);
    let layout = Layout::of(limits.level, dependencies.history.txn_count());
    let (Some(layout), Some(open), Some(commits)) = (layout, open, commits) else {
        return Conclusion::Pass;
    };
    // Which writers exclude each other is then part of what is searched for.
    let may_come_back =
        || options.by_incarnation && layout.is_exclusive() && dependencies.history.may_reuse_rows();
    if may_come_back() {
        return Conclusion::Pass;
    }
    let question = Question { dependencies, layout, open, clock_skew: options.clock_skew };
    let nodes = starts::first_order(&question, commits);
    let mut row = Mending { question, options, limits, nodes };
    for round in 0..MOST_ROUNDS {
        let places = places(&row.nodes);
        let (wrong, saw) = row.wrong(&places);
        if wrong.is_empty() {
            return Conclusion::Holds(row.witness());
        }
        let windows = row.windows(&wrong, round);
        let inside: usize = windows.iter().map(ExactSizeIterator::len).sum();
        if limits.reached(0).is_some() || inside * 100 > row.nodes.len() * widest_percent {
            return Conclusion::Pass;
        }
        match row.mend(&windows, Row { places: &places, saw: &saw }) {
            Mended::Some => {}
            Mended::Hardly => return Conclusion::Pass,
            Mended::Never(findings) => return Conclusion::Refuted(findings),
        }
    }
    Conclusion::Pass
}

/// What became of the windows of an order.
enum Mended {
    /// Some are in order now.
    Some,
    /// One of them is hard: the whole may be easier, where more is known.
    Hardly,
    /// One of them cannot be put in order.
    Never(Findings),
}

/// An order that is being mended.
struct Mending<'a> {
    question: Question<'a>,
    options: &'a CheckOptions,
    limits: &'a Limits<'a>,
    nodes: Vec<u32>,
}

impl Mending<'_> {
    /// The first and the last place of all that is wrong, and whose versions open reads see.
    fn wrong(&self, places: &[u32]) -> (Vec<(u32, u32)>, Vec<Option<TxnId>>) {
        let Played { mut wrong, saw } = replay(&self.question, &self.nodes, places);
        wrong.extend(known::contradicted(&self.question, &self.nodes, places));
        (wrong, saw)
    }

    /// The windows around what is wrong.
    fn windows(&self, wrong: &[(u32, u32)], round: u32) -> Vec<Range<usize>> {
        let grown = |(first, last): &(u32, u32)| {
            let (first, end) = (*first as usize, *last as usize + 1);
            let more = (end - first).saturating_mul(GROWTH.saturating_pow(round) - 1);
            (first.saturating_sub(more), end.saturating_add(more).min(self.nodes.len()))
        };
        joined(wrong.iter().map(grown).collect())
    }

    /// Solves windows, until one of them turns out to be hard.
    fn mend(&mut self, windows: &[Range<usize>], row: Row<'_>) -> Mended {
        let question = &self.question;
        let mut window_of = vec![OUTSIDE; self.nodes.len()];
        for (number, window) in (0u32..).zip(windows) {
            self.nodes[window.clone()].iter().for_each(|n| window_of[*n as usize] = number);
        }
        let later = read_later(question, windows.len(), &window_of, row.saw);
        let ordered = ordered(question, windows.len(), &window_of);
        let window = |number: usize| Window {
            range: windows[number].clone(),
            nodes: &self.nodes[windows[number].clone()],
            read_later: later.get(number),
            ordered: ordered.get(number),
        };
        let solve = |number: usize| {
            let answer = window::solve(question, row, &window(number), self.limits);
            (!matches!(answer, Answer::Stopped)).then_some(answer)
        };
        let answers: Option<Vec<Answer>> =
            (0..windows.len()).into_par_iter().with_max_len(1).map(solve).collect();
        let Some(answers) = answers else { return Mended::Hardly };
        let refuted = (0..windows.len()).filter(|n| matches!(answers[*n], Answer::None));
        let refuted: Vec<Window<'_>> = refuted.map(window).collect();
        if let Some(findings) = self.violations(&refuted, row.places) {
            return Mended::Never(findings);
        }
        for (nodes, answer) in cut(&mut self.nodes, windows).into_iter().zip(answers) {
            if let Answer::Order(order) = answer {
                nodes.copy_from_slice(&order);
            }
        }
        Mended::Some
    }

    /// What is wrong with windows that have no order, whatever the rest does.
    fn violations(&self, windows: &[Window<'_>], places: &[u32]) -> Option<Findings> {
        // What is stated or assumed of orders is not part of a history.
        let is_about_all =
            !self.options.version_order.is_empty() || self.options.assume.order_versions();
        if is_about_all {
            return None;
        }
        let question = &self.question;
        let wrong = |window: &Window<'_>| {
            let txns = window::with_writers(question, window.nodes);
            let all = || txns.clone();
            window::has_no_order(question, places, all(), window.ordered, self.limits)
                .then_some(txns)
        };
        let txns: Vec<Vec<TxnId>> = windows.par_iter().with_max_len(1).filter_map(wrong).collect();
        (!txns.is_empty()).then(|| self.told_of(txns.concat()))?
    }

    /// What is wrong with some transactions as a history of their own.
    fn told_of(&self, txns: Vec<TxnId>) -> Option<Findings> {
        let history = self.question.history();
        let (part, ops) = HistoryPart::of_txns(history, txns).build_with_ids(history).ok()?;
        let options = CheckOptions {
            timeout: self.limits.time_left(),
            committed: Vec::new(),
            ..self.options.clone()
        };
        let resolved = Resolved::with_matched(&part, &[], &options);
        let level = self.question.layout.level;
        let found = search(&resolved, level, &options, Instant::now(), Steps::ALL);
        let Conclusion::Refuted(findings) = found else {
            return None;
        };
        let whole = Whole { history, part: &part, ops: &ops };
        let anomalies = findings.anomalies.iter().map(|anomaly| anomaly.map(&whole));
        Some(Findings::new(anomalies.collect::<Result<_, _>>().ok()?, false))
    }

    /// The order of those that count.
    fn witness(&self) -> Witness {
        let is_kept = |txn| self.question.reads().is_kept(txn);
        match self.question.layout.is_split() {
            true => Witness::Points(points(&self.nodes, is_kept)),
            false => {
                let txns = self.nodes.iter().copied().map(TxnId);
                Witness::CommitOrder(txns.filter(|txn| is_kept(*txn)).collect())
            }
        }
    }
}

/// By window, the orders of versions in it that are known.
fn ordered(question: &Question<'_>, windows: usize, window_of: &[u32]) -> Rows<VersionEdge> {
    let window = |txn: TxnId| window_of[question.layout.commit(txn) as usize];
    let mut found: Vec<(u32, VersionEdge)> = Vec::new();
    for edge in question.version_edges() {
        let one = window(edge.before);
        if one != OUTSIDE && one == window(edge.after) {
            found.push((one, *edge));
        }
    }
    let mut rows: Rows<VersionEdge> = Rows::default();
    found.sort_by_key(|(window, _)| *window);
    for number in 0..windows as u32 {
        let begin = found.partition_point(|(window, _)| *window < number);
        let here = found[begin..].iter().take_while(|(window, _)| *window == number);
        rows.push(here.map(|(_, edge)| *edge));
    }
    rows
}
