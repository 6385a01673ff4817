//! Which cycles a level forbids, and whether there are any.

use std::borrow::Cow;

use isolario_model::{Inapplicable, Level, Point, ReadSource, TxnId, VisibilityRule, Witness};

use super::dependencies::{Placed, PredicateEdge, Wanted};
use super::items::ItemRead;
use super::unstated::Rule;
use super::{Certificate, Objects};
use crate::graph::{
    InEdges, InTime, Moments, Order, Rows, Split, agrees, commit_of, leading_back, places, points,
    start_of, topological_order,
};
use crate::plan::Conclusion;

/// What is asked of the dependencies.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) level: Level,
    pub(super) objects: Objects,
    /// Whether session order counts.
    pub(super) sessions: bool,
    /// Whether real time does.
    pub(super) in_time: bool,
    /// What is taken to be seen by reads of which that is not known.
    pub(super) open: Open<'q>,
}

impl<'q> Question<'q> {
    /// The dependencies to look for, with anti-dependencies of predicates and of reads by key or without.
    fn wanted(&self, predicate_anti: bool, item_anti: bool) -> Wanted<'q> {
        Wanted { objects: self.objects, open: self.open, predicate_anti, item_anti }
    }
}

/// What reads saw that may have seen any of several equal versions.
#[derive(Clone, Copy)]
pub(super) enum Open<'q> {
    /// They do not count.
    None,
    /// What they are likely to have seen.
    Likely,
    /// These versions, by transaction.
    Chosen(&'q [ItemRead]),
}

/// Which dependencies of predicates count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predicates {
    None,
    Reads,
    All,
}

/// Dependencies between transactions, as a graph.
pub(super) struct Graph(Rows<u32>);

impl Graph {
    pub(super) fn new(txns: usize, edges: &[(TxnId, TxnId)]) -> Graph {
        Graph(Rows::group(txns, edges.iter().map(|(before, after)| (after.0, before.0))))
    }
}

impl InEdges for Graph {
    fn node_count(&self) -> usize {
        self.0.node_count()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        self.0.next_in(node, cursor)
    }
}

impl Moments for Graph {}

/// What came of looking for an order.
enum Found {
    /// One in which all dependencies lead forward.
    Order(Vec<u32>),
    /// There is none: these have a cycle.
    Cycle(Graph, Vec<PredicateEdge>),
}

impl Certificate<'_> {
    /// Decides a level for a history whose reads are right.
    pub(super) fn decide(&self, level: Level, open: Open<'_>) -> Conclusion {
        let shape = level.shape();
        let question = Question {
            level,
            objects: Objects::at(level),
            sessions: shape.session_order && self.options.session_order,
            in_time: shape.real_time,
            open,
        };
        self.answer(question).unwrap_or_else(Conclusion::from)
    }

    fn answer(&self, question: Question<'_>) -> Result<Conclusion, Inapplicable> {
        // What is serializable satisfies everything else, but for snapshots that say otherwise.
        let serial = self.serial(question.open)?;
        let in_time = |order: &Cow<'_, [u32]>| {
            !question.in_time || agrees(self.history, self.options.clock_skew, order)
        };
        let by_snapshots = question.level.shape().visible == VisibilityRule::Prefix;
        let agree = |order: &Cow<'_, [u32]>| !by_snapshots || self.snapshots.agree(&places(order));
        let rule = Rule::at(question.level);
        if let Some(order) = serial.filter(in_time).filter(agree) {
            let places = places(&order);
            let placed = || Placed::new(self, places.clone(), &places);
            if self.are_explained(rule, placed)? {
                return Ok(Conclusion::Holds(self.witness(question, &order)));
            }
        }
        match question.level.shape().visible {
            VisibilityRule::Dependencies => self.parallel(question),
            VisibilityRule::Prefix => self.snapshots(question),
            _ => self.acyclic(question),
        }
    }

    /// An order in which transactions may have run one after the other.
    fn serial(&self, open: Open<'_>) -> Result<Option<Cow<'_, [u32]>>, Inapplicable> {
        let find = || {
            let (level, sessions) = (Level::Serializable, self.options.session_order);
            let question =
                Question { level, objects: Objects::Rows, sessions, in_time: false, open };
            Ok(match self.order(question, Predicates::All)? {
                Found::Order(order) => Some(order),
                Found::Cycle(..) => None,
            })
        };
        let known = match open {
            Open::None => &self.serial[0],
            Open::Likely => &self.serial[1],
            Open::Chosen(_) => return Ok(find()?.map(Cow::Owned)),
        };
        match known.get_or_init(find) {
            Ok(order) => Ok(order.as_deref().map(Cow::Borrowed)),
            Err(reason) => Err(reason.clone()),
        }
    }

    fn witness(&self, question: Question<'_>, order: &[u32]) -> Witness {
        let txns = order.iter().map(|txn| TxnId(*txn)).filter(|txn| self.is_kept(*txn));
        match question.level.shape().visible {
            VisibilityRule::Prefix => Witness::Points(
                txns.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect(),
            ),
            // An order of dependencies does not tell which of several equal versions a read saw.
            VisibilityRule::Dependencies if !self.open.is_empty() => {
                let source = |read: &ItemRead| ReadSource {
                    read: read.op,
                    writer: self.chains.writer(read.version),
                };
                let sources = self.open(question.open).iter().map(source).collect();
                Witness::Chosen { order: txns.collect(), sources }
            }
            _ => Witness::CommitOrder(txns.collect()),
        }
    }

    /// The levels that forbid every cycle of some kinds of dependency.
    fn acyclic(&self, question: Question<'_>) -> Result<Conclusion, Inapplicable> {
        let predicates = match question.level {
            Level::ReadUncommitted | Level::StrongReadUncommitted => Predicates::None,
            Level::Serializable | Level::StrictSerializable => Predicates::All,
            _ => Predicates::Reads,
        };
        Ok(match self.order(question, predicates)? {
            Found::Order(order) => {
                let places = places(&order);
                let placed = || Placed::new(self, places.clone(), &places);
                match self.are_explained(Rule::at(question.level), placed)? {
                    true => Conclusion::Holds(self.witness(question, &order)),
                    false => self.left_open(),
                }
            }
            Found::Cycle(graph, found) => {
                let cycles = self.cycles(question, &graph, &found);
                Conclusion::refuted(cycles)
            }
        })
    }

    /// Whether anti-dependencies of items count by themselves.
    fn counts_overwritten_reads(level: Level) -> bool {
        level.shape().visible == VisibilityRule::Everything
    }

    /// Looks for an order in which all dependencies lead forward. Those of predicates are added as they
    /// turn out to contradict one.
    fn order(&self, question: Question<'_>, predicates: Predicates) -> Result<Found, Inapplicable> {
        let mut edges = self.item_dependencies(question, predicates != Predicates::None);
        if Self::counts_overwritten_reads(question.level) {
            edges.extend(self.item_anti_dependencies(question.open));
        }
        let txns = self.history.txn_count();
        let mut found: Vec<PredicateEdge> = Vec::new();
        let mut guess = self.guess.commits.clone();
        loop {
            let graph = Graph::new(txns, &edges);
            let Some(order) = self.topological(&graph, &guess, question) else {
                return Ok(Found::Cycle(graph, found));
            };
            let contradicted = match predicates {
                Predicates::None => Vec::new(),
                _ => {
                    let places = places(&order);
                    let placed = Placed::new(self, places.clone(), &places);
                    let item_anti = Self::counts_overwritten_reads(question.level);
                    let predicate_anti = predicates == Predicates::All;
                    self.contradicted(&placed, question.wanted(predicate_anti, item_anti))?
                }
            };
            if contradicted.is_empty() {
                return Ok(Found::Order(order));
            }
            edges.extend(contradicted.iter().map(|edge| (edge.from, edge.to)));
            found.extend(contradicted);
            guess = order;
        }
    }

    /// A topological order of a graph's nodes, in real time where that counts.
    fn topological<G: Moments>(
        &self,
        graph: &G,
        guess: &[u32],
        question: Question<'_>,
    ) -> Option<Vec<u32>> {
        if !question.in_time {
            return topological_order(graph, guess);
        }
        let timed = InTime { graph, time: self.real_time() };
        let mut order = topological_order(&timed, &timed.and_helpers(guess.to_vec()))?;
        order.retain(|node| (*node as usize) < graph.node_count());
        Some(order)
    }

    /// Consistent view and parallel snapshot isolation: no cycle has fewer than two anti-dependencies.
    fn parallel(&self, question: Question<'_>) -> Result<Conclusion, Inapplicable> {
        let order = match self.order(question, Predicates::Reads)? {
            Found::Order(order) => order,
            Found::Cycle(graph, found) => {
                let cycles = self.cycles(question, &graph, &found);
                return Ok(Conclusion::refuted(cycles));
            }
        };
        // Only an anti-dependency that contradicts the order can be part of a cycle with no other.
        let places = places(&order);
        let placed = Placed::new(self, places.clone(), &places);
        let missed = self.contradicted(&placed, question.wanted(true, true))?;
        let of_items = self.item_anti_dependencies(question.open);
        let of_predicates = missed.iter().map(|edge| (edge.from, edge.to));
        let pairs = of_items.chain(of_predicates).map(|(reader, writer)| (reader.0, writer.0));
        let is_back =
            |(reader, writer): &(u32, u32)| places[*writer as usize] < places[*reader as usize];
        let pairs: Vec<(u32, u32)> = pairs.filter(is_back).collect();
        // The way back lies between the two, and so do the reads by predicate that are part of it.
        let mut found = self.reads_within(question, &placed, &order, &pairs)?;
        let mut edges = self.item_dependencies(question, true);
        edges.extend(found.iter().map(|edge| (edge.from, edge.to)));
        let graph = Graph::new(self.history.txn_count(), &edges);
        let back = leading_back(&graph, &order, pairs.into_iter());
        if back.is_empty() && !self.unstated.is_empty() {
            // What these operations met may add dependencies to the ways back. Only a serial order is
            // known to explain them.
            return Ok(self.left_open());
        }
        if back.is_empty() {
            return Ok(Conclusion::Holds(self.witness(question, &order)));
        }
        found.extend(missed);
        let cycles = self.single_cycles(question, &graph, &found, &back);
        Ok(Conclusion::refuted(cycles))
    }

    /// The reads by predicate that lie within the stretches of an order that pairs (later, earlier)
    /// span.
    fn reads_within(
        &self,
        question: Question<'_>,
        placed: &Placed,
        order: &[u32],
        pairs: &[(u32, u32)],
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let mut begins: Vec<Option<u32>> = vec![None; order.len()];
        for stretch in Order::new(order.to_vec()).stretches(pairs) {
            for node in &order[stretch.clone()] {
                begins[*node as usize] = Some(stretch.start as u32);
            }
        }
        let of = (question.objects, question.open);
        self.reads_since(placed, of, |txn| begins[txn.index()])
    }

    /// Snapshot isolation: each transaction is its start and its commit.
    fn snapshots(&self, question: Question<'_>) -> Result<Conclusion, Inapplicable> {
        let txns = self.history.txn_count();
        let mut waits = self.item_dependencies(question, true);
        let mut overtaken: Vec<_> = self.item_anti_dependencies(question.open).collect();
        let mut found: Vec<PredicateEdge> = Vec::new();
        let moments = |txn: &u32| [start_of(*txn), commit_of(*txn)];
        let mut guess: Vec<u32> = self.guess.commits.iter().flat_map(moments).collect();
        loop {
            let (first, second) = (Graph::new(txns, &waits), Graph::new(txns, &overtaken));
            let split = Split { waits: &first, overtaken: &second };
            let graph = InTime { graph: &split, time: &self.snapshots.chain };
            let helped = graph.and_helpers(guess.clone());
            let Some(mut order) = self.topological(&graph, &helped, question) else {
                // What is wrong without the snapshots says more.
                let cycles = match self.topological(&split, &guess, question) {
                    None => self.cycles(question, &split, &found),
                    Some(_) => self.cycles_by_snapshots(question, &graph, &found),
                };
                return Ok(Conclusion::refuted(cycles));
            };
            order.retain(|node| graph.is_own(*node));
            let places = places(&order);
            let of = |moment: fn(u32) -> u32| -> Vec<u32> {
                (0..txns as u32).map(|txn| places[moment(txn) as usize]).collect()
            };
            let placed = Placed::new(self, of(start_of), &of(commit_of));
            let contradicted = self.contradicted(&placed, question.wanted(true, true))?;
            if contradicted.is_empty() {
                if !self.are_explained(Rule::Exactly, || placed)? {
                    return Ok(self.left_open());
                }
                let points = points(&order, |txn| self.is_kept(txn));
                return Ok(Conclusion::Holds(Witness::Points(points)));
            }
            for edge in &contradicted {
                let relation = if edge.is_anti { &mut overtaken } else { &mut waits };
                relation.push((edge.from, edge.to));
            }
            found.extend(contradicted);
            guess = order;
        }
    }
}
