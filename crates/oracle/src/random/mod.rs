//! Random small histories, each a function of its seed.
//!
//! ```
//! use isolario_oracle::random::Case;
//!
//! let case = Case { seed: 7 };
//! assert_eq!(case.draft(), case.draft());
//! assert!(case.history().is_ok_and(|history| history.txn_count() <= 6));
//! ```

mod generate;
mod rng;
mod shape;
mod shrink;
pub mod single;

use isolario_model::{History, SinkError};

use crate::Draft;

pub use generate::generate;
pub use rng::Rng;
pub use shape::Shape;
pub use shrink::shrink;

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

    /// A history of lists.
    pub fn list_draft(self) -> Draft {
        self.of_one_of(&Shape::lists())
    }

    /// A history of single operations on registers.
    pub fn single_draft(self) -> Draft {
        let mut rng = Rng::new(self.seed);
        let shapes = single::SingleShape::all();
        let shape = &shapes[rng.below(shapes.len())];
        single::generate(shape, &mut rng)
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
