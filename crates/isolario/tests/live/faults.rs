//! Servers that are killed while sessions go on, and what they have lost then.

use std::fs;
use std::path::Path;
use std::time::Duration;

use isolario::Level;
use isolario::model::StopReason;
use isolario::run::{Fault, Faults, Handle, Judgement, RunOutcome, Settings, run};
use isolario::workload::Kind as Workload;
use isolario_servers::{Durability, Kind, Servers};
use tempfile::TempDir;

fn with_faults(url: &str, kind: Workload, command: String, directory: &Path) -> Settings {
    let mut settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_txns(500)
        .with_faults(Faults::new(vec![Fault::Kill], command))
        .with_out(directory.join("run"));
    settings.statement_timeout = Duration::from_secs(30);
    settings
}

/// A run against a Redis of its own that is killed when the sessions are done, or before.
fn killed_redis(kind: Workload, persistence: &str) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let place = directory.path().display();
    let command =
        format!("redis-server --bind 127.0.0.1 --port {port} --dir {place} {persistence}");
    let url = format!("redis://127.0.0.1:{port}");
    run(&with_faults(&url, kind, command, directory.path()), &Handle::new(), &mut ()).unwrap()
}

/// Without persistence, nothing survives: all that was acknowledged is lost. Registers and lists tell.
#[test]
fn a_killed_redis_loses_what_it_does_not_write_down() {
    for kind in [Workload::Mini, Workload::Append, Workload::Lwt] {
        let outcome = killed_redis(kind, "--save '' --appendonly no");
        let lost = outcome.lost.as_ref().unwrap_or_else(|| panic!("{kind}: nothing is lost"));
        assert_eq!(outcome.judgement(), Judgement::Violated, "{kind}");
        assert_eq!(outcome.record.lost_commits, lost.total);
        assert!(outcome.promise().to_string().contains(" lost "), "{}", outcome.promise());
        assert!(outcome.record.remarks.iter().any(|remark| remark.ends_with("kill")));
        let violated =
            outcome.examination.results.iter().any(|answer| answer.verdict.is_violated());
        assert!(violated, "{kind}: a level in real time forbids it, too");
    }
}

#[test]
fn a_killed_redis_keeps_what_it_has_written_down() {
    for kind in [Workload::Mini, Workload::Append] {
        let kept = killed_redis(kind, "--save '' --appendonly yes --appendfsync always");
        assert_eq!((kept.judgement(), &kept.lost), (Judgement::Satisfied, &None), "{kept:?}");
    }
}

/// A server with data of its own, that a run can start again and again: the command of one that was started
/// for tests, under the account that it had.
fn command_of(servers: &Servers) -> String {
    let pid = servers.pids()[0];
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let quoted = |word: &[u8]| format!("'{}'", String::from_utf8_lossy(word));
    let words: Vec<String> =
        arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(quoted).collect();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let id = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let account = format!("--reuid={} --regid={} --clear-groups", id("Uid:"), id("Gid:"));
    match id("Uid:").as_str() {
        "0" => words.join(" "),
        _ => format!("setpriv {account} {}", words.join(" ")),
    }
}

fn killed(kind: Kind, isolation: &str, extra: &str) -> RunOutcome {
    let mut servers = Servers::start(kind, Durability::Durable).unwrap();
    let command = format!("{} {extra}", command_of(&servers));
    servers.kill().unwrap();
    let directory = TempDir::new().unwrap();
    let settings = with_faults(servers.url(), Workload::Mini, command, directory.path());
    run(&settings.with_isolation(isolation), &Handle::new(), &mut ()).unwrap()
}

/// By default, a database keeps what it has acknowledged.
#[test]
fn postgres_and_mariadb_lose_nothing_by_default() {
    for (kind, isolation) in [(Kind::Postgres, "serializable"), (Kind::MariaDb, "repeatable-read")]
    {
        let kept = killed(kind, isolation, "");
        assert_eq!(
            (kept.judgement(), &kept.lost),
            (Judgement::Satisfied, &None),
            "{}",
            kept.promise()
        );
        assert_eq!(kept.record.stopped, StopReason::Done);
    }
}

/// Whoever does not wait for the log may lose commits, or be lucky. What is certain: a lost commit is a
/// violation, and so is the stale read that shows it, where the level forbids one.
#[test]
fn what_postgres_and_mariadb_lose_without_waiting_for_the_log_has_a_name() {
    let postgres = "-c synchronous_commit=off -c wal_writer_delay=10000";
    let mariadb = "--innodb-flush-log-at-trx-commit=0 --innodb-flush-log-at-timeout=100";
    for (kind, extra) in [(Kind::Postgres, postgres), (Kind::MariaDb, mariadb)] {
        let outcome = killed(kind, "serializable", extra);
        let claimed = &outcome.record.claim;
        assert!(claimed.contains(&Level::StrongSnapshotIsolation), "{claimed:?}");
        if outcome.lost.is_some() {
            let both = (outcome.judgement(), outcome.examination.judgement());
            assert_eq!(both, (Judgement::Violated, Judgement::Violated), "{}", outcome.promise());
        }
    }
}
