//! `--repeat`: one seed after the other, and how many of them found something.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use isolario::model::RunRecord;
use isolario::run::{Handle, default_directory};
use serde::Serialize;

use super::settings::Run;
use super::summary::seconds;
use crate::args::ReportForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

/// What one run came to. Its history is not kept.
struct Finding {
    outcome: Outcome,
    is_violated: bool,
    record: RunRecord,
}

pub(super) fn run(what: &Run, handle: &Handle, console: &mut Console) -> Result<Outcome, Failure> {
    let (first, output) = (&what.settings, what.form);
    let out = first.out.clone().unwrap_or_else(|| default_directory(first.seed));
    let mut findings = Vec::new();
    for number in 0..what.repeat {
        if handle.is_interrupted() {
            break;
        }
        let settings = (first.clone())
            .with_seed(first.seed.wrapping_add(number))
            .with_out(out.join((number + 1).to_string()));
        let (outcome, found) = super::once(&settings, output, number + 1, handle, console)?;
        let is_violated = found.examination.results.iter().any(|one| one.verdict.is_violated());
        findings.push(Finding { outcome, is_violated, record: found.record });
    }
    let tally = Tally::of(&findings, out);
    match output {
        ReportForm::Json => tally.json(console.out())?,
        ReportForm::Human => tally.human(console.out())?,
        // Each run has said what it found.
        ReportForm::Junit | ReportForm::Github => {}
    }
    Ok(findings.iter().map(|finding| finding.outcome).max().unwrap_or(Outcome::Done))
}

/// How many runs found something, and how soon (Figure 13 of the MTC paper).
#[derive(Serialize)]
struct Tally {
    schema: &'static str,
    directory: PathBuf,
    runs: usize,
    violated: usize,
    errors: usize,
    seeds_violated: Vec<String>,
    /// Running and checking, of those that found something.
    median_seconds_to_violation: Option<f64>,
    /// How many transactions began before the first counterexample.
    median_first_counterexample: Option<f64>,
}

impl Tally {
    fn of(findings: &[Finding], directory: PathBuf) -> Tally {
        let violated: Vec<&Finding> =
            findings.iter().filter(|finding| finding.is_violated).collect();
        let took = |finding: &&Finding| {
            (finding.record.run_ms + finding.record.check_ms.unwrap_or_default()) / 1e3
        };
        let first = |finding: &&Finding| finding.record.first_counterexample.map(|n| n as f64);
        Tally {
            schema: "isolario.repeat/1",
            directory,
            runs: findings.len(),
            violated: violated.len(),
            errors: findings.iter().filter(|finding| finding.outcome == Outcome::Error).count(),
            seeds_violated: violated.iter().map(|finding| finding.record.seed.clone()).collect(),
            median_seconds_to_violation: median(violated.iter().map(took).collect()),
            median_first_counterexample: median(violated.iter().filter_map(first).collect()),
        }
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let Tally { runs, violated, errors, directory, .. } = self;
        write!(out, "\n{violated} of {runs} runs found a violation")?;
        if *errors > 0 {
            write!(out, "; {errors} ended in an error")?;
        }
        writeln!(out)?;
        if let Some(took) = self.median_seconds_to_violation {
            let took = seconds(Duration::from_secs_f64(took));
            writeln!(out, "  median time to run and check   {took}")?;
        }
        if let Some(first) = self.median_first_counterexample {
            writeln!(out, "  median first counterexample    after {first:.0} transactions")?;
        }
        writeln!(out, "  directory                      {}", directory.display())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
