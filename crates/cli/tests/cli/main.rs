//! The command as its users meet it: every message, every exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod assume;
mod bad_times;
mod bug_reports;
mod check;
mod convert;
mod explanations;
mod findings;
mod follow;
mod generate;
mod hosts;
mod information;
#[cfg(unix)]
mod interrupt;
mod join;
mod live;
mod matches;
#[cfg(target_os = "linux")]
mod opened;
#[cfg(unix)]
mod outputs;
mod probe;
mod reports;
mod sandbox;
mod serialization_order;
mod show;
mod shrink;
mod terminal;
mod usage;
mod verify;
mod version_order;
