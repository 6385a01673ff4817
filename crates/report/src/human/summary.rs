//! What several histories come to, for people.

use std::io;

use super::Palette;
use crate::names::counted;
use crate::sentences::other_names;
use crate::summary::Summary;
use crate::wrap::wrap;

/// Nothing where there was no anomaly: the reports say enough.
pub(super) fn write(
    summary: &Summary,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if summary.anomalous == 0 {
        return Ok(());
    }
    let failed = match summary.failed {
        0 => String::new(),
        failed => format!(" ({} could not be read)", counted(failed, "other")),
    };
    let checked = counted(summary.checked, "history");
    let text = format!("{} of {checked} with anomalies{failed}", summary.anomalous);
    let title = palette.heading("In all");
    writeln!(out, "\n{title}: {}\n", wrap(&text, palette.width - "In all: ".len(), "", "  "))?;
    let widest = summary.by_anomaly.keys().map(|kind| kind.name().len()).max().unwrap_or(0);
    let most = summary.by_anomaly.values().max().map_or(0, |count| count.to_string().len());
    for (kind, count) in &summary.by_anomaly {
        let noun = if *count == 1 { "history  " } else { "histories" };
        let line = format!("  {:widest$}  {count:>most$} {noun}", kind.name());
        let others = other_names(*kind).join(", ");
        writeln!(out, "{}", format!("{line}  {}", palette.dim(&others)).trim_end())?;
    }
    Ok(())
}
