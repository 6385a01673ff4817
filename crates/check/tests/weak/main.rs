//! The weak levels on histories small enough to judge by eye.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod lattice;
mod lists;
mod papers;
mod patterns;
mod semantics;
mod support;
