//! Isolario against a corpus of real histories with known sizes and verdicts.
//!
//! `ISOLARIO_CORPUS` names its directory, with `registers/` and `jepsen/` in it; `scripts/conformance`
//! runs this. A file that is missing or cannot be read is a failure.

#![expect(clippy::panic, clippy::print_stdout, reason = "a test that reports what it found")]

mod conversions;
mod counts;
mod expected;
mod manifest;
mod spilled;
mod summary;
mod verdicts;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use isolario::formats::{HistoryFormat, ParsedHistory, Source, find, sniff};

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
    let results = on_all_cores(rows, timed);
    let mut summary = Summary::default();
    let mut faults = Vec::new();
    for (row, result) in rows.iter().zip(&results) {
        summary.add(row.group(), result);
        faults.extend(result.faults.iter().map(|fault| format!("{}: {fault}", row.path())));
    }
    println!("\n{summary}");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Calls `examine` for every row, on as many threads as there are cores. These are no threads of the
/// pool that checkers compute on: such a thread would take up the next row while it waits for a part
/// of this one, and the time of that would be counted for both.
fn on_all_cores<'m>(
    rows: &[Row<'m>],
    examine: impl Fn(&Row<'m>) -> FileResult + Sync,
) -> Vec<FileResult> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(at) else { break };
                    let result = examine(row);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Opens a file and reads it in the format its sniffer names, which must be the right one.
fn load(path: &Path, format: &str) -> Result<ParsedHistory, String> {
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

/// The workloads of transactions on lists and registers.
const TRANSACTIONS: [&str; 2] = ["list-append", "rw-register"];

#[test]
fn jepsen() {
    let directory = corpus().join("jepsen");
    let manifest = Manifest::open(&directory.join("manifest.tsv"));
    let questions = manifest.rows();
    let mut rows = questions.clone();
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
                if TRANSACTIONS.contains(&row.text("model_or_workload")) {
                    let of_file = questions.iter().filter(|question| question.path() == row.path());
                    let differences =
                        of_file.map(|row| expected::difference(*row, &loaded.history));
                    faults.extend(differences.flatten());
                }
                result.verdicts = verdicts;
            }
            Ok(_) => result.faults.push("out of scope, and read nevertheless".to_owned()),
            Err(fault) if in_scope || !path.is_file() => result.faults.push(fault),
            Err(_) => {}
        }
        result
    });
}
