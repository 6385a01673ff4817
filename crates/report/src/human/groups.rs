//! How many anomalies there are of each kind, and on which keys.

use std::io;

use super::palette::Palette;
use crate::finding::{FindingGroup, ReportFindings};
use crate::names::{Names, counted, grouped, listed};
use crate::wrap::wrap;

/// How many keys of a kind are named.
const MOST_KEYS: usize = 5;

/// A line per kind: `LostUpdate  12: 7 on x, 3 on y and 2 on 2 other keys`.
pub(super) fn write(
    names: Names<'_>,
    found: &ReportFindings<'_>,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (groups, kinds) = (found.groups(), found.kinds());
    let widest = kinds.iter().map(|(kind, _)| kind.name().len()).max().unwrap_or(0);
    let most = kinds.iter().map(|(_, count)| grouped(*count as u64).len()).max().unwrap_or(0);
    for (kind, count) in kinds {
        let of_kind: Vec<&FindingGroup> =
            groups.iter().filter(|group| group.kind == kind).collect();
        let count = grouped(count as u64);
        let first = format!("  {:widest$}  {count:>most$}  ", kind.name());
        let rest = " ".repeat(first.chars().count());
        let text = wrap(&on_keys(names, &of_kind), palette.width, &first, &rest);
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn on_keys(names: Names<'_>, groups: &[&FindingGroup]) -> String {
    let keyed: Vec<_> = groups.iter().filter_map(|group| Some((group.key?, group))).collect();
    let on = |count: usize, what: &str| format!("{} on {what}", grouped(count as u64));
    let (told, rest) = keyed.split_at(keyed.len().min(MOST_KEYS));
    let mut parts: Vec<String> =
        told.iter().map(|(key, group)| on(group.findings.len(), &names.key(*key))).collect();
    if !rest.is_empty() {
        let count = rest.iter().map(|(_, group)| group.findings.len()).sum();
        parts.push(on(count, &counted(rest.len() as u64, "other key")));
    }
    listed(&parts)
}
