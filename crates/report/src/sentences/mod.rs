//! The sentences: why an edge must be there, what an anomaly is, why a level does not apply.
//!
//! Sentences have no full stop and begin as they would in the middle of a text, so that renderers
//! can put them anywhere. All names in them are the user's own.

mod alike;
mod anomaly;
mod consequence;
mod contention;
mod counting;
mod cycle;
mod edge;
mod level;
mod lost;
mod naming;
mod no_answer;
mod observed;
mod plan;
mod promised;
#[cfg(feature = "html")]
mod run;
mod stated;
mod supposed;
mod times;
mod verdict;

pub use anomaly::summary;
pub use consequence::{advice, consequence};
pub use contention::too_few_overlapped;
pub use edge::{ArgumentStep, argument, explain};
pub use level::applies_to;
pub use naming::{
    level_name, other_names, other_names_of, other_names_of_finding, rules_out, title, title_of,
};
pub use no_answer::{why_no_answer, why_not_applicable};
pub use plan::attempt;
#[cfg(feature = "html")]
pub use run::{product, stopped_because, test_name, tested};
pub use times::{TxnTimes, began, duration, in_time};
pub use verdict::verdict;

pub(crate) use alike::alike;
pub(crate) use anomaly::{capitalised, happened};
pub(crate) use edge::{refutation, told};
pub(crate) use lost::{acknowledged, asked_for, down_in_words};
pub(crate) use naming::breaks;
pub(crate) use observed::{last_write, own_writes_between};
#[cfg(feature = "html")]
pub(crate) use run::{headline, is_satisfied_by, own_word};
pub(crate) use stated::stated;
pub(crate) use supposed::{HOW_TO_READ_CASES, case, supposed};
pub(crate) use verdict::{at_least, behind, how_often, lost_in_words};

#[cfg(test)]
mod tests;
