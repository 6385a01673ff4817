//! Damaged input for readers and checkers.
//!
//! [`targets`] says what must hold for any bytes whatever. [`seeds`] has well-formed files to begin
//! with, and [`mutate`] damages them. The tests of this crate put the three together on the stable
//! toolchain; the directory `fuzz` of the repository gives the same targets to `cargo fuzz` for
//! longer campaigns.
//!
//! ```
//! use isolario_fuzz::{mutate::mutate, seeds::seeds, targets};
//! use isolario_oracle::random::Rng;
//!
//! let seeds = seeds("plume");
//! let mut rng = Rng::new(7);
//! for _ in 0..10 {
//!     targets::read("plume", &mutate(&mut rng, &seeds));
//! }
//! ```
//!
//! [`files`] writes histories into memory, and [`arbitrary`] makes random ones with everything the
//! model can hold: of use to other tests as well, and all there is without the feature `targets`.

pub mod arbitrary;
pub mod files;
#[cfg(feature = "targets")]
pub mod mutate;
pub mod same;
#[cfg(feature = "targets")]
pub mod seeds;
#[cfg(feature = "targets")]
pub mod targets;
