//! What a live run did: the facts, the counts, why transactions failed, and charts over time.

use std::io::{self, Write};

use isolario_model::{RunRecord, Second, StopReason};

use super::chart::{Chart, Series};
use super::summary::facts_list;
use crate::names::listed;
use crate::xml::Escaped;

pub(super) fn write(run: &RunRecord, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"run\" aria-labelledby=\"run-title\">")?;
    writeln!(out, "<h2 id=\"run-title\">Run</h2>\n<div class=\"columns\">\n<div>")?;
    facts_list("What was tested", &tested(run), out)?;
    if !run.replay.is_empty() {
        let command = Escaped(&run.replay);
        writeln!(
            out,
            "<p>This command repeats the run:</p>\n<pre class=\"command\">{command}</pre>"
        )?;
    }
    writeln!(out, "</div>\n<div>")?;
    facts_list("What was done", &done(run), out)?;
    reasons(run, out)?;
    writeln!(out, "</div>\n</div>")?;
    // A line needs two points.
    if run.seconds.len() > 1 {
        charts(&run.seconds, out)?;
    }
    writeln!(out, "</section>")
}

fn tested(run: &RunRecord) -> Vec<(&'static str, String)> {
    let shape = &run.workload;
    let mut what = vec![
        ("Database", product(run)),
        ("Nodes", run.urls.join(", ")),
        ("Isolation", run.isolation.clone()),
        ("It claims", claim(run)),
        ("Workload", shape.kind.clone()),
        (
            "Shape",
            format!(
                "{} sessions, {} operations per transaction, {} keys ({}), {:.0} % reads",
                shape.sessions,
                shape.ops,
                shape.keys,
                shape.distribution,
                shape.read_ratio * 100.0
            ),
        ),
        ("Seed", run.seed.clone()),
        ("Ended", ended(run)),
    ];
    if let Some(at) = run.first_counterexample {
        what.push(("First counterexample", format!("after {at} transactions had begun")));
    }
    what
}

/// What the database calls itself, which mostly begins with its name.
fn product(run: &RunRecord) -> String {
    let (name, version) = (&run.database, &run.database_version);
    match version.to_lowercase().contains(&name.to_lowercase()) {
        true => version.clone(),
        false => format!("{name} {version}").trim().to_owned(),
    }
}

fn claim(run: &RunRecord) -> String {
    match (&run.claim[..], run.claim_words.as_str()) {
        ([], words) => words.to_owned(),
        (levels, "") => listed(levels),
        (levels, words) => format!("{} ({words})", listed(levels)),
    }
}

fn ended(run: &RunRecord) -> String {
    let how = match run.stopped {
        StopReason::Unfinished => "it was cut off",
        StopReason::Done => "as planned",
        StopReason::Interrupted => "it was interrupted",
        StopReason::Violation => "a violation was found",
        StopReason::Database => "the database failed",
        StopReason::Recording => "the history could not be written",
        _ => "",
    };
    match &run.stopped_because {
        Some(words) => format!("{how}: {words}"),
        None => how.to_owned(),
    }
}

fn done(run: &RunRecord) -> Vec<(&'static str, String)> {
    let (counts, latency) = (&run.counts, &run.latency);
    let share = |part: u64| match counts.attempts() {
        0 => part.to_string(),
        all => format!("{part} ({:.1} %)", part as f64 * 100.0 / all as f64),
    };
    let mut what = vec![
        ("Committed", share(counts.committed)),
        ("Aborted", share(counts.aborted)),
        ("Unknown", share(counts.unknown)),
        ("Retries", counts.retries.to_string()),
        ("Reconnections", counts.reconnects.to_string()),
        ("Throughput", format!("{:.0} commits per second", run.throughput())),
        (
            "Latency",
            format!(
                "{} median, {} at 90 %, {} at 99 %, {} at most",
                micros(latency.p50_us),
                micros(latency.p90_us),
                micros(latency.p99_us),
                micros(latency.max_us)
            ),
        ),
        ("Time", format!("ran for {:.1} s", run.run_ms / 1000.0)),
    ];
    if let Some(check) = run.check_ms {
        what.push(("Check", format!("{:.1} s", check / 1000.0)));
    }
    what
}

fn micros(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.1} ms", us / 1e3),
        us => format!("{us:.0} µs"),
    }
}

fn reasons(run: &RunRecord, out: &mut dyn Write) -> io::Result<()> {
    if run.abort_reasons.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<table>\n<caption>Why transactions did not commit</caption>\n<tr><th scope=\"col\">Code\
         </th><th scope=\"col\">Message</th><th scope=\"col\">Class</th><th scope=\"col\">Count</th></tr>"
    )?;
    for reason in &run.abort_reasons {
        let code = reason.code.as_deref().unwrap_or("–");
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"number\">{}</td></tr>",
            Escaped(code),
            Escaped(&reason.message),
            Escaped(&reason.class),
            reason.count
        )?;
    }
    writeln!(out, "</table>")
}

fn charts(seconds: &[Second], out: &mut dyn Write) -> io::Result<()> {
    let series =
        |name, of: fn(&Second) -> f64| Series { name, values: seconds.iter().map(of).collect() };
    writeln!(out, "<div class=\"charts\">")?;
    Chart {
        id: "throughput",
        title: "Transactions per second",
        unit: "",
        series: vec![
            series("committed", |second| second.committed as f64),
            series("aborted", |second| second.aborted as f64),
            series("unknown", |second| second.unknown as f64),
        ],
    }
    .write(out)?;
    Chart {
        id: "latency",
        title: "Latency of commits in milliseconds",
        unit: " ms",
        series: vec![
            series("99 %", |second| second.latency.p99_us / 1000.0),
            series("90 %", |second| second.latency.p90_us / 1000.0),
            series("median", |second| second.latency.p50_us / 1000.0),
        ],
    }
    .write(out)?;
    writeln!(out, "</div>")
}
