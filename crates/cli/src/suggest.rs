//! "Did you mean …?"

use crate::failure::Failure;

/// The candidate nearest to what was typed, if it is near enough to be a slip.
pub(crate) fn closest<'c>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let typed = typed.to_lowercase();
    // About one slip in three letters, and never so many that any short name would do.
    let most = (typed.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&typed, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The error that a flag names something that is not there, with what may have been meant and what
/// there is.
pub(crate) fn no_such<'c>(
    what: &str,
    typed: &str,
    flag: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    there_are: String,
) -> Failure {
    let hint = match closest(typed, candidates) {
        Some(meant) => format!("did you mean `{flag} {meant}`? {there_are}"),
        None => there_are,
    };
    Failure::new(format!("there is no {what} `{typed}`")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["serializable", "rc", "read-committed", "plume", "LostUpdate"];

    #[test]
    fn slips_are_recognised() {
        for (typed, meant) in [
            ("serialisable", "serializable"),
            ("Serializable", "serializable"),
            ("read-comitted", "read-committed"),
            ("read_committed", "read-committed"),
            ("plmue", "plume"),
            ("rcc", "rc"),
            ("lostupdaet", "LostUpdate"),
        ] {
            assert_eq!(closest(typed, NAMES), Some(meant));
        }
    }

    #[test]
    fn other_words_are_not() {
        for typed in ["", "x", "causal", "something-else-entirely"] {
            assert_eq!(closest(typed, NAMES), None, "{typed}");
        }
    }
}
