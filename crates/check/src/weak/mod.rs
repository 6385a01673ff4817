//! The weak levels.

mod adya;
mod dependencies;

pub(crate) use adya::check as check_adya_read_committed;
pub(crate) use dependencies::Dependencies;
