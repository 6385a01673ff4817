//! How a level is decided: an order of transactions, and the dependencies that contradict it.
//!
//! [`Certificate::order`] is the loop, of all levels. It starts from an order in which the dependencies of
//! single rows lead forward; those of predicates are too many to list. So it looks for the few that
//! contradict the order (`dependencies.rs`: [`Certificate::contradicted`]), adds them, and repairs the
//! order, until none is left, or there is a cycle (`evidence.rs`).
//!
//! Under snapshot isolation a transaction is two nodes, its start and its commit, and a snapshot orders the
//! commits that it shows before the start (`snapshots.rs`). Else it is one node.

use isolario_model::{Inapplicable, Level, ReadSource, TxnId, VisibilityRule, Witness};

use super::dependencies::{OrderPositions, PredicateEdge};
use super::items::ItemRead;
use super::{Certificate, Objects};
use crate::graph::{
    InEdges, InTime, Moments, Order, RealTime, Rows, Split, agrees, commit_of, leading_back,
    places, points, start_of, topological_order,
};
use crate::plan::Conclusion;

/// A level, and what decides it.
#[derive(Clone, Copy)]
pub(super) struct LevelQuestion<'q> {
    pub(super) level: Level,
    pub(super) counted: Counted,
    /// Whether session order counts.
    pub(super) sessions: bool,
    /// Whether real time does.
    pub(super) in_time: bool,
    /// Whether a transaction starts after what its snapshot shows.
    pub(super) by_snapshots: bool,
    /// The versions that open reads are supposed to have returned.
    pub(super) open: Open<'q>,
}

/// The dependencies of reads that count, each kind with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    /// None: a read may return anything.
    Nothing,
    /// A read comes after the write of what it returned, and of each change of what its predicate matches.
    Reads,
    /// And before the next write of a row that it returned.
    RowAntiDependencies,
    /// And before the next change of what its predicate matches.
    AntiDependencies,
}

impl Counted {
    /// The dependencies of reads that count at a level; none if a certificate does not decide the level.
    pub(super) fn at(level: Level) -> Option<Counted> {
        use Level as L;
        Some(match level {
            L::ReadUncommitted | L::StrongReadUncommitted => Counted::Nothing,
            L::AdyaReadCommitted | L::StrongAdyaReadCommitted => Counted::Reads,
            L::RepeatableRead | L::StrongRepeatableRead => Counted::RowAntiDependencies,
            L::ConsistentView
            | L::ParallelSnapshotIsolation
            | L::SnapshotIsolation
            | L::StrongSnapshotIsolation
            | L::Serializable
            | L::StrictSerializable => Counted::AntiDependencies,
            _ => return None,
        })
    }
}

/// The versions that open reads, which may have returned any of several equal ones, are supposed to have
/// returned.
#[derive(Clone, Copy)]
pub(super) enum Open<'q> {
    /// None: these reads do not count.
    None,
    /// The likely ones.
    Likely,
    /// These, by transaction.
    Chosen(&'q [ItemRead]),
}

impl LevelQuestion<'_> {
    pub(super) fn objects(&self) -> Objects {
        Objects::at(self.level)
    }

    /// Whether a transaction is two nodes.
    fn is_split(&self) -> bool {
        self.level.shape().visible == VisibilityRule::Prefix
    }

    /// The nodes of transactions, in their order.
    fn nodes(&self, txns: Vec<u32>) -> Vec<u32> {
        if self.is_split() {
            txns.into_iter().flat_map(|txn| [start_of(txn), commit_of(txn)]).collect()
        } else {
            txns
        }
    }
}

/// Dependencies between transactions, as a graph.
pub(super) struct CertificateGraph {
    waits: Rows<u32>,
    /// Anti-dependencies, where a transaction is two nodes.
    overtaken: Option<Rows<u32>>,
}

impl CertificateGraph {
    pub(super) fn new(
        txns: usize,
        waits: &[(TxnId, TxnId)],
        overtaken: Option<&[(TxnId, TxnId)]>,
    ) -> CertificateGraph {
        let rows = |edges: &[(TxnId, TxnId)]| {
            Rows::group(txns, edges.iter().map(|(before, after)| (after.0, before.0)))
        };
        CertificateGraph { waits: rows(waits), overtaken: overtaken.map(rows) }
    }

    fn split(&self) -> Option<Split<'_, Rows<u32>, Rows<u32>>> {
        Some(Split { waits: &self.waits, overtaken: self.overtaken.as_ref()? })
    }
}

impl InEdges for CertificateGraph {
    fn node_count(&self) -> usize {
        self.split().map_or_else(|| self.waits.node_count(), |split| split.node_count())
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        match self.split() {
            None => self.waits.next_in(node, cursor),
            Some(split) => split.next_in(node, cursor),
        }
    }
}

impl Moments for CertificateGraph {
    fn begins(&self, node: u32) -> Option<TxnId> {
        self.split().map_or(Some(TxnId(node)), |split| split.begins(node))
    }

    fn ends(&self, node: u32) -> Option<TxnId> {
        self.split().map_or(Some(TxnId(node)), |split| split.ends(node))
    }

    fn end_of(&self, txn: TxnId) -> u32 {
        self.split().map_or(txn.0, |split| split.end_of(txn))
    }
}

/// The end of the search for an order.
enum OrderSearch {
    /// An order in which all dependencies lead forward.
    Order(Vec<u32>),
    /// These dependencies have a cycle.
    Cycle(CertificateGraph, Vec<PredicateEdge>),
}

impl Certificate<'_> {
    /// Decides a level for a history whose reads are right.
    pub(super) fn decide(&self, level: Level, open: Open<'_>) -> Conclusion {
        self.answer(self.question(level, open)).unwrap_or_else(Conclusion::from)
    }

    pub(super) fn question<'q>(&self, level: Level, open: Open<'q>) -> LevelQuestion<'q> {
        let shape = level.shape();
        LevelQuestion {
            level,
            counted: Counted::at(level).unwrap_or(Counted::AntiDependencies),
            sessions: shape.session_order && self.options.session_order,
            in_time: shape.real_time,
            by_snapshots: shape.visible == VisibilityRule::Prefix,
            open,
        }
    }

    fn answer(&self, question: LevelQuestion<'_>) -> Result<Conclusion, Inapplicable> {
        // A serial order satisfies every level, unless real time or snapshots contradict it.
        if let Some(order) = self.serial(question.open)?
            && (!question.in_time || agrees(self.history, self.options.clock_skew, &order))
            && (!question.by_snapshots || self.snapshots.agree(&places(&order)))
        {
            let order = question.nodes(order);
            if self.are_explained(question, &order)? {
                return Ok(self.satisfied(question, &order));
            }
        }
        if question.level.shape().visible == VisibilityRule::Dependencies {
            return self.parallel(question);
        }
        Ok(match self.order(question)? {
            OrderSearch::Order(order) if self.are_explained(question, &order)? => {
                self.satisfied(question, &order)
            }
            OrderSearch::Order(_) => self.left_open(),
            OrderSearch::Cycle(graph, found) => self.refuted_by(question, &graph, &found),
        })
    }

    /// An order in which transactions may have run one after the other.
    fn serial(&self, open: Open<'_>) -> Result<Option<Vec<u32>>, Inapplicable> {
        let find = || {
            Ok(match self.order(self.question(Level::Serializable, open))? {
                OrderSearch::Order(order) => Some(order),
                OrderSearch::Cycle(..) => None,
            })
        };
        let known = match open {
            Open::None => &self.serial[0],
            Open::Likely => &self.serial[1],
            Open::Chosen(_) => return find(),
        };
        known.get_or_init(find).clone()
    }

    /// The level holds by an order of nodes.
    fn satisfied(&self, question: LevelQuestion<'_>, order: &[u32]) -> Conclusion {
        let is_kept = |txn: TxnId| self.is_kept(txn);
        let txns = order.iter().map(|txn| TxnId(*txn)).filter(|txn| is_kept(*txn));
        Conclusion::Holds(match question.level.shape().visible {
            VisibilityRule::Prefix => Witness::Points(points(order, is_kept)),
            // An order of dependencies does not say which of several equal versions a read returned.
            VisibilityRule::Dependencies if !self.open.is_empty() => {
                let source = |read: &ItemRead| ReadSource {
                    read: read.op,
                    writer: self.chains.writer(read.version),
                };
                let sources = self.open(question.open).iter().map(source).collect();
                Witness::Chosen { order: txns.collect(), sources }
            }
            _ => Witness::CommitOrder(txns.collect()),
        })
    }

    /// Looks for an order of nodes in which all dependencies lead forward. Those of predicates are added as
    /// they turn out to contradict one.
    fn order(&self, question: LevelQuestion<'_>) -> Result<OrderSearch, Inapplicable> {
        let is_split = question.is_split();
        let mut waits = self.item_dependencies(question);
        let mut overtaken = Vec::new();
        let mut found: Vec<PredicateEdge> = Vec::new();
        if question.counted >= Counted::RowAntiDependencies {
            let relation = if is_split { &mut overtaken } else { &mut waits };
            relation.extend(self.item_anti_dependencies(question.open));
        }
        let mut guess = question.nodes(self.guess.commits.clone());
        loop {
            let graph = CertificateGraph::new(
                self.history.txn_count(),
                &waits,
                is_split.then_some(&overtaken),
            );
            let Some(order) = self.topological(question, &graph, guess) else {
                return Ok(OrderSearch::Cycle(graph, found));
            };
            let contradicted = self.contradicted(&self.positions(question, &order), question)?;
            if contradicted.is_empty() {
                return Ok(OrderSearch::Order(order));
            }
            for edge in &contradicted {
                let relation = if is_split && edge.is_anti { &mut overtaken } else { &mut waits };
                relation.push((edge.from, edge.to));
            }
            found.extend(contradicted);
            guess = order;
        }
    }

    /// A topological order of a graph's nodes, with snapshots and in real time where these count.
    fn topological(
        &self,
        question: LevelQuestion<'_>,
        graph: &CertificateGraph,
        guess: Vec<u32>,
    ) -> Option<Vec<u32>> {
        if !question.by_snapshots && !question.in_time {
            return topological_order(graph, &guess);
        }
        let graph = InTime { graph, time: self.snapshot_chain(question) };
        let timed = InTime { graph: &graph, time: self.time_chain(question) };
        let helped = timed.and_helpers(graph.and_helpers(guess));
        let mut order = topological_order(&timed, &helped)?;
        order.retain(|node| graph.is_own(*node));
        Some(order)
    }

    /// Commits by the database's clock, if snapshots count.
    pub(super) fn snapshot_chain(&self, question: LevelQuestion<'_>) -> &RealTime {
        if question.by_snapshots { &self.snapshots.chain } else { &self.no_chain }
    }

    /// Real time, if it counts.
    pub(super) fn time_chain(&self, question: LevelQuestion<'_>) -> &RealTime {
        if question.in_time { self.real_time() } else { &self.no_chain }
    }

    /// The positions of transactions and versions in an order of nodes.
    pub(super) fn positions(&self, question: LevelQuestion<'_>, order: &[u32]) -> OrderPositions {
        let positions = places(order);
        if question.is_split() {
            let starts = positions.iter().copied().step_by(2).collect();
            let commits: Vec<u32> = positions.iter().copied().skip(1).step_by(2).collect();
            OrderPositions::new(&self.chains, starts, &commits)
        } else {
            OrderPositions::new(&self.chains, positions.clone(), &positions)
        }
    }

    /// Consistent view and parallel snapshot isolation: no cycle has fewer than two anti-dependencies.
    fn parallel(&self, question: LevelQuestion<'_>) -> Result<Conclusion, Inapplicable> {
        let without_anti = LevelQuestion { counted: Counted::Reads, ..question };
        let order = match self.order(without_anti)? {
            OrderSearch::Order(order) => order,
            OrderSearch::Cycle(graph, found) => {
                return Ok(self.refuted_by(without_anti, &graph, &found));
            }
        };
        // Only an anti-dependency that contradicts the order can be part of a cycle with no other.
        let positions = self.positions(question, &order);
        let missed = self.contradicted(&positions, question)?;
        let of_items = self.item_anti_dependencies(question.open);
        let of_predicates = missed.iter().map(|edge| (edge.from, edge.to));
        let reads_at = |txn: &TxnId| positions.reads[txn.index()];
        let is_back = |(reader, writer): &(TxnId, TxnId)| reads_at(writer) < reads_at(reader);
        let pairs = of_items.chain(of_predicates).filter(is_back);
        let pairs: Vec<(u32, u32)> = pairs.map(|(reader, writer)| (reader.0, writer.0)).collect();
        // The way back lies between the two, and so do the reads by predicate that are part of it.
        let mut found = self.reads_within(without_anti, &positions, &order, &pairs)?;
        let mut edges = self.item_dependencies(question);
        edges.extend(found.iter().map(|edge| (edge.from, edge.to)));
        let graph = CertificateGraph::new(self.history.txn_count(), &edges, None);
        let back = leading_back(&graph, &order, pairs.into_iter());
        if !back.is_empty() {
            edges.extend(missed.iter().map(|edge| (edge.from, edge.to)));
            found.extend(missed);
            return Ok(self.refuted_by_pairs(question, (&graph, edges), &found, &back));
        }
        // What operations without a version set observed may add dependencies to the ways back. Only a serial
        // order is known to explain them.
        Ok(if self.unstated.is_empty() {
            self.satisfied(question, &order)
        } else {
            self.left_open()
        })
    }

    /// The reads by predicate within the segments of an order that pairs (later, earlier) span.
    fn reads_within(
        &self,
        question: LevelQuestion<'_>,
        positions: &OrderPositions,
        order: &[u32],
        pairs: &[(u32, u32)],
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let mut begins: Vec<Option<u32>> = vec![None; order.len()];
        for segment in Order::new(order.to_vec()).stretches(pairs) {
            for node in &order[segment.clone()] {
                begins[*node as usize] = Some(segment.start as u32);
            }
        }
        self.nearest(positions, question, |txn| Some((begins[txn.index()]?, 0)))
    }
}
