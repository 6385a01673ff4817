//! The figures of a history, for people.

use std::io;

use isolario_model::{Bucket, Concurrency, Distribution, Share, Skew, Stats};

use super::{Human, Palette, heading};
use crate::names::{Names, counted};
use crate::report::HistorySize;
use crate::stats::StatsReport;
use crate::wrap::wrap;

/// The width of the longest bar of a histogram.
const LONGEST_BAR: usize = 32;

impl Human {
    /// Writes the figures of a history. What is odd about it is left to the error stream.
    pub fn stats(&self, report: &StatsReport<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let palette = Palette::of(self.style, self.width());
        let stats = report.stats;
        heading(report.name, &HistorySize::of(report.history), &palette, out)?;
        fact(&palette, "reads and writes", &reads_and_writes(stats), out)?;
        let committed = Share { part: stats.committed_operations, whole: stats.operations };
        fact(&palette, "committed", &share(committed, "operation"), out)?;
        fact(&palette, "read-modify-write", &read_modify_write(stats), out)?;
        fact(&palette, "unique values", &share(stats.uniqueness.unique_writes, "write"), out)?;
        fact(&palette, "concurrency", &concurrency(stats.concurrency.as_ref()), out)?;
        sizes(&stats.transaction_sizes, &palette, out)?;
        busiest_keys(Names::new(report.history), &stats.skew, &palette, out)
    }
}

fn fact(palette: &Palette, label: &str, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let first = format!("  {label:<19}");
    writeln!(out, "{}", wrap(text, palette.width, &first, &" ".repeat(first.len())))
}

/// A share in words: `3 of 4 writes (75 %)`.
fn share(share: Share, noun: &str) -> String {
    let Share { part, whole } = share;
    match share.ratio() {
        None => format!("no {noun}s"),
        Some(_) if part == 0 => format!("none of {}", counted(whole as u64, noun)),
        Some(ratio) => format!("{part} of {} ({})", counted(whole as u64, noun), percent(ratio)),
    }
}

/// Some is never none, and not all is never all.
fn percent(ratio: f64) -> String {
    match ratio * 100.0 {
        percent if percent < 1.0 => "under 1 %".to_owned(),
        percent if percent > 99.0 && percent < 100.0 => "over 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

fn reads_and_writes(stats: &Stats) -> String {
    let reads = counted(stats.reads as u64, "read");
    let writes = counted(stats.writes as u64, "write");
    match stats.reads_per_write() {
        Some(ratio) => format!("{reads}, {writes} ({ratio:.2} reads per write)"),
        None => format!("{reads}, {writes}"),
    }
}

fn read_modify_write(stats: &Stats) -> String {
    let found = &stats.read_modify_write;
    let transactions = share(found.transactions, "writing transaction");
    format!("{transactions}, {}", share(found.writes, "write"))
}

fn concurrency(found: Option<&Concurrency>) -> String {
    match found {
        None => "unknown: the transactions have no times".to_owned(),
        Some(Concurrency { max, mean, measured, .. }) => {
            let timed = match measured.part == measured.whole {
                true => String::new(),
                false => format!("; times of {}", share(*measured, "transaction")),
            };
            format!("at most {max} transactions at a time, {mean:.1} on average{timed}")
        }
    }
}

fn sizes(sizes: &Distribution, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let Distribution { min, median, max, mean, histogram, .. } = sizes;
    let range = format!("{min} to {max}, median {median}, mean {mean:.1}");
    writeln!(out, "\n  {}: {range}", palette.heading("operations per transaction"))?;
    let label = |bucket: &Bucket| match bucket.from == bucket.to {
        true => bucket.from.to_string(),
        false => format!("{}–{}", bucket.from, bucket.to),
    };
    let most = histogram.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let width = histogram.iter().map(|bucket| label(bucket).chars().count()).max().unwrap_or(0);
    let count_width = most.to_string().len();
    for bucket in histogram {
        // A bar for everything that is there, however little it is.
        let bar = (bucket.count * LONGEST_BAR).div_ceil(most.max(1));
        let (label, count) = (label(bucket), bucket.count);
        let line = format!("    {label:>width$}  {count:>count_width$}  {}", "█".repeat(bar));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn busiest_keys(
    names: Names<'_>,
    skew: &Skew,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Some(gini) = skew.gini else { return Ok(()) };
    writeln!(out, "\n  {}: Gini coefficient {gini:.2}", palette.heading("operations per key"))?;
    let width = skew.top.iter().map(|key| names.key(key.key).chars().count()).max().unwrap_or(0);
    for found in &skew.top {
        writeln!(
            out,
            "    {:width$}  {}",
            names.key(found.key),
            share(found.operations, "operation")
        )?;
    }
    Ok(())
}
