//! What several histories come to, for programs.

use isolario_model::AnomalyKind;
use serde::Serialize;

use crate::summary::Summary;

/// On a line of its own after the histories, which have another schema.
const SCHEMA: &str = "isolario.summary/1";

#[derive(Serialize)]
pub(super) struct JsonSummary {
    schema: &'static str,
    checked: u64,
    failed: u64,
    with_anomalies: u64,
    anomalies: Vec<JsonCount>,
}

#[derive(Serialize)]
struct JsonCount {
    name: &'static str,
    pattern: Option<String>,
    histories: u64,
}

impl JsonSummary {
    pub(super) fn of(summary: &Summary) -> Self {
        let count = |(kind, histories): (&AnomalyKind, &u64)| JsonCount {
            name: kind.name(),
            pattern: kind.pattern(),
            histories: *histories,
        };
        JsonSummary {
            schema: SCHEMA,
            checked: summary.checked,
            failed: summary.failed,
            with_anomalies: summary.anomalous,
            anomalies: summary.by_anomaly.iter().map(count).collect(),
        }
    }
}
