//! The pinned random generator.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one word of state, one addition and a mixing
//! function per number. A dependency might change its algorithm between versions; a seed has to
//! mean the same history for ever.

/// The odd constant that the state advances by: 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

/// A probability, as the number of outcomes out of 2⁵³ that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// One half.
    pub const HALF: Chance = Chance(1 << 52);

    /// The chance of a ratio; below 0 is never and above 1 is always. Exact: scaling by a power of
    /// two does not round.
    pub fn new(ratio: f64) -> Chance {
        Chance((ratio.clamp(0.0, 1.0) * (1u64 << 53) as f64) as u64)
    }
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// The stream of a seed and a path of numbers, unrelated to those of other paths.
    pub fn derive(seed: u64, path: &[u64]) -> Rng {
        let step = |state: u64, part: &u64| mix(state ^ mix(part.wrapping_add(GOLDEN)));
        Rng { state: path.iter().fold(mix(seed.wrapping_add(GOLDEN)), step) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound`; 0 if that is 0. Takes the high half of a product: the bias is below
    /// `bound` / 2⁶⁴, far too small to matter here.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something of this chance happens.
    #[inline]
    pub fn happens(&mut self, chance: Chance) -> bool {
        self.next_u64() >> 11 < chance.0
    }
}

/// The mixing function of SplitMix64.
#[inline]
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation from state 0.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut rng = Rng { state: 0 };
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(rng.next_u64(), 0x06c4_5d18_8009_454f);
    }

    #[test]
    fn paths_differ_by_order_and_length() {
        let first = |path: &[u64]| Rng::derive(1, path).next_u64();
        let all = [first(&[]), first(&[0]), first(&[0, 0]), first(&[0, 1]), first(&[1, 0])];
        let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn chances_are_exact_at_both_ends() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| rng.happens(Chance::new(1.0))));
        assert!(!(0..1000).any(|_| rng.happens(Chance::new(0.0))));
        assert!(!(0..1000).any(|_| rng.happens(Chance::new(f64::NAN))));
        let heads = (0..10_000).filter(|_| rng.happens(Chance::HALF)).count();
        assert!((4_800..5_200).contains(&heads), "{heads}");
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = Rng::new(2);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
    }
}
