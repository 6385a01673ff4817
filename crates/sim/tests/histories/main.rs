//! What generated histories are like.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod levels;
mod orders;
mod planted;
mod replay;
mod same_history;
mod stamps;
mod support;
mod tables;
