//! Writes that nothing orders among the versions of their keys: the transaction had not read the key, and is not
//! the one loader that the key may have.

use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{History, KeyId, OpId, TxnId};
use rayon::prelude::*;

use super::accesses::{Access, Accesses, writes};
use super::{Dependencies, Source};
use crate::blocks::Block;

/// No version, no operation, and nobody.
pub(super) const NONE: u32 = u32::MAX;

/// An array of `count` empty slots.
pub(super) fn nobody(count: usize) -> Vec<AtomicU32> {
    (0..count).into_par_iter().map(|_| AtomicU32::new(NONE)).collect()
}

/// Whether a blind write is not the one loader that its key may have. A key may have one if no transaction
/// overwrote its initial version: all other versions then descend from the loader's, so that it was the
/// first. `blind` has one write per key of each transaction.
pub(super) fn has_misfit(
    history: &History,
    blind: &[&[OpId]],
    is_replaced: impl Fn(KeyId) -> bool + Sync,
) -> bool {
    let key = |write: OpId| history.op_keys()[write.index()];
    let first = nobody(history.key_count());
    let first_of = |write: OpId| &first[key(write).index()];
    blind.par_iter().for_each(|blind| {
        for write in *blind {
            first_of(*write).fetch_min(write.0, Ordering::Relaxed);
        }
    });
    let is_misfit = |write: &OpId| {
        first_of(*write).load(Ordering::Relaxed) != write.0 || is_replaced(key(*write))
    };
    blind.par_iter().any(|blind| blind.iter().any(is_misfit))
}

/// One blind write per `MANY` transactions makes it likely that one of them does not fit.
const MANY: usize = 8;

/// Looks for blind writes alone. That is far less than to find out who overwrote what, which is in vain
/// if one of them does not fit.
pub(super) struct Loaders<'a> {
    dependencies: &'a Dependencies<'a>,
    /// Per key, whether its initial version was overwritten by who had read it: [`NONE`] if not.
    replaced: Vec<AtomicU32>,
}

impl<'a> Loaders<'a> {
    pub(super) fn new(dependencies: &'a Dependencies<'a>) -> Self {
        Loaders { dependencies, replaced: nobody(dependencies.history.key_count()) }
    }

    /// Whether the first block has many blind writes.
    pub(super) fn are_likely_misfits(&self, blocks: &[Block]) -> bool {
        blocks.first().is_some_and(|block| {
            let txns: usize = block.iter().map(ExactSizeIterator::len).sum();
            self.blind_writes(block, &mut Accesses::default()).len() * MANY > txns
        })
    }

    /// Whether all blind writes fit.
    pub(super) fn fit(&self, blocks: &[Block]) -> bool {
        let find = |accesses: &mut Accesses, block: &Block| self.blind_writes(block, accesses);
        let blind: Vec<Vec<OpId>> = blocks.par_iter().map_init(Accesses::default, find).collect();
        let blind: Vec<&[OpId]> = blind.iter().map(Vec::as_slice).collect();
        let is_replaced = |key: KeyId| self.replaced[key.index()].load(Ordering::Relaxed) != NONE;
        !has_misfit(self.dependencies.history, &blind, is_replaced)
    }

    /// The blind writes of a block. Notes whose initial version is overwritten.
    fn blind_writes(&self, block: &Block, accesses: &mut Accesses) -> Vec<OpId> {
        let Dependencies { history, reads, .. } = self.dependencies;
        let mut blind = Vec::new();
        for txn in block.iter().flat_map(Clone::clone).map(TxnId::at) {
            if !reads.is_kept(txn) {
                continue;
            }
            accesses.clear();
            for op in history.txn_ops(txn) {
                let key = history.op_keys()[op.index()];
                if writes(history.op_kinds()[op.index()]) {
                    match accesses.write(key) {
                        Access::New => blind.push(op),
                        Access::Read { version: INITIAL } => {
                            self.replaced[key.index()].store(txn.0, Ordering::Relaxed);
                        }
                        Access::Read { .. } | Access::Written => {}
                    }
                } else if let Source::Txn(writer) = reads.source(op) {
                    accesses.read(key, if writer.is_init() { INITIAL } else { NONE });
                }
            }
        }
        blind
    }
}

/// The version that is there before anybody writes.
const INITIAL: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use isolario_oracle::random::Case;

    use super::*;
    use crate::CheckOptions;
    use crate::blocks::blocks;
    use crate::resolved::{Overwrites, Resolved};

    #[test]
    fn the_quick_check_finds_a_blind_write_where_the_thorough_one_does() {
        let (mut misfits, mut all) = (0, 0);
        for case in Case::first(5_000) {
            let history = case.draft().history().unwrap();
            let resolved = Arc::new(Resolved::new(&history, &CheckOptions::default()));
            let thorough = Overwrites::thorough(Arc::clone(&resolved)).is_some();
            let quick = Loaders::new(&resolved.dependencies).fit(&blocks(&history));
            assert_eq!(quick, thorough, "{}", case.draft());
            (misfits, all) = (misfits + usize::from(!quick), all + 1);
        }
        assert!(misfits > 0 && misfits < all, "{misfits} of {all}");
    }
}
