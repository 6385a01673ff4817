//! What the rest of an order asks of its windows: that the versions which somebody read later stay.

use isolario_model::TxnId;
use rayon::prelude::*;

use super::{Question, WrittenBy};
use crate::blocks::{self, Block};
use crate::graph::Rows;

/// No window.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// By window, the versions in it that were read elsewhere, which is after it. `window_of` has the window of
/// each node, and `saw` whose version each open read sees.
pub(super) fn read_later(
    question: &Question<'_>,
    windows: usize,
    window_of: &[u32],
    saw: &[Option<TxnId>],
) -> Rows<WrittenBy> {
    let (history, reads, layout) = (question.history(), question.reads(), question.layout);
    let window = |node: u32| window_of[node as usize];
    let in_block = |block: &Block| {
        let mut found: Vec<(u32, WrittenBy)> = Vec::new();
        for reader in block.iter().flat_map(Clone::clone).map(TxnId::at) {
            if !reads.is_kept(reader) {
                continue;
            }
            let own = window(layout.start(reader));
            let mut read = |key, writer: TxnId| {
                if writer.is_init() {
                    return;
                }
                let written = window(layout.commit(writer));
                if written != OUTSIDE && written != own {
                    found.push((written, (key, writer)));
                }
            };
            reads.for_each_writer(history.op_range(reader), |op, writer| {
                read(history.op_keys()[op], writer);
            });
            for open in question.open_reads(reader) {
                let key = history.op_keys()[question.open.reads[open].index()];
                saw[open].into_iter().for_each(|writer| read(key, writer));
            }
        }
        found
    };
    let mut found: Vec<(u32, WrittenBy)> =
        blocks::blocks(history).par_iter().flat_map_iter(in_block).collect();
    found.par_sort_unstable();
    found.dedup();
    Rows::group(windows, found.into_iter())
}
