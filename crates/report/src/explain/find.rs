//! Finds what a name means, whoever's name it is.

use isolario_model::{AnomalyKind, EdgeKind, Level};

use super::Topic;

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicLookup {
    /// One thing.
    One(Topic),
    /// Several things, to different people.
    Several(Vec<Topic>),
    /// Nothing that is known here.
    Nothing,
}

/// Finds a level by name or alias, an edge by its word in reports (`wr`), a lost commit, or an anomaly: by our name,
/// by an everyday one (`dirty read`, `P4`), by Plume's letter (`TAP-k`), by MTC's (`MTC-k`), or by
/// the names of Adya, Elle and IsoRel. Capitals, spaces and dashes do not matter.
pub fn find(name: &str) -> TopicLookup {
    let own = Topic::all().find(|topic| own_names(*topic).iter().any(|own| alike(own, name)));
    if let Some(topic) = own {
        return TopicLookup::One(topic);
    }
    let others: Vec<Topic> = AnomalyKind::all()
        .filter(|kind| others_names(*kind).iter().any(|other| alike(other, name)))
        .map(Topic::Anomaly)
        .collect();
    match others[..] {
        [] => TopicLookup::Nothing,
        [one] => TopicLookup::One(one),
        _ => TopicLookup::Several(others),
    }
}

/// Every name that [`find`] knows.
pub fn all_names() -> Vec<String> {
    let others = AnomalyKind::all().flat_map(others_names);
    let mut names: Vec<String> = Topic::all().flat_map(own_names).chain(others).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The names that mean this and nothing else.
fn own_names(topic: Topic) -> Vec<String> {
    match topic {
        Topic::Level(level) => level_names(level).map(str::to_owned).collect(),
        Topic::Anomaly(kind) => {
            std::iter::once(kind.name().to_owned()).chain(kind.pattern()).collect()
        }
        Topic::Edge(kind) => edge_names(kind).iter().map(|name| (*name).to_owned()).collect(),
        Topic::LostCommit => vec![topic.name().to_owned(), format!("{}s", topic.name())],
    }
}

/// The words for an edge: that of reports first.
pub(super) fn edge_names(kind: EdgeKind) -> &'static [&'static str] {
    match kind {
        EdgeKind::Initial => &["init"],
        EdgeKind::Session => &["session", "so", "session order"],
        EdgeKind::RealTime => &["real-time", "rt", "rb"],
        EdgeKind::WriteRead => &["wr", "write-read", "read dependency"],
        EdgeKind::WriteWrite => &["ww", "write-write", "write dependency", "overwrite"],
        EdgeKind::ReadWrite => &["rw", "read-write", "anti-dependency"],
        EdgeKind::CommitOrder => &["co", "commit order", "cm"],
        EdgeKind::Stated => &["stated"],
        _ => &[],
    }
}

fn level_names(level: Level) -> impl Iterator<Item = &'static str> {
    std::iter::once(level.name()).chain(level.aliases().iter().copied())
}

/// The names of other papers and tools, which may mean several things.
fn others_names(kind: AnomalyKind) -> Vec<String> {
    let names = kind.names();
    let mtc = names.mtc.map(|letter| format!("MTC-{letter}"));
    let words = [names.adya, names.elle, names.isorel];
    let everyday = names.everyday.iter().copied().chain([names.title]);
    words.into_iter().flatten().chain(everyday).map(str::to_owned).chain(mtc).collect()
}

fn alike(a: &str, b: &str) -> bool {
    letters(a).eq(letters(b))
}

/// What is left of a name without its spelling.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> &'static str {
        match find(name) {
            TopicLookup::One(topic) => topic.name(),
            other => panic!("{name}: {other:?}"),
        }
    }

    fn several(name: &str) -> Vec<&'static str> {
        match find(name) {
            TopicLookup::Several(topics) => topics.iter().map(|topic| topic.name()).collect(),
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn names_are_found_in_any_spelling() {
        for (typed, meant) in [
            ("coconflictcm", "COConflictCM"),
            ("TAP-m", "COConflictCM"),
            ("tap k", "FracturedReadCO"),
            ("lost update", "LostUpdate"),
            ("Lost-Update", "LostUpdate"),
            ("G1a", "AbortedRead"),
            ("g1c", "CyclicCO"),
            ("garbage-read", "ThinAirRead"),
            ("MTC-l", "LongFork"),
            ("rc", "read-committed"),
            ("PL-2.99", "repeatable-read"),
            ("Serializability", "serializable"),
            ("fuzzy read", "NonRepeatableRead"),
            ("phantom read", "Phantom"),
            ("read your writes", "SessionGuaranteeViolation"),
            ("P0", "DirtyWrite"),
            ("p4", "LostUpdate"),
            ("A5A", "ReadSkew"),
            ("A5B", "WriteSkew"),
            ("wr", "wr"),
            ("so", "session"),
            ("rt", "real-time"),
            ("lost commits", "lost-commit"),
            ("lost_commits", "lost-commit"),
            ("LostCommit", "lost-commit"),
        ] {
            assert_eq!(one(typed), meant);
        }
    }

    #[test]
    fn names_that_mean_several_things_list_them() {
        assert_eq!(several("G2-item"), ["WriteSkew", "ItemAntiDependencyCycle"]);
        assert_eq!(several("G1b"), ["IntermediateRead", "SingleAntiDependency"]);
        assert_eq!(several("internal"), ["NotMyOwnWrite", "NotMyLastWrite"]);
        assert_eq!(several("dirty read"), ["AbortedRead", "IntermediateRead"]);
        assert_eq!(several("causality violation"), ["COConflictCM", "ConflictCM"]);
        assert_eq!(find("frobnicate"), TopicLookup::Nothing);
        assert_eq!(find(""), TopicLookup::Nothing);
    }

    #[test]
    fn our_own_names_come_first_and_every_name_is_found() {
        for topic in Topic::all() {
            assert_eq!(one(topic.name()), topic.name());
        }
        for name in all_names() {
            assert_ne!(find(&name), TopicLookup::Nothing, "{name}");
        }
    }
}
