//! `isolario gen`: synthetic histories.
//!
//! `args` are the flags as they are typed, `settings` what they mean, `table` what they mean
//! for a workload on a table, `subject` what is generated, `run` the work, `orders` the files of
//! the true orders, and `summary` what is said about it all.

mod args;
mod orders;
mod run;
mod settings;
mod subject;
mod summary;
mod table;

pub(crate) use args::{EXAMPLES, GenArgs};
pub(crate) use run::run;
pub(crate) use settings::Generate;
