//! A short campaign of all targets. `ISOLARIO_TEST_VOLUME` says how many inputs it takes.

use std::panic::catch_unwind;

use isolario_formats::find;
use isolario_fuzz::files::is_directory;
use isolario_fuzz::mutate::mutate;
use isolario_fuzz::seeds::{format_names, seeds};
use isolario_fuzz::targets;
use isolario_oracle::random::Rng;
use isolario_oracle::volume;

/// Gives a target all seeds, then damaged ones. A finding comes with its input.
fn campaign(name: &str, seeds: &[Vec<u8>], inputs: u64, target: impl Fn(&[u8]) + Copy) {
    assert!(!seeds.is_empty(), "no seeds for {name}");
    let mut rng = Rng::new(2026);
    let damaged = (0..inputs).map(|_| mutate(&mut rng, seeds));
    for input in seeds.iter().cloned().chain(damaged) {
        let outcome = catch_unwind(std::panic::AssertUnwindSafe(|| target(&input)));
        assert!(outcome.is_ok(), "{name} fails on\n\"{}\"", input.escape_ascii());
    }
}

#[test]
fn readers_take_damaged_files() {
    let names: Vec<_> = format_names().collect();
    for name in &names {
        let format = find(name).unwrap_or_else(|| panic!("{name}"));
        let target = if is_directory(format) { targets::directory } else { targets::read };
        let inputs = volume() / names.len() as u64;
        campaign(name, &seeds(name), inputs, |bytes| target(name, bytes));
    }
}

#[test]
fn sniffers_take_damaged_files() {
    let seeds: Vec<_> = format_names().flat_map(seeds).collect();
    campaign("sniff", &seeds, volume() / 10, targets::sniff);
}

#[test]
fn checkers_take_whatever_was_read() {
    let seeds: Vec<_> = ["jsonl", "text"].into_iter().flat_map(seeds).collect();
    campaign("verdict", &seeds, volume() / 4, targets::verdict);
}
