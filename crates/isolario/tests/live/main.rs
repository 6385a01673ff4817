//! Probes of real servers, and runs against the database's own word or by several hosts. Scripts are
//! deterministic, and so are their results on one node; a server that is not installed is a failure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod alone;
mod faults;
mod hosts;
mod predicates_alone;
mod rows_twice;
mod whitebox;

use std::ops::ControlFlow;
use std::time::Duration;

use isolario::Level;
use isolario::db::DbUrl;
use isolario::probe::{Settings, probe};
use isolario::report::{ProbeOutcome, ProbeTable};
use isolario_servers::{Durability, Kind, Servers};

/// The claims that probes break: known bugs, which the book's atlas describes.
const BROKEN: [(&str, &str); 3] = [
    ("insert-over-delete", "serializable"),
    ("read-skew-write-predicate-index", "innodb-snapshot-isolation"),
    ("write-skew-savepoint", "serializable"),
];

/// Every probe at every level of a server. Whatever it is, script and checkers agree, and no claim is
/// broken but the known ones.
fn started(kind: Kind) -> (Servers, ProbeTable) {
    let servers = Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"));
    let table = probed(servers.urls(), |settings| settings);
    for (probe, setting, result) in table.results() {
        let place = format!("{} at {}", probe.name, setting.isolation);
        assert_eq!((&result.disagreement, &result.note), (&None, &None), "{place}");
        let is_found = result.outcome != ProbeOutcome::Happens || !result.violated.is_empty();
        assert!(is_found, "{place}: the checkers find nothing");
        let is_run = !matches!(result.outcome, ProbeOutcome::NotRun { .. });
        assert!(is_run, "{place}: {}", result.outcome);
        let is_known = BROKEN.contains(&(probe.name.as_str(), setting.isolation.as_str()));
        assert_eq!(result.breaks_claim(), is_known, "{place}: {}", result.outcome);
    }
    (servers, table)
}

fn table_of(kind: Kind) -> ProbeTable {
    started(kind).1
}

fn probed(urls: &[String], change: impl FnOnce(Settings) -> Settings) -> ProbeTable {
    let urls = urls.iter().map(|url| DbUrl::parse(url).unwrap()).collect();
    let mut settings = Settings::new(urls);
    // The machine may be very busy.
    settings.statement_timeout = Duration::from_secs(30);
    probe(&change(settings), &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// What came of a probe at a level: `happens`, `waits`, `aborts 40001`, `not-shown`.
fn outcome(table: &ProbeTable, isolation: &str, name: &str) -> String {
    let found = table
        .results()
        .find(|(probe, setting, _)| probe.name == name && setting.isolation == isolation);
    let Some((_, _, result)) = found else { panic!("there is no {name} at {isolation}") };
    match &result.outcome {
        ProbeOutcome::Aborts { code: Some(code) } => format!("aborts {code}"),
        other => other.name().to_owned(),
    }
}

/// The probes that happen at a level, by name.
fn happens(table: &ProbeTable, isolation: &str) -> Vec<String> {
    let names = table.probes.iter().map(|probe| probe.name.clone());
    names.filter(|name| outcome(table, isolation, name) == "happens").collect()
}

fn in_effect(table: &ProbeTable, isolation: &str) -> Vec<Level> {
    let setting = table.settings.iter().find(|setting| setting.isolation == isolation);
    setting.unwrap().in_effect.clone()
}

/// Both forms of write skew, by rows and by predicates.
const SKEW: [&str; 4] = ["write-skew", "read-only-anomaly", "g2-predicate", "g2-read-only"];

#[test]
fn postgres() {
    let table = table_of(Kind::Postgres);
    let at = |isolation, name| outcome(&table, isolation, name);
    let skew = SKEW.iter().chain(&["insert-over-delete"]).copied().collect::<Vec<_>>();
    assert_eq!(happens(&table, "repeatable-read"), skew);
    assert_eq!(happens(&table, "serializable"), ["insert-over-delete"]);
    for name in ["dirty-write", "observed-transaction-vanishes"] {
        assert_eq!(at("read-committed", name), "waits", "{name}");
    }
    for name in ["aborted-read", "intermediate-read", "circular-information-flow"] {
        assert_eq!(at("read-committed", name), "not-shown", "{name}");
    }
    for name in ["lost-update", "read-skew", "phantom", "predicate-many-preceders-write"] {
        assert_eq!(at("read-committed", name), "happens", "{name}");
    }
    assert_eq!(at("repeatable-read", "lost-update"), "aborts 40001");
    assert_eq!(at("repeatable-read", "read-skew"), "not-shown");
    // The commit is refused, not a statement before it.
    assert_eq!(at("serializable", "write-skew"), "aborts 40001");
    let skew = table.probes.iter().find(|probe| probe.name == "write-skew").unwrap();
    let last = skew.results[2].transcript.lines.last().unwrap();
    assert!(last.text.starts_with("commit → fails"), "{}", last.text);
    assert_eq!(in_effect(&table, "repeatable-read"), [Level::StrongSnapshotIsolation]);
    let serializable = [Level::StrongSnapshotIsolation, Level::StrongRepeatableRead];
    assert_eq!(in_effect(&table, "serializable"), serializable);
}

#[test]
fn mariadb() {
    let table = table_of(Kind::MariaDb);
    let at = |isolation, name| outcome(&table, isolation, name);
    for name in ["aborted-read", "intermediate-read", "circular-information-flow"] {
        assert_eq!(at("read-uncommitted", name), "happens", "{name}");
        assert_eq!(at("read-committed", name), "not-shown", "{name}");
    }
    for name in ["non-repeatable-read", "phantom", "read-skew", "long-fork"] {
        assert_eq!(at("read-committed", name), "happens", "{name}");
        assert_eq!(at("repeatable-read", name), "not-shown", "{name}");
    }
    let updates = [
        "predicate-many-preceders-write",
        "read-skew-write-predicate",
        "read-skew-write-predicate-waiting",
        "lost-update",
        "lost-update-by-delete",
    ];
    let (by_index, savepoint) = ("read-skew-write-predicate-index", "write-skew-savepoint");
    let mut skew = SKEW.to_vec();
    skew.insert(1, savepoint);
    let mut all = updates.to_vec();
    all.insert(3, by_index);
    all.extend(&skew);
    assert_eq!(happens(&table, "repeatable-read"), all);
    for name in updates {
        assert_eq!(at("innodb-snapshot-isolation", name), "aborts 1020", "{name}");
    }
    skew.insert(0, by_index);
    assert_eq!(happens(&table, "innodb-snapshot-isolation"), skew);
    assert_eq!(happens(&table, "serializable"), [savepoint]);
    for name in SKEW {
        assert_eq!(at("serializable", name), "aborts 1213", "{name}");
    }
    let snapshots = in_effect(&table, "innodb-snapshot-isolation");
    assert_eq!(snapshots, [Level::StrongAdyaReadCommitted, Level::Causal]);
    assert_eq!(in_effect(&table, "serializable"), [Level::StrongSnapshotIsolation]);
}

/// At serializable, it takes two commits at the same moment: who is later is refused for the locks that
/// it holds at its own node.
#[test]
fn galera_lets_write_skew_across_nodes_commit() {
    let (servers, table) = started(Kind::Galera);
    assert_eq!(outcome(&table, "repeatable-read", "write-skew-across-nodes"), "happens");
    for isolation in ["repeatable-read", "serializable"] {
        assert_ne!(outcome(&table, isolation, "lost-update-across-nodes"), "happens");
    }
    assert_eq!(outcome(&table, "serializable", "write-skew"), "aborts 1213");
    for setting in &table.settings {
        let moving = setting.moving.as_ref().unwrap();
        assert_eq!(moving.claims, [], "who moves is promised nothing");
        let is_kept =
            |claimed: &Level| setting.in_effect.iter().any(|level| level.implies(*claimed));
        assert!(setting.claims.iter().all(is_kept), "who stays gets what is claimed: {setting:?}");
    }
    let again = || {
        let table = probed(servers.urls(), |mut settings| {
            settings.isolations = vec!["serializable".to_owned()];
            settings.scripts.retain(|script| script.name == "write-skew-across-nodes");
            settings
        });
        outcome(&table, "serializable", "write-skew-across-nodes") == "happens"
    };
    assert!((0..20).any(|_| again()), "two commits have never met");
}

#[test]
fn redis_and_etcd() {
    let redis = table_of(Kind::Redis);
    assert_eq!(happens(&redis, "watch"), [""; 0]);
    for name in ["dirty-write", "aborted-read", "not-my-own-write", "lost-update"] {
        assert_eq!(outcome(&redis, "plain", name), "happens", "{name}");
    }
    assert_eq!(outcome(&redis, "watch", "lost-update"), "aborts WATCH");
    assert_eq!(in_effect(&redis, "watch"), [Level::StrictSerializable]);
    let etcd = table_of(Kind::Etcd);
    assert_eq!(happens(&etcd, "linearizable-reads"), [""; 0]);
    assert_eq!(outcome(&etcd, "serializable-reads", "read-skew"), "happens");
    assert_eq!(outcome(&etcd, "serializable-reads", "write-skew"), "aborts compare");
    assert_eq!(in_effect(&etcd, "linearizable-reads"), [Level::StrictSerializable]);
}

/// The same plays again and again, word by word: nothing is left to chance on one node.
#[test]
fn what_a_server_does_is_the_same_every_time() {
    let servers = Servers::start(Kind::MariaDb, Durability::Fast).unwrap();
    let again = || {
        probed(servers.urls(), |mut settings| {
            settings.isolations = vec!["serializable".to_owned()];
            settings
        })
    };
    let (one, other) = (again(), again());
    for (left, right) in one.probes.iter().zip(&other.probes) {
        assert_eq!(left, right);
    }
}
