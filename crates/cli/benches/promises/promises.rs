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
                let named = ran.anomalies.iter().any(|name| anomalies.contains(&name.as_str()));
                let shown = anomalies.is_empty() || named;
                ran.violated && shown && ran.found.as_secs() < seconds
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
const SKEW: &[&str] = &["WriteSkew", "ItemAntiDependencyCycle"];
const LOSS: &[&str] = &["LostUpdate"];
const FORK: &[&str] = &["LongFork", "NonadjacentAntiDependencies"];

/// By database. Few keys make sessions meet.
pub const PROMISES: &[(&str, Option<Kind>, &[Promise])] = &[
    (
        "SQLite",
        None,
        &[Promise {
            arguments: "--txns 200000 --keys 1000 --check sser",
            expected: Expected::Fast(20_000.0),
        }],
    ),
    // What is planted is found without any advice on keys and sessions.
    (
        "Simulated",
        None,
        &[
            breaks("--db sim:ser?anomaly=WriteSkew", SKEW, 2),
            breaks("--db sim:si?anomaly=LostUpdate", LOSS, 2),
            breaks("--db sim:si?anomaly=LongFork", FORK, 2),
            breaks("--db sim:si?anomaly=NonRepeatableRead", &["NonRepeatableRead"], 2),
        ],
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
