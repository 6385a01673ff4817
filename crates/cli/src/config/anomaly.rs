//! Anomalies by name, whoever's name it is.

use isolario::model::AnomalyKind;
use isolario::report::explain::{self, Found, Topic};

use crate::failure::Failure;
use crate::suggest::closest;

/// What a flag that names anomalies can do with them.
pub(crate) struct Use {
    /// In a word: "planted".
    pub(crate) done: &'static str,
    /// The anomalies it can do that with.
    pub(crate) with: Vec<AnomalyKind>,
    /// What is said of another one, after its name.
    pub(crate) refusal: &'static str,
    /// Words it takes in place of a name.
    pub(crate) words: &'static [&'static str],
}

impl Use {
    /// The anomaly of this name, if it can be used.
    pub(crate) fn find(&self, name: &str) -> Result<AnomalyKind, Failure> {
        let names: Vec<_> = self.with.iter().map(|kind| kind.name()).collect();
        let there_are = format!("anomalies that can be {}: {}", self.done, names.join(", "));
        match explain::find(name) {
            Found::One(Topic::Anomaly(kind)) if self.with.contains(&kind) => Ok(kind),
            Found::One(Topic::Anomaly(kind)) => {
                Err(Failure::new(format!("{kind} {}", self.refusal)).with_hint(there_are))
            }
            Found::One(Topic::Level(level)) => {
                Err(Failure::new(format!("{level} is a level, not an anomaly"))
                    .with_hint("levels go with --level"))
            }
            Found::One(Topic::Edge(edge)) => {
                let text = format!("`{}` is an edge of an argument, not an anomaly", edge.name());
                Err(Failure::new(text).with_hint(there_are))
            }
            Found::Several(topics) => {
                let topics: Vec<_> = topics.iter().map(|topic| topic.name()).collect();
                Err(Failure::new(format!("`{name}` may mean several anomalies"))
                    .with_hint(format!("name one of {}", topics.join(", "))))
            }
            Found::Nothing => {
                let hint = match closest(name, names.iter().chain(self.words).copied()) {
                    Some(meant) => format!("did you mean `{meant}`? {there_are}"),
                    None => there_are,
                };
                Err(Failure::new(format!("there is no anomaly `{name}`")).with_hint(hint))
            }
        }
    }
}
