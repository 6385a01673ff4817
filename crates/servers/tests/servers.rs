//! Every server starts, answers and stops, whatever happens to the process that started it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::env;
use std::fs::{Permissions, set_permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolario_servers::{DevServers, Durability, Kind, Servers};

fn start(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a process exists and has not ended.
fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn assert_soon(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// What Redis answers to a line.
fn redis(servers: &Servers, line: &str) -> String {
    redis_within(Duration::from_secs(120), servers, line).unwrap()
}

/// What Redis answers in time, or why it does not.
fn redis_within(patience: Duration, servers: &Servers, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", servers.port()))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

#[test]
fn every_server_starts_and_stops() {
    for kind in Kind::ALL {
        let servers = start(kind);
        let pids = servers.pids();
        let nodes = match kind {
            Kind::Galera | Kind::Etcd3 => 3,
            Kind::PostgresStandby => 2,
            _ => 1,
        };
        assert_eq!((pids.len(), servers.urls().len()), (nodes, nodes), "{kind}");
        assert!(pids.iter().all(|&pid| runs(pid)), "{kind}");
        drop(servers);
        assert!(!pids.iter().any(|&pid| runs(pid)), "{kind}");
    }
}

#[test]
fn durable_data_survives_a_kill() {
    let mut servers = Servers::start(Kind::Redis, Durability::Durable).unwrap();
    assert_eq!(redis(&servers, "SET city Venice"), "+OK\r\n");
    servers.kill().unwrap();
    assert!(redis_within(Duration::from_secs(1), &servers, "GET city").is_err());
    servers.restart().unwrap();
    assert_eq!(redis(&servers, "GET city"), "$6\r\nVenice\r\n");
}

#[test]
fn a_paused_server_does_not_answer() {
    let servers = start(Kind::Redis);
    servers.pause();
    assert!(redis_within(Duration::from_millis(300), &servers, "PING").is_err());
    servers.resume();
    assert_eq!(redis(&servers, "PING"), "+PONG\r\n");
    // A paused one stops as well, although it does not listen.
    servers.pause();
    let pids = servers.pids();
    drop(servers);
    assert!(!pids.iter().any(|&pid| runs(pid)));
}

/// PostgreSQL works with many processes, and does not start as long as one of them lives.
#[test]
fn a_killed_server_comes_back_on_its_port() {
    for kind in [Kind::Postgres, Kind::MariaDb, Kind::Etcd] {
        let mut servers = Servers::start(kind, Durability::Durable).unwrap();
        for _ in 0..2 {
            let (killed, port) = (servers.pids(), servers.port());
            servers.kill().unwrap();
            assert!(!killed.iter().any(|&pid| runs(pid)), "{kind}");
            servers.restart().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(servers.port(), port);
            assert!(servers.pids().iter().all(|&pid| runs(pid)), "{kind}");
        }
    }
}

/// The helper of the next test: holds servers until it is killed.
#[test]
#[ignore = "runs as a process of its own"]
fn hold_servers() {
    if env::var_os("ISOLARIO_HOLD_SERVERS").is_none() {
        return;
    }
    let held = [start(Kind::Redis), start(Kind::Postgres)];
    let pids: Vec<String> = held.iter().flat_map(Servers::pids).map(|p| p.to_string()).collect();
    writeln!(std::io::stderr(), "pids {}", pids.join(" ")).unwrap();
    sleep(Duration::from_secs(600));
}

#[test]
fn servers_die_with_a_killed_process() {
    // Nobody tidies up after the killed one, and servers under accounts of their own must get in.
    let directory = tempfile::tempdir().unwrap();
    set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let mut holder = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "hold_servers", "--nocapture"])
        .env("ISOLARIO_HOLD_SERVERS", "1")
        .env("TMPDIR", directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stderr.take().unwrap()).lines();
    let pids: Vec<u32> = lines
        .map_while(Result::ok)
        .find_map(|line| {
            let pids = line.strip_prefix("pids ")?;
            Some(pids.split(' ').map(|pid| pid.parse().unwrap()).collect())
        })
        .expect("the holder says which servers it holds");
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|&pid| runs(pid)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_soon("servers outlive a killed process", || !pids.iter().any(|&pid| runs(pid)));
}

#[test]
fn servers_of_developers_are_found_again_and_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let servers = || DevServers::at(directory.path());
    assert_eq!(servers().urls(Kind::Redis).unwrap(), None);
    let urls = servers().start(Kind::Redis, Durability::Fast).unwrap();
    assert_eq!(servers().start(Kind::Redis, Durability::Fast).unwrap(), urls);
    assert_eq!(servers().urls(Kind::Redis).unwrap(), Some(urls));
    assert!(servers().stop(Kind::Redis).unwrap());
    assert!(!servers().stop(Kind::Redis).unwrap());
    assert!(!Path::new(directory.path()).join("redis").exists());
}
