//! What is said about a run: the numbers, where everything is, and how to repeat it.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use isolario::model::{Latency, RunRecord, Verdict};
use isolario::report::sentences::{too_few_overlapped, why_no_answer};
use isolario::report::{Names, Style, grouped, printable, wrap};
use isolario::run::{Judgement, RunOutcome, SHRUNK};
use serde::Serialize;

use super::whitebox;
use crate::console::Console;

/// More reasons than this are in run.json.
const REASONS_SHOWN: usize = 5;

pub(super) struct Told<'r> {
    pub(super) outcome: &'r RunOutcome,
}

#[derive(Serialize)]
struct Json<'r, F> {
    #[serde(flatten)]
    record: &'r RunRecord,
    directory: &'r Path,
    missing: Vec<&'static str>,
    judgement: &'static str,
    findings: F,
}

impl Told<'_> {
    /// For programs: one line.
    pub(super) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let RunOutcome { record, directory, examination, .. } = self.outcome;
        let missing = examination.missing.iter().map(|level| level.name()).collect();
        let judgement = self.outcome.judgement().name();
        let findings = isolario::report::Json::findings(&self.outcome.report(""));
        let line = Json { record, directory, missing, judgement, findings };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)
    }

    /// For people.
    pub(super) fn human(&self, console: &mut Console) -> io::Result<()> {
        let record = &self.outcome.record;
        let bold = if console.style == Style::Coloured { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let (links, width) = (console.links, console.columns.unwrap_or(80));
        let out = console.out();
        let shape = &record.workload;
        writeln!(
            out,
            "\n{}{}{}",
            bold.0,
            printable(&self.outcome.report("").headline(record)),
            bold.1
        )?;
        let shape = format!(
            "{} workload, {} sessions, {} keys, seed {}",
            shape.kind,
            shape.sessions,
            grouped(u64::from(shape.keys)),
            record.seed
        );
        for (label, text) in [vec![("run", shape)], self.lines()].concat() {
            let first = format!("  {label:<11} ");
            let rest = " ".repeat(first.len());
            writeln!(out, "{}", wrap(&printable(&text), width, &first, &rest))?;
        }
        for (label, file) in self.files() {
            writeln!(out, "  {label:<11} {}", link(&self.outcome.directory.join(file), links))?;
        }
        writeln!(out, "\nRepeat it with\n  {}", record.replay)?;
        writeln!(out, "\n{}{}.{}", bold.0, self.outcome.promise(), bold.1)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let record = &self.outcome.record;
        let counts = &record.counts;
        let throughput = grouped(record.throughput() as u64);
        let ran = seconds(Duration::from_secs_f64(record.run_ms / 1e3));
        let committed = grouped(counts.committed);
        let mut lines =
            vec![("committed", format!("{committed} in {ran}: {throughput} per second"))];
        if let (Some(overlapped), Some(conflicted)) = (record.overlapped, record.conflicted) {
            let (overlapped, conflicted) = (grouped(overlapped), grouped(conflicted));
            lines.push(("", format!("{overlapped} overlapped another one, {conflicted} on a key")));
        }
        lines.push(("aborted", counted(counts.aborted, counts.retries, "tried again")));
        lines.push(("unknown", counted(counts.unknown, counts.reconnects, "new connections")));
        let labels = std::iter::once("reasons").chain(std::iter::repeat(""));
        for (label, reason) in labels.zip(record.abort_reasons.iter().take(REASONS_SHOWN)) {
            let code = reason.code.as_deref().unwrap_or(&reason.class);
            let line = format!("{} {code}: {}", grouped(reason.count), first_line(&reason.message));
            lines.push((label, line));
        }
        if record.abort_reasons.len() > REASONS_SHOWN {
            let more = record.abort_reasons.len() - REASONS_SHOWN;
            lines.push(("", format!("{more} more reasons are in run.json")));
        }
        lines.push(("latency", latency(&record.latency)));
        let checked = record.check_ms.map_or_else(String::new, |ms| {
            format!(", checked in {}", seconds(Duration::from_secs_f64(ms / 1e3)))
        });
        let memory = record
            .peak_rss_bytes
            .map_or_else(String::new, |bytes| format!(", peak memory {} MiB", bytes >> 20));
        lines.push(("time", format!("generated in {ran}{checked}{memory}")));
        for (label, prefix) in [("faults", "faults: "), ("away", "away: ")] {
            let told = record.remarks.iter().filter_map(|remark| remark.strip_prefix(prefix));
            lines.extend(told.map(|told| (label, told.to_owned())));
        }
        lines.extend(self.outcome.lost.as_ref().map(|lost| ("lost", lost.to_string())));
        if let (Some(own), Some(told)) = (&self.outcome.whitebox, &record.whitebox) {
            lines.extend(whitebox::lines(own, &told.not_as_promised));
        }
        lines
    }

    /// Where to look next.
    fn files(&self) -> Vec<(&'static str, &'static str)> {
        let mut files = vec![("directory", ""), ("report", "report.html")];
        if self.outcome.excerpt.is_some() {
            files.push(("shrunk", SHRUNK));
        }
        if self.outcome.is_broken() {
            files.push(("bug report", "bug-report.md"));
        }
        files
    }

    /// Says what is amiss: what could not be decided, and what the run could not show.
    pub(super) fn warn(&self, console: &mut Console) {
        let RunOutcome { record, history, examination, .. } = self.outcome;
        for node in &record.gone {
            let (place, error) = (&node.url, &node.error);
            console.warning(&format!("{place} could not be reached when the run ended: {error}"));
        }
        if let Some(why) = self.outcome.whitebox.as_ref().and_then(|own| own.failure.as_ref()) {
            console.warning(&format!("the database's own log could not be used: {why}"));
        }
        match self.outcome.judgement() {
            Judgement::NothingToCheck => {
                return console.warning(
                    "nothing to check: no transaction that reads or writes was committed",
                );
            }
            // By the database's own word, where what clients saw was not enough.
            Judgement::Satisfied | Judgement::Violated if self.outcome.whitebox.is_some() => return,
            _ if examination.results.iter().all(|result| !is_answer(&result.verdict)) => {
                console.warning("no level could be decided");
            }
            _ => {}
        }
        for level in &examination.missing {
            let why = examination.results.iter().find(|result| result.level == *level);
            let why = why.and_then(|result| why_no_answer(Names::new(history), &result.verdict));
            let why = why.unwrap_or_else(|| "there is no checker for it yet".to_owned());
            let database = &record.database;
            console.warning(&format!(
                "{database} claims {level}, which could not be decided: {why}; weaker levels that \
                 could be decided are listed above"
            ));
        }
        if let Some(too_few) = examination.contention.as_ref().and_then(too_few_overlapped) {
            console.warning(&format!(
                "{too_few}; use more --sessions, fewer --keys or a longer --think"
            ));
        }
    }
}

/// A path, as a link where the terminal takes one: it opens where the browser of the machine is.
fn link(path: &Path, links: bool) -> String {
    let shown = printable(&path.display().to_string()).trim_end_matches('/').to_owned();
    match std::path::absolute(path) {
        Ok(whole) if links => {
            format!("\x1b]8;;{}\x1b\\{shown}\x1b]8;;\x1b\\", file_url(&whole))
        }
        _ => shown,
    }
}

/// A path as a URL: nothing in it can end the sequence that it stands in.
fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(*byte));
            }
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

fn is_answer(verdict: &Verdict) -> bool {
    verdict.is_satisfied() || verdict.is_violated()
}

fn counted(count: u64, others: u64, what: &str) -> String {
    match others {
        0 => grouped(count),
        others => format!("{} ({} {what})", grouped(count), grouped(others)),
    }
}

fn latency(latency: &Latency) -> String {
    let Latency { p50_us, p90_us, p99_us, p999_us, max_us } = *latency;
    let named = [("p50", p50_us), ("p90", p90_us), ("p99", p99_us), ("p99.9", p999_us)];
    let mut parts: Vec<_> =
        named.iter().map(|(name, us)| format!("{name} {}", milliseconds(*us))).collect();
    parts.push(format!("max {}", milliseconds(max_us)));
    parts.join(", ")
}

fn milliseconds(us: f64) -> String {
    match us / 1e3 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

pub(super) fn seconds(duration: Duration) -> String {
    match duration.as_secs_f64() {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_link_where_terminals_take_one() {
        let path = Path::new("/runs/a b\u{1b}/report.html");
        assert_eq!(link(path, false), "/runs/a b\\u{1b}/report.html");
        assert_eq!(
            link(path, true),
            "\x1b]8;;file:///runs/a%20b%1B/report.html\x1b\\/runs/a b\\u{1b}/report.html\x1b]8;;\x1b\\"
        );
    }

    #[test]
    fn numbers_and_times_for_people() {
        assert_eq!([40.0, 12_345.0, 2e6].map(milliseconds), ["0.04 ms", "12 ms", "2.0 s"]);
        assert_eq!(seconds(Duration::from_millis(420)), "420 ms");
        assert_eq!(seconds(Duration::from_millis(12_340)), "12.3 s");
    }
}
