//! How unevenly operations fall on keys.

use rayon::slice::ParallelSliceMut;

use super::Share;
use crate::{History, KeyId, OpId};

/// How many of the busiest keys are listed.
const TOP: usize = 10;

/// How unevenly operations fall on keys. A predicate operation touches the keys of its rows.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Skew {
    /// The ten busiest keys, the busiest first; keys of equal use in order of appearance.
    pub top: Vec<KeyUse>,
    /// The Gini coefficient of the operations per key: 0 where all keys are used alike, towards
    /// 1 where one key has it all. None where nothing touches a key.
    pub gini: Option<f64>,
}

/// How much a key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyUse {
    /// The key.
    pub key: KeyId,
    /// The operations that touch it, of all uses of keys.
    pub operations: Share,
}

impl Skew {
    pub(super) fn of(history: &History) -> Skew {
        let mut uses = vec![0u64; history.key_count()];
        for op in 0..history.op_count() {
            history.touches(OpId::at(op), |key| uses[key.index()] += 1);
        }
        let whole = uses.iter().sum::<u64>() as usize;
        let top = busiest(&uses)
            .into_iter()
            .map(|(key, part)| KeyUse { key, operations: Share { part: part as usize, whole } });
        Skew { top: top.collect(), gini: gini(uses) }
    }
}

fn busiest(uses: &[u64]) -> Vec<(KeyId, u64)> {
    let mut keys: Vec<u32> = (0..uses.len() as u32).collect();
    let rank = |key: &u32| (std::cmp::Reverse(uses[*key as usize]), *key);
    if keys.len() > TOP {
        keys.select_nth_unstable_by_key(TOP, rank);
        keys.truncate(TOP);
    }
    keys.sort_unstable_by_key(rank);
    keys.into_iter().map(|key| (KeyId(key), uses[key as usize])).collect()
}

/// With the n counts in ascending order, x₁ to xₙ: 2 Σ i·xᵢ / (n Σ xᵢ) − (n + 1) / n. The sums
/// are exact; one division rounds.
fn gini(mut uses: Vec<u64>) -> Option<f64> {
    uses.par_sort_unstable();
    let n = uses.len() as i128;
    let sum: i128 = uses.iter().map(|x| i128::from(*x)).sum();
    let weighted: i128 = (1..).zip(&uses).map(|(i, x): (i128, _)| i * i128::from(*x)).sum();
    (sum > 0).then(|| (2 * weighted - (n + 1) * sum) as f64 / (n * sum) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowInput;
    use crate::testing::{count, one_txn, read, select};

    #[test]
    fn gini_coefficients_by_hand() {
        assert_eq!(gini(vec![]), None);
        assert_eq!(gini(vec![0, 0]), None);
        assert_eq!(gini(vec![3]), Some(0.0));
        assert_eq!(gini(vec![5, 5, 5, 5]), Some(0.0));
        // All on one of four: 1 − 1/4.
        assert_eq!(gini(vec![0, 12, 0, 0]), Some(0.75));
        // 1, 2, 3, 4: 2 · 30 / (4 · 10) − 5/4 = 1/4.
        assert_eq!(gini(vec![3, 1, 4, 2]), Some(0.25));
    }

    #[test]
    fn the_busiest_keys_come_first_and_ties_by_appearance() {
        let rows = [RowInput::new(2, 0), RowInput::new(3, 0)];
        let mut ops = vec![read(1, 0), read(2, 0), read(3, 0), read(2, 0)];
        ops.push(select(Some(&rows)));
        ops.push(count(None));
        let skew = Skew::of(&one_txn(&ops));
        let top: Vec<_> = skew.top.iter().map(|u| (u.key.0, u.operations.part)).collect();
        assert_eq!(top, [(1, 3), (2, 2), (0, 1)]);
        assert_eq!(skew.top[0].operations.ratio(), Some(0.5));
        // 1, 2, 3: 2 · 14 / (3 · 6) − 4/3 = 2/9.
        assert_eq!(skew.gini, Some(4.0 / 18.0));
    }

    #[test]
    fn only_ten_keys_are_listed() {
        let ops: Vec<_> = (0..30).chain(20..30).map(|key| read(key, 0)).collect();
        let top = Skew::of(&one_txn(&ops)).top;
        assert_eq!(top.iter().map(|u| u.key.0).collect::<Vec<_>>(), Vec::from_iter(20..30));
        assert!(top.iter().all(|u| u.operations == Share { part: 2, whole: 40 }));
    }
}
