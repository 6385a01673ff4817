//! MariaDB, alone and as a Galera cluster.

use isolario_db::{Access, Connection, Database, DbError, ErrorClass};
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;

use super::contract;
use super::site::{connect, database, eventually, patient, prepare, start};

#[test]
fn mariadb_keeps_the_contract() {
    let servers = start(Kind::MariaDb);
    for isolation in [
        "read-uncommitted",
        "read-committed",
        "repeatable-read",
        "innodb-snapshot-isolation",
        "serializable",
    ] {
        let database = database(servers.url(), isolation);
        assert_eq!(database.name(), "mariadb");
        assert!(database.version().unwrap().starts_with("MariaDB "));
        contract::operations(&*database);
    }
    let snapshots = database(servers.url(), "innodb-snapshot-isolation");
    let refusal = contract::lost_update_is_refused(&*snapshots);
    assert_eq!(refusal.code.as_deref(), Some("1020"));
    contract::refusals(&servers);
    contract::no_such_database(&servers);
    contract::cut(&servers);
    contract::silence(&servers, servers.url());
}

/// A lock time-out undoes one statement; the rest must not stay behind.
#[test]
fn a_lock_that_takes_too_long_undoes_the_transaction() {
    let servers = start(Kind::MariaDb);
    let database = patient(servers.url(), "repeatable-read", 2000);
    prepare(&*database, Workload::Mini, 10);
    // On a machine that is too busy, we give up before the server does.
    let (mut waiter, error) = (0..20)
        .map(|_| wait_for_a_lock(&*database))
        .find(|(_, error)| !error.disconnected)
        .expect("the server never answers in time");
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Retryable, Some("1205")));
    waiter.rollback().unwrap();
    waiter.begin(Access::Read).unwrap();
    assert_eq!(waiter.read(2), Ok(None));
    waiter.commit().unwrap();
}

/// A connection that has written a register and waited for another one, and what it heard.
fn wait_for_a_lock(database: &dyn Database) -> (Box<dyn Connection>, DbError) {
    let [_holder, mut waiter] = eventually(|| {
        let mut pair = [database.connect()?, database.connect()?];
        for (one, key) in pair.iter_mut().zip([1, 2]) {
            one.begin(Access::Write)?;
            one.write(key, 6)?;
        }
        Ok(pair)
    });
    let error = waiter.write(1, 7).unwrap_err();
    (waiter, error)
}

#[test]
fn galera_keeps_the_contract_on_every_node() {
    let servers = start(Kind::Galera);
    for url in servers.urls() {
        let database = database(url, "serializable");
        assert_eq!(database.name(), "galera");
        contract::operations(&*database);
    }
    // A node is asked for the tables that another one has just made.
    for url in servers.urls().iter().cycle().take(30) {
        prepare(&*database(url, "serializable"), Workload::Mini, 10);
    }
    // Certification refuses what two nodes change at once.
    let nodes = [0, 1].map(|node| database(&servers.urls()[node], "repeatable-read"));
    prepare(&*nodes[0], Workload::Mini, 10);
    let mut pair = [connect(&*nodes[0]), connect(&*nodes[1])];
    for one in &mut pair {
        one.begin(Access::Write).unwrap();
        one.write(1, 5).unwrap();
    }
    pair[0].commit().unwrap();
    let error = pair[1].commit().unwrap_err();
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Retryable, Some("1213")));
    pair[1].rollback().unwrap();
}
