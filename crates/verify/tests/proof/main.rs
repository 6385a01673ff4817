//! The proof file: what is written is read back, what is changed is refused.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod digest;
mod forger;
mod mutations;
mod round_trip;
mod strictness;
mod support;
