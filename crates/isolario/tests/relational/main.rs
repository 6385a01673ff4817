//! Relational testing, live: rounds on real servers, and what they must and must not find.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod figures;
mod interleaved;
mod neutral;
mod predicates;
mod rounds;
mod serial;
mod shrink;
mod site;
