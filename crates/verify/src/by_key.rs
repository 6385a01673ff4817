//! Operations by key and, within a key, by version.

use isolario_model::{History, KeyId, OpId};

/// Some operations of a history, those of a key together, by version and then by id.
#[derive(Debug)]
pub(crate) struct ByKey {
    rows: Vec<(u64, OpId)>,
    /// Where the rows of each key end.
    ends: Vec<usize>,
}

impl ByKey {
    /// Sorts first by counting and then key by key: what is sorted stays in the cache.
    pub(crate) fn new(history: &History, wanted: impl Fn(OpId) -> bool) -> Self {
        let ops = || (0..history.op_count()).map(OpId::at).filter(|op| wanted(*op));
        let key = |op: OpId| history.op_keys()[op.index()].index();
        let mut ends = vec![0; history.key_count()];
        ops().for_each(|op| ends[key(op)] += 1);
        let mut end = 0;
        for count in &mut ends {
            end += std::mem::replace(count, end);
        }
        // Each end begins as the start of its key and moves on with every row.
        let mut rows = vec![(0, OpId(0)); end];
        for op in ops() {
            let place = &mut ends[key(op)];
            rows[*place] = (history.encoded_version(op), op);
            *place += 1;
        }
        let mut begin = 0;
        for end in &ends {
            rows[begin..*end].sort_unstable();
            begin = *end;
        }
        ByKey { rows, ends }
    }

    /// Those of a key.
    pub(crate) fn of_key(&self, key: KeyId) -> &[(u64, OpId)] {
        let begin = key.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[begin..self.ends[key.index()]]
    }

    /// Those of a version of a key.
    pub(crate) fn of_version(&self, key: KeyId, word: u64) -> &[(u64, OpId)] {
        let of_key = self.of_key(key);
        let from = &of_key[of_key.partition_point(|(other, _)| *other < word)..];
        &from[..from.iter().take_while(|(other, _)| *other == word).count()]
    }
}
