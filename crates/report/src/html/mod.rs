//! Reports as one HTML file that needs nothing else: no network, no server, no other file.
//!
//! What matters is in the markup itself: verdicts, words and pictures can be read, printed and heard
//! without scripts. Scripts add what needs a hand: graphs to take apart, and the whole history.

mod anomalies;
mod chart;
mod lattice;
mod run;
mod summary;

use std::io::{self, Write};

use isolario_model::RunRecord;

use crate::report::Report;
use crate::xml::Escaped;

const STYLE: &str = include_str!("assets/report.css");

/// Writes the report on a history, and on the run that recorded it where there was one.
///
/// A report without answers is fine: it says that nothing was decided. So whoever is interrupted can
/// still write what there is.
pub fn write(report: &Report<'_>, run: Option<&RunRecord>, out: &mut dyn Write) -> io::Result<()> {
    let name = Escaped(report.name);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<title>{name}: Isolario</title>\n<style>\n{STYLE}</style>\n</head>\n<body>")?;
    writeln!(out, "<header>\n<h1>{name}</h1>\n</header>\n<main>")?;
    summary::write(report, out)?;
    if let Some(run) = run {
        run::write(run, out)?;
    }
    anomalies::write(report, out)?;
    writeln!(out, "</main>\n</body>\n</html>")
}
