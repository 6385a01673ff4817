//! The probes that come with Isolario. Their files are examples, too.

use crate::script::Script;

macro_rules! scripts {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("scripts/", $name, ".probe")))),+]
    };
}

/// Name and text of each, in the order of the table: what is read of one transaction, what is read of
/// several, what is written, sessions and nodes.
const SCRIPTS: &[(&str, &str)] = scripts![
    "dirty-write",
    "aborted-read",
    "intermediate-read",
    "circular-information-flow",
    "observed-transaction-vanishes",
    "thin-air-read",
    "future-read",
    "not-my-own-write",
    "not-my-last-write",
    "non-monotonic-read",
    "non-repeatable-read",
    "phantom",
    "predicate-many-preceders",
    "predicate-many-preceders-write",
    "fractured-read",
    "read-skew",
    "read-skew-predicate",
    "read-skew-write-predicate",
    "read-skew-write-predicate-waiting",
    "read-skew-write-predicate-index",
    "causality-violation",
    "long-fork",
    "lost-update",
    "lost-update-by-delete",
    "cursor-lost-update",
    "lost-update-for-update",
    "write-skew",
    "write-skew-savepoint",
    "read-only-anomaly",
    "g2-predicate",
    "g2-read-only",
    "insert-over-delete",
    "stale-read",
    "read-your-writes",
    "monotonic-reads",
    "monotonic-writes",
    "writes-follow-reads",
    "lost-update-across-nodes",
    "write-skew-across-nodes",
    "long-fork-across-nodes",
    "causality-violation-across-nodes",
];

/// The classic anomalies, each as a script.
pub fn shipped() -> Vec<Script> {
    // A test makes sure that none is left out for a mistake in it.
    SCRIPTS.iter().filter_map(|(name, text)| Script::parse(name, text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use isolario_model::AnomalyKind;

    use super::*;

    #[test]
    fn every_script_can_be_played_and_says_what_it_is_about() {
        for (name, text) in SCRIPTS {
            let script =
                Script::parse(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!script.about.is_empty() && !script.title.is_empty(), "{name}");
            assert!(script.anomaly.is_some() && !script.forbidden_by.is_empty(), "{name}");
            let evidence = script.steps.iter().any(|step| !step.expected.is_silent());
            assert!(evidence, "{name} cannot go otherwise than written");
        }
        assert_eq!(shipped().len(), SCRIPTS.len());
    }

    #[test]
    fn every_file_is_listed() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/probe/scripts");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed = SCRIPTS.iter().map(|(name, _)| format!("{name}.probe")).collect();
        assert_eq!(files, listed);
    }

    /// MTC, Figure 5: fourteen anomalies that mini-transactions show.
    #[test]
    fn every_anomaly_of_mini_transactions_has_a_probe() {
        let letters: BTreeSet<char> = shipped()
            .iter()
            .filter_map(|script| script.anomaly)
            .filter_map(|kind: AnomalyKind| kind.names().mtc)
            .collect();
        assert_eq!(letters, ('a'..='n').collect());
    }
}
