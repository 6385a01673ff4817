//! The servers Isolario is tested against, one file each: what they need and how they start.

mod etcd;
mod galera;
mod mariadb;
mod postgres;
mod redis;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustix::process::Signal;

use crate::ServerError;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::ready::Ready;

/// A server or a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// PostgreSQL with a standby that streams the log of the first node.
    PostgresStandby,
    /// MariaDB.
    MariaDb,
    /// A MariaDB Galera cluster of three nodes.
    Galera,
    /// One node of etcd.
    Etcd,
    /// Three nodes of etcd.
    Etcd3,
    /// Redis.
    Redis,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Postgres,
        Self::PostgresStandby,
        Self::MariaDb,
        Self::Galera,
        Self::Etcd,
        Self::Etcd3,
        Self::Redis,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::PostgresStandby => "postgres-standby",
            Self::MariaDb => "mariadb",
            Self::Galera => "galera",
            Self::Etcd => "etcd",
            Self::Etcd3 => "etcd3",
            Self::Redis => "redis",
        }
    }

    /// How it is told to stop.
    pub(crate) const fn stop(self) -> Stop {
        match self {
            Self::Postgres | Self::PostgresStandby => postgres::STOP,
            _ => Stop { orderly: Signal::TERM, at_once: Signal::KILL, at_once_name: "KILL" },
        }
    }

    /// Prepares the directory and says how to start the nodes.
    pub(crate) fn plan(
        self,
        root: &Path,
        durability: Durability,
        ports: &mut Ports,
    ) -> Result<Plan, ServerError> {
        match self {
            Self::Postgres => postgres::plan(root, durability, ports),
            Self::PostgresStandby => postgres::plan_with_standby(root, durability, ports),
            Self::MariaDb => mariadb::plan(root, durability, ports),
            Self::Galera => galera::plan(root, durability, ports),
            Self::Etcd => etcd::plan::<1>(root, ports),
            Self::Etcd3 => etcd::plan::<3>(root, ports),
            Self::Redis => redis::plan(root, durability, ports),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no server '{text}'; there are {names}")
        })
    }
}

/// The signals that stop a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// In good order: everything is written first.
    pub(crate) orderly: Signal,
    /// At once, since its files are about to be removed.
    pub(crate) at_once: Signal,
    /// The name of `at_once`.
    pub(crate) at_once_name: &'static str,
}

/// Whether a committed transaction survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It may be lost: for tests in which nothing crashes.
    #[default]
    Fast,
    /// It survives: for tests that kill servers. (etcd is always durable.)
    Durable,
}

impl Durability {
    /// One setting for fast servers, another for durable ones.
    fn pick<T>(self, fast: T, durable: T) -> T {
        match self {
            Self::Fast => fast,
            Self::Durable => durable,
        }
    }
}

/// The nodes of a cluster, in the order in which they start.
pub(crate) struct Plan {
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) order: Order,
}

impl Plan {
    /// A plan of one node.
    fn single(node: NodePlan) -> Self {
        Self { nodes: vec![node], order: Order::Together }
    }
}

/// How the nodes of a cluster come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// No node is ready before the others have been started.
    Together,
    /// A node finds the cluster that the nodes before it form.
    OneByOne,
}

/// One server process.
pub(crate) struct NodePlan {
    /// Its name in messages.
    pub(crate) name: String,
    /// How it starts for the first time.
    pub(crate) launch: Launch,
    pub(crate) ready: Ready,
    /// What to run once, as soon as it is ready.
    pub(crate) after: Vec<Launch>,
    pub(crate) port: u16,
    /// Where it talks in secret; some servers do both on one port.
    pub(crate) encrypted_port: u16,
    pub(crate) url: String,
}
