//! One pool per list from the pools of all batches.

use super::tables::{Maps, Tables};
use crate::batch::Batch;
use crate::columns::OpColumns;
use crate::lists::{ListRef, Lists};
use crate::op::OpKind;
use crate::table::ValueId;

/// The joined pools, and what is left to do for single reads.
pub(super) struct Pools {
    pub(super) lists: Lists,
    /// Per key, whether its pools disagree.
    is_disputed: Vec<bool>,
    /// Whether that is so for some key, or some list is a copy.
    has_strays: bool,
}

impl Pools {
    /// Joins the pools of each key.
    ///
    /// Where they agree, the longest one is what would have come of all reads one after the other,
    /// and a prefix is a prefix of it, too: its length stands. Where they do not, it depends on the
    /// order of arrival which reads are prefixes, and all reads of the key have to be stored again.
    pub(super) fn join(batches: &[Batch], tables: &Tables) -> Pools {
        let has_copies = batches.iter().any(|batch| batch.ops.lists.has_copies());
        let mut pools =
            Pools { lists: Lists::default(), is_disputed: Vec::new(), has_strays: has_copies };
        for (batch, maps) in batches.iter().zip(&tables.maps) {
            for (key, pool) in batch.ops.lists.pools() {
                let key = maps.keys.get(key as usize).copied().unwrap_or(key);
                pools.add(key, &renumbered(pool, maps));
            }
        }
        for key in (0..pools.is_disputed.len()).filter(|key| pools.is_disputed[*key]) {
            pools.lists.forget_pool(key as u32);
        }
        pools
    }

    fn add(&mut self, key: u32, pool: &[ValueId]) {
        if self.is_disputed.len() <= key as usize {
            self.is_disputed.resize(key as usize + 1, false);
        }
        if !self.lists.merge_pool(key, pool) {
            self.is_disputed[key as usize] = true;
            self.has_strays = true;
        }
    }

    /// Whether no read needs to be looked at.
    pub(super) fn are_settled(&self) -> bool {
        !self.has_strays
    }

    /// The word of a list read that comes next in the order of arrival.
    pub(super) fn encoded(
        &mut self,
        source: &OpColumns,
        from: usize,
        key: u32,
        maps: &Maps,
    ) -> u64 {
        debug_assert_eq!(source.kinds[from], OpKind::ReadList);
        let list = ListRef::from_bits(source.encoded[from]);
        let is_disputed = self.is_disputed.get(key as usize).is_some_and(|disputed| *disputed);
        if !is_disputed && list.prefix_len().is_some() {
            return list.to_bits();
        }
        let elements = renumbered(source.lists.get(source.keys[from].0, list), maps);
        let list = match is_disputed {
            true => self.lists.insert(key, &elements),
            // It diverges from the pool of its batch, and so from all that this one is a part of.
            false => self.lists.copy(&elements),
        };
        list.to_bits()
    }
}

fn renumbered<'e>(elements: &'e [ValueId], maps: &Maps) -> std::borrow::Cow<'e, [ValueId]> {
    match maps.values.is_empty() {
        true => elements.into(),
        false => elements.iter().map(|value| maps.value(*value)).collect(),
    }
}
