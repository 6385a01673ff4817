//! Anything at all, for the sniffers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| isolario_fuzz::targets::sniff(bytes));
