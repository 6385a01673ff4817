//! Damaged histories, for the checkers and the verifier.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolario_fuzz::targets::verdict(bytes));
