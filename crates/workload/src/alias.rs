//! Drawing from any finite distribution in constant time: Walker's alias method, in the stable
//! form of Vose (1991).

use crate::rng::Rng;

/// A table of `n` columns of equal probability. A column gives its own number up to its threshold
/// and that of its alias beyond it.
#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    /// Out of 2⁵³.
    thresholds: Vec<u64>,
    aliases: Vec<u32>,
}

const SCALE: f64 = (1u64 << 53) as f64;

impl AliasTable {
    /// The table of some weights, none negative and not all zero.
    pub(crate) fn new(mut weights: Vec<f64>) -> AliasTable {
        let total: f64 = weights.iter().sum();
        let columns = weights.len() as f64;
        weights.iter_mut().for_each(|weight| *weight = *weight / total * columns);
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|n| weights[*n as usize] < 1.0);
        let mut thresholds = vec![SCALE as u64; weights.len()];
        let mut aliases: Vec<u32> = (0..weights.len() as u32).collect();
        // Each step fills the rest of a small column from a large one. What rounding leaves over
        // at the end keeps its whole column.
        while let (Some(under), Some(over)) = (small.pop(), large.last().copied()) {
            let (column, donor) = (under as usize, over as usize);
            thresholds[column] = (weights[column] * SCALE) as u64;
            aliases[column] = over;
            weights[donor] -= 1.0 - weights[column];
            if weights[donor] < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        AliasTable { thresholds, aliases }
    }

    /// Draws a number.
    #[inline]
    pub(crate) fn sample(&self, rng: &mut Rng) -> u64 {
        let column = rng.below(self.thresholds.len() as u64);
        let own = rng.next_u64() >> 11 < self.thresholds[column as usize];
        if own { column } else { u64::from(self.aliases[column as usize]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_often_as_their_weights_say() {
        let weights = [5.0, 0.0, 1.0, 3.0, 1.0];
        let table = AliasTable::new(weights.to_vec());
        let mut rng = Rng::new(7);
        let mut counts = [0u32; 5];
        for _ in 0..100_000 {
            counts[table.sample(&mut rng) as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let expected = weight * 10_000.0;
            assert!((f64::from(*count) - expected).abs() < 600.0, "{counts:?}");
        }
        assert_eq!(counts[1], 0);
    }
}
