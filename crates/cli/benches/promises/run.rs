//! The command, and what it said.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use isolario_bench::{Failure, time_of_ended_children};
use serde_json::Value;

/// What a run came to.
pub struct Ran {
    pub committed: u64,
    pub per_second: f64,
    pub satisfied: bool,
    pub violated: bool,
    /// The names of what was found.
    pub anomalies: Vec<String>,
    /// Whether `isolario verify` accepts the proof.
    pub proof_holds: bool,
    /// Until the verdict was there: to run and to check.
    pub found: Duration,
    /// From the start of the command to its end: with the reports, and the smallest part that shows what is wrong.
    pub took: Duration,
    /// The processor time of the command.
    pub processor: Duration,
    /// How many transactions had begun before the first counterexample.
    pub before: Option<u64>,
}

impl Ran {
    /// Whether it is violated, by one of these anomalies if any are named.
    pub fn shows(&self, anomalies: &[&str]) -> bool {
        let is_named = self.anomalies.iter().any(|name| anomalies.contains(&name.as_str()));
        self.violated && (anomalies.is_empty() || is_named)
    }

    /// In a word, with the first anomaly.
    pub fn verdict(&self) -> String {
        match self.anomalies.first() {
            Some(first) if self.violated => first.clone(),
            _ if self.satisfied => "satisfied".to_owned(),
            _ => "undecided".to_owned(),
        }
    }
}

/// Runs `isolario run` against nodes, and verifies what comes of it. `few` transactions instead of those
/// that are asked for, where only the way is to be tried.
pub fn run(urls: &[String], arguments: &str, few: Option<u64>, out: &Path) -> Result<Ran, Failure> {
    let mut command = isolario();
    command.args(["run", "--quiet", "--json", "--out"]).arg(out);
    for url in urls {
        command.args(["--db", url]);
    }
    let mut words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    if let (Some(few), Some(at)) = (few, words.iter().position(|word| word == "--txns")) {
        words[at + 1] = few.to_string();
    }
    let (begun, processor) = (Instant::now(), time_of_ended_children()?);
    let output = command.args(&words).output()?;
    let took = begun.elapsed();
    let processor = time_of_ended_children()? - processor;
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| complaint(&output))?;
    let committed = record["counts"]["committed"].as_u64().unwrap_or_default();
    let seconds = record["run_ms"].as_f64().unwrap_or_default() / 1e3;
    let check = record["check_ms"].as_f64().unwrap_or_default() / 1e3;
    let mut verify = isolario();
    verify.arg("verify").arg(out.join("history.iso")).arg(out.join("proof"));
    Ok(Ran {
        committed,
        per_second: committed as f64 / seconds,
        satisfied: output.status.code() == Some(0),
        violated: output.status.code() == Some(1),
        anomalies: anomalies(&record),
        proof_holds: verify.output()?.status.success(),
        found: Duration::from_secs_f64(seconds + check),
        took,
        processor,
        before: record["first_counterexample"].as_u64(),
    })
}

fn isolario() -> Command {
    Command::new(env!("CARGO_BIN_EXE_isolario"))
}

/// What the command said instead of an answer.
fn complaint(output: &Output) -> Failure {
    String::from_utf8_lossy(&output.stderr).into_owned().into()
}

fn anomalies(record: &Value) -> Vec<String> {
    let verdicts = record["verdicts"].as_array().into_iter().flatten();
    let names = verdicts.flat_map(|verdict| verdict["anomalies"].as_array().into_iter().flatten());
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
