//! Random small histories, each a function of its seed.
//!
//! ```
//! use isolario_oracle::random::Case;
//!
//! let case = Case { seed: 7 };
//! assert_eq!(case.draft(), case.draft());
//! assert!(case.history().is_ok_and(|history| history.txn_count() <= 6));
//! ```

pub mod certificates;
mod conditionals;
mod generate;
pub mod postgres;
mod shape;
mod shrink;
pub mod single;
pub mod tables;
mod twins;

use isolario_model::{History, SinkError};

use crate::Draft;

pub use generate::generate;
pub use shape::Shape;
pub use shrink::shrink;
pub use twins::{append_twin, append_twin_in_some_order};

/// One random history. Print its seed when it fails: the seed is the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// From which everything about it follows.
    pub seed: u64,
}

impl Case {
    /// The first cases, as many as asked for.
    pub fn first(count: u64) -> impl Iterator<Item = Case> {
        (0..count).map(|seed| Case { seed })
    }

    /// A history of registers: the seed chooses one of the [shapes](Shape::registers), too.
    pub fn draft(self) -> Draft {
        self.of_one_of(&Shape::registers())
    }

    /// A history of registers that are mostly read before they are written.
    pub fn read_modify_write_draft(self) -> Draft {
        self.of_one_of(&Shape::read_modify_write())
    }

    /// A history of registers in which many reads may have seen the writes of several transactions.
    pub fn ambiguous_draft(self) -> Draft {
        self.of_one_of(&Shape::ambiguous())
    }

    /// A history of registers with conditional writes, some of which do not say why they failed or whether
    /// they did.
    pub fn conditional_draft(self) -> Draft {
        let shapes = [Shape::read_modify_write(), Shape::ambiguous(), Shape::registers()].concat();
        conditionals::with_conditionals(self.of_one_of(&shapes), &mut Rng::new(!self.seed))
    }

    /// A history of lists.
    pub fn list_draft(self) -> Draft {
        self.of_one_of(&Shape::lists())
    }

    /// A history of registers and lists with conditional writes and transactions of unknown outcome.
    pub fn mixed_draft(self) -> Draft {
        conditionals::with_conditionals(self.of_one_of(&Shape::mixed()), &mut Rng::new(!self.seed))
    }

    /// A history in which many reads saw a write that its transaction replaced.
    pub fn intermediate_draft(self) -> Draft {
        self.of_one_of(&Shape::intermediate())
    }

    /// A history of single operations on registers.
    pub fn single_draft(self) -> Draft {
        let mut rng = Rng::new(self.seed);
        let shapes = single::SingleShape::all();
        let shape = &shapes[rng.below(shapes.len())];
        single::generate(shape, &mut rng)
    }

    /// A clock skew at which arithmetic on 64 bits overflows: about half of all time, where times at both
    /// ends of the clock are just in order or just not, or at the ends of what a skew can be.
    pub fn extreme_skew(self) -> u64 {
        let half = 1 << 63;
        let off = self.seed / 6 % 48;
        [0, 1 << 62, half - 1 - off, half - 1 - off, half + off, u64::MAX - off]
            [self.seed as usize % 6]
    }

    /// The history of [`Case::draft`].
    pub fn history(self) -> Result<History, SinkError> {
        self.draft().history()
    }

    fn of_one_of(self, shapes: &[Shape]) -> Draft {
        let mut rng = Rng::new(self.seed);
        let shape = &shapes[rng.below(shapes.len())];
        generate(shape, &mut rng)
    }
}

/// The splitmix64 generator: small, fast and good enough for tests.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator whose numbers follow from the seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below the bound; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }

    /// A number in a closed range.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True this often, of a hundred times.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }
}

/// The variable that sets it.
const VARIABLE: &str = "ISOLARIO_TEST_VOLUME";

/// What `cargo test` does without it: seconds, not minutes, in a debug build.
const DEFAULT: u64 = 20_000;

/// How many random cases a property test should go through: the number in `ISOLARIO_TEST_VOLUME`,
/// or 20,000. Every heavy property test asks here, so that one variable governs them all.
pub fn volume() -> u64 {
    parse(std::env::var(VARIABLE).ok().as_deref())
}

/// A variable that is not a number is taken for a missing one.
fn parse(variable: Option<&str>) -> u64 {
    variable.and_then(|text| text.trim().replace('_', "").parse().ok()).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_of_cases() {
        assert_eq!(parse(Some("300000")), 300_000);
        assert_eq!(parse(Some(" 300_000\n")), 300_000);
        assert_eq!(parse(Some("many")), DEFAULT);
        assert_eq!(parse(None), DEFAULT);
    }
}
