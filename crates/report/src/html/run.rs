//! What a live run did: the facts, the counts, why transactions failed, and charts over time.

use std::io::{self, Write};

use isolario_model::{RunEvent, RunEventKind, RunRecord, RunSecond, StopReason};

use super::chart::{Chart, Series};
use super::summary::facts_list;
use super::{own_word, section};
use crate::marks::Part;
use crate::names::{counted, grouped, listed};
use crate::sentences::product;
use crate::xml::Escaped;

/// So many events stand in the open.
const FEW_EVENTS: usize = 12;

pub(super) fn write(run: &RunRecord, part: Part, out: &mut dyn Write) -> io::Result<()> {
    section("run", "Run", part, out)?;
    writeln!(out, "<div class=\"columns\">\n<div>")?;
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
    if let Some(own) = &run.whitebox {
        own_word::write(run, own, out)?;
    }
    events(run, out)?;
    // A line needs two points.
    let seconds = finished_seconds(run);
    if seconds.len() > 1 {
        charts(seconds, part, out)?;
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
        ("Durability", run.durability.clone()),
        ("Workload", shape.kind.clone()),
        (
            "Shape",
            format!(
                "{}, {} per transaction, {} ({}), {:.0} % reads",
                counted(u64::from(shape.sessions), "session"),
                counted(u64::from(shape.ops), "operation"),
                counted(u64::from(shape.keys), "key"),
                shape.distribution,
                shape.read_ratio * 100.0
            ),
        ),
        ("Seed", run.seed.clone()),
        ("Ended", ended(run)),
    ];
    if let Some(at) = run.first_counterexample {
        what.push((
            "First counterexample",
            format!("after {} had begun", counted(at, "transaction")),
        ));
    }
    what
}

/// The seconds that the run went on for all of: the last one ended with it, and looks like a drop.
fn finished_seconds(run: &RunRecord) -> &[RunSecond] {
    let whole = (run.run_ms / 1000.0).floor() as usize;
    &run.seconds[..run.seconds.len().min(whole)]
}

fn claim(run: &RunRecord) -> String {
    match (&run.claim[..], run.claim_source.as_str()) {
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
        0 => grouped(part),
        all => format!("{} ({:.1} %)", grouped(part), part as f64 * 100.0 / all as f64),
    };
    let mut what = vec![
        ("Committed", share(counts.committed)),
        ("Aborted", share(counts.aborted)),
        ("Unknown", share(counts.unknown)),
        ("Retries", grouped(counts.retries)),
        ("Reconnections", grouped(counts.reconnects)),
        ("Throughput", format!("{} commits per second", grouped(run.throughput() as u64))),
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
            grouped(reason.count)
        )?;
    }
    writeln!(out, "</table>")
}

/// What an event was, for a band on the timeline.
pub(super) fn event_name(event: &RunEvent) -> String {
    let what = match event.kind {
        RunEventKind::ConnectionLost => "connection lost",
        RunEventKind::NodeUnreachable => "node unreachable",
        RunEventKind::Errors => "errors",
        RunEventKind::Pause => "nothing committed",
        _ => "event",
    };
    match event.node {
        Some(node) => format!("{what} (node {})", node + 1),
        None => what.to_owned(),
    }
}

/// What befell the run beside its transactions.
fn events(run: &RunRecord, out: &mut dyn Write) -> io::Result<()> {
    if run.events.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<details class=\"events\"{}>\n<summary>What befell the run: {}</summary>\n<table>\n\
         <caption>On the clock of the history</caption>\n<tr><th scope=\"col\">From</th><th \
         scope=\"col\">To</th><th scope=\"col\">What</th><th scope=\"col\">Message</th><th \
         scope=\"col\">Count</th></tr>",
        if run.events.len() <= FEW_EVENTS { " open" } else { "" },
        counted(run.events.len() as u64, "event")
    )?;
    for event in &run.events {
        let seconds = |ms: f64| format!("{:.3} s", ms / 1000.0);
        let code = event.code.as_ref().map_or(String::new(), |code| format!("{code}: "));
        writeln!(
            out,
            "<tr><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td><td><bdi>{}</bdi>\
             </td><td class=\"number\">{}</td></tr>",
            seconds(event.from_ms),
            event.to_ms.map_or("the end".to_owned(), seconds),
            event_name(event),
            Escaped(&format!("{code}{}", event.message)),
            grouped(event.count)
        )?;
    }
    writeln!(out, "</table>\n</details>")
}

fn charts(seconds: &[RunSecond], part: Part, out: &mut dyn Write) -> io::Result<()> {
    let series =
        |name, of: fn(&RunSecond) -> f64| Series { name, values: seconds.iter().map(of).collect() };
    writeln!(out, "<div class=\"charts\">")?;
    Chart {
        id: format!("{part}throughput"),
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
        id: format!("{part}latency"),
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
