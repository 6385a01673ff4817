//! Names that people type, and what they may have meant.

use isolario::model::AnomalyKind;
use isolario::report::explain::{self, Topic, TopicLookup};

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

/// What a flag that names anomalies can do with them.
pub(crate) struct AnomalyFlag {
    /// In a word: "planted".
    pub(crate) done: &'static str,
    /// The anomalies it can do that with.
    pub(crate) with: Vec<AnomalyKind>,
    /// What is said of another one, after its name.
    pub(crate) refusal: &'static str,
    /// Words it takes in place of a name.
    pub(crate) words: &'static [&'static str],
}

impl AnomalyFlag {
    /// The anomaly of this name, if it can be used.
    pub(crate) fn find(&self, name: &str) -> Result<AnomalyKind, Failure> {
        let names: Vec<_> = self.with.iter().map(|kind| kind.name()).collect();
        let there_are = format!("anomalies that can be {}: {}", self.done, names.join(", "));
        match explain::find(name) {
            TopicLookup::One(Topic::Anomaly(kind)) if self.with.contains(&kind) => Ok(kind),
            TopicLookup::One(Topic::Anomaly(kind)) => {
                Err(Failure::new(format!("{kind} {}", self.refusal)).with_hint(there_are))
            }
            TopicLookup::One(Topic::Level(level)) => {
                Err(Failure::new(format!("{level} is a level, not an anomaly"))
                    .with_hint("use --level for levels"))
            }
            TopicLookup::One(Topic::Edge(edge)) => {
                let text =
                    format!("`{}` is an edge between transactions, not an anomaly", edge.name());
                Err(Failure::new(text).with_hint(there_are))
            }
            TopicLookup::One(Topic::LostCommit) => {
                let text = "a lost commit is not an anomaly: runs with --fault or --crash find it";
                Err(Failure::new(text).with_hint(there_are))
            }
            TopicLookup::Several(topics) => {
                let topics: Vec<_> = topics.iter().map(|topic| topic.name()).collect();
                Err(Failure::new(format!("`{name}` may mean several anomalies"))
                    .with_hint(format!("use one of these names: {}", topics.join(", "))))
            }
            TopicLookup::Nothing => {
                let hint = match closest(name, names.iter().chain(self.words).copied()) {
                    Some(meant) => format!("did you mean `{meant}`? {there_are}"),
                    None => there_are,
                };
                Err(Failure::new(format!("there is no anomaly `{name}`")).with_hint(hint))
            }
        }
    }
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
