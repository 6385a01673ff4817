//! What is said about a history that was generated.

use std::io::{self, Write};
use std::time::Duration;

use isolario::sim::Summary;
use serde::{Serialize, Serializer};

use super::settings::Generate;
use crate::console::Console;
use isolario::run::peak_rss_bytes;

/// What was asked for, and what came of it.
pub(super) struct Told<'a> {
    pub(super) what: &'a Generate,
    pub(super) summary: Summary,
    pub(super) time: Duration,
}

impl Told<'_> {
    fn txns(&self) -> u64 {
        let Summary { committed, aborted, unknown, planted, .. } = self.summary;
        committed + aborted + unknown + planted
    }

    fn anomalies(&self) -> Vec<&'static str> {
        self.what.subject.anomalies()
    }

    /// For people, on standard error.
    pub(super) fn notes(&self, console: &mut Console) {
        let (subject, output) = (&self.what.subject, &self.what.output);
        let (txns, format) = (self.txns(), output.format.name());
        let target = match output.is_stdout() {
            true => "standard output".to_owned(),
            false => output.path.display().to_string(),
        };
        let (outcomes, seconds) = (self.outcomes(), self.time.as_secs_f64());
        console.info(&format!(
            "wrote {txns} transactions to {target} ({format}): {outcomes}; {} operations (took \
             {seconds:.2} s)",
            self.summary.operations
        ));
        let (level, kind, seed) = (subject.level(), subject.workload(), subject.seed());
        console.info(&format!("level {level}, workload {kind}, seed {seed}"));
        if self.summary.reruns > 0 {
            let reruns = self.summary.reruns;
            console.detail(&format!("the store ran {reruns} transactions again after a conflict"));
        }
    }

    fn outcomes(&self) -> String {
        let Summary { committed, aborted, unknown, planted, .. } = self.summary;
        let mut parts = vec![format!("{committed} committed")];
        for (count, how) in [(aborted, "aborted"), (unknown, "of unknown outcome")] {
            if count > 0 {
                parts.push(format!("{count} {how}"));
            }
        }
        if planted > 0 {
            parts.push(format!("{planted} planted ({})", self.anomalies().join(", ")));
        }
        parts.join(", ")
    }

    /// For programs: one line.
    pub(super) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (subject, output) = (&self.what.subject, &self.what.output);
        let Summary { committed, aborted, unknown, planted, operations, .. } = self.summary;
        let transactions = self.txns();
        let line = JsonSummary {
            schema: "isolario.generated/1",
            history: output.path.display().to_string(),
            format: output.format.name(),
            level: subject.level().name(),
            workload: subject.workload(),
            anomalies: self.anomalies(),
            seed: subject.seed(),
            size: JsonSize { transactions, committed, aborted, unknown, planted, operations },
            timing: JsonTiming {
                generate_ms: self.time.as_secs_f64() * 1e3,
                peak_rss_bytes: peak_rss_bytes(),
            },
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)
    }
}

#[derive(Serialize)]
struct JsonSummary {
    schema: &'static str,
    history: String,
    format: &'static str,
    level: &'static str,
    workload: &'static str,
    anomalies: Vec<&'static str>,
    #[serde(serialize_with = "exact")]
    seed: u64,
    size: JsonSize,
    timing: JsonTiming,
}

#[derive(Serialize)]
struct JsonSize {
    transactions: u64,
    committed: u64,
    aborted: u64,
    unknown: u64,
    planted: u64,
    operations: u64,
}

#[derive(Serialize)]
struct JsonTiming {
    generate_ms: f64,
    peak_rss_bytes: Option<u64>,
}

/// Integers beyond 2^53 as strings, as in all our JSON: readers that use floating point lose them.
fn exact<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    if *number <= 1 << 53 {
        serializer.serialize_u64(*number)
    } else {
        serializer.collect_str(number)
    }
}
