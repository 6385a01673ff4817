//! Servers that die, stop answering or lose their connections in the middle of a run: it goes on,
//! outcomes that nobody knows are recorded as such, and the verdict is right.
//!
//! Nothing here depends on how fast the machine is. Trouble comes after some transactions, comes
//! again until connections were lost, and the run goes on until some more have committed.

use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;

use isolario_model::{Counts, History, Level, Outcome as Ended, StopReason};
use isolario_run::driver::WorkloadOutcome;
use isolario_run::proxy::Proxy;
use isolario_servers::{Durability, Kind, Servers};

use super::trial::{Trial, assert_satisfied};

/// Every server, with what it promises at its strongest.
const SERVERS: [(Kind, Level); 4] = [
    (Kind::Postgres, Level::Serializable),
    (Kind::MariaDb, Level::Serializable),
    (Kind::Etcd, Level::StrictSerializable),
    (Kind::Redis, Level::StrictSerializable),
];

/// How many transactions commit before trouble comes, and after it.
const SOME: u64 = 300;

fn durable(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Durable).unwrap_or_else(|error| panic!("{error}"))
}

/// A run that goes on until the test has seen enough.
fn trial(urls: &[String]) -> Trial {
    Trial { txns: u64::MAX, timeout: 1500, ..Trial::new(urls, "") }
}

/// Runs it, with trouble until so many connections were lost and opened again. All that it recorded
/// fits the promise.
fn survives(trial: &Trial, level: Level, reconnects: u64, mut trouble: impl FnMut()) {
    let (mut next, mut end) = (SOME, None);
    let (outcome, history) = trial.run_while(|counts: &Counts| {
        if counts.reconnects >= reconnects {
            let end = *end.get_or_insert(counts.committed + SOME);
            return if counts.committed >= end { Break(()) } else { Continue(()) };
        }
        if counts.committed >= next {
            next = counts.committed + SOME;
            trouble();
        }
        Continue(())
    });
    assert_eq!(outcome.stopped, StopReason::Done, "{:?}", outcome.cause);
    let unknown = history.txns().filter(|txn| history.outcome(*txn) == Ended::Unknown).count();
    assert_eq!(unknown as u64, outcome.counts.unknown);
    assert_satisfied(&history, level);
}

#[test]
fn a_killed_server_that_comes_back_has_lost_nothing() {
    for (kind, level) in SERVERS {
        let mut servers = durable(kind);
        let trial = trial(servers.urls());
        survives(&trial, level, 1, || {
            servers.kill().unwrap();
            servers.restart().unwrap_or_else(|error| panic!("{error}"));
        });
    }
}

#[test]
fn a_server_that_stops_answering_leaves_doubts_and_no_damage() {
    for (kind, level) in SERVERS {
        let servers = durable(kind);
        survives(&trial(servers.urls()), level, 1, || {
            servers.pause();
            // Longer than a statement may take.
            std::thread::sleep(Duration::from_secs(3));
            servers.resume();
        });
    }
}

#[test]
fn cut_connections_are_opened_again() {
    for (kind, level) in SERVERS {
        let servers = durable(kind);
        let proxy = Proxy::to(("127.0.0.1", servers.port())).unwrap();
        let url = servers.url().replace(&servers.port().to_string(), &proxy.port().to_string());
        survives(&trial(&[url]), level, 30, || _ = proxy.cut());
    }
}

#[test]
fn a_server_that_stays_away_ends_the_run() {
    for (kind, level) in SERVERS {
        let taken_away = (0..10).find_map(|_| taken_away(kind));
        let (outcome, history) = taken_away.expect("hardly anything commits");
        assert_eq!(outcome.stopped, StopReason::Database);
        let why = outcome.cause.unwrap();
        assert!(why.stalled_ms == Some(4000.0) && why.message.is_some(), "{why:?}");
        assert!(outcome.counts.committed >= SOME);
        assert_satisfied(&history, level);
    }
}

/// A run whose server goes away for good; none if the machine was so slow that the run was given up
/// before.
fn taken_away(kind: Kind) -> Option<(WorkloadOutcome, History)> {
    let mut servers = durable(kind);
    let trial = Trial { patience: Duration::from_secs(4), ..trial(servers.urls()) };
    let mut gone = false;
    let ended = trial.run_while(|counts| {
        if counts.committed >= SOME && !gone {
            servers.kill().unwrap();
            gone = true;
        }
        Continue(())
    });
    gone.then_some(ended)
}
