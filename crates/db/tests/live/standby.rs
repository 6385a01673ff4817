//! A PostgreSQL primary with a streaming standby.

use isolario_db::{Access, ErrorClass};
use isolario_model::Level;
use isolario_servers::{Kind, Servers};
use isolario_workload::Kind as Workload;

use super::site::{connect, database, prepare_nodes, start};
use super::trial::Trial;

#[test]
fn a_standby_follows_and_only_reads() {
    let servers = start(Kind::PostgresStandby);
    let nodes: Vec<_> = servers.urls().iter().map(|url| database(url, "serializable")).collect();
    // The second round replaces tables that the standby knows.
    for value in [5, 6] {
        prepare_nodes(&nodes, Workload::Mini, 2);
        let [mut primary, mut standby] = [connect(&*nodes[0]), connect(&*nodes[1])];
        assert_eq!([primary.is_read_only(), standby.is_read_only()], [false, true]);
        standby.begin(Access::Read).unwrap();
        assert_eq!(standby.read(1), Ok(None));
        standby.commit().unwrap();
        primary.begin(Access::Write).unwrap();
        primary.write(1, value).unwrap();
        primary.commit().unwrap();
    }
    let mut standby = connect(&*nodes[1]);
    standby.begin(Access::Write).unwrap();
    assert_eq!(standby.write(1, 7).unwrap_err().class, ErrorClass::Fatal);

    let alone = isolario_db::prepare(&nodes[1..], &isolario_db::Layout::new(Workload::Mini, 2));
    let (node, error) = alone.unwrap_err();
    assert!(node == 0 && error.message.contains("name the primary"), "{}", error.message);
}

/// Snapshots of the primary follow the order in which its transactions have become visible, those
/// of the standby the order of the log. A commit that waits for the standby is in the log before
/// it is visible on the primary; one that waits for nothing may overtake it there.
fn one_waits_and_one_does_not(servers: &Servers) -> Vec<String> {
    let [primary, standby] = servers.urls() else { panic!("two nodes") };
    vec![
        format!("{primary}?synchronous_commit=remote_apply"),
        format!("{primary}?synchronous_commit=off"),
        standby.clone(),
        primary.clone(),
    ]
}

#[test]
fn a_standby_and_its_primary_fork() {
    let servers = start(Kind::PostgresStandby);
    let mut trial = Trial::new(&one_waits_and_one_does_not(&servers), "repeatable-read");
    trial.workload.keys = 10;
    trial.violates(Level::SnapshotIsolation);
    trial.satisfies(&[Level::ParallelSnapshotIsolation]);
}
