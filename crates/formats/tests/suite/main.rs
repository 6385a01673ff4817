//! What the formats promise, seen from outside: one binary, since linking takes longer than testing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod book;
mod conversions;
mod examples;
mod golden;
mod killed;
mod memory;
mod round_trip;
mod stream;
