//! Damaged `jepsen-log` histories.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolario_fuzz::targets::read("jepsen-log", bytes));
