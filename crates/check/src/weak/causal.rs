//! Causal: whoever sees an effect sees its causes.
//!
//! AWDIT, Algorithm 3. For a reader that read `x` from `t1` while `t2`, which wrote `x` too,
//! happens before the reader, `t2` was committed before `t1`. Of each chain only the last such
//! writer matters. Happens-before is kept as vector clocks, one entry per chain.
//!
//! Chains are taken in blocks of sixteen: a block's clocks for all transactions are one cache line
//! each, so that memory grows with the history and not with the number of chains, blocks run on
//! both cores, and a clock costs one cache miss. Most orders that the rule demands hold already,
//! because `t2` happens before `t1`: those are left out as soon as they are seen. Where the
//! reader's entry for a chain is no later than `t1`'s own, nothing in that chain needs looking at.

use isolario_model::{History, KeyId, OpId, TxnId};
use rayon::prelude::*;

use super::Dependencies;
use super::chains::Chains;
use super::saturated::{Inference, Visibility};
use super::writes::WriteSets;
use crate::graph::InEdges;
use crate::reads::Source;

/// Chains per block.
const BLOCK: usize = 16;

/// Per chain of a block, one more than the position of its last member that happens before.
type Clock = [u32; BLOCK];

/// Everything the causal rule needs to be applied.
pub(crate) struct Causality<'a> {
    pub(crate) dependencies: &'a Dependencies<'a>,
    pub(crate) writes: &'a WriteSets<'a>,
    /// A topological order of session order ∪ write-read.
    pub(crate) order: &'a [u32],
    pub(crate) chains: &'a Chains,
}

impl Causality<'_> {
    /// Applies the rule everywhere, block by block. What `collect` makes of the inferences comes
    /// back in the order of the blocks.
    pub(crate) fn infer<T: Send>(
        &self,
        collect: impl Fn(&mut dyn FnMut(&mut dyn FnMut(Inference))) -> T + Sync,
    ) -> Vec<T> {
        let blocks: Vec<usize> = (0..self.chains.len()).step_by(BLOCK).collect();
        blocks
            .into_par_iter()
            .map(|first| {
                let block = Block::new(self, first);
                collect(&mut |emit| block.infer(emit))
            })
            .collect()
    }
}

/// One block of chains.
struct Block<'a> {
    causality: &'a Causality<'a>,
    history: &'a History,
    /// The first chain.
    first: usize,
    clocks: Vec<Clock>,
    writers: Writers,
}

impl<'a> Block<'a> {
    fn new(causality: &'a Causality<'a>, first: usize) -> Self {
        let history = causality.dependencies.history;
        let count = (causality.chains.len() - first).min(BLOCK);
        let writers = Writers::new(causality, first..first + count);
        let mut block = Block { causality, history, first, clocks: Vec::new(), writers };
        block.compute_clocks();
        block
    }

    fn compute_clocks(&mut self) {
        self.clocks = vec![[0; BLOCK]; self.history.txn_count()];
        for txn in self.causality.order {
            let mut clock = [0; BLOCK];
            for before in self.causality.dependencies.predecessors(*txn) {
                let other = &self.clocks[before as usize];
                clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
                self.count_itself(TxnId(before), &mut clock);
            }
            self.clocks[*txn as usize] = clock;
        }
    }

    /// Raises the entry of a transaction's own chain to the transaction itself.
    #[inline]
    fn count_itself(&self, txn: TxnId, clock: &mut Clock) {
        let chain = (self.causality.chains.chain_of(txn) as usize).wrapping_sub(self.first);
        if let Some(entry) = clock.get_mut(chain) {
            *entry = (*entry).max(self.causality.chains.position(txn) + 1);
        }
    }

    fn infer(&self, emit: &mut dyn FnMut(Inference)) {
        let reads = self.causality.dependencies.reads;
        for reader in self.causality.order.iter().map(|txn| TxnId(*txn)) {
            if !reads.is_kept(reader) {
                continue;
            }
            for read in self.history.txn_ops(reader) {
                if let Source::Txn(after) = reads.source(read) {
                    self.infer_from(reader, read, after, emit);
                }
            }
        }
    }

    fn infer_from(&self, reader: TxnId, read: OpId, after: TxnId, emit: &mut dyn FnMut(Inference)) {
        let key = self.history.op_keys()[read.index()];
        let visible = &self.clocks[reader.index()];
        // What `after` depends on, and `after` itself, need no order before it.
        let mut known = [0; BLOCK];
        if !after.is_init() {
            known = self.clocks[after.index()];
            self.count_itself(after, &mut known);
        }
        for chain in (0..BLOCK).filter(|chain| visible[*chain] > known[*chain]) {
            let Some(position) = self.writers.last_before(chain, key, visible[chain]) else {
                continue;
            };
            if position >= known[chain] {
                let members = self.causality.chains.members(self.first + chain);
                let before = members[position as usize];
                let visible = Visibility::Causal;
                emit(Inference { before, after, reader, key, read, visible });
            }
        }
    }
}

/// Per chain of a block and key, the positions of the members that write the key.
struct Writers {
    /// One past the last position for each (key, chain).
    ends: Vec<u32>,
    positions: Vec<u32>,
}

impl Writers {
    fn new(causality: &Causality<'_>, chains: std::ops::Range<usize>) -> Self {
        let keys = causality.dependencies.history.key_count();
        let mut ends = vec![0u32; keys * BLOCK];
        let for_each_write = |each: &mut dyn FnMut(usize, u32)| {
            for (slot, chain) in chains.clone().enumerate() {
                for (position, txn) in causality.chains.members(chain).iter().enumerate() {
                    for key in causality.writes.of(*txn) {
                        each(key.index() * BLOCK + slot, position as u32);
                    }
                }
            }
        };
        for_each_write(&mut |cell, _| ends[cell] += 1);
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut positions = vec![0u32; total as usize];
        for_each_write(&mut |cell, position| {
            positions[ends[cell] as usize] = position;
            ends[cell] += 1;
        });
        Writers { ends, positions }
    }

    /// The last position before `bound` at which the chain writes the key.
    #[inline]
    fn last_before(&self, chain: usize, key: KeyId, bound: u32) -> Option<u32> {
        let cell = key.index() * BLOCK + chain;
        let start = if cell == 0 { 0 } else { self.ends[cell - 1] as usize };
        let positions = &self.positions[start..self.ends[cell] as usize];
        let after = positions.partition_point(|position| *position < bound);
        after.checked_sub(1).map(|at| positions[at])
    }
}
