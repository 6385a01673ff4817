//! Predicates and aggregates in the words of SQL, each text read once: histories repeat a few texts
//! in many operations.

use isolario_model::{Aggregate, Predicate};
use rustc_hash::FxHashMap;

/// What the texts met so far stand for. Texts that are in no form of the language of predicates are
/// kept as they are.
#[derive(Debug, Default)]
pub(crate) struct Predicates {
    predicates: FxHashMap<Box<str>, Predicate>,
    aggregates: FxHashMap<Box<str>, Aggregate>,
}

impl Predicates {
    /// What a text says of rows.
    pub(crate) fn predicate(&mut self, text: &str) -> &Predicate {
        // Looked up twice where it is there, as the entry would want an owned text.
        if !self.predicates.contains_key(text) {
            self.predicates.insert(text.into(), Predicate::from_sql(text));
        }
        &self.predicates[text]
    }

    /// The function and the rows that two texts stand for.
    pub(crate) fn aggregate(&mut self, function: &str, text: &str) -> (&Aggregate, &Predicate) {
        if !self.aggregates.contains_key(function) {
            self.aggregates.insert(function.into(), Aggregate::from_sql(function));
        }
        self.predicate(text);
        (&self.aggregates[function], &self.predicates[text])
    }
}
