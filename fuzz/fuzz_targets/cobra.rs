//! Damaged `cobra` histories.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolario_fuzz::targets::directory("cobra", bytes));
