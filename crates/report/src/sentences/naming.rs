//! What an anomaly is called, by us and by others, and which levels it rules out.

use isolario_model::{Anomaly, AnomalyKind, Evidence, Level, LevelSet};

use crate::finding::Finding;
use crate::names::listed;

/// What it is called and what that means, for people who have read no paper.
pub fn title(kind: AnomalyKind) -> String {
    format!("{}: {}", kind.title(), meaning(kind))
}

/// The same of an anomaly: what has no name but that there is no order says of which level.
pub fn title_of(anomaly: &Anomaly) -> String {
    if anomaly.kind != AnomalyKind::NoOrderPossible {
        return title(anomaly.kind);
    }
    let levels: Vec<String> = anomaly.rules_out.weakest().iter().map(level_name).collect();
    let at = if levels.is_empty() { String::new() } else { format!(" at {}", listed(&levels)) };
    let meaning = match &anomaly.evidence {
        Evidence::Cases { cycles } if cycles.len() > 1 => meaning(anomaly.kind),
        _ => "what the clients saw leads to a cycle of dependencies".to_owned(),
    };
    format!("{}{at}: {meaning}", anomaly.kind.title())
}

/// The table's general sentence, as the end of one.
pub(super) fn meaning(kind: AnomalyKind) -> String {
    let meaning = kind.names().meaning.trim_end_matches('.');
    let mut letters = meaning.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The names others have for a kind, each with its owners: one name may mean different things to
/// different people.
pub fn other_names(kind: AnomalyKind) -> Vec<String> {
    with_owners(kind, kind.names().elle, "")
}

/// The names others have for an anomaly. Elle's say what a cycle rests on. Adya's do not speak of
/// sessions, so they come with a note where the argument needs the order of one.
pub fn other_names_of(anomaly: &Anomaly) -> Vec<String> {
    let needs_session = anomaly.evidence.needs_session_order();
    let note = if needs_session { "; here with session order" } else { "" };
    with_owners(anomaly.kind, anomaly.elle_name().as_deref(), note)
}

/// All names of a finding but its title: our own, those others have for it, and those it was found
/// under besides, each with its owners.
pub fn other_names_of_finding(finding: &Finding<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let is_a_name = |anomaly: &&Anomaly| {
        // What has no shape has no name, unless nothing else tells it.
        anomaly.kind != AnomalyKind::NoOrderPossible || anomaly.kind == finding.kind()
    };
    for anomaly in finding.anomalies().filter(is_a_name) {
        let own = std::iter::once(anomaly.kind.name().to_owned());
        for name in own.chain(other_names_of(anomaly)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// `note` follows Adya.
fn with_owners(kind: AnomalyKind, elle: Option<&str>, note: &str) -> Vec<String> {
    let names = kind.names();
    let mut known: Vec<(String, Vec<&str>)> = Vec::new();
    let pattern = kind.pattern();
    let others = [
        ("Plume", pattern.as_deref()),
        ("Adya", names.adya),
        ("Elle", elle),
        ("IsoRel", names.isorel),
    ];
    for (owner, name) in others {
        let Some(name) = name else { continue };
        match known.iter_mut().find(|(other, _)| spelt_alike(other, name)) {
            Some((_, owners)) => owners.push(owner),
            None => known.push((name.to_owned(), vec![owner])),
        }
    }
    let is_ours = |name: &str| spelt_alike(name, names.name) || spelt_alike(name, names.title);
    let owned = |(name, owners): (String, Vec<&str>)| {
        let note = if owners.contains(&"Adya") { note } else { "" };
        format!("{name} ({}{note})", owners.join(", "))
    };
    known.into_iter().filter(|(name, _)| !is_ours(name)).map(owned).collect()
}

fn spelt_alike(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase())
}

/// What an anomaly of a kind rules out, in words: levels, and durability.
pub(crate) fn breaks(kind: AnomalyKind, levels: LevelSet) -> String {
    match (kind, levels.is_empty()) {
        (AnomalyKind::LostCommit, true) => "breaks durability, whatever the level".to_owned(),
        (AnomalyKind::LostCommit, false) => {
            format!("breaks durability, whatever the level, and {}", rules_out(levels))
        }
        _ => rules_out(levels),
    }
}

/// The levels that are ruled out, in words: the weakest by name.
pub fn rules_out(levels: LevelSet) -> String {
    let goes_without_saying = |level: Level| match level {
        // For single operations, linearizability is strict serializability.
        Level::Linearizable => levels.contains(Level::StrictSerializable),
        // But for sessions it would imply causal.
        Level::ConsistentView => levels.contains(Level::Causal),
        _ => false,
    };
    let said = |level: &Level| !goes_without_saying(*level);
    let levels: LevelSet = levels.iter().filter(said).collect();
    let weakest = levels.weakest();
    let mut named: Vec<String> = weakest.iter().map(level_name).collect();
    let stronger: Vec<Level> = levels.iter().filter(|level| !weakest.contains(*level)).collect();
    // What rests on snapshots says nothing about serializability.
    match weakest.and_stronger().contains(Level::Serializable)
        == levels.contains(Level::Serializable)
    {
        true if stronger.is_empty() => {}
        true => named.push("all stronger levels".to_owned()),
        false => named.extend(stronger.into_iter().map(level_name)),
    }
    match named.is_empty() {
        true => "rules out the level that was asked for".to_owned(),
        false => format!("rules out {}", listed(&named)),
    }
}

/// A level as messages name it. Databases have settings by the names of Adya's levels, and mean
/// something else by them.
pub fn level_name(level: Level) -> String {
    match level {
        Level::ReadUncommitted
        | Level::StrongReadUncommitted
        | Level::RepeatableRead
        | Level::StrongRepeatableRead => format!("Adya's {level}"),
        level => level.to_string(),
    }
}
