//! What the answers about a history come to, in half a sentence.

use isolario_model::Level;

use crate::names::listed;
use crate::report::Report;

/// What the answers come to: `violates serializable; satisfies no more than snapshot-isolation`.
/// Nothing where no level was asked for.
pub fn verdict(report: &Report<'_>) -> Option<String> {
    if report.results.is_empty() {
        return None;
    }
    let names = |levels: &[Level]| listed(levels);
    Some(match (&report.strongest()[..], &report.weakest_violated()[..]) {
        ([], []) => "no level was decided".to_owned(),
        (strongest, []) => format!("satisfies {}", names(strongest)),
        ([], weakest) => format!("violates {}", names(weakest)),
        (strongest, weakest) => {
            format!("violates {}; satisfies no more than {}", names(weakest), names(strongest))
        }
    })
}
