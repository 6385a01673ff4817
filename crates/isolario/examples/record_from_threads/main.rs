//! Clients of a store, recorded from threads: what the README and the book show as a first test.
//!
//! `cargo run --example record_from_threads`

include!("first_test.rs");
