//! What is said about the order of things beside a history: tried, or trusted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod example;
mod lists;
mod orders;
mod stamps;
mod support;
