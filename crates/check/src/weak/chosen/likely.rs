//! What reads probably saw, by what is certain.
//!
//! Of the candidates of a read, one is unlikely if its writer depends on the reader, or if another
//! transaction overwrote it on which the reader depends: causality would be violated. If only one is
//! left, it is taken for the source, and more depends on each other. That is repeated until nothing
//! changes.
//!
//! What is still open is then gone through in an order of what depends on each other. A read is taken to
//! have seen what its reader depends on already, if it can; else the last candidate before it whose causes
//! do not overwrite what its reader read elsewhere.
//!
//! It decides nothing: unlikely candidates are tried last, at weaker levels too, since a history that
//! violates one is causal in most places.

use isolario_model::{KeyId, OpId, TxnId};

use super::super::chains::TxnChains;
use crate::graph::{InEdges, places};
use crate::resolved::{Dependencies, OpenReads, Resolved};

/// Number of entries that clocks may have; with more, the nearest candidates are taken.
const MOST_ENTRIES: usize = 1 << 26;

/// Number of reads after which the limits are checked.
const CHECK_EVERY: usize = 64;

/// Rounds in which sources are settled, at most.
const ROUNDS: usize = 16;

/// Which candidates are unlikely, and where transactions probably are.
pub(super) struct Likely {
    /// Per candidate of all reads, whether causality excludes it.
    is_unlikely: Vec<bool>,
    /// Per transaction, its position in an order of what depends on each other.
    places: Vec<u32>,
    /// Per read, which of its candidates is tried first.
    first: Vec<u32>,
}

impl Likely {
    /// If it is over on the way, less is worked out.
    pub(super) fn new(
        resolved: &Resolved<'_>,
        open: &OpenReads,
        is_over: &dyn Fn() -> bool,
    ) -> Self {
        let order = resolved.order.as_ref().unwrap_or(&resolved.guess.commits);
        let mut likely = Likely {
            is_unlikely: vec![false; open.writers.entries().len()],
            places: places(order),
            first: vec![0; open.reads.len()],
        };
        let mut sources: Vec<(OpId, TxnId)> = Vec::new();
        for _ in 0..ROUNDS {
            if is_over() {
                break;
            }
            let settled = resolved.choosing(&sources, &[]);
            let Some(mut causality) = Causality::new(&settled) else { break };
            likely.places = places(causality.order);
            likely.compare(&causality, open, is_over);
            let before = sources.len();
            sources = likely.sources(resolved, open);
            if sources.len() == before {
                likely.go_through(&mut causality, open, is_over);
                return likely;
            }
        }
        likely.take_nearest(&resolved.dependencies, open);
        likely
    }

    /// Which candidate of a read is tried first.
    pub(super) fn first(&self, row: usize) -> usize {
        self.first[row] as usize
    }

    fn take_nearest(&mut self, dependencies: &Dependencies<'_>, open: &OpenReads) {
        for (row, read) in open.reads.iter().enumerate() {
            let reader = dependencies.history.op_txn(*read);
            let candidates = (0u32..).zip(open.writers.span(row)).zip(open.writers.get(row));
            let nearest = candidates.min_by_key(|((_, at), w)| self.distance(*at, reader, **w));
            self.first[row] = nearest.map_or(0, |((number, _), _)| number);
        }
    }

    /// Chooses for one reader after the other, so that what its causes depend on is known.
    fn go_through(
        &mut self,
        causality: &mut Causality<'_>,
        open: &OpenReads,
        is_over: &dyn Fn() -> bool,
    ) {
        let history = causality.dependencies.history;
        self.take_nearest(causality.dependencies, open);
        for txn in causality.order.iter().copied().map(TxnId) {
            if !causality.knows(txn) {
                continue;
            }
            if is_over() {
                return;
            }
            causality.compute(txn);
            let ops = history.op_range(txn);
            let from = |op: usize| open.reads.partition_point(|read| read.index() < op);
            for row in from(ops.start)..from(ops.end) {
                let key = history.op_keys()[open.reads[row].index()];
                let candidates = (0u32..).zip(open.writers.span(row)).zip(open.writers.get(row));
                let best = candidates.min_by_key(|((_, at), writer)| {
                    let (is_unlikely, is_after, distance) = self.distance(*at, txn, **writer);
                    let fits = !is_after && causality.fits(txn, key, **writer);
                    let is_new = !causality.precedes(**writer, txn);
                    (is_unlikely, is_after, !fits, is_new, distance)
                });
                if let Some(((number, _), writer)) = best {
                    self.first[row] = number;
                    causality.depend(txn, *writer);
                }
            }
        }
    }

    /// How far a candidate is from what is preferred: not an unlikely one, the last one before the
    /// reader, else the first one after it.
    pub(super) fn distance(
        &self,
        candidate: usize,
        reader: TxnId,
        writer: TxnId,
    ) -> (bool, bool, i64) {
        // `init` comes first.
        let place = |txn: TxnId| self.places.get(txn.index()).map_or(-1, |place| i64::from(*place));
        let distance = place(reader) - place(writer);
        (self.is_unlikely[candidate], distance < 0, distance.abs())
    }

    fn compare(&mut self, causality: &Causality<'_>, open: &OpenReads, is_over: &dyn Fn() -> bool) {
        let history = causality.dependencies.history;
        let mut overwriting = Vec::new();
        for (row, read) in open.reads.iter().enumerate() {
            let (reader, key) = (history.op_txn(*read), history.op_keys()[read.index()]);
            if !causality.knows(reader) {
                continue;
            }
            if row.is_multiple_of(CHECK_EVERY) && is_over() {
                return;
            }
            causality.last_writers(reader, key, &mut overwriting);
            let span = open.writers.span(row);
            let is_overwritten = |writer: TxnId| {
                let overwrote =
                    |other: &TxnId| *other != writer && causality.precedes(writer, *other);
                overwriting.iter().any(overwrote)
            };
            for (at, writer) in span.clone().zip(open.writers.get(row)) {
                self.is_unlikely[at] |=
                    causality.precedes(reader, *writer) || is_overwritten(*writer);
            }
            // A read without a likely candidate says nothing about any of them.
            if self.is_unlikely[span.clone()].iter().all(|unlikely| *unlikely) {
                self.is_unlikely[span].fill(false);
            }
        }
    }

    /// The reads of which one candidate is left that certainly committed.
    fn sources(&self, resolved: &Resolved<'_>, open: &OpenReads) -> Vec<(OpId, TxnId)> {
        let Dependencies { history, reads, .. } = &resolved.dependencies;
        let is_certain = |txn: TxnId| txn.is_init() || reads.is_kept(txn);
        let mut sources = Vec::new();
        for (row, read) in open.reads.iter().enumerate() {
            let candidates = open.writers.span(row).zip(open.writers.get(row));
            let mut left = candidates.filter(|(at, _)| !self.is_unlikely[*at]);
            if let (Some((_, writer)), None) = (left.next(), left.next())
                && is_certain(*writer)
                && is_certain(history.op_txn(*read))
            {
                sources.push((*read, *writer));
            }
        }
        sources
    }
}

/// What each transaction depends on: a clock per transaction, with an entry per chain.
struct Causality<'a> {
    dependencies: &'a Dependencies<'a>,
    order: &'a [u32],
    chains: TxnChains,
    /// Per transaction and chain, one more than the position of the last member that it depends on.
    clocks: Vec<u32>,
    /// By key, chain and position.
    writers: Vec<(KeyId, u32, u32)>,
}

impl<'a> Causality<'a> {
    fn new(resolved: &'a Resolved<'_>) -> Option<Self> {
        let dependencies = &resolved.dependencies;
        let order = resolved.order.as_deref()?;
        let chains = TxnChains::new(dependencies, order);
        if chains.len() * order.len() > MOST_ENTRIES {
            return None;
        }
        let is_kept = |txn: &u32| dependencies.reads.is_kept(TxnId(*txn));
        let mut writers: Vec<(KeyId, u32, u32)> = Vec::new();
        for txn in order.iter().copied().filter(is_kept).map(TxnId) {
            let keys = resolved.write_sets().of(txn);
            writers.extend(keys.map(|key| (key, chains.chain_of(txn), chains.position(txn))));
        }
        writers.sort_unstable();
        let clocks = vec![0u32; chains.len() * order.len()];
        let mut causality = Causality { dependencies, order, chains, clocks, writers };
        let kept = order.iter().copied().filter(is_kept);
        kept.for_each(|txn| causality.compute(TxnId(txn)));
        Some(causality)
    }

    /// The clock of a transaction, from those of its predecessors.
    fn compute(&mut self, txn: TxnId) {
        let width = self.chains.len();
        self.clocks[txn.index() * width..][..width].fill(0);
        let dependencies = self.dependencies;
        dependencies.predecessors(txn.0).for_each(|before| self.depend(txn, TxnId(before)));
    }

    /// Lets a transaction depend on another one.
    fn depend(&mut self, txn: TxnId, before: TxnId) {
        if !self.knows(before) || before == txn {
            return;
        }
        let width = self.chains.len();
        let (from, to) = (before.index() * width, txn.index() * width);
        let own = to + self.chains.chain_of(before) as usize;
        for chain in 0..width {
            self.clocks[to + chain] = self.clocks[to + chain].max(self.clocks[from + chain]);
        }
        self.clocks[own] = self.clocks[own].max(self.chains.position(before) + 1);
    }

    /// Whether a reader may have seen a writer's version of a key, and with it all that the writer
    /// depends on.
    fn fits(&self, reader: TxnId, key: KeyId, writer: TxnId) -> bool {
        let history = self.dependencies.history;
        let mut seen = Vec::new();
        self.last_writers(reader, key, &mut seen);
        if seen.iter().any(|other| *other != writer && self.precedes(writer, *other)) {
            return false;
        }
        if !self.knows(writer) || self.precedes(writer, reader) {
            return true;
        }
        let mut fits = true;
        self.dependencies.reads.for_each_writer(history.op_range(reader), |op, from| {
            let key = history.op_keys()[op];
            self.last_writers(writer, key, &mut seen);
            fits &= !seen.iter().any(|other| *other != from && self.precedes(from, *other));
        });
        fits
    }

    fn knows(&self, txn: TxnId) -> bool {
        !txn.is_init() && self.dependencies.reads.is_kept(txn)
    }

    fn clock(&self, txn: TxnId) -> &[u32] {
        &self.clocks[txn.index() * self.chains.len()..][..self.chains.len()]
    }

    /// Whether one transaction depends on another.
    fn precedes(&self, before: TxnId, after: TxnId) -> bool {
        if before.is_init() || after.is_init() {
            return !after.is_init();
        }
        self.knows(before)
            && self.knows(after)
            && self.clock(after)[self.chains.chain_of(before) as usize]
                > self.chains.position(before)
    }

    /// Of each chain, the last writer of a key that a reader depends on.
    fn last_writers(&self, reader: TxnId, key: KeyId, found: &mut Vec<TxnId>) {
        found.clear();
        for (chain, bound) in (0u32..).zip(self.clock(reader)) {
            let end = self.writers.partition_point(|writer| *writer < (key, chain, *bound));
            match end.checked_sub(1).map(|last| self.writers[last]) {
                Some((of, in_chain, position)) if of == key && in_chain == chain => {
                    found.push(self.chains.members(chain as usize)[position as usize]);
                }
                _ => {}
            }
        }
    }
}
