//! What a round comes to with its dependencies by predicate, where these are known.

use isolario_check::{CheckOptions, Checker};
use isolario_model::{Anomaly, History, Level, LevelResult, SinkError};
use isolario_sql::{Certified, Round, Schema, certified};

use super::site::{Site, Stage};

/// A round as a history of rows with predicates, and what it satisfies.
pub(super) struct ByPredicate {
    pub(super) history: History,
    /// For what the database claims, and for serializability.
    pub(super) results: Vec<LevelResult>,
    /// How many of these are claimed.
    claimed: usize,
}

impl ByPredicate {
    /// Checks a round, if what its statements met is known.
    pub(super) fn of(
        site: &Site<'_>,
        stage: &Stage<'_>,
        isolation: &str,
        schema: &Schema,
        round: &Round,
        options: &CheckOptions,
    ) -> Result<Option<ByPredicate>, SinkError> {
        if site.companion(isolation).is_none() {
            return Ok(None);
        }
        let known = certified(round, schema, &site.product, isolation)?;
        let Some(Certified { history, orders, sets, .. }) = known else { return Ok(None) };
        let mut levels = stage.claim().levels;
        let claimed = levels.len();
        if !levels.contains(&Level::Serializable) {
            levels.push(Level::Serializable);
        }
        let options = (options.clone().with_version_order(orders))
            .with_trusted_version_order(true)
            .with_version_sets(sets);
        let results = Checker::new(&history, options).check_all(&levels);
        Ok(Some(ByPredicate { history, results, claimed }))
    }

    /// Whether a claim is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.results[..self.claimed].iter().any(|result| result.verdict.is_violated())
    }

    /// The anomalies that take a predicate. The others are found without.
    pub(super) fn anomalies(&self) -> impl Iterator<Item = &Anomaly> {
        let anomalies = self.results.iter().flat_map(|result| result.verdict.anomalies());
        let mut kinds = Vec::new();
        anomalies.map(|anomaly| &**anomaly).filter(move |anomaly| {
            let edges = anomaly.evidence.edges();
            let is_ours =
                edges.is_empty() || edges.iter().any(|edge| edge.reason.is_about_predicate());
            let is_new = !kinds.contains(&(anomaly.kind, edges.first().map(|edge| edge.from)));
            kinds.push((anomaly.kind, edges.first().map(|edge| edge.from)));
            is_ours && is_new
        })
    }
}
