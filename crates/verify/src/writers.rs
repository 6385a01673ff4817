//! Who writes each key, in a claimed order.

use isolario_model::{KeyId, TxnId};

use crate::order::Order;

/// The writers of each key, by their places in the order, counted from 0.
pub(crate) struct Writers {
    places: Vec<u32>,
    /// Where those of each key end.
    ends: Vec<usize>,
}

impl Writers {
    pub(crate) fn new(order: &Order<'_, '_>) -> Self {
        let mut ends = vec![0; order.facts.history.key_count()];
        let written = |txn: &TxnId| order.facts.written(*txn);
        order.txns.iter().flat_map(written).for_each(|key| ends[key.index()] += 1);
        let mut end = 0;
        for count in &mut ends {
            end += std::mem::replace(count, end);
        }
        // Each end begins as the start of its key and moves on with every writer.
        let mut places = vec![0; end];
        for (place, txn) in (0..).zip(order.txns) {
            for key in written(txn) {
                let end = &mut ends[key.index()];
                places[*end] = place;
                *end += 1;
            }
        }
        Writers { places, ends }
    }

    /// The writers of a key, first to last.
    pub(crate) fn of_key(&self, key: KeyId) -> &[u32] {
        let begin = key.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[begin..self.ends[key.index()]]
    }

    /// The first writer of a key at this place or later.
    pub(crate) fn from(&self, key: KeyId, place: u32) -> Option<u32> {
        let of_key = self.of_key(key);
        of_key.get(of_key.partition_point(|other| *other < place)).copied()
    }
}
