//! PostgreSQL.

use isolario_db::{Access, ErrorClass};
use isolario_model::Value;
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;

use super::contract;
use super::site::{connect, database, prepare, refused, start};

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

/// `pg_stat_activity` has the last statement of each connection.
#[test]
fn sessions_prepare_their_statements_before_they_begin() {
    let servers = start(Kind::Postgres);
    let database = database(servers.url(), "");
    prepare(&*database, Workload::Mini, 2);
    let mut watcher = database.sql().unwrap().connect_sql().unwrap();
    let mut prepared = || {
        let question = "SELECT count(*) FROM pg_stat_activity \
             WHERE pid <> pg_backend_pid() AND query LIKE '%INTO isolario_list%'";
        watcher.statement(question, true).unwrap().rows
    };
    assert_eq!(prepared(), [[Value::Int(0)]]);
    let _session = connect(&*database);
    assert_eq!(prepared(), [[Value::Int(1)]]);
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

/// PostgreSQL understands plain SQL, too.
#[test]
fn plain_sql_keeps_the_contract() {
    let servers = start(Kind::Postgres);
    let url = format!("{}?dialect=plain", servers.url());
    for isolation in ["server-default", "read-committed", "repeatable-read", "serializable"] {
        contract::operations(&*database(&url, isolation));
    }
    let refusal = contract::lost_update_is_refused(&*database(&url, "repeatable-read"));
    assert_eq!(refusal.code.as_deref(), Some("40001"));
    // What there was nothing of is made by one of the two, and the other may try again.
    let database = database(&url, "read-committed");
    prepare(&*database, Workload::Append, 10);
    let [mut one, mut two] = [connect(&*database), connect(&*database)];
    one.begin(Access::Write).unwrap();
    one.append(1, 5).unwrap();
    let late = std::thread::spawn(move || {
        two.begin(Access::Write).unwrap();
        let refusal = two.append(1, 6);
        two.rollback().unwrap();
        two.begin(Access::Write).unwrap();
        two.append(1, 7).unwrap();
        two.commit().unwrap();
        refusal
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    one.commit().unwrap();
    // Whoever comes after the commit finds the list.
    if let Err(refusal) = late.join().unwrap() {
        assert_eq!(
            (refusal.class, refusal.code.as_deref()),
            (ErrorClass::Retryable, Some("23505"))
        );
    }
    let mut elements = Vec::new();
    one.begin(Access::Read).unwrap();
    one.read_list(1, &mut elements).unwrap();
    one.commit().unwrap();
    assert_eq!(elements, [5, 7]);
    contract::silence(&servers, &url);
}

/// Nobody's claims are taken for those of a server that only speaks the protocol, and what only
/// PostgreSQL has is refused.
#[test]
fn plain_sql_promises_nothing() {
    let servers = start(Kind::Postgres);
    let database = database(&format!("{}?dialect=plain", servers.url()), "");
    prepare(&*database, Workload::Mini, 10);
    assert_eq!((database.name(), database.traits().isolation), ("postgres-wire", "serializable"));
    let version = database.version().unwrap();
    assert!(version.starts_with("PostgreSQL ") && !version.contains(" on "), "{version}");
    assert!(database.claim(Workload::Mini, 1).levels.is_empty());
    assert!(!database.traits().workloads.contains(&Workload::Predicate));
    assert_eq!(database.remarks().len(), 1, "nothing was skipped: {:?}", database.remarks());
    for refusal in [database.capture().err(), database.sql().err()] {
        let refusal = refusal.unwrap();
        assert_eq!(refusal.class, ErrorClass::Fatal);
        assert!(refusal.message.contains("dialect=plain: leave the parameter out"), "{refusal}");
    }
}

/// A level that the server does not have is not replaced by another one.
#[test]
fn plain_sql_does_not_pretend_to_a_level() {
    let servers = start(Kind::Postgres);
    let refusal = refused(&*database(&format!("{}?dialect=plain", servers.url()), "snapshot"));
    assert_eq!(refusal.class, ErrorClass::Fatal, "{refusal}");
    assert!(refusal.message.contains("With --isolation server-default"), "{refusal}");
}
