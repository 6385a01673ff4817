//! Where the patterns of Plume's Table 1 that order writers occur.
//!
//! An instance is a read of a key, the writer it saw, and another writer of the key that it missed
//! although that was visible to its transaction. All six patterns ask for the writer that was seen to
//! come before the one that was missed. It goes by the most special pattern that it fits, so two
//! things make its name: the weakest level whose rule takes the missed writer for visible, and the
//! weakest level from that one on in whose commit relation the instance closes. Where these are the
//! same, causal order may close it already; where the second is stronger, causal order cannot, since
//! it is part of every relation.
//!
//! *Which are looked at.* Every read from another transaction or from `init`, repeated ones included,
//! and every other writer of its key that is visible by a step or by a longer way. Left out are:
//!
//! - writers that are on no cycle with the one that was seen, in the relation of the strongest level
//!   asked for. The rule puts the missed writer first; if the other comes first as well, both are on
//!   one cycle. So these are no instances.
//! - instances with the same two writers and the same name as one that is known. The same paths lead
//!   from the one writer to the other, so they close in the same way.
//! - of the writers of one session that are visible by session order alone, all but the first and the
//!   last that close in each relation. What comes before one writer of a session comes before all
//!   later ones, causally or by commit. So if one of them is closed causally, the last is; and if one
//!   is not, or does not close in the relation of a weaker level, then neither does the first.
//! - writers that are visible only by a read of the same key. Together the two reads are a
//!   non-repeatable read, and if the newer version came first, a non-monotonic one; that one is
//!   looked for here, too.

use isolario_model::{AnomalyKind, KeyId, Level, OpId, Outcome, TxnId};
use rustc_hash::FxHashSet;

use super::Weak;
use super::inference::{Inference, Visibility};
use super::relation::Relation;
use super::visible::{Ancestors, Ways, patterns_of};
use crate::graph::{BUDGET, Rows, places};
use crate::resolved::Source;
use crate::resolved::{Dependencies, WriteSets};

/// How many instances with different writers or names are kept at most.
const LIMIT: usize = 1 << 22;

/// A read that missed a writer, where some commit relation puts the writer that it saw first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) inference: Inference,
    /// The weakest level in whose commit relation it closes.
    pub(super) closes_in: Level,
    /// What it is called if causal order closes it; none where that is out of the question.
    pub(super) causally: Option<AnomalyKind>,
    /// What it is called if the commit relation alone does.
    pub(super) by_commit: AnomalyKind,
}

/// The instances among what the rules of the levels infer anyway. They are quickly found, and in most
/// histories with anomalies they are enough.
pub(super) fn at_hand(
    dependencies: &Dependencies<'_>,
    wanted: &[AnomalyKind],
    relations: &[Relation],
) -> Vec<Instance> {
    let mut collected = Collected::new(wanted, relations);
    for inference in relations.iter().flat_map(|relation| &relation.cyclic.inferences) {
        let ways = Ways::of(dependencies, inference);
        collected.add_by_steps(inference, &ways);
        if ways.weakest().is_none() {
            collected.add(Inference { visible: Visibility::Causal, ..*inference });
        }
    }
    collected.found
}

/// All instances.
pub(super) struct Everywhere {
    pub(super) instances: Vec<Instance>,
    /// Whether there was time for all that a single step makes visible.
    pub(super) all_by_steps: bool,
    /// Whether there was time for all others.
    pub(super) all_distant: bool,
}

impl Everywhere {
    /// Looks for all instances of some patterns. `relations` are those from read committed to the
    /// strongest level that is asked for.
    pub(super) fn find(weak: &Weak<'_>, wanted: &[AnomalyKind], relations: &[Relation]) -> Self {
        let mut collected = Collected::new(wanted, relations);
        let dependencies = weak.dependencies();
        let by_steps = BySteps::new(weak, relations);
        let all_by_steps =
            collected.visit_readers(dependencies, |reader, all| by_steps.at_reader(reader, all));
        let order =
            weak.resolved.order.as_deref().filter(|_| collected.strongest() == Level::Causal);
        let all_distant = order.is_none_or(|order| {
            let mut distant = Distant::new(weak, relations, order);
            collected.visit_readers(dependencies, |reader, all| distant.at_reader(reader, all))
        });
        Everywhere { instances: collected.found, all_by_steps, all_distant }
    }
}

/// The reads of one transaction from others: from whom, and the read; sorted.
type Sources = Vec<(TxnId, OpId)>;

fn sources(dependencies: &Dependencies<'_>, reader: TxnId) -> Sources {
    let from = |op: OpId| match dependencies.reads.source(op) {
        Source::Txn(writer) => Some((writer, op)),
        _ => None,
    };
    let mut sources: Sources = dependencies.history.txn_ops(reader).filter_map(from).collect();
    sources.sort_unstable();
    sources
}

/// The reads from one writer.
fn from_one(sources: &Sources, writer: TxnId) -> impl Iterator<Item = OpId> {
    let start = sources.partition_point(|(other, _)| *other < writer);
    let of_writer = sources[start..].iter().take_while(move |(other, _)| *other == writer);
    of_writer.map(|(_, op)| *op)
}

/// The search for missed writers that the reader read from, or that precede it in its session.
struct BySteps<'a> {
    dependencies: &'a Dependencies<'a>,
    writes: &'a WriteSets<'a>,
    relations: &'a [Relation],
    /// Of each key, those that others of their session may follow.
    writers: Writers,
}

impl<'a> BySteps<'a> {
    fn new(weak: &'a Weak<'_>, relations: &'a [Relation]) -> Self {
        let history = weak.dependencies().history;
        let is_followed = |txn: TxnId| history.outcome(txn) == Outcome::Committed;
        BySteps {
            dependencies: weak.dependencies(),
            writes: weak.writes(),
            relations,
            writers: Writers::new(weak, is_followed),
        }
    }

    /// Collects the instances of one reader, and says how much was considered.
    fn at_reader(&self, reader: TxnId, collected: &mut Collected<'_>) -> usize {
        let dependencies = self.dependencies;
        let sources = sources(dependencies, reader);
        let mut steps = 0;
        for (after, read) in sources.iter().copied() {
            if !collected.may_close(after) {
                continue;
            }
            let key = dependencies.history.op_keys()[read.index()];
            let mut missed = self.read_from(key, &sources);
            if dependencies.session_order {
                self.in_session(reader, key, after, &sources, &mut missed);
            }
            steps += sources.len() + missed.len();
            for before in missed.into_iter().filter(|before| *before != after) {
                let visible = Visibility::Causal;
                let inference = Inference { before, after, reader, key, read, visible };
                let ways = Ways::among(dependencies, &inference, from_one(&sources, before));
                collected.add_by_steps(&inference, &ways);
            }
        }
        steps
    }

    /// The writers of a key that the reader read from.
    fn read_from(&self, key: KeyId, sources: &Sources) -> Vec<TxnId> {
        let mut writers: Vec<TxnId> = sources.iter().map(|(writer, _)| *writer).collect();
        writers.dedup();
        writers.retain(|writer| !writer.is_init() && self.writes.contains(*writer, key));
        writers
    }

    /// The first and the last of the session's writers of a key that close in each relation, but for
    /// those that the reader read from.
    fn in_session(
        &self,
        reader: TxnId,
        key: KeyId,
        after: TxnId,
        sources: &Sources,
        missed: &mut Vec<TxnId>,
    ) {
        let writers = self.writers.in_session(self.dependencies, reader, key);
        let is_read = |writer: &&TxnId| from_one(sources, **writer).next().is_some();
        let know_sessions = |relation: &&Relation| relation.level != Level::ReadCommitted;
        for relation in self.relations.iter().filter(know_sessions) {
            let start = writers
                .partition_point(|writer| *writer != after && !relation.closes(after, *writer));
            let closing = &writers[start..];
            let first = closing.iter().find(|writer| !is_read(writer));
            let last = closing.iter().rev().find(|writer| !is_read(writer));
            missed.extend(first.into_iter().chain(last));
        }
    }
}

/// The search for missed writers to which only a longer way leads.
struct Distant<'a> {
    dependencies: &'a Dependencies<'a>,
    strongest: Option<&'a Relation>,
    writers: Writers,
    ancestors: Ancestors<'a>,
}

impl<'a> Distant<'a> {
    fn new(weak: &'a Weak<'_>, relations: &'a [Relation], order: &[u32]) -> Self {
        Distant {
            dependencies: weak.dependencies(),
            strongest: relations.last(),
            writers: Writers::new(weak, |_| true),
            ancestors: Ancestors::new(weak.dependencies(), places(order)),
        }
    }

    /// Collects the instances of one reader, and says how much was considered.
    fn at_reader(&mut self, reader: TxnId, collected: &mut Collected<'_>) -> usize {
        let dependencies = self.dependencies;
        let sources = sources(dependencies, reader);
        let mut steps = 0;
        let mut open: Vec<Inference> = Vec::new();
        for (after, read) in
            sources.iter().copied().filter(|(after, _)| collected.may_close(*after))
        {
            let (key, visible) = (dependencies.history.op_keys()[read.index()], Visibility::Causal);
            steps += self.writers.of(key).len();
            for before in self.writers.of(key).iter().copied() {
                let inference = Inference { before, after, reader, key, read, visible };
                let closes = || self.strongest.is_some_and(|r| r.closes(after, before));
                let reads_from_it = || from_one(&sources, before);
                if before != reader
                    && before != after
                    && closes()
                    && Ways::among(dependencies, &inference, reads_from_it()).lettered().is_none()
                {
                    open.push(inference);
                }
            }
        }
        let places = open.iter().map(|inference| self.ancestors.place(inference.before));
        let Some(first) = places.min() else { return steps };
        steps += self.ancestors.find(reader, first);
        open.retain(|inference| self.ancestors.contain(inference.before));
        open.into_iter().for_each(|inference| collected.add(inference));
        steps
    }
}

/// What was found so far.
struct Collected<'a> {
    wanted: &'a [AnomalyKind],
    relations: &'a [Relation],
    /// The writers and names of those that were found.
    known: FxHashSet<(TxnId, TxnId, AnomalyKind, Option<AnomalyKind>)>,
    found: Vec<Instance>,
}

impl<'a> Collected<'a> {
    fn new(wanted: &'a [AnomalyKind], relations: &'a [Relation]) -> Self {
        Collected { wanted, relations, known: FxHashSet::default(), found: Vec::new() }
    }

    /// Visits the readers in order until the budget is spent or too many instances are kept; a visit
    /// returns how much it considered. Whether all readers were visited.
    fn visit_readers(
        &mut self,
        dependencies: &Dependencies<'_>,
        mut visit: impl FnMut(TxnId, &mut Self) -> usize,
    ) -> bool {
        let Dependencies { history, reads, .. } = dependencies;
        let mut steps = 0;
        history.txns().filter(|txn| reads.is_kept(*txn)).all(|reader| {
            steps += visit(reader, self);
            steps <= BUDGET && self.found.len() <= LIMIT
        })
    }

    /// The strongest level that is asked for.
    fn strongest(&self) -> Level {
        self.relations.last().map_or(Level::ReadCommitted, |relation| relation.level)
    }

    /// Whether reads from a transaction may be part of an instance.
    fn may_close(&self, seen: TxnId) -> bool {
        self.relations.last().is_some_and(|strongest| strongest.has_cycle_with(seen))
    }

    /// Adds what the ways of one step make of an inference.
    fn add_by_steps(&mut self, inference: &Inference, ways: &Ways) {
        if let Some(visible) = ways.same_key_before() {
            self.add_non_monotonic(Inference { visible, ..*inference });
        }
        if let Some(visible) = ways.lettered() {
            self.add(Inference { visible, ..*inference });
        }
    }

    /// Adds an instance under its name, if there is one.
    fn add(&mut self, inference: Inference) {
        let rule = inference.visible.rule();
        let closes = |relation: &&Relation| {
            relation.level.implies(rule) && relation.closes(inference.after, inference.before)
        };
        let Some(closes_in) = self.relations.iter().find(closes).map(|relation| relation.level)
        else {
            return;
        };
        let (causally, by_commit) = patterns_of(closes_in);
        let causally = (closes_in == rule).then_some(causally);
        self.keep(Instance { inference, closes_in, causally, by_commit });
    }

    /// Adds a read of an older version of a key after a newer one.
    fn add_non_monotonic(&mut self, inference: Inference) {
        let read_committed = self.relations.first();
        if read_committed.is_some_and(|r| r.closes(inference.after, inference.before)) {
            let kind = AnomalyKind::NonMonotonicRead;
            let closes_in = Level::ReadCommitted;
            self.keep(Instance { inference, closes_in, causally: Some(kind), by_commit: kind });
        }
    }

    fn keep(&mut self, instance: Instance) {
        let Instance { inference, causally, by_commit, .. } = instance;
        let is_wanted = |kind: AnomalyKind| self.wanted.contains(&kind);
        if (is_wanted(by_commit) || causally.is_some_and(is_wanted))
            && self.known.insert((inference.before, inference.after, by_commit, causally))
        {
            self.found.push(instance);
        }
    }
}

/// Per key, kept transactions that write it, in order.
struct Writers(Rows<TxnId>);

impl Writers {
    fn new(weak: &Weak<'_>, counts: impl Fn(TxnId) -> bool) -> Self {
        let Dependencies { history, reads, .. } = weak.dependencies();
        let mut writes: Vec<(KeyId, TxnId)> = Vec::new();
        for txn in history.txns().filter(|txn| reads.is_kept(*txn) && counts(*txn)) {
            writes.extend(weak.writes().of(txn).map(|key| (key, txn)));
        }
        writes.sort_unstable();
        writes.dedup();
        let by_key = writes.iter().map(|(key, txn)| (key.0, *txn));
        Writers(Rows::group(history.key_count(), by_key))
    }

    fn of(&self, key: KeyId) -> &[TxnId] {
        self.0.get(key.index())
    }

    /// Those before a reader in its session. The transactions of a session have numbers in a row.
    fn in_session(&self, dependencies: &Dependencies<'_>, reader: TxnId, key: KeyId) -> &[TxnId] {
        let history = dependencies.history;
        let session = history.session_of(reader);
        let writers = self.of(key);
        let end = writers.partition_point(|writer| *writer < reader);
        let start = writers[..end].partition_point(|writer| history.session_of(*writer) < session);
        &writers[start..end]
    }
}
