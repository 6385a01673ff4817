//! What several histories come to.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::AnomalyKind;

use crate::finding::Finding;
use crate::report::Report;

/// How many histories show which anomaly (Plume, Table 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How many histories were checked.
    pub checked: u64,
    /// How many could not be read or checked.
    pub failed: u64,
    /// How many of those checked show an anomaly.
    pub anomalous: u64,
    /// In how many each anomaly was found, in the order of the model's table.
    pub by_anomaly: BTreeMap<AnomalyKind, u64>,
}

impl Summary {
    /// Counts a history that was checked.
    pub fn add(&mut self, report: &Report<'_>) {
        // Under each of its names: whether a history shows an anomaly does not depend on what else the
        // same transactions show.
        let found = report.found();
        let anomalies = found.findings.iter().flat_map(Finding::anomalies);
        let kinds: BTreeSet<AnomalyKind> = anomalies.map(|anomaly| anomaly.kind).collect();
        self.checked += 1;
        self.anomalous += u64::from(!kinds.is_empty());
        for kind in kinds {
            *self.by_anomaly.entry(kind).or_default() += 1;
        }
    }

    /// Counts a history that could not be read or checked.
    pub fn add_failure(&mut self) {
        self.failed += 1;
    }
}
