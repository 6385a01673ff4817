//! `isolario gen`: synthetic histories.
//!
//! `args` are the flags as they are typed, `settings` what they mean, `run` the work, and `summary`
//! what is said about it.

mod args;
mod run;
mod settings;
mod summary;

pub(crate) use args::{EXAMPLES, GenArgs};
pub(crate) use run::run;
pub(crate) use settings::Generate;
