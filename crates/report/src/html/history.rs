//! The whole history: a place for its timeline, search, and the data.

use std::io::{self, Write};

use super::embed::Embedded;
use super::section;
use crate::marks::Part;
use crate::names::{counted, grouped};
use crate::report::Report;

/// The section, and the data behind it.
pub(super) fn write(
    report: &Report<'_>,
    embedded: &Embedded,
    part: Part,
    out: &mut dyn Write,
) -> io::Result<()> {
    section("history", "History", part, out)?;
    writeln!(
        out,
        "<p>{}</p>\n<p class=\"trouble\" role=\"alert\"></p>\n\
         <noscript><p>The timeline and the search need JavaScript.</p></noscript>\n\
         <form role=\"search\"{}><label>Search by key, transaction or value \
         <input type=\"search\" autocomplete=\"off\"></label></form>\n\
         <div class=\"results\" aria-live=\"polite\"></div>\n\
         <p class=\"legend\"><span class=\"swatch committed\"></span> committed \
         <span class=\"swatch aborted\"></span> aborted <span class=\"swatch unknown\"></span> unknown \
         <span class=\"swatch marked\"></span> part of an anomaly</p>\n\
         <div class=\"whole\"></div>\n</section>",
        left_out(report, embedded),
        match part {
            Part(0) => String::new(),
            Part(number) => format!(" aria-label=\"In history {number}\""),
        }
    )?;
    data("history-frame", &embedded.frame, out)?;
    data("history-anomalies", &embedded.anomalies, out)?;
    if !embedded.events.is_empty() {
        data("history-events", &embedded.events, out)?;
    }
    embedded.blocks.iter().try_for_each(|block| data("history-ops", block, out))
}

fn data(class: &str, letters: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<script type=\"text/plain\" class=\"{class}\">{letters}</script>")
}

/// What the page holds, and what it had to leave out.
fn left_out(report: &Report<'_>, embedded: &Embedded) -> String {
    let all = report.history.txn_count();
    let (here, with_ops) = (embedded.txns.len(), embedded.with_ops);
    let whole = counted(all as u64, "transaction");
    let sessions = counted(report.size.sessions, "session");
    if here < all {
        return format!(
            "This history has {whole} in {sessions}, too many for one page: here are the {} around \
             the anomalies. Search covers these.",
            grouped(here as u64)
        );
    }
    if with_ops < all {
        return format!(
            "All {whole} in {sessions} are here; to keep this file small, the operations of {} were \
             left out. Search by key and value covers the other {}.",
            grouped((all - with_ops) as u64),
            grouped(with_ops as u64)
        );
    }
    format!("All {whole} in {sessions} are here, with all of their operations.")
}
