//! What every adapter must do, whatever the database.

use isolario_db::{Access, ConditionalResult, Database, DbError, ErrorClass, Obstacle};
use isolario_run::proxy::Proxy;
use isolario_servers::Servers;
use isolario_workload::Kind;

use super::site::{SLOW, connect, eventually, patient, prepare, refused};

/// Registers, lists and conditional writes.
pub fn operations(database: &dyn Database) {
    for kind in Kind::KEYED {
        assert!(database.traits().workloads.contains(&kind), "{kind}");
    }
    prepare(database, Kind::Mini, 10);
    registers(database);
    lists(database);
    // What an earlier run left is replaced.
    prepare(database, Kind::Lwt, 10);
    conditional_writes(database);
}

fn registers(database: &dyn Database) {
    let mut one = connect(database);
    let mut two = connect(database);
    one.begin(Access::Write).unwrap();
    assert_eq!(one.read(1), Ok(None));
    one.write(1, 5).unwrap();
    assert_eq!(one.read(1), Ok(Some(5)), "its own write");
    one.write(1, 6).unwrap();
    one.write(2, i64::MAX).unwrap();
    one.commit().unwrap();

    two.begin(Access::Write).unwrap();
    assert_eq!((two.read(1), two.read(2)), (Ok(Some(6)), Ok(Some(i64::MAX))));
    two.write(1, 7).unwrap();
    two.delete(2).unwrap();
    assert_eq!(two.read(2), Ok(None));
    two.rollback().unwrap();
    two.begin(Access::Read).unwrap();
    assert_eq!((two.read(1), two.read(2)), (Ok(Some(6)), Ok(Some(i64::MAX))));
    two.commit().unwrap();

    two.begin(Access::Write).unwrap();
    two.delete(1).unwrap();
    two.commit().unwrap();
    one.begin(Access::Single).unwrap();
    assert_eq!(one.read(1), Ok(None));
    one.commit().unwrap();
}

fn lists(database: &dyn Database) {
    let mut one = connect(database);
    one.begin(Access::Write).unwrap();
    // Lists rotate: later keys take the place of earlier ones.
    for (key, element) in [(1, 10), (1000, 20), (1, 11)] {
        one.append(key, element).unwrap();
    }
    let mut elements = Vec::new();
    one.read_list(1, &mut elements).unwrap();
    assert_eq!(elements, [10, 11]);
    one.append(1, 5).unwrap();
    one.commit().unwrap();

    let mut two = connect(database);
    two.begin(Access::Read).unwrap();
    for (key, expected) in [(1, vec![10, 11, 5]), (1000, vec![20]), (3, vec![])] {
        elements.clear();
        two.read_list(key, &mut elements).unwrap();
        assert_eq!(elements, expected);
    }
    two.commit().unwrap();
}

fn conditional_writes(database: &dyn Database) {
    let mut one = connect(database);
    let mut run = |expected, new| {
        one.begin(Access::Single).unwrap();
        let done = match expected {
            None => one.insert_if_absent(1, new),
            expected => one.compare_and_set(1, expected, new),
        };
        one.commit().unwrap();
        done.unwrap()
    };
    // Not every database tells what was there instead.
    let failed = |done, value| match done {
        ConditionalResult::Failed { seen } => assert!(seen.is_none_or(|seen| seen == value)),
        ConditionalResult::Applied => panic!("it was applied"),
    };
    failed(run(Some(4), 5), None);
    assert_eq!(run(None, 5), ConditionalResult::Applied);
    failed(run(None, 6), Some(5));
    failed(run(Some(4), 6), Some(5));
    assert_eq!(run(Some(5), 6), ConditionalResult::Applied);
    one.begin(Access::Single).unwrap();
    assert_eq!(one.read(1), Ok(Some(6)));
    one.commit().unwrap();
}

/// Two transactions read a register and both write it: the second is refused, and its connection
/// goes on. Returns the refusal.
pub fn lost_update_is_refused(database: &dyn Database) -> DbError {
    prepare(database, Kind::Mini, 10);
    let mut one = connect(database);
    let mut two = connect(database);
    one.begin(Access::Write).unwrap();
    two.begin(Access::Write).unwrap();
    assert_eq!((one.read(1), two.read(1)), (Ok(None), Ok(None)));
    one.write(1, 5).unwrap();
    one.commit().unwrap();
    let refusal = two.write(1, 6).and_then(|()| two.commit()).unwrap_err();
    assert_eq!((refusal.class, refusal.disconnected), (ErrorClass::Retryable, false));
    two.rollback().unwrap();
    two.begin(Access::Write).unwrap();
    assert_eq!(two.read(1), Ok(Some(5)));
    two.write(1, 6).unwrap();
    two.commit().unwrap();
    refusal
}

/// A server that stops answering leaves a commit in doubt, and nothing else.
pub fn silence(servers: &Servers, url: &str) {
    let database = patient(url, "", 2000);
    prepare(&*database, Kind::Mini, 10);
    let [mut during_statement, mut during_commit] = eventually(|| {
        let mut pair = [database.connect()?, database.connect()?];
        pair[0].begin(Access::Write)?;
        pair[1].begin(Access::Write)?;
        pair[1].write(1, 5)?;
        Ok(pair)
    });
    servers.pause();
    assert_lost(&during_statement.read(2).unwrap_err(), ErrorClass::Retryable);
    assert_lost(&during_commit.commit().unwrap_err(), ErrorClass::Unknown);
    assert_eq!(refused(&*database).class, ErrorClass::Retryable);
    servers.resume();
    eventually(|| database.connect()?.begin(Access::Write));
}

/// A cut connection does the same, and a single operation is its own commit.
pub fn cut(servers: &Servers) {
    let proxy = Proxy::to(("127.0.0.1", servers.port())).unwrap();
    let url = servers.url().replace(&servers.port().to_string(), &proxy.port().to_string());
    let database = patient(&url, "", SLOW);
    prepare(&*database, Kind::Lwt, 10);
    let mut connections: Vec<_> = (0..3).map(|_| connect(&*database)).collect();
    for connection in &mut connections[..2] {
        connection.begin(Access::Write).unwrap();
        assert_eq!(connection.read(1), Ok(None));
    }
    connections[1].write(2, 5).unwrap();
    connections[2].begin(Access::Single).unwrap();
    assert!(proxy.cut() >= 3);
    assert_lost(&connections[0].read(3).unwrap_err(), ErrorClass::Retryable);
    assert_lost(&connections[1].commit().unwrap_err(), ErrorClass::Unknown);
    assert_lost(&connections[2].insert_if_absent(4, 5).unwrap_err(), ErrorClass::Unknown);
    connect(&*database).begin(Access::Write).unwrap();
}

fn assert_lost(error: &DbError, class: ErrorClass) {
    assert_eq!((error.class, error.disconnected), (class, true), "{error}");
}

/// A wrong password and an unreachable server are told apart.
pub fn refusals(servers: &Servers) {
    let with = |login: &str| {
        let url = servers.url();
        let rest = url.split_once("//").unwrap().1;
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let scheme = url.split_once(':').unwrap().0;
        patient(&format!("{scheme}://{login}@{place}"), "", SLOW)
    };
    let right = format!("{}:{}", isolario_servers::ACCOUNT, isolario_servers::PASSWORD);
    connect(&*with(&right));
    let wrong = refused(&*with(&format!("{}:wrong", isolario_servers::ACCOUNT)));
    assert_eq!(
        (wrong.class, wrong.obstacle),
        (ErrorClass::Fatal, Some(Obstacle::Login)),
        "{wrong}"
    );
    assert!(!wrong.message.contains("wrong@"), "{wrong}");

    let nobody = servers.url().replace(&servers.port().to_string(), "1");
    let unreachable = refused(&*patient(&nobody, "", SLOW));
    assert_eq!(unreachable.class, ErrorClass::Retryable, "{unreachable}");
    assert_eq!(unreachable.obstacle, Some(Obstacle::Unreachable), "{unreachable}");
    assert!(unreachable.message.starts_with("cannot connect to "), "{unreachable}");
}

/// A database that is not there is named.
pub fn no_such_database(servers: &Servers) {
    let missing = refused(&*patient(&servers.url().replace("/isolario", "/rialto"), "", SLOW));
    let obstacle = (ErrorClass::Fatal, Some(Obstacle::NoDatabase));
    assert_eq!((missing.class, missing.obstacle), obstacle, "{missing}");
    assert!(missing.message.contains("rialto"), "{missing}");
}
