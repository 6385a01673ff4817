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
    pub(crate) const fn from_word(word: u64) -> ListRef {
        ListRef(word)
    }

    pub(crate) const fn word(self) -> u64 {
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
    /// Whether no list was ever stored, not even an empty one.
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// Stores what a read of key number `key` returned.
    pub fn insert(&mut self, key: u32, elements: &[ValueId]) -> ListRef {
        let key = key as usize;
        if self.pools.len() <= key {
            self.pools.resize_with(key + 1, Vec::new);
        }
        let pool = &mut self.pools[key];
        let shared = pool.len().min(elements.len());
        if pool[..shared] == elements[..shared] {
            pool.extend_from_slice(&elements[shared..]);
            ListRef(elements.len() as u64)
        } else {
            self.copies.extend_from_slice(elements);
            self.copy_ends.push(self.copies.len());
            ListRef((self.copy_ends.len() - 1) as u64 | COPY)
        }
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
}
