//! Causal: whoever sees an effect sees its causes.
//!
//! AWDIT, Algorithm 3. For a reader that read `x` from `t1` while `t2`, which wrote `x` too,
//! happens before the reader, `t2` was committed before `t1`. Of each chain only the last such
//! writer matters. Happens-before is kept as vector clocks, one entry per chain.
//!
//! TxnChains are taken in blocks of thirty-two: a block's clocks for all transactions are two cache
//! lines each, so that memory grows with the history and not with the number of chains, blocks run
//! on both cores, and a clock costs a cache miss or two. Most orders that the rule demands hold already,
//! because `t2` happens before `t1`: those are left out as soon as they are seen.
//!
//! Which writers need looking at? Take a topological order. Whatever comes in it before the first
//! transaction that `t1` does not depend on, `t1` does depend on; whatever comes after the reader
//! is not visible to it. In a history whose sessions talk to each other that window is short, and
//! of the key's writers hardly any are in it. Where it is long, the last writer of each chain is
//! looked up instead, which keeps the bound of k steps per read.

use std::cell::OnceCell;
use std::ops::Range;

use isolario_model::{History, KeyId, TxnId};
use rayon::prelude::*;

use super::chains::TxnChains;
use super::inference::{Inference, Visibility};
use crate::graph::{InEdges, Rows, places};
use crate::resolved::Dependencies;
use crate::resolved::Source;
use crate::resolved::WriteSets;

/// TxnChains per block.
const BLOCK: usize = 32;

/// Per chain of a block, one more than the position of its last member that happens before.
type Clock = [u32; BLOCK];

/// Everything the causal rule needs to be applied.
pub(crate) struct Causality<'a> {
    pub(crate) dependencies: &'a Dependencies<'a>,
    pub(crate) writes: &'a WriteSets<'a>,
    /// A topological order of session order ∪ write-read.
    pub(crate) order: &'a [u32],
    pub(crate) chains: &'a TxnChains,
}

impl Causality<'_> {
    /// Applies the rule everywhere, and gathers what `keep` makes of its inferences, block by block.
    pub(crate) fn infer<T: Send>(
        &self,
        keep: impl Fn(Inference) -> Option<T> + Sync + Send,
    ) -> Vec<Vec<T>> {
        let places = places(self.order);
        let members = self.chains.members.entries();
        let member_places: Vec<u32> = members.iter().map(|txn| places[txn.index()]).collect();
        let blocks: Vec<usize> = (0..self.chains.len()).step_by(BLOCK).collect();
        let infer = |first| {
            let mut found = Vec::new();
            let block = Block::new(self, &places, &member_places, first);
            block.infer(&mut |inference| found.extend(keep(inference)));
            found
        };
        blocks.into_par_iter().map(infer).collect()
    }
}

/// One block of chains.
struct Block<'a> {
    causality: &'a Causality<'a>,
    history: &'a History,
    /// The first chain.
    first: usize,
    clocks: Vec<Clock>,
    /// The places of each chain's members in the topological order.
    member_places: Vec<&'a [u32]>,
    /// Per transaction, the place of the first member of the block that it does not depend on.
    horizons: Vec<u32>,
    writers: Writers,
}

impl<'a> Block<'a> {
    fn new(
        causality: &'a Causality<'a>,
        places: &'a [u32],
        member_places: &'a [u32],
        first: usize,
    ) -> Self {
        let history = causality.dependencies.history;
        let count = (causality.chains.len() - first).min(BLOCK);
        let mut block = Block {
            causality,
            history,
            first,
            clocks: vec![[0; BLOCK]; history.txn_count()],
            member_places: (first..first + count)
                .map(|chain| &member_places[causality.chains.members.span(chain)])
                .collect(),
            horizons: vec![0; history.txn_count()],
            writers: Writers::new(causality, places, first..first + count),
        };
        block.compute_clocks();
        block
    }

    fn compute_clocks(&mut self) {
        for txn in self.causality.order {
            let mut clock = [0; BLOCK];
            for before in self.causality.dependencies.predecessors(*txn) {
                let other = &self.clocks[before as usize];
                clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
                self.count_itself(TxnId(before), &mut clock);
            }
            self.clocks[*txn as usize] = clock;
            self.count_itself(TxnId(*txn), &mut clock);
            self.horizons[*txn as usize] = self.horizon(&clock);
        }
    }

    /// The place of the first member of the block beyond a clock.
    fn horizon(&self, clock: &Clock) -> u32 {
        let next = |(places, known): (&&[u32], &u32)| places.get(*known as usize).copied();
        self.member_places.iter().zip(clock).filter_map(next).min().unwrap_or(u32::MAX)
    }

    /// Raises the entry of a transaction's own chain to the transaction itself.
    #[inline]
    fn count_itself(&self, txn: TxnId, clock: &mut Clock) {
        if let Some(entry) = clock.get_mut(self.slot(txn)) {
            *entry = (*entry).max(self.causality.chains.position(txn) + 1);
        }
    }

    /// The entry of a transaction's chain in the clocks; out of range for other blocks' chains.
    #[inline]
    fn slot(&self, txn: TxnId) -> usize {
        (self.causality.chains.chain_of(txn) as usize).wrapping_sub(self.first)
    }

    /// Readers are taken in topological order, so that the writers of a key before the reader at
    /// hand only ever grow: a cursor per key marks their end.
    fn infer(&self, emit: &mut dyn FnMut(Inference)) {
        let reads = &self.causality.dependencies.reads;
        let mut cursors: Vec<Cursor> =
            (0..self.history.key_count()).map(|key| self.writers.cursor(key)).collect();
        for (place, reader) in (0..).zip(self.causality.order.iter().map(|txn| TxnId(*txn))) {
            if !reads.is_kept(reader) {
                continue;
            }
            for read in self.history.txn_ops(reader) {
                if let Source::Txn(after) = reads.source(read) {
                    let key = self.history.op_keys()[read.index()];
                    let cursor = &mut cursors[key.index()];
                    self.writers.advance(key, cursor, place);
                    // Nothing written since what `after` knows: the usual case, and seen without
                    // fetching the key's writers.
                    if cursor.last < self.horizon_of(after) {
                        continue;
                    }
                    let inference = Inference {
                        before: after,
                        after,
                        reader,
                        key,
                        read,
                        visible: Visibility::Causal,
                    };
                    self.infer_from(&inference, cursor.count, &mut |before| {
                        emit(Inference { before, ..inference });
                    });
                }
            }
        }
    }

    /// Emits the writers that come before the one read from. `end` is the number of the key's
    /// writers before the reader.
    fn infer_from(&self, inference: &Inference, end: u32, emit: &mut dyn FnMut(TxnId)) {
        let Inference { after, reader, key, .. } = *inference;
        let writers = self.writers.since(key, self.horizon_of(after), end);
        if writers.len() > BLOCK {
            self.last_of_each_chain(reader, after, key, emit);
        } else if !writers.is_empty() {
            let (visible, known) = (&self.clocks[reader.index()], self.known(after));
            for (_, before) in writers {
                let (slot, position) =
                    (self.slot(*before), self.causality.chains.position(*before));
                if position < visible[slot] && position >= known[slot] {
                    emit(*before);
                }
            }
        }
    }

    /// The place of the first member of the block that a transaction does not depend on.
    #[inline]
    fn horizon_of(&self, txn: TxnId) -> u32 {
        if txn.is_init() { 0 } else { self.horizons[txn.index()] }
    }

    /// What `after` depends on, and `after` itself: that needs no order before it.
    fn known(&self, after: TxnId) -> Clock {
        if after.is_init() {
            return [0; BLOCK];
        }
        let mut known = self.clocks[after.index()];
        self.count_itself(after, &mut known);
        known
    }

    /// Chain by chain, the last writer that is visible.
    fn last_of_each_chain(
        &self,
        reader: TxnId,
        after: TxnId,
        key: KeyId,
        emit: &mut dyn FnMut(TxnId),
    ) {
        let (visible, known) = (&self.clocks[reader.index()], self.known(after));
        let place_of = |txn| (self.slot(txn) as u32, self.causality.chains.position(txn));
        for slot in (0..BLOCK).filter(|slot| visible[*slot] > known[*slot]) {
            if let Some(position) = self.writers.last_before(slot, key, visible[slot], place_of)
                && position >= known[slot]
            {
                emit(self.causality.chains.members(self.first + slot)[position as usize]);
            }
        }
    }
}

/// Per key, the members of a block that write it.
struct Writers {
    /// By key, in topological order, with their places.
    by_place: Rows<(u32, TxnId)>,
    /// By key, the entries of their chains in the clocks and their positions there, sorted. Only
    /// made where a window is long.
    by_chain: OnceCell<Rows<(u32, u32)>>,
}

impl Writers {
    fn new(causality: &Causality<'_>, places: &[u32], chains: Range<usize>) -> Self {
        let keys = causality.dependencies.history.key_count();
        let is_member =
            |txn: &&u32| chains.contains(&(causality.chains.chain_of(TxnId(**txn)) as usize));
        // Along the topological order, which every chain follows.
        let members = causality.order.iter().filter(is_member).map(|txn| TxnId(*txn));
        let by_key = members.flat_map(|txn| {
            let place = places[txn.index()];
            causality.writes.of(txn).map(move |key| (key.0, (place, txn)))
        });
        let by_place = Rows::group(keys, by_key);
        Writers { by_place, by_chain: OnceCell::new() }
    }

    fn cursor(&self, key: usize) -> Cursor {
        let next = self.by_place.get(key).first().map_or(u32::MAX, |(place, _)| *place);
        Cursor { count: 0, last: NO_WRITER, next }
    }

    /// Moves a cursor past the writers of its key before a place.
    #[inline]
    fn advance(&self, key: KeyId, cursor: &mut Cursor, place: u32) {
        while cursor.next < place {
            let row = self.by_place.get(key.index());
            cursor.count += 1;
            cursor.last = cursor.next;
            cursor.next = row.get(cursor.count as usize).map_or(u32::MAX, |(place, _)| *place);
        }
    }

    /// The writers of a key from a place on, of the first `end` ones. The window is short as a
    /// rule; what is longer than a block is not walked through to its beginning.
    #[inline]
    fn since(&self, key: KeyId, first: u32, end: u32) -> &[(u32, TxnId)] {
        let row = &self.by_place.get(key.index())[..end as usize];
        let late = row.iter().rev().take(BLOCK + 1).take_while(|(place, _)| *place >= first);
        &row[row.len() - late.count()..]
    }

    /// The last position before `bound` at which the chain writes the key. `chain_and_position`
    /// tells where writers are.
    #[inline]
    fn last_before(
        &self,
        slot: usize,
        key: KeyId,
        bound: u32,
        chain_and_position: impl Fn(TxnId) -> (u32, u32),
    ) -> Option<u32> {
        let by_chain = self.by_chain.get_or_init(|| {
            let mut rows = self.by_place.map(|(_, writer)| chain_and_position(*writer));
            rows.iter_mut().for_each(<[(u32, u32)]>::sort_unstable);
            rows
        });
        let writes = by_chain.get(key.index());
        let after = writes.partition_point(|write| *write < (slot as u32, bound));
        let (chain, position) = *writes.get(after.checked_sub(1)?)?;
        (chain as usize == slot).then_some(position)
    }
}

/// The writers of a key before the reader at hand: how many, the place of the last, and the place of
/// the one that comes next.
struct Cursor {
    count: u32,
    last: u32,
    next: u32,
}

/// Below every place and every horizon but that of `init`, which then finds nothing.
const NO_WRITER: u32 = 0;
