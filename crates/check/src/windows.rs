//! Windows: the parts of a history that are not in order by themselves.
//!
//! Rank the nodes of a graph by a guess at the order of commits. An edge that leads back in rank spans
//! an interval of ranks. Every cycle lies inside one maximal union of overlapping intervals: wherever
//! one cuts the span of a cycle, the cycle has to come back over the cut, and the edge by which it does
//! spans the cut. So these unions, the *windows*, can be looked at one by one, and between them the
//! rank is the order. `graph/order.rs` finds and mends them; here they are measured.

use std::sync::Arc;

use isolario_model::{History, Outcome, TxnId};
use rayon::prelude::*;

use crate::graph::{InEdges, Order, Split, commit_of, start_of, txn_of};
use crate::resolved::{Clue, Dependencies, Inferred, Overwrites, Resolved, Saturated};

/// What the transactions of a history were ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RankedBy {
    /// The database's own stamps.
    Stamps,
    /// The times at which clients saw them finish.
    FinishTimes,
    /// Nothing better than the order of the file, made to agree with sessions and reads.
    Dependencies,
}

/// How a history splits into windows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Segmentation {
    /// What transactions were ranked by.
    pub ranked_by: RankedBy,
    /// Whether anti-dependencies are among the edges. They are known where every write follows a read
    /// of its key; elsewhere there are session order, reads and what lists show.
    pub with_anti_dependencies: bool,
    /// With one node per transaction.
    pub transactions: SegmentSizes,
    /// With two nodes per transaction, its start and its commit.
    pub points: SegmentSizes,
}

/// How many windows there are, and how large. Sizes are in nodes that count: transactions that
/// committed or that somebody read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentSizes {
    /// Nodes, whether in a window or not.
    pub nodes: usize,
    /// Windows.
    pub segments: usize,
    /// Nodes of the largest window.
    pub largest: usize,
    /// Nodes that are in some window.
    pub inside: usize,
}

impl SegmentSizes {
    /// Nodes of a window on average; none where there is no window.
    pub fn mean(&self) -> Option<f64> {
        (self.segments > 0).then(|| self.inside as f64 / self.segments as f64)
    }

    /// The share of the nodes that are in some window.
    pub fn share(&self) -> f64 {
        self.inside as f64 / self.nodes.max(1) as f64
    }
}

/// Measures the windows of a history.
pub(crate) fn measure(resolved: &Arc<Resolved<'_>>) -> Segmentation {
    let Dependencies { history, reads, .. } = &resolved.dependencies;
    let txns = history.txn_count();
    let overwrites = Overwrites::new(Arc::clone(resolved)).ok();
    let overtaken = overwrites.as_ref().map(Overwrites::anti_dependencies).unwrap_or_default();
    let listed = || reads.version_order.iter().map(|edge| (edge.before, edge.after)).collect();
    let all: Vec<_> = overtaken.iter().cloned().chain([listed()]).collect();
    let (all, known) = (Inferred::new(txns, &all), Inferred::new(txns, &[listed()]));
    let overtaken = Inferred::new(txns, &overtaken);
    let serial = Saturated { dependencies: &resolved.dependencies, inferred: &all };
    let waits = Saturated { dependencies: &resolved.dependencies, inferred: &known };
    let split = Split { waits: &waits, overtaken: &overtaken };
    let ranks = Ranks::new(resolved);
    let counts = |txn: u32| reads.is_kept(TxnId(txn));
    Segmentation {
        ranked_by: ranks.by,
        with_anti_dependencies: overwrites.is_some(),
        transactions: sizes(&ranks.transactions(), &serial, counts),
        points: sizes(&ranks.moments(), &split, |moment| counts(txn_of(moment))),
    }
}

/// Sizes of the windows of a graph whose nodes are in some order.
fn sizes(
    order: &Order,
    graph: &(impl InEdges + Sync),
    counts: impl Fn(u32) -> bool + Sync,
) -> SegmentSizes {
    let place = |node: u32| order.places()[node as usize];
    let leading_back = |node: &u32| {
        let node = *node;
        let before = graph.predecessors(node).filter(move |from| place(*from) >= place(node));
        before.map(|from| (from, node)).collect::<Vec<_>>()
    };
    let denied: Vec<(u32, u32)> = order.nodes().par_iter().flat_map_iter(leading_back).collect();
    let counted = |nodes: &[u32]| nodes.iter().filter(|node| counts(**node)).count();
    let mut sizes = SegmentSizes { nodes: counted(order.nodes()), ..SegmentSizes::default() };
    for window in order.stretches(&denied) {
        let size = counted(&order.nodes()[window]);
        sizes.segments += 1;
        sizes.largest = sizes.largest.max(size);
        sizes.inside += size;
    }
    sizes
}

/// When something happened, and what comes first of what happened at the same time.
type Rank = (u64, u8);

/// Just before whatever happens then.
const BEFORE: u8 = 0;
const START: u8 = 1;
const COMMIT: u8 = 2;

const NEVER: Rank = (u64::MAX, COMMIT);

/// When transactions started and committed, as far as one can guess.
struct Ranks<'r, 'h> {
    dependencies: &'r Dependencies<'h>,
    by: RankedBy,
    /// By transaction. For those of unknown outcome: never.
    commits: Vec<Rank>,
    /// By transaction; the beginning of time where nothing is known.
    starts: Vec<Rank>,
    /// Reads from transactions of unknown outcome: (writer, reader).
    reads_from_unknown: Vec<(TxnId, TxnId)>,
}

/// A time of a client as a number that grows with it.
fn since(time: i64) -> u64 {
    time.wrapping_sub(i64::MIN) as u64
}

impl<'r, 'h> Ranks<'r, 'h> {
    fn new(resolved: &'r Resolved<'h>) -> Self {
        let dependencies = &resolved.dependencies;
        let history = dependencies.history;
        let (by, places) = match resolved.guess.clue {
            Clue::Times => (RankedBy::FinishTimes, None),
            Clue::Stamps => (RankedBy::Stamps, Some(&resolved.guess.commits)),
            Clue::Places => {
                let order = resolved.order.as_ref().unwrap_or(&resolved.guess.commits);
                (RankedBy::Dependencies, Some(order))
            }
        };
        let txns = || history.txns();
        let (commits, starts) = match places {
            None => (txns().map(|txn| finish(history, txn)).collect(), starts(history)),
            Some(order) => {
                let mut commits = vec![NEVER; history.txn_count()];
                for (place, txn) in order.iter().enumerate() {
                    commits[*txn as usize] = (place as u64, COMMIT);
                }
                txns().filter(|txn| is_unknown(history, *txn)).for_each(|txn| {
                    commits[txn.index()] = NEVER;
                });
                (commits, vec![(0, BEFORE); history.txn_count()])
            }
        };
        let mut reads_from_unknown = Vec::new();
        for reader in txns().filter(|txn| dependencies.reads.is_kept(*txn)) {
            dependencies.for_each_before(reader, |writer| {
                if is_unknown(history, TxnId(writer)) {
                    reads_from_unknown.push((TxnId(writer), reader));
                }
            });
        }
        Ranks { dependencies, by, commits, starts, reads_from_unknown }
    }

    /// All transactions, each as one node.
    fn transactions(&self) -> Order {
        let commits = self.with_unknown(|commits, reader| commits[reader.index()]);
        sorted(commits)
    }

    /// All transactions, each as two nodes. A start comes after whatever had committed by then, and after
    /// the commits that it saw. Commits of the same time are in the order in which they are as single nodes: clocks
    /// may be coarse.
    fn moments(&self) -> Order {
        let mut commits = self.with_unknown(|_, reader| self.starts[reader.index()]);
        let order = sorted(commits.clone());
        commits.par_sort_unstable();
        let mut nodes: Vec<(usize, u32)> = Vec::with_capacity(2 * commits.len());
        for txn in (0..commits.len()).map(TxnId::at) {
            let place = |txn: u32| order.places()[txn as usize] as usize;
            let mut before = commits.partition_point(|commit| *commit < self.starts[txn.index()]);
            if self.dependencies.reads.is_kept(txn) {
                self.dependencies.for_each_before(txn, |seen| before = before.max(place(seen) + 1));
            }
            nodes.push((2 * before, start_of(txn.0)));
            nodes.push((2 * place(txn.0) + 1, commit_of(txn.0)));
        }
        nodes.par_sort_unstable();
        Order::new(nodes.into_iter().map(|(_, node)| node).collect())
    }

    /// The commits, where a transaction of unknown outcome ranks just before the first that read from
    /// it, and not before its own start. At the end of time it would make one window of the rest of
    /// the history.
    fn with_unknown(&self, read_at: impl Fn(&[Rank], TxnId) -> Rank) -> Vec<Rank> {
        let mut commits = self.commits.clone();
        loop {
            let mut is_settled = true;
            for (writer, reader) in &self.reads_from_unknown {
                let rank = (read_at(&commits, *reader).0, BEFORE);
                let rank = rank.max((self.starts[writer.index()].0, START));
                if rank < commits[writer.index()] {
                    commits[writer.index()] = rank;
                    is_settled = false;
                }
            }
            if is_settled {
                return commits;
            }
        }
    }
}

fn is_unknown(history: &History, txn: TxnId) -> bool {
    history.outcome(txn) == Outcome::Unknown
}

/// With all bits of the time: real time never leads back by finish, for what finished before another
/// started finished before that one finished.
fn finish(history: &History, txn: TxnId) -> Rank {
    match history.finish(txn).filter(|_| !is_unknown(history, txn)) {
        Some(finish) => (since(finish), COMMIT),
        None => NEVER,
    }
}

fn starts(history: &History) -> Vec<Rank> {
    let start = |txn| history.start(txn).map_or((0, BEFORE), |start| (since(start), START));
    history.txns().map(start).collect()
}

/// All nodes by rank.
fn sorted(ranks: Vec<Rank>) -> Order {
    let mut nodes: Vec<(Rank, u32)> = ranks.into_iter().zip(0..).collect();
    nodes.par_sort_unstable();
    Order::new(nodes.into_iter().map(|(_, node)| node).collect())
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Level};
    use isolario_oracle::{history, volume};
    use isolario_sim::{Config, Kind, Plant, Workload, generate, templates};

    use super::*;
    use crate::CheckOptions;
    use crate::graph::components;

    /// Numbers that look random, and are the same every time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 33) % u64::from(end)) as u32
        }
    }

    /// Which nodes lead to which, by trying everything.
    fn reachable(nodes: u32, edges: &[(u32, u32)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes as usize]; nodes as usize];
        edges.iter().for_each(|(from, to)| reach[*from as usize][*to as usize] = true);
        for over in 0..nodes as usize {
            for from in 0..nodes as usize {
                for to in 0..nodes as usize {
                    reach[from][to] |= reach[from][over] && reach[over][to];
                }
            }
        }
        reach
    }

    #[test]
    fn every_cycle_lies_inside_one_window_and_edges_between_windows_lead_forward() {
        let mut dice = Dice(1);
        let (mut cyclic, mut split) = (0, 0);
        for _ in 0..volume().min(3000) {
            let nodes = 2 + dice.below(11);
            let edges: Vec<(u32, u32)> = (0..dice.below(2 * nodes))
                .map(|_| (dice.below(nodes), dice.below(nodes)))
                .collect();
            let ranks = (0..nodes).map(|_| (u64::from(dice.below(nodes)), COMMIT)).collect();
            let order = sorted(ranks);
            let place = |node: u32| order.places()[node as usize] as usize;
            let back: Vec<_> =
                edges.iter().copied().filter(|(from, to)| place(*from) >= place(*to)).collect();
            let windows = order.stretches(&back);
            let window = |node: u32| windows.iter().position(|w| w.contains(&place(node)));
            let reach = reachable(nodes, &edges);
            for (one, two) in (0..nodes).flat_map(|one| (0..nodes).map(move |two| (one, two))) {
                if reach[one as usize][two as usize] && reach[two as usize][one as usize] {
                    assert!(window(one).is_some() && window(one) == window(two), "{edges:?}");
                    cyclic += 1;
                }
            }
            for (from, to) in &edges {
                let apart = window(*from).is_none() || window(*from) != window(*to);
                assert!(!apart || place(*from) < place(*to), "{edges:?}");
            }
            split += usize::from(windows.len() > 1);
        }
        assert!(cyclic > 100 && split > 100, "{cyclic} {split}");
    }

    fn windows(history: &History) -> Segmentation {
        measure(&Arc::new(Resolved::new(history, &CheckOptions::default())))
    }

    #[test]
    fn cycles_of_histories_are_no_larger_than_their_largest_window() {
        for template in
            templates().iter().filter(|template| template.kind.forbidden_at(Level::Serializable))
        {
            let config = Config {
                level: Level::StrictSerializable,
                workload: Workload { kind: Kind::Mini, keys: 20, ..Workload::default() },
                txns: 200,
                sessions: 5,
                unknown_ratio: 0.05,
                abort_ratio: 0.05,
                anomalies: vec![Plant { kind: template.kind, at: 0.5 }],
                seed: 3,
                ..Config::default()
            };
            let mut batch = Batch::new();
            generate(&config, &mut batch).unwrap();
            let history = batch.build().unwrap();
            let resolved = Arc::new(Resolved::new(&history, &CheckOptions::default()));
            let windows = measure(&resolved);
            let Ok(overwrites) = Overwrites::new(Arc::clone(&resolved)) else { continue };
            let inferred = Inferred::new(history.txn_count(), &overwrites.anti_dependencies());
            let graph = Saturated { dependencies: &resolved.dependencies, inferred: &inferred };
            let largest = components(&graph).iter().map(Vec::len).max().unwrap_or_default();
            assert!(largest <= windows.transactions.largest, "{}: {windows:?}", template.kind);
        }
    }

    #[test]
    fn what_is_in_order_is_in_no_window() {
        let windows = windows(&history("a: w x 1\n a: r x 1, w x 2\n a: r x 2"));
        assert_eq!(windows.transactions.segments, 0);
        assert_eq!(windows.points, SegmentSizes { nodes: 6, ..SegmentSizes::default() });
        assert!(windows.with_anti_dependencies);
        assert_eq!(windows.transactions.mean(), None);
    }

    #[test]
    fn a_coarse_clock_makes_no_windows() {
        let windows =
            windows(&history("a [1, 1]: w x 1\n b [1, 1]: r x 1, w x 2\n b [1, 1]: r x 2"));
        assert_eq!((windows.transactions.segments, windows.points.segments), (0, 0));
    }

    #[test]
    fn one_long_transaction_makes_one_wide_window_unless_its_start_is_apart() {
        // The reader finished last, and saw the world before everybody wrote.
        let text = "a [1, 2]: w x 1\n b [3, 4]: r x 1, w x 2\n b [5, 6]: r x 2, w x 3\n \
                    c [2, 9]: r x 1";
        let windows = windows(&history(text));
        assert_eq!(windows.ranked_by, RankedBy::FinishTimes);
        assert_eq!(windows.transactions.largest, 3);
        assert_eq!(windows.points.segments, 0, "{windows:?}");
    }

    #[test]
    fn an_unknown_outcome_ranks_before_its_first_reader() {
        let text = "a unknown [1, ?]: w x 1\n b [2, 3]: r x 1, w x 2\n b [4, 5]: r x 2, w x 3";
        let windows = windows(&history(text));
        assert_eq!((windows.transactions.segments, windows.points.segments), (0, 0));
    }
}
