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

use isolario_model::{AnomalyKind, KeyId, Level, OpId, TxnId};
use rustc_hash::FxHashSet;

use super::Weak;
use super::inference::{Inference, Visibility};
use super::relation::{Relation, foreign_reads};
use super::visible::{Ancestors, Ways, patterns_of};
use crate::graph::{BUDGET, Rows, places};
use crate::resolved::Dependencies;

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

/// The instances of some patterns that were found so far.
pub(super) struct Instances<'a, 'h> {
    weak: &'a Weak<'h>,
    wanted: &'a [AnomalyKind],
    /// Those from read committed to the strongest level that is asked for.
    relations: &'a [Relation],
    /// The writers and names of those that were found.
    known: FxHashSet<(TxnId, TxnId, AnomalyKind, Option<AnomalyKind>)>,
    pub(super) found: Vec<Instance>,
}

impl<'a, 'h> Instances<'a, 'h> {
    pub(super) fn new(
        weak: &'a Weak<'h>,
        wanted: &'a [AnomalyKind],
        relations: &'a [Relation],
    ) -> Self {
        Instances { weak, wanted, relations, known: FxHashSet::default(), found: Vec::new() }
    }

    /// Adds those among what the rules of the levels infer anyway. They are quickly found, and in most
    /// histories with anomalies they are enough.
    pub(super) fn add_inferred(&mut self) {
        for inference in self.relations.iter().flat_map(|relation| &relation.cyclic.inferences) {
            let ways = Ways::of(self.weak.dependencies(), inference);
            self.add_by_steps(inference, &ways);
            if ways.weakest().is_none() {
                self.add(Inference { visible: Visibility::Causal, ..*inference });
            }
        }
    }

    /// Adds all of them. Returns whether there was time for those in which a single step makes the missed
    /// writer visible, and whether there was for the others.
    pub(super) fn add_all(&mut self) -> (bool, bool) {
        let weak = self.weak;
        let writers = Writers::new(weak);
        let all_near = self.visit_readers(|near, reader| near.add_near(&writers, reader));
        let is_asked = |_: &&[u32]| self.strongest().is_some_and(|s| s.level == Level::Causal);
        let order = weak.resolved.order.as_deref().filter(is_asked);
        let all_distant = order.is_none_or(|order| {
            let mut ancestors = Ancestors::new(weak.dependencies(), places(order));
            self.visit_readers(|far, reader| far.add_distant(&writers, &mut ancestors, reader))
        });
        (all_near, all_distant)
    }

    /// Visits the readers in order until the budget is spent or too many instances are kept; a visit
    /// returns how much it considered. Returns whether all readers were visited.
    fn visit_readers(&mut self, mut visit: impl FnMut(&mut Self, TxnId) -> usize) -> bool {
        let Dependencies { history, reads, .. } = self.weak.dependencies();
        let mut steps = 0;
        history.txns().filter(|txn| reads.is_kept(*txn)).all(|reader| {
            steps += visit(self, reader);
            steps <= BUDGET && self.found.len() <= LIMIT
        })
    }

    /// The writers that a transaction read from, each with the read; sorted.
    fn sources(&self, reader: TxnId) -> Vec<(TxnId, OpId)> {
        let reads = foreign_reads(self.weak.dependencies(), reader);
        let mut sources: Vec<_> = reads.map(|(read, writer)| (writer, read)).collect();
        sources.sort_unstable();
        sources
    }

    /// Each read of a transaction that may be part of an instance, as one that missed `init`.
    fn reads_on_cycles(&self, sources: &[(TxnId, OpId)], reader: TxnId) -> Vec<Inference> {
        let history = self.weak.dependencies().history;
        let may_close = |after: TxnId| self.strongest().is_some_and(|s| s.has_cycle_with(after));
        let on_cycles = sources.iter().copied().filter(|(after, _)| may_close(*after));
        let missing = |(after, read): (TxnId, OpId)| {
            let (key, visible) = (history.op_keys()[read.index()], Visibility::Causal);
            Inference { before: TxnId::INIT, after, reader, key, read, visible }
        };
        on_cycles.map(missing).collect()
    }

    /// Adds those in which the reader read from the missed writer, or follows it in its session. Returns how
    /// much was considered.
    fn add_near(&mut self, writers: &Writers, reader: TxnId) -> usize {
        let (dependencies, relations) = (self.weak.dependencies(), self.relations);
        let sources = self.sources(reader);
        let mut read_from: Vec<TxnId> = sources.iter().map(|(writer, _)| *writer).collect();
        read_from.dedup();
        let mut steps = 0;
        for missing @ Inference { after, key, .. } in self.reads_on_cycles(&sources, reader) {
            let writes = |writer: &TxnId| self.weak.writes().contains(*writer, key);
            let mut missed: Vec<TxnId> =
                read_from.iter().copied().filter(|w| !w.is_init() && writes(w)).collect();
            for relation in relations.iter().filter(|r| r.level != Level::ReadCommitted) {
                let mut closing = writers.before(reader, key, dependencies).iter().filter(|own| {
                    dependencies.precedes_in_session(**own, reader)
                        && relation.closes(after, **own)
                        && read_from.binary_search(own).is_err()
                });
                missed.extend(closing.next());
                missed.extend(closing.next_back());
            }
            steps += sources.len() * (1 + missed.len());
            for before in missed.into_iter().filter(|before| *before != after) {
                let inference = Inference { before, ..missing };
                self.add_by_steps(&inference, &Ways::of(dependencies, &inference));
            }
        }
        steps
    }

    /// Adds those in which only a longer way leads from the missed writer to the reader. Returns how much was
    /// considered.
    fn add_distant(
        &mut self,
        writers: &Writers,
        ancestors: &mut Ancestors<'_>,
        reader: TxnId,
    ) -> usize {
        let dependencies = self.weak.dependencies();
        let mut steps = 0;
        let mut open: Vec<Inference> = Vec::new();
        for missing in self.reads_on_cycles(&self.sources(reader), reader) {
            let of_key = writers.of(missing.key);
            steps += of_key.len();
            let inferences = of_key.iter().map(|before| Inference { before: *before, ..missing });
            open.extend(inferences.filter(|inference| {
                let Inference { before, after, .. } = *inference;
                before != reader
                    && before != after
                    && self.strongest().is_some_and(|strongest| strongest.closes(after, before))
                    && Ways::of(dependencies, inference).lettered().is_none()
            }));
        }
        let places = open.iter().map(|inference| ancestors.place(inference.before));
        let Some(first) = places.min() else { return steps };
        steps += ancestors.find(reader, first);
        open.retain(|inference| ancestors.contain(inference.before));
        open.into_iter().for_each(|inference| self.add(inference));
        steps
    }

    /// The relation of the strongest level that is asked for.
    fn strongest(&self) -> Option<&'a Relation> {
        self.relations.last()
    }

    /// Adds what the ways of one step make of an inference.
    fn add_by_steps(&mut self, inference: &Inference, ways: &Ways) {
        let read_committed = self.relations.first();
        if let Some(visible) = ways.same_key_before()
            && read_committed.is_some_and(|r| r.closes(inference.after, inference.before))
        {
            // A read of an older version of a key after a newer one.
            let (kind, inference) =
                (AnomalyKind::NonMonotonicRead, Inference { visible, ..*inference });
            let closes_in = Level::ReadCommitted;
            self.keep(Instance { inference, closes_in, causally: Some(kind), by_commit: kind });
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
        let Some(Relation { level: closes_in, .. }) = self.relations.iter().find(closes) else {
            return;
        };
        let (causally, by_commit) = patterns_of(*closes_in);
        let causally = (*closes_in == rule).then_some(causally);
        self.keep(Instance { inference, closes_in: *closes_in, causally, by_commit });
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

/// Per key, the kept transactions that write it, in order.
struct Writers(Rows<TxnId>);

impl Writers {
    fn new(weak: &Weak<'_>) -> Self {
        let Dependencies { history, reads, .. } = weak.dependencies();
        let mut writes: Vec<(KeyId, TxnId)> = Vec::new();
        for txn in history.txns().filter(|txn| reads.is_kept(*txn)) {
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
    fn before(&self, reader: TxnId, key: KeyId, dependencies: &Dependencies<'_>) -> &[TxnId] {
        let history = dependencies.history;
        let session = history.session_of(reader);
        let earlier = &self.of(key)[..self.of(key).partition_point(|writer| *writer < reader)];
        &earlier[earlier.partition_point(|writer| history.session_of(*writer) < session)..]
    }
}
