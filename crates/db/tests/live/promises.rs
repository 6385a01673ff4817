//! What each database gives at each of its settings, and what it does not.

use isolario_model::{AnomalyKind, Level};
use isolario_servers::Kind;
use isolario_workload::{Kind as Transactions, Workload};

use super::site::start;
use super::trial::Trial;

const RC: Level = Level::ReadCommitted;
const SI: Level = Level::SnapshotIsolation;
const SER: Level = Level::Serializable;
const SSER: Level = Level::StrictSerializable;
const LIN: Level = Level::Linearizable;

/// Few keys: sessions meet often.
fn crowded(trial: Trial) -> Trial {
    let mut crowded = Trial { txns: trial.txns.min(2000), ..trial };
    crowded.workload.keys = 10;
    crowded
}

/// Single reads, inserts and compare-and-sets.
fn conditional(trial: Trial) -> Trial {
    let mut conditional = crowded(trial);
    conditional.workload.kind = Transactions::Lwt;
    conditional
}

/// Nothing but increments: read a register, write it.
fn increments(trial: Trial) -> Trial {
    let mut increments = crowded(trial);
    increments.workload =
        Workload { kind: Transactions::General, ops: 2, rmw_ratio: 1.0, ..increments.workload };
    increments.workload.read_ratio = 0.0;
    increments
}

/// Appends to lists and reads of them: all levels show, and which versions reads saw.
fn appends(trial: Trial) -> Trial {
    let mut appends = crowded(trial);
    appends.txns = appends.txns.min(1000);
    appends.workload.kind = Transactions::Append;
    appends
}

#[test]
fn postgres_keeps_its_promises() {
    let servers = start(Kind::Postgres);
    let at = |isolation| Trial::new(servers.urls(), isolation);
    at("serializable").satisfies(&[SER]);
    at("repeatable-read").satisfies(&[SI]);
    at("read-committed").satisfies(&[RC]);
    crowded(at("repeatable-read")).violates_by(SER, AnomalyKind::WriteSkew);
    increments(at("read-committed")).violates_by(SI, AnomalyKind::LostUpdate);
    appends(at("serializable")).satisfies(&[SER]);
    appends(at("repeatable-read")).satisfies(&[SI]);
    appends(at("read-committed")).satisfies(&[RC]);
}

#[test]
fn mariadb_keeps_its_promises() {
    let servers = start(Kind::MariaDb);
    let at = |isolation| Trial::new(servers.urls(), isolation);
    at("serializable").satisfies(&[SER]);
    at("innodb-snapshot-isolation").satisfies(&[SI]);
    at("repeatable-read").satisfies(&[Level::CutIsolation, Level::ReadAtomic]);
    at("read-committed").satisfies(&[RC]);
    increments(at("repeatable-read")).violates_by(SI, AnomalyKind::LostUpdate);
    appends(at("serializable")).satisfies(&[SER]);
    appends(at("innodb-snapshot-isolation")).satisfies(&[SI]);
    appends(at("read-committed")).satisfies(&[RC]);
}

#[test]
fn galera_is_serializable_on_one_node_only() {
    let servers = start(Kind::Galera);
    // Nothing is asked of it over several nodes that it does not break now and then: the book has
    // what we saw.
    crowded(Trial::new(servers.urls(), "serializable")).violates(SER);
    let one = |isolation| Trial::new(&servers.urls()[..1], isolation);
    one("serializable").satisfies(&[SER]);
    appends(one("serializable")).satisfies(&[SER]);
    appends(one("read-committed")).satisfies(&[RC]);
}

#[test]
fn etcd_is_strictly_serializable_unless_reads_may_be_stale() {
    let servers = start(Kind::Etcd3);
    let at = |isolation| Trial { txns: 400, ..Trial::new(servers.urls(), isolation) };
    at("linearizable-reads").satisfies(&[SSER]);
    at("serializable-reads").satisfies(&[RC]);
    crowded(at("serializable-reads")).violates(SSER);
    conditional(at("linearizable-reads")).satisfies(&[LIN]);
    conditional(at("serializable-reads")).violates(LIN);
    appends(at("linearizable-reads")).satisfies(&[SSER]);
    appends(at("serializable-reads")).satisfies(&[RC]);
}

#[test]
fn redis_is_strictly_serializable_if_it_watches() {
    let servers = start(Kind::Redis);
    let at = |isolation| Trial::new(servers.urls(), isolation);
    at("watch").satisfies(&[SSER]);
    conditional(at("watch")).satisfies(&[LIN]);
    appends(at("watch")).satisfies(&[SSER]);
    increments(at("plain")).violates_by(SI, AnomalyKind::LostUpdate);
}
