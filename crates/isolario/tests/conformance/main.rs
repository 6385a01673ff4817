//! Isolario against a corpus of real histories with known sizes and verdicts.
//!
//! `ISOLARIO_CORPUS` names its directory, with `registers/` and `jepsen/` in it; `scripts/conformance`
//! runs this. A file that is missing or cannot be read is a failure.

#![expect(clippy::panic, clippy::print_stdout, reason = "a test that reports what it found")]

mod conversions;
mod counts;
mod manifest;
mod summary;
mod verdicts;

use std::path::{Path, PathBuf};
use std::time::Instant;

use isolario::formats::{HistoryFormat, Loaded, Source, find, sniff};
use rayon::prelude::*;

use manifest::{Manifest, Row};
use summary::{FileResult, Summary};

fn corpus() -> PathBuf {
    match std::env::var_os("ISOLARIO_CORPUS") {
        Some(directory) => directory.into(),
        None => panic!("set ISOLARIO_CORPUS to the directory of the unpacked corpus"),
    }
}

/// Goes through the files of a manifest on all cores, prints what came of them, and fails if
/// anything is not as it should be.
fn go_through(rows: &[Row<'_>], examine: impl Fn(Row<'_>) -> FileResult + Sync) {
    assert!(!rows.is_empty(), "the manifest lists nothing");
    let timed = |row: &Row<'_>| {
        let begin = Instant::now();
        let mut result = examine(*row);
        result.time = begin.elapsed();
        result
    };
    let results: Vec<_> = rows.par_iter().map(timed).collect();
    let mut summary = Summary::default();
    let mut faults = Vec::new();
    for (row, result) in rows.iter().zip(&results) {
        summary.add(row.group(), result);
        faults.extend(result.faults.iter().map(|fault| format!("{}: {fault}", row.path())));
    }
    println!("\n{summary}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Opens a file and reads it in the format its sniffer names, which must be the right one.
fn load(path: &Path, format: &str) -> Result<Loaded, String> {
    let source = Source::open(path).map_err(|error| error.to_string())?;
    let recognised = sniff(&source).map(HistoryFormat::name);
    if recognised != Some(format) {
        return Err(format!("recognised as {recognised:?} and not as {format}"));
    }
    find(format).map_or(Err(format!("there is no format {format}")), |format| {
        format.read(&source).map_err(|error| error.to_string())
    })
}

#[test]
fn registers() {
    let directory = corpus().join("registers");
    let manifest = Manifest::open(&directory.join("manifest.tsv"));
    go_through(&manifest.rows(), |row| {
        let mut result = FileResult::default();
        match load(&directory.join(row.path()), our_name(row.text("format"))) {
            Ok(loaded) => {
                result.take(&loaded.history);
                result.faults.extend(counts::differences(row, &loaded));
                result.verdicts = verdicts::compare(row, &loaded.history, &mut result.faults);
            }
            Err(fault) => result.faults.push(fault),
        }
        result
    });
}

/// The format that the manifest means.
fn our_name(name: &str) -> &str {
    match name {
        "text" => "plume",
        "awdit-test" => "text",
        "chronos-json" => "chronos",
        "elle-rw-register" | "elle-list-append" => "elle-edn",
        other => other,
    }
}

/// The workloads that are no registers or lists under transactions.
const OUT_OF_SCOPE: [&str; 5] = ["bank", "counter", "set", "set-full", "long-fork"];

#[test]
fn jepsen() {
    let directory = corpus().join("jepsen");
    let manifest = Manifest::open(&directory.join("manifest.tsv"));
    let mut rows = manifest.rows();
    rows.dedup_by_key(|row| row.path());
    go_through(&rows, |row| {
        let mut result = FileResult::default();
        let format = match row.text("format") {
            "edn" => "elle-edn",
            "json" => "elle-json",
            other => other,
        };
        let in_scope = !OUT_OF_SCOPE.contains(&row.text("model_or_workload"));
        let path = directory.join(row.path());
        match load(&path, format) {
            Ok(loaded) if in_scope => {
                result.take(&loaded.history);
                let faults = &mut result.faults;
                let (results, verdicts) = verdicts::verified(&loaded.history, faults);
                faults.extend(verdicts::linearizable(row, &results));
                result.verdicts = verdicts;
            }
            Ok(_) => result.faults.push("out of scope, and read nevertheless".to_owned()),
            Err(fault) if in_scope || !path.is_file() => result.faults.push(fault),
            Err(_) => {}
        }
        result
    });
}
