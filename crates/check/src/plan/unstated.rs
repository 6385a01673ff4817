//! What answers owe to an order of versions that is part of the question.

use std::time::Duration;

use isolario_model::{Level, LevelResult};

use super::Checker;
use crate::CheckOptions;

impl Checker<'_> {
    /// Of the levels that a stated order of versions violates, what they come to if nothing is stated: the
    /// order is a hint, and what predicates met is open. Each may take so long.
    ///
    /// One that is satisfied then is violated by what the database says of itself alone, and clients
    /// cannot tell. Nothing comes back where no order is part of the question.
    pub fn without_statements(
        &self,
        results: &[LevelResult],
        timeout: Duration,
    ) -> Vec<LevelResult> {
        if !self.options.trusts_orders() && !self.is_certified() {
            return Vec::new();
        }
        let violated = results.iter().filter(|result| result.verdict.is_violated());
        let levels: Vec<Level> = violated.map(|result| result.level).collect();
        let options = CheckOptions {
            trust_version_order: false,
            version_sets: Vec::new(),
            minimize: false,
            timeout: Some(timeout),
            ..self.options.clone()
        };
        Checker::new(self.history, options).check_all(&levels)
    }

    /// How many predicate operations have no version set, where there is a version certificate.
    pub fn operations_without_set(&self) -> u64 {
        match self.certificate.get() {
            Some(Ok(certificate)) => certificate.operations_without_set(),
            _ => 0,
        }
    }
}
