//! Pages on levels and anomalies, for programs.

use std::io;

use isolario_model::{AnomalyKind, Level};
use serde::Serialize;

use super::{Json, write_line};
use crate::explain::{Page, Topic, forbidding, newly_forbidden};
use crate::sentences::applies_to;

const SCHEMA: &str = "isolario.explain/1";

impl Json {
    /// Writes the page of a level or an anomaly.
    pub fn explain(&self, topic: Topic, out: &mut dyn io::Write) -> io::Result<()> {
        let object = Object { schema: SCHEMA, about: Some(JsonPage::of(topic)), topics: None };
        write_line(&object, out)
    }

    /// Writes the names of levels and anomalies, with what each is in a line.
    pub fn topics(
        &self,
        topics: impl IntoIterator<Item = Topic>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let topics = topics.into_iter().map(JsonTopic::of).collect();
        write_line(&Object { schema: SCHEMA, about: None, topics: Some(topics) }, out)
    }
}

#[derive(Serialize)]
struct Object {
    schema: &'static str,
    #[serde(flatten)]
    about: Option<JsonPage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topics: Option<Vec<JsonTopic>>,
}

#[derive(Serialize)]
struct JsonTopic {
    kind: &'static str,
    name: &'static str,
    gist: &'static str,
}

#[derive(Serialize)]
struct JsonPage {
    #[serde(flatten)]
    topic: JsonTopic,
    #[serde(flatten)]
    facts: Facts,
    meaning: String,
    history: &'static str,
    seen: Vec<String>,
    look_at: String,
}

/// What the tables of the model say.
#[derive(Serialize)]
#[serde(untagged)]
enum Facts {
    Level {
        aliases: &'static [&'static str],
        implies: Vec<&'static str>,
        /// What it forbids beyond the levels that it implies.
        forbids: Vec<&'static str>,
        applies_to: String,
    },
    Anomaly {
        title: &'static str,
        everyday: &'static [&'static str],
        forbidden_by: Vec<&'static str>,
        pattern: Option<String>,
        mtc: Option<char>,
        adya: Option<&'static str>,
        elle: Option<&'static str>,
        isorel: Option<&'static str>,
    },
    None {},
}

impl JsonTopic {
    fn of(topic: Topic) -> Self {
        let kind = match topic {
            Topic::Level(_) => "level",
            Topic::Anomaly(_) => "anomaly",
            Topic::Edge(_) => "edge",
            Topic::LostCommit => "fault",
        };
        JsonTopic { kind, name: topic.name(), gist: topic.gist() }
    }
}

impl JsonPage {
    fn of(topic: Topic) -> Self {
        let Page { meaning, history, seen, advice: look_at } = topic.page();
        JsonPage {
            topic: JsonTopic::of(topic),
            facts: Facts::of(topic),
            meaning: meaning.join("\n\n"),
            history,
            seen,
            look_at: look_at.join("\n\n"),
        }
    }
}

impl Facts {
    fn of(topic: Topic) -> Self {
        match topic {
            Topic::Level(level) => Facts::Level {
                aliases: level.aliases(),
                implies: level.weaker().iter().copied().map(Level::name).collect(),
                forbids: newly_forbidden(level).into_iter().map(AnomalyKind::name).collect(),
                applies_to: applies_to(level),
            },
            Topic::Anomaly(kind) => {
                let names = kind.names();
                Facts::Anomaly {
                    title: names.title,
                    everyday: names.everyday,
                    forbidden_by: forbidding(kind).into_iter().map(Level::name).collect(),
                    pattern: kind.pattern(),
                    mtc: names.mtc,
                    adya: names.adya,
                    elle: names.elle,
                    isorel: names.isorel,
                }
            }
            Topic::Edge(_) | Topic::LostCommit => Facts::None {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_line() {
        let mut out = Vec::new();
        Json.explain(Topic::Anomaly(AnomalyKind::CoConflictCm), &mut out).unwrap();
        Json.explain(Topic::Level(Level::Causal), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2);
        insta::assert_snapshot!(text.replace(",\"", ",\n\""));
    }
}
