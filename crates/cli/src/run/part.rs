//! `--host`: one of several hosts that stress a database together. It records its part; the check comes
//! once the parts of all hosts are in one place.

use std::io::{self, Write};
use std::path::Path;

use isolario::model::{HostClock, HostRecord, RunRecord, StopReason};
use isolario::report::sentences::tested;
use isolario::report::{grouped, printable, shell_word};
use isolario::run::{Handle, Host, PartOutcome, Settings, run_part};
use serde::Serialize;

use super::failure;
use super::watch::Watch;
use crate::args::ReportForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

/// The most hosts that can meet.
const MOST: u32 = 1000;

/// What `--host` says: `2/3`.
pub(super) fn host(text: &str) -> Result<Host, String> {
    let parsed = text.split_once('/').and_then(|(number, of)| {
        let of = of.parse().ok().filter(|of| *of <= MOST)?;
        Host::new(number.parse().ok()?, of)
    });
    parsed.ok_or_else(|| {
        format!("expected the number of this host and of all hosts, such as 2/3 (at most {MOST})")
    })
}

pub(super) fn run(
    settings: &Settings,
    form: ReportForm,
    handle: &Handle,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let done = run_part(settings, handle, &mut Watch::new(settings, console));
    let PartOutcome { record, directory, .. } = done.map_err(|error| failure(&error))?;
    match form {
        ReportForm::Json => json(&record, &directory, console.out())?,
        _ => human(&record, &directory, console.out())?,
    }
    Ok(match record.stopped {
        StopReason::Database | StopReason::Recording => Outcome::Error,
        _ => Outcome::Done,
    })
}

#[derive(Serialize)]
struct Json<'r> {
    #[serde(flatten)]
    record: &'r RunRecord,
    directory: &'r Path,
}

fn json(record: &RunRecord, directory: &Path, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Json { record, directory })?;
    writeln!(out)
}

fn human(record: &RunRecord, directory: &Path, out: &mut dyn Write) -> io::Result<()> {
    let HostRecord { number, of, clock } = record.host.unwrap_or_default();
    let counts = &record.counts;
    writeln!(out, "\nHost {number} of {of}: {}", printable(&tested(record)))?;
    writeln!(out, "  committed   {}", grouped(counts.committed))?;
    writeln!(out, "  aborted     {}", grouped(counts.aborted))?;
    writeln!(out, "  unknown     {}", grouped(counts.unknown))?;
    writeln!(out, "  clock       {}", told(clock))?;
    writeln!(out, "  directory   {}", printable(&directory.display().to_string()))?;
    let levels: Vec<_> = record.claim.iter().map(|level| level.name()).collect();
    let level = match levels.is_empty() {
        true => String::new(),
        false => format!("--level {} ", levels.join(",")),
    };
    let own = shell_word(&directory.display().to_string());
    writeln!(
        out,
        "\nOnce all {of} hosts are done, bring their directories together and check them as one:\n  \
         isolario check {level}--join {own} …"
    )
}

fn told(clock: Option<HostClock>) -> String {
    match clock {
        None => "the database tells no time to compare it with".to_owned(),
        Some(HostClock { bound_us, samples, .. }) => {
            let bound = bound_us as f64 / 1e3;
            format!("known by the database's to within {bound:.1} ms, by {samples} comparisons")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_of_several() {
        assert_eq!(host("2/3"), Ok(Host::new(2, 3).unwrap()));
        for wrong in ["", "2", "0/3", "4/3", "1/1001", "a/b", "-1/2"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }
}
