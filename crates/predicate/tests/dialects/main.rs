//! The evaluator against SQLite, and what holds in every dialect.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod random;
mod ranges;
mod rules;
mod sqlite;
