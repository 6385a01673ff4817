//! What levels, anomalies and the other words of reports mean, for `isolario explain`.
//!
//! Each has a page: a text file beside this one. What the model's tables say (who forbids what, how
//! others call it) is not repeated in the texts; renderers take it from the tables.
//!
//! ```
//! use isolario_report::explain::{TopicLookup, find};
//!
//! let TopicLookup::One(topic) = find("lost update") else { panic!() };
//! assert_eq!(topic.name(), "LostUpdate");
//! assert!(topic.page().history.contains("r balance 100, w balance 130"));
//! // G1b is one thing to Adya and another to IsoRel.
//! assert!(matches!(find("g1b"), TopicLookup::Several(topics) if topics.len() == 2));
//! ```

mod find;
mod texts;

use isolario_model::{AnomalyKind, EdgeKind, Level};

pub use find::{TopicLookup, all_names, find};

/// Something that has a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// An isolation level.
    Level(Level),
    /// An anomaly.
    Anomaly(AnomalyKind),
    /// A kind of edge in an argument.
    Edge(EdgeKind),
    /// An acknowledged transaction that is missing after a fault: a finding of its own, at any level.
    LostCommit,
}

/// Our name for a lost commit.
const LOST_COMMIT: &str = "lost-commit";

/// The kinds of edge that arguments are made of.
const EDGES: [EdgeKind; 8] = [
    EdgeKind::Initial,
    EdgeKind::Session,
    EdgeKind::RealTime,
    EdgeKind::WriteRead,
    EdgeKind::WriteWrite,
    EdgeKind::ReadWrite,
    EdgeKind::CommitOrder,
    EdgeKind::Stated,
];

/// What there is to say about a level or an anomaly beyond the tables of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// What it means, as one paragraph per entry.
    pub meaning: Vec<String>,
    /// A tiny history, in the text language: one that shows the anomaly; for a level, one that the
    /// level forbids and that the next weaker levels allow.
    pub history: &'static str,
    /// Where it was seen in real databases, each with its source.
    pub seen: Vec<String>,
    /// Which part of a database to look at when it shows up.
    pub advice: Vec<String>,
}

impl Topic {
    /// Every level, weaker ones first, then every anomaly, in the order of the table, then lost commits and
    /// the edges.
    pub fn all() -> impl Iterator<Item = Topic> {
        let levels = Level::all().map(Topic::Level);
        let anomalies = AnomalyKind::all().map(Topic::Anomaly);
        levels.chain(anomalies).chain([Topic::LostCommit]).chain(EDGES.map(Topic::Edge))
    }

    /// Everything that has a page with an example: all but edges.
    pub fn with_examples() -> impl Iterator<Item = Topic> {
        Topic::all().filter(|topic| !matches!(topic, Topic::Edge(_)))
    }

    /// Our name for it.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Level(level) => level.name(),
            Topic::Anomaly(kind) => kind.name(),
            Topic::Edge(kind) => kind.name(),
            Topic::LostCommit => LOST_COMMIT,
        }
    }

    /// What it is, in one line.
    pub fn gist(self) -> &'static str {
        match self {
            Topic::Level(level) => level.promise(),
            Topic::Anomaly(kind) => kind.names().meaning,
            Topic::Edge(kind) => edge_gist(kind),
            Topic::LostCommit => "A transaction was acknowledged, and is missing after a fault.",
        }
    }

    /// Its page.
    pub fn page(self) -> Page {
        Page::parse(match self {
            Topic::Level(level) => texts::level(level),
            Topic::Anomaly(kind) => texts::anomaly(kind),
            Topic::Edge(kind) => edge_gist(kind),
            Topic::LostCommit => include_str!("lost-commit.md"),
        })
    }
}

/// What an edge from one transaction to another says.
fn edge_gist(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Initial => "The initial state comes before every transaction.",
        EdgeKind::Session => {
            "The first ran before the second in the same session: one client did one and then the \
             other."
        }
        EdgeKind::RealTime => {
            "The first had finished, as the clients' clocks tell, before the second began."
        }
        EdgeKind::WriteRead => "The second read what the first wrote (a read dependency).",
        EdgeKind::WriteWrite => "The second overwrote what the first wrote (a write dependency).",
        EdgeKind::ReadWrite => {
            "The second overwrote what the first had read, so the first ran on the older state (an \
             anti-dependency)."
        }
        EdgeKind::CommitOrder => {
            "Nobody saw this order directly: the rule of the level demands that the first was \
             committed before the second."
        }
        EdgeKind::Stated => "A file that was given with the history states this order.",
        _ => "",
    }
}

impl Page {
    /// A text is what it means, followed by sections that begin with `## `.
    fn parse(text: &'static str) -> Page {
        let mut parts = text.split("\n## ");
        let mut page = Page { meaning: paragraphs(parts.next().unwrap_or("")), ..Page::default() };
        for part in parts {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            match title {
                "History" => page.history = body.trim_matches('\n'),
                "Seen" => page.seen = items(body),
                "Look at" => page.advice = paragraphs(body),
                _ => {}
            }
        }
        page
    }
}

/// What blank lines separate, each in one line.
fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n").map(unwrapped).filter(|text| !text.is_empty()).collect()
}

/// What begins with a dash, each in one line.
fn items(text: &str) -> Vec<String> {
    format!("\n{text}").split("\n- ").skip(1).map(unwrapped).collect()
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The anomalies that a level forbids and that none of the next weaker levels does.
pub fn newly_forbidden(level: Level) -> Vec<AnomalyKind> {
    let by_weaker =
        |kind: AnomalyKind| level.weaker().iter().any(|weaker| kind.forbidden_at(*weaker));
    AnomalyKind::all().filter(|kind| kind.forbidden_at(level) && !by_weaker(*kind)).collect()
}

/// The levels that forbid an anomaly, weaker ones first.
pub fn forbidding(kind: AnomalyKind) -> Vec<Level> {
    Level::all().filter(|level| kind.forbidden_at(*level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_complete() {
        for topic in Topic::with_examples() {
            let page = topic.page();
            let name = topic.name();
            let meaning = page.meaning.join(" ");
            let sentences = meaning.matches(['.', '?']).count();
            assert!((2..=6).contains(&sentences), "{name}: {sentences} sentences");
            assert!(page.history.contains("session "), "{name} has no history");
            assert!(!page.advice.is_empty(), "{name} says nothing of what to look at");
            let sources = ["Plume", "MTC", "IsoRel", "AWDIT", "Emme"];
            let has_source = |seen: &String| sources.iter().any(|source| seen.contains(source));
            assert!(page.seen.iter().all(has_source), "{name}: {:?}", page.seen);
        }
    }

    #[test]
    fn levels_forbid_new_things_and_leave_the_rest_to_weaker_ones() {
        assert_eq!(
            newly_forbidden(Level::CutIsolation),
            [AnomalyKind::NonMonotonicRead, AnomalyKind::NonRepeatableRead]
        );
        assert_eq!(
            newly_forbidden(Level::Causal),
            [AnomalyKind::CoConflictCm, AnomalyKind::ConflictCm]
        );
        assert_eq!(forbidding(AnomalyKind::NotLinearizable), [Level::Linearizable]);
    }
}
