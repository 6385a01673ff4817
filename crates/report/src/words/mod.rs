//! The sentences: why an edge must be there, what an anomaly is, why a level does not apply.
//!
//! Sentences have no full stop and begin as they would in the middle of a text, so that renderers
//! can put them anywhere. All names in them are the user's own.

mod anomaly;
mod consequence;
mod cycle;
mod edge;
mod level;
mod no_answer;
mod observed;

pub use anomaly::{other_names, rules_out, summary};
pub use consequence::consequence;
pub use edge::{Step, argument, explain};
pub use level::applies_to;
pub use no_answer::{why_no_answer, why_not_applicable, why_searched};

pub(crate) use anomaly::happened;
pub(crate) use edge::{support, told};
pub(crate) use observed::last_write;

#[cfg(test)]
mod tests;
