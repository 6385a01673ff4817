//! PostgreSQL.

use isolario_db::{Access, ErrorClass};
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;

use super::contract;
use super::site::{connect, database, prepare, start};

#[test]
fn postgres_keeps_the_contract() {
    let servers = start(Kind::Postgres);
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        let database = database(servers.url(), isolation);
        assert!(database.version().unwrap().starts_with("PostgreSQL "));
        contract::operations(&*database);
    }
    let refusal = contract::lost_update_is_refused(&*database(servers.url(), "repeatable-read"));
    assert_eq!(refusal.code.as_deref(), Some("40001"));
    contract::refusals(&servers);
    contract::no_such_database(&servers);
    contract::cut(&servers);
    contract::silence(&servers, servers.url());
}

#[test]
fn every_level_of_postgres_is_what_it_is_called() {
    let servers = start(Kind::Postgres);
    // Two transactions read both registers, and each writes one of them.
    let write_skew = |isolation: &str| {
        let database = database(servers.url(), isolation);
        prepare(&*database, Workload::Mini, 2);
        let mut pair = [connect(&*database), connect(&*database)];
        for one in &mut pair {
            one.begin(Access::Write).unwrap();
            assert_eq!((one.read(0), one.read(1)), (Ok(None), Ok(None)));
        }
        pair[0].write(0, 5).unwrap();
        pair[0].commit().unwrap();
        let snapshot = pair[1].read(0).unwrap().is_none();
        (snapshot, pair[1].write(1, 6).and_then(|()| pair[1].commit()))
    };
    let (snapshot, done) = write_skew("read-committed");
    assert!(!snapshot && done.is_ok());
    let (snapshot, done) = write_skew("repeatable-read");
    assert!(snapshot && done.is_ok());
    let (snapshot, done) = write_skew("serializable");
    assert!(snapshot);
    let error = done.unwrap_err();
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Retryable, Some("40001")));
}
