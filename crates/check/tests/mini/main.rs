//! The strong levels of read-modify-write histories, on histories small enough to judge by eye.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod figures;
mod pattern;
mod support;
mod times;
