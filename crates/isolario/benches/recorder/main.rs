//! What the recorder for tests costs per operation.
//!
//! `scripts/bench recorder`. Without `--bench`, which cargo adds, it only shows on a few
//! transactions that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use isolario::Recorder;
use isolario_bench::{Align, Arguments, Failure, Table, judge, process_time};

/// What an operation may cost, in nanoseconds of processor time, its share of the transaction included.
const TARGET: f64 = 100.0;

/// How many operations a transaction has, besides its begin and its commit.
const OPS: u64 = 4;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let in_earnest = arguments.in_earnest();
    let (txns, runs) = if in_earnest { (250_000, 11) } else { (100, 1) };
    let names: Vec<String> = (0..100).map(|key| format!("account-{key}")).collect();
    let mut table = Table::new(&[
        ("keys", Align::Left),
        ("processor ns per operation", Align::Right),
        ("fastest", Align::Right),
        ("slowest", Align::Right),
        ("target", Align::Left),
    ]);
    for (label, by_name) in [("numbers", false), ("names", true)] {
        let mut costs: Vec<f64> = (0..runs).map(|_| cost(txns, &names, by_name)).collect();
        costs.sort_by(f64::total_cmp);
        let middle = costs[costs.len() / 2];
        let target = match in_earnest {
            true => format!("{TARGET} ns {}", judge(middle <= TARGET)),
            false => String::new(),
        };
        let figures = [middle, costs[0], costs[costs.len() - 1]].map(|cost| format!("{cost:.1}"));
        table.row([label.to_owned()].into_iter().chain(figures).chain([target]));
    }
    println!("{txns} transactions of {OPS} operations, one session; medians of {runs} runs");
    println!("{table}");
    Ok(())
}

/// Records transactions, and tells how many nanoseconds an operation took.
fn cost(txns: u64, names: &[String], by_name: bool) -> f64 {
    let recorder = Recorder::new();
    let mut session = recorder.session();
    let before = process_time();
    for number in 0..txns {
        let mut txn = session.begin();
        for at in 0..OPS / 2 {
            let value = number * OPS + at;
            let key = (value * 7 % 100) as usize;
            match by_name {
                true => txn.read(&names[key], value).write(&names[key], value + OPS),
                false => txn.read(key, value).write(key, value + OPS),
            };
        }
        txn.commit();
    }
    (process_time() - before).as_nanos() as f64 / (txns * OPS) as f64
}
