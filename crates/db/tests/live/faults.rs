//! Servers that die, stop answering or lose their connections in the middle of a run: it goes on,
//! outcomes that nobody knows are recorded as such, and the verdict is right.

use std::time::{Duration, Instant};

use isolario_db::Outcome;
use isolario_model::{History, Level, Outcome as Ended, StopReason};
use isolario_servers::{Durability, Kind, Proxy, Servers};

use super::trial::{Trial, assert_satisfied};

/// Every server, with what it promises at its strongest.
const SERVERS: [(Kind, Level); 4] = [
    (Kind::Postgres, Level::Serializable),
    (Kind::MariaDb, Level::Serializable),
    (Kind::Etcd, Level::StrictSerializable),
    (Kind::Redis, Level::StrictSerializable),
];

fn durable(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Durable).unwrap_or_else(|error| panic!("{error}"))
}

fn trial(urls: &[String]) -> Trial {
    Trial { txns: 1500, timeout: 500, ..Trial::new(urls, "") }
}

/// The run got to its end, and all that it recorded fits the promise.
fn assert_survived(outcome: &Outcome, history: &History, level: Level) {
    assert_eq!(outcome.stopped, StopReason::Done, "{:?}", outcome.because);
    assert!(outcome.counts.reconnects > 0, "nothing has happened");
    let unknown = history.txns().filter(|txn| history.outcome(*txn) == Ended::Unknown).count();
    assert_eq!(unknown as u64, outcome.counts.unknown);
    assert_satisfied(history, level);
}

/// Does something once, after some transactions.
fn once(mut fault: impl FnMut()) -> impl FnMut(u64) {
    let mut done = false;
    move |committed| {
        if committed >= 300 && !done {
            done = true;
            fault();
        }
    }
}

#[test]
fn a_killed_server_that_comes_back_has_lost_nothing() {
    for (kind, level) in SERVERS {
        let mut servers = durable(kind);
        let trial = trial(servers.urls());
        let (outcome, history) = trial.run_while(once(|| {
            servers.kill().unwrap();
            servers.restart().unwrap_or_else(|error| panic!("{error}"));
        }));
        assert_survived(&outcome, &history, level);
    }
}

#[test]
fn a_server_that_stops_answering_leaves_doubts_and_no_damage() {
    for (kind, level) in SERVERS {
        let servers = durable(kind);
        let (outcome, history) = trial(servers.urls()).run_while(once(|| {
            servers.pause();
            std::thread::sleep(Duration::from_secs(3));
            servers.resume();
        }));
        assert_survived(&outcome, &history, level);
    }
}

#[test]
fn cut_connections_are_opened_again() {
    for (kind, level) in SERVERS {
        let servers = durable(kind);
        let proxy = Proxy::to(servers.port()).unwrap();
        let url = servers.url().replace(&servers.port().to_string(), &proxy.port().to_string());
        let (outcome, history) = trial(&[url]).run_while(|_| {
            proxy.cut();
        });
        assert_survived(&outcome, &history, level);
    }
}

#[test]
fn a_server_that_stays_away_ends_the_run() {
    for (kind, level) in SERVERS {
        let mut servers = durable(kind);
        let trial = Trial { patience: Duration::from_secs(2), ..trial(servers.urls()) };
        let begun = Instant::now();
        let (outcome, history) = trial.run_while(once(|| servers.kill().unwrap()));
        assert!(begun.elapsed() < Duration::from_secs(60), "it hangs");
        assert_eq!(outcome.stopped, StopReason::Database);
        let why = outcome.because.unwrap();
        assert!(why.starts_with("nothing has committed for 2 s; the last error: "), "{why}");
        assert!(outcome.counts.committed >= 300);
        assert_satisfied(&history, level);
    }
}
