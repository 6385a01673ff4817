//! etcd, one member and three.

use std::io::{Read, Write};
use std::net::TcpStream;

use isolario_db::{Access, ErrorClass};
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;

use super::contract;
use super::site::{SLOW, connect, database, patient, prepare, refused, start};

#[test]
fn etcd_keeps_the_contract() {
    let servers = start(Kind::Etcd);
    for isolation in ["serializable-reads", "linearizable-reads"] {
        let database = database(servers.url(), isolation);
        assert!(database.version().unwrap().starts_with("etcd 3."));
        contract::operations(&*database);
    }
    let refusal = contract::lost_update_is_refused(&*database(servers.url(), ""));
    assert_eq!(refusal.code.as_deref(), Some("compare"));
    // Transactions are bound to no connection, so that a cut one does no harm between requests.
    contract::silence(&servers, servers.url());
}

#[test]
fn reads_of_etcd_hold_at_the_commit_unless_they_may_be_stale() {
    let servers = start(Kind::Etcd3);
    let read_only = |isolation: &str| {
        let database = database(&servers.urls()[1], isolation);
        prepare(&*database, Workload::Mini, 10);
        let (mut reader, mut writer) = (connect(&*database), connect(&*database));
        reader.begin(Access::Read).unwrap();
        assert_eq!((reader.read(1), reader.read(2)), (Ok(None), Ok(None)));
        writer.begin(Access::Write).unwrap();
        writer.write(1, 5).unwrap();
        writer.commit().unwrap();
        reader.commit()
    };
    assert_eq!(read_only("linearizable-reads").unwrap_err().class, ErrorClass::Retryable);
    assert!(read_only("serializable-reads").is_ok());
}

/// Asks the gateway for something that no workload needs.
fn post(port: u16, what: &str, body: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    let head = format!("POST /v3/{what} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
}

#[test]
fn etcd_wants_the_right_password() {
    let servers = start(Kind::Etcd);
    for (what, body) in [
        ("auth/user/add", r#"{"name":"root","password":"rialto"}"#),
        ("auth/role/add", r#"{"name":"root"}"#),
        ("auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("auth/enable", "{}"),
    ] {
        post(servers.port(), what, body);
    }
    let with = |login: &str| patient(&servers.url().replace("//", login), "", SLOW);
    contract::operations(&*with("//root:rialto@"));
    for login in ["//root:wrong@", "//"] {
        let error = refused(&*with(login));
        assert_eq!(error.class, ErrorClass::Fatal, "{error}");
    }
}
