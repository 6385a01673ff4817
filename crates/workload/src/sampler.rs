//! Draws keys.

use crate::alias::AliasTable;
use crate::distribution::Distribution;
use crate::math::{exp, ln};
use crate::rng::{Chance, Rng};

/// Draws keys of a distribution: numbers from 0 up to a bound.
#[derive(Clone, Debug)]
pub struct Sampler {
    keys: u64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Uniform,
    Hotspot { hot_keys: u64, hot: Chance },
    Table(AliasTable),
}

impl Sampler {
    /// Prepares to draw from this many keys, at least one. The skewed distributions keep a table
    /// of 12 bytes per key.
    pub fn new(distribution: Distribution, keys: u32) -> Sampler {
        let keys = keys.max(1);
        let method = match distribution {
            Distribution::Uniform => Method::Uniform,
            Distribution::Hotspot { hot, ops } => Method::Hotspot {
                hot_keys: ((hot * f64::from(keys)) as u64).clamp(1, u64::from(keys)),
                hot: Chance::new(ops),
            },
            Distribution::Zipf { exponent } => table(keys, |rank| -exponent * ln(rank + 1.0)),
            Distribution::Exponential { rate } => {
                table(keys, |rank| -rate * rank / f64::from(keys))
            }
        };
        Sampler { keys: u64::from(keys), method }
    }

    /// Draws a key.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        match &self.method {
            Method::Uniform => rng.below(self.keys),
            Method::Table(table) => table.sample(rng),
            Method::Hotspot { hot_keys, .. } if *hot_keys == self.keys => rng.below(self.keys),
            Method::Hotspot { hot_keys, hot } => {
                if rng.happens(*hot) {
                    rng.below(*hot_keys)
                } else {
                    hot_keys + rng.below(self.keys - hot_keys)
                }
            }
        }
    }
}

/// A table of keys whose weight has this logarithm, which must not be above 0.
fn table(keys: u32, log_weight: impl Fn(f64) -> f64) -> Method {
    Method::Table(AliasTable::new((0..keys).map(|key| exp(log_weight(f64::from(key)))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: &str, keys: u32, draws: u32) -> Vec<u32> {
        let sampler = Sampler::new(distribution.parse().unwrap(), keys);
        let mut rng = Rng::new(3);
        let mut counts = vec![0; keys as usize];
        for _ in 0..draws {
            counts[sampler.sample(&mut rng) as usize] += 1;
        }
        counts
    }

    fn near(count: u32, expected: f64) -> bool {
        (f64::from(count) - expected).abs() < 5.0 * expected.sqrt()
    }

    #[test]
    fn zipf_follows_its_law() {
        let counts = counts("zipf:1", 100, 100_000);
        let harmonic: f64 = (1..=100).map(|i| 1.0 / f64::from(i)).sum();
        for rank in [1, 2, 3, 10, 50] {
            let expected = 100_000.0 / harmonic / rank as f64;
            assert!(near(counts[rank - 1], expected), "{rank}: {}", counts[rank - 1]);
        }
    }

    #[test]
    fn a_hotspot_gets_its_share() {
        let counts = counts("hotspot:0.2,0.8", 50, 100_000);
        assert!(near(counts[..10].iter().sum(), 80_000.0));
        assert!(near(counts[10], 500.0));
    }

    #[test]
    fn the_exponential_halves_where_it_should() {
        let counts = counts("exponential:6.931471805599453", 1000, 100_000);
        assert!(near(counts[..100].iter().sum(), 50_000.0 * (1024.0 / 1023.0)));
    }

    #[test]
    fn extremes_stay_within_the_keys() {
        for distribution in
            ["uniform", "zipf:0", "zipf:1000", "hotspot:0,1", "hotspot:1,0", "exponential:1000"]
        {
            for keys in [1, 2, 3] {
                assert_eq!(counts(distribution, keys, 100).iter().sum::<u32>(), 100);
            }
        }
    }

    /// The same keys on every platform and in every version.
    #[test]
    fn draws_are_pinned() {
        let first = |distribution: &str| -> Vec<u64> {
            let sampler = Sampler::new(distribution.parse().unwrap(), 1000);
            let mut rng = Rng::new(42);
            (0..6).map(|_| sampler.sample(&mut rng)).collect()
        };
        assert_eq!(first("uniform"), [343, 955, 486, 67, 676, 67]);
        assert_eq!(first("zipf:0.99"), [0, 486, 676, 0, 111, 641]);
        assert_eq!(first("hotspot:0.2,0.8"), [191, 13, 13, 146, 143, 35]);
        assert_eq!(first("exponential:10"), [5, 486, 50, 194, 110, 44]);
    }
}
