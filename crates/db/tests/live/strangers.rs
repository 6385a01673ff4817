//! Data of others, under the names of our tables and keys, stays as it is.

use std::io::{Read, Write};
use std::net::TcpStream;

use isolario_db::{Database, ErrorClass, Layout};
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;
use mysql::prelude::Queryable;

use super::site::{database, prepare, start};

/// It makes room for itself twice, but not where a stranger's data is.
fn assert_respects(database: &dyn Database, stranger: impl FnOnce(), what: &str) {
    prepare(database, Workload::Mini, 10);
    prepare(database, Workload::Mini, 10);
    stranger();
    let error = database.prepare(&Layout::new(Workload::Mini, 10)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Fatal);
    assert!(error.message.contains(what), "{error}");
    assert!(error.message.contains("that Isolario did not create"), "{error}");
}

/// Says something to a server that answers in text.
fn say(port: u16, words: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    let mut answer = [0; 1000];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[test]
fn tables_of_strangers_in_mariadb() {
    let servers = start(Kind::MariaDb);
    let database = database(servers.url(), "");
    let stranger = || {
        let mut conn = mysql::Conn::new(servers.url()).unwrap();
        conn.query_drop("DROP TABLE isolario_register").unwrap();
        conn.query_drop("CREATE TABLE isolario_register (x INT)").unwrap();
    };
    assert_respects(&*database, stranger, "a table isolario_register");
}

/// Puts a table of somebody else in the place of one of ours.
fn replace_list(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let statements = "DROP TABLE isolario_list; CREATE TABLE isolario_list (x INT)";
        client.batch_execute(statements).await.unwrap();
    });
}

#[test]
fn tables_of_strangers_in_postgres() {
    let servers = start(Kind::Postgres);
    let own = database(servers.url(), "");
    assert_respects(&*own, || replace_list(servers.url()), "a table isolario_list");
}

#[test]
fn tables_of_strangers_in_plain_sql() {
    let servers = start(Kind::Postgres);
    let plain = database(&format!("{}?dialect=plain", servers.url()), "");
    assert_respects(&*plain, || replace_list(servers.url()), "a table isolario_list");
}

#[test]
fn keys_of_strangers_in_redis() {
    let servers = start(Kind::Redis);
    let database = database(servers.url(), "");
    let stranger = || {
        assert_eq!(say(servers.port(), "DEL isolario:owner\r\n"), ":1\r\n");
        assert_eq!(say(servers.port(), "SET isolario:venice 1\r\n"), "+OK\r\n");
    };
    assert_respects(&*database, stranger, "keys of the form isolario:*");
    assert_eq!(say(servers.port(), "GET isolario:venice\r\n"), "$1\r\n1\r\n");
}

#[test]
fn keys_of_strangers_in_etcd() {
    let servers = start(Kind::Etcd);
    let database = database(servers.url(), "");
    let stranger = || {
        // The key isolario/owner, and another value: "somebody".
        let body = r#"{"key":"aXNvbGFyaW8vb3duZXI=","value":"c29tZWJvZHk="}"#;
        let length = body.len();
        let head = format!("POST /v3/kv/put HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
        assert!(say(servers.port(), &format!("{head}{body}")).contains(" 200 "));
    };
    assert_respects(&*database, stranger, "keys under isolario/");
}
