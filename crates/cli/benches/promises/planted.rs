//! How soon planted anomalies are found in the simulated store, without any advice on keys and sessions.
//!
//! Whether two sessions meet is up to the scheduler, so a single run tells little: each anomaly is looked for with
//! several seeds, and what counts is the median, and how often it is found at all. Processor time is shown beside, since
//! on a busy machine the clock tells more about others.

use std::path::Path;
use std::time::Duration;

use isolario_bench::{Align, Failure, Table, judge};

use crate::promises::{FORK, LOSS, SKEW};
use crate::run::{Ran, run};

/// The store, and the names under which what is planted may show.
const PLANTED: &[(&str, &[&str])] = &[
    ("--db sim:ser?anomaly=WriteSkew", SKEW),
    ("--db sim:si?anomaly=LostUpdate", LOSS),
    ("--db sim:si?anomaly=LongFork", FORK),
    ("--db sim:si?anomaly=NonRepeatableRead", &["NonRepeatableRead"]),
];

/// Half of the runs take no longer.
const LIMIT: Duration = Duration::from_secs(2);

/// Looks for each with so many seeds.
pub fn table(seeds: u64, directory: &Path) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        ("isolario run", Align::Left),
        ("found", Align::Right),
        ("transactions before", Align::Right),
        ("to the verdict, s", Align::Right),
        ("slowest, s", Align::Right),
        ("processor, s", Align::Right),
        ("proofs", Align::Left),
        ("target", Align::Left),
    ]);
    for (number, (arguments, names)) in PLANTED.iter().enumerate() {
        let ran = |seed: u64| {
            let arguments = format!("{arguments} --seed {seed}");
            run(&[], &arguments, None, &directory.join(format!("planted-{number}-{seed}")))
        };
        let runs = (1..=seeds).map(ran).collect::<Result<Vec<Ran>, _>>()?;
        table.row(row(arguments, names, &runs));
    }
    Ok(table)
}

fn row(arguments: &str, names: &[&str], runs: &[Ran]) -> [String; 8] {
    let found: Vec<&Ran> = runs.iter().filter(|ran| ran.shows(names)).collect();
    let verdict = median(runs.iter().map(|ran| ran.found));
    let slowest = runs.iter().map(|ran| ran.found).max().unwrap_or_default();
    let processor = median(runs.iter().map(|ran| ran.processor));
    let before = median(found.iter().filter_map(|ran| ran.before));
    let proofs_hold = runs.iter().all(|ran| ran.proof_holds);
    let is_reached = found.len() == runs.len() && verdict < LIMIT && proofs_hold;
    [
        arguments.to_owned(),
        format!("{} of {}", found.len(), runs.len()),
        if found.is_empty() { String::new() } else { before.to_string() },
        format!("{:.2}", verdict.as_secs_f64()),
        format!("{:.2}", slowest.as_secs_f64()),
        format!("{:.2}", processor.as_secs_f64()),
        if proofs_hold { "hold" } else { "WRONG" }.to_owned(),
        format!("all, within {} s: {}", LIMIT.as_secs(), judge(is_reached)),
    ]
}

/// The middle of them; of an even number, the greater one.
fn median<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
