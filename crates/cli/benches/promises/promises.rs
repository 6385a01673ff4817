//! The promises, and their limits.

use isolario_servers::Kind;

use crate::run::Ran;

/// A run, and what is to come of it.
pub struct Promise {
    /// The arguments of `isolario run`, beside the nodes and the directory.
    pub arguments: &'static str,
    pub expected: Expected,
}

/// What is to come of a run.
pub enum Expected {
    /// It satisfies what was asked for.
    Satisfied,
    /// That, and so many transactions commit per second.
    Fast(f64),
    /// It does not, and that is found within so many seconds; by one of these anomalies, if any are
    /// named.
    Violated { anomalies: &'static [&'static str], seconds: u64 },
}

impl Expected {
    pub fn words(&self) -> String {
        match self {
            Expected::Satisfied => "satisfied".to_owned(),
            Expected::Fast(per_second) => format!("satisfied, {per_second} per second"),
            Expected::Violated { anomalies, seconds } => {
                format!("{} within {seconds} s", anomalies.first().unwrap_or(&"violated"))
            }
        }
    }
}

impl Promise {
    pub fn is_met(&self, ran: &Ran) -> bool {
        match self.expected {
            Expected::Satisfied => ran.satisfied,
            Expected::Fast(per_second) => ran.satisfied && ran.per_second >= per_second,
            Expected::Violated { anomalies, seconds } => {
                ran.shows(anomalies) && ran.found.as_secs() < seconds
            }
        }
    }
}

const fn keeps(arguments: &'static str) -> Promise {
    Promise { arguments, expected: Expected::Satisfied }
}

const fn breaks(
    arguments: &'static str,
    anomalies: &'static [&'static str],
    seconds: u64,
) -> Promise {
    Promise { arguments, expected: Expected::Violated { anomalies, seconds } }
}

/// A skew may take more than two transactions.
pub const SKEW: &[&str] = &["WriteSkew", "ItemAntiDependencyCycle"];
pub const LOSS: &[&str] = &["LostUpdate"];
pub const FORK: &[&str] = &["LongFork", "NonadjacentAntiDependencies"];

/// A database, the server that it takes, and what it promises.
pub type Asked = (&'static str, Option<Kind>, &'static [Promise]);

/// By database. Few keys make sessions meet.
pub const PROMISES: &[Asked] = &[
    (
        "SQLite",
        None,
        &[Promise {
            arguments: "--txns 200000 --keys 1000 --check sser",
            expected: Expected::Fast(20_000.0),
        }],
    ),
    (
        "PostgreSQL",
        Some(Kind::Postgres),
        &[
            keeps("--isolation serializable --txns 100000 --check ser"),
            keeps("--isolation repeatable-read --duration 10s --check si"),
            breaks(
                "--isolation repeatable-read --keys 10 --duration 10s --stop-on-violation --check ser",
                SKEW,
                10,
            ),
            breaks(
                "--isolation read-committed --keys 10 --duration 10s --stop-on-violation --check si",
                LOSS,
                10,
            ),
        ],
    ),
    (
        "MariaDB",
        Some(Kind::MariaDb),
        &[
            breaks(
                "--isolation repeatable-read --keys 10 --duration 10s --stop-on-violation --check si",
                LOSS,
                10,
            ),
            keeps("--isolation serializable --duration 10s --check ser"),
        ],
    ),
    (
        "Galera",
        Some(Kind::Galera),
        &[breaks(
            "--isolation serializable --keys 10 --duration 60s --stop-on-violation --check ser",
            &[],
            60,
        )],
    ),
    (
        "etcd",
        Some(Kind::Etcd3),
        &[
            keeps("--isolation linearizable-reads --duration 10s --check sser"),
            breaks(
                "--isolation serializable-reads --keys 10 --duration 60s --stop-on-violation \
                 --check sser",
                &[],
                60,
            ),
        ],
    ),
    (
        "Redis",
        Some(Kind::Redis),
        &[
            keeps("--isolation watch --workload lwt --duration 10s --check lin"),
            breaks(
                "--isolation plain --workload general --ops 2 --read-ratio 0 --rmw-ratio 1 --keys 10 \
                 --duration 10s --stop-on-violation --check si",
                LOSS,
                10,
            ),
        ],
    ),
];
