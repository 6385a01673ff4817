//! List reads, stored as prefixes of what their key once held.
//!
//! Almost every read of a list is a prefix of the longest read of that list, so one pool of
//! elements per key and a length per read hold them all; a read that diverges keeps a copy.

use crate::ValueId;

/// A list read: a length into its key's pool, or a copy of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListRef(u64);

const COPY: u64 = 1 << 63;

impl ListRef {
    /// Rebuilds a reference from its column word.
    pub(crate) const fn from_bits(word: u64) -> ListRef {
        ListRef(word)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// The length into the key's pool, unless the list diverges from it.
    pub fn prefix_len(self) -> Option<usize> {
        (self.0 & COPY == 0).then_some(self.0 as usize)
    }
}

/// The lists of a history.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Per key, the longest list of which all others so far were prefixes.
    pools: Vec<Vec<ValueId>>,
    /// The copies, one after the other, and where each ends.
    copies: Vec<ValueId>,
    copy_ends: Vec<usize>,
}

impl Lists {
    /// Stores what a read of key number `key` returned.
    pub fn insert(&mut self, key: u32, elements: &[ValueId]) -> ListRef {
        let pool = self.pool_mut(key);
        let shared = pool.len().min(elements.len());
        if pool[..shared] == elements[..shared] {
            pool.extend_from_slice(&elements[shared..]);
            ListRef(elements.len() as u64)
        } else {
            self.copy(elements)
        }
    }

    /// Stores a list that diverges from the pool of its key.
    pub(crate) fn copy(&mut self, elements: &[ValueId]) -> ListRef {
        self.copies.extend_from_slice(elements);
        self.copy_ends.push(self.copies.len());
        ListRef((self.copy_ends.len() - 1) as u64 | COPY)
    }

    /// As [`Lists::insert`], for a list that is told by what it shares with the pool of its key and
    /// what it adds: it begins the pool, continues it, or shares nothing with it and diverges. None
    /// if it is none of these.
    pub(crate) fn insert_shared(
        &mut self,
        key: u32,
        shared: usize,
        fresh: &[ValueId],
    ) -> Option<ListRef> {
        let pool = self.pool_mut(key);
        if shared == pool.len() {
            pool.extend_from_slice(fresh);
        } else if shared > pool.len() || !fresh.is_empty() {
            return (shared == 0).then(|| self.copy(fresh));
        }
        Some(ListRef((shared + fresh.len()) as u64))
    }

    /// Makes the pool of a key the longer one of two that agree. False if they do not.
    pub(crate) fn merge_pool(&mut self, key: u32, other: &[ValueId]) -> bool {
        let pool = self.pool_mut(key);
        let shared = pool.len().min(other.len());
        let agrees = pool[..shared] == other[..shared];
        if agrees {
            pool.extend_from_slice(&other[shared..]);
        }
        agrees
    }

    /// Makes the pool of a key empty. References into it are void.
    pub(crate) fn forget_pool(&mut self, key: u32) {
        self.pool_mut(key).clear();
    }

    /// The pools by number of key.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (u32, &[ValueId])> {
        (0..).zip(self.pools.iter().map(Vec::as_slice))
    }

    /// Whether some list diverges from the pool of its key.
    pub(crate) fn has_copies(&self) -> bool {
        !self.copy_ends.is_empty()
    }

    fn pool_mut(&mut self, key: u32) -> &mut Vec<ValueId> {
        let key = key as usize;
        if self.pools.len() <= key {
            self.pools.resize_with(key + 1, Vec::new);
        }
        &mut self.pools[key]
    }

    /// The elements of a read of key number `key`.
    pub fn get(&self, key: u32, list: ListRef) -> &[ValueId] {
        match list.prefix_len() {
            Some(len) => self.pool(key).get(..len).unwrap_or(&[]),
            None => {
                let copy = (list.0 & !COPY) as usize;
                let start = if copy == 0 { 0 } else { self.copy_ends[copy - 1] };
                &self.copies[start..self.copy_ends[copy]]
            }
        }
    }

    /// The longest list a key was seen to hold, as far as reads agree.
    pub fn pool(&self, key: u32) -> &[ValueId] {
        self.pools.get(key as usize).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(values: &[i64]) -> Vec<ValueId> {
        values.iter().filter_map(|v| ValueId::inline(*v)).collect()
    }

    #[test]
    fn reads_come_back_whether_they_are_prefixes_or_diverge() {
        let reads: [&[i64]; 6] = [&[], &[1, 2], &[1], &[1, 3], &[1, 2, 4], &[2]];
        let mut lists = Lists::default();
        let refs: Vec<_> = reads.iter().map(|r| lists.insert(7, &ids(r))).collect();
        for (read, list) in reads.iter().zip(&refs) {
            assert_eq!(lists.get(7, *list), ids(read));
        }
        assert_eq!(lists.pool(7), ids(&[1, 2, 4]));
        assert_eq!(refs.iter().filter(|r| r.prefix_len().is_none()).count(), 2);
    }

    #[test]
    fn a_list_told_by_what_it_shares_is_stored_like_any_other() {
        let (mut whole, mut shared) = (Lists::default(), Lists::default());
        let told: [(usize, &[i64]); 6] =
            [(0, &[]), (0, &[1, 2]), (1, &[]), (0, &[1, 3]), (2, &[4]), (0, &[2])];
        for (begins, adds) in told {
            let elements = [&whole.pool(7)[..begins], &ids(adds)].concat();
            let list = whole.insert(7, &elements);
            assert_eq!(shared.insert_shared(7, begins, &ids(adds)), Some(list));
            assert_eq!(shared.get(7, list), elements);
        }
        for (begins, adds) in [(4, &[][..]), (1, &[5]), (4, &[5])] {
            assert_eq!(shared.insert_shared(7, begins, &ids(adds)), None);
        }
    }
}
