//! What a run is asked to do.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use isolario_check::supported;
use isolario_db::{Claim, DbError, DbUrl};
use isolario_model::Level;
use isolario_workload::{DefaultRun, Kind, Planner, Schema, Workload, WorkloadError};

use super::faults::Faults;
use super::host::Host;

/// What to run, against what, and what to ask of the history.
///
/// [`Settings::new`] has the defaults of `isolario run`; fields and builders change them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The nodes of the database; sessions go round them.
    pub urls: Vec<DbUrl>,
    /// The isolation level, by the database's own name; without one, its strongest.
    pub isolation: Option<String>,
    /// How long the database may take to answer.
    pub statement_timeout: Duration,
    /// What the clients ask for.
    pub workload: Workload,
    /// Number of keys that exist and remain unused, between the others that exist before the run and those
    /// that begin absent: what the database [asks for](isolario_db::Database::unused_keys).
    pub(super) unused_keys: u32,
    /// Whether the rows of an application are kept in SQL tables of their own, instead of as registers.
    pub sql_tables: bool,
    /// The name of the preset that the workload came from, so that the run can be repeated.
    pub preset: Option<&'static str>,
    /// How many sessions, each with a connection.
    pub sessions: u32,
    /// How many transactions are to commit, over all sessions; without a number, any.
    pub txns: Option<u64>,
    /// How long to run; without a time, until there are enough transactions.
    pub duration: Option<Duration>,
    /// The most transactions to begin per second.
    pub rate: Option<u64>,
    /// The longest pause before an operation or a commit; each has a random length up to it. By default
    /// none, but for [`run_against`](super::run_against): [`Settings::THINK_IN_PROCESS`].
    pub think: Option<Duration>,
    /// Whether all sessions wait for each other within some transactions, so that these overlap however
    /// busy the machine is. [`run_against`](super::run_against) always does.
    pub gathers: bool,
    /// How many bytes a register is to take at least, in databases that store bytes.
    pub value_size: u32,
    /// How often to try a transaction again that the database refused.
    pub max_retries: u32,
    /// What is asked for depends on the seed alone.
    pub seed: u64,
    /// What the history must satisfy.
    pub ask: Ask,
    /// How long deciding a level may take.
    pub check_timeout: Duration,
    /// Whether to look at the growing history now and then, and to stop at the first violation.
    pub stop_on_violation: bool,
    /// Whether to check against what the database's own log says, too.
    pub whitebox: bool,
    /// Whether, with that, a second transaction reads every row in the snapshot of each transaction.
    pub shadow: bool,
    /// Trouble for the server, or for the network between clients and nodes.
    pub faults: Option<Faults>,
    /// If the process is going to be killed and the store opened [again](super::run_after_crash), a number that no
    /// earlier run on the same store had: the keys are those of this number and the seed, which whoever opens it
    /// knows. Commits have to survive.
    pub to_be_killed: Option<u64>,
    /// The run directory; without one, a new one under `isolario-runs`.
    pub out: Option<PathBuf>,
    /// How many anomalies the report shows in full.
    pub max_anomalies: usize,
    /// Whether to look for the smallest part that shows what was found.
    pub shrink: Shrinking,
    /// Which of several hosts this is, for [`run_part`](super::run_part): each has as many sessions as are
    /// asked for here.
    pub host: Option<Host>,
}

/// How long a run looks for the smallest part of its history that shows what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shrinking {
    /// Not at all.
    Never,
    /// For a few seconds: nearly always enough.
    #[default]
    Briefly,
    /// Until nothing more can go, or the run is interrupted.
    Thoroughly,
}

impl Shrinking {
    /// The few seconds.
    pub const BRIEFLY: Duration = Duration::from_secs(5);
}

/// What a history must satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask {
    /// What the database claims.
    Claim,
    /// These levels.
    Levels {
        /// The levels to decide, weakest first.
        levels: Vec<Level>,
        /// Those that were named: each of them must apply.
        named: Vec<Level>,
    },
}

impl Ask {
    /// All levels, of which none has to apply.
    pub fn all() -> Ask {
        Ask::Levels { levels: supported().to_vec(), named: Vec::new() }
    }

    /// The levels that are asked about: those that are named, or else the claimed ones, or else the
    /// weakest that databases offer.
    pub fn levels_or(&self, claim: &Claim) -> Vec<Level> {
        match self {
            Ask::Levels { levels, named } if named.is_empty() => levels.clone(),
            Ask::Levels { named, .. } => named.clone(),
            Ask::Claim if claim.levels.is_empty() => vec![Level::AdyaReadCommitted],
            Ask::Claim => claim.levels.clone(),
        }
    }

    /// These levels, each of which must apply.
    pub fn levels(levels: impl IntoIterator<Item = Level>) -> Ask {
        let mut levels: Vec<Level> = levels.into_iter().collect();
        levels.sort_unstable();
        levels.dedup();
        Ask::Levels { named: levels.clone(), levels }
    }
}

impl Settings {
    /// The longest pause by default for a store in the process of the run. Such a store answers within
    /// microseconds: without pauses, a transaction is over before another thread begins the next one.
    pub const THINK_IN_PROCESS: Duration = Duration::from_micros(200);

    /// A run of the default workload of a kind, of its default size, with seed 1; against no database
    /// yet: see [`Settings::with_url`] and [`run_against`](super::run_against).
    pub fn new(kind: Kind) -> Settings {
        let DefaultRun { workload, sessions, txns, .. } = DefaultRun::of(kind);
        Settings {
            urls: Vec::new(),
            isolation: None,
            statement_timeout: Duration::from_secs(5),
            workload,
            unused_keys: 0,
            sql_tables: false,
            preset: None,
            sessions,
            txns: Some(txns),
            duration: None,
            rate: None,
            think: None,
            gathers: false,
            value_size: 0,
            max_retries: 5,
            seed: 1,
            ask: Ask::Claim,
            check_timeout: Duration::from_secs(60),
            stop_on_violation: false,
            whitebox: false,
            shadow: false,
            faults: None,
            to_be_killed: None,
            out: None,
            max_anomalies: 10,
            shrink: Shrinking::default(),
            host: None,
        }
    }

    /// Adds a node, by its URL.
    pub fn with_url(mut self, url: &str) -> Result<Settings, DbError> {
        self.urls.push(DbUrl::parse(url)?);
        Ok(self)
    }

    /// With the database's own isolation level of this name.
    #[must_use]
    pub fn with_isolation(self, name: impl Into<String>) -> Settings {
        Settings { isolation: Some(name.into()), ..self }
    }

    /// With another workload.
    #[must_use]
    pub fn with_workload(self, workload: Workload) -> Settings {
        Settings { workload, ..self }
    }

    /// With the rows of an application in SQL tables of their own, or as registers.
    #[must_use]
    pub fn with_sql_tables(self, sql_tables: bool) -> Settings {
        Settings { sql_tables, ..self }
    }

    /// With this many sessions.
    #[must_use]
    pub fn with_sessions(self, sessions: u32) -> Settings {
        Settings { sessions, ..self }
    }

    /// Until this many transactions have committed.
    #[must_use]
    pub fn with_txns(self, txns: u64) -> Settings {
        Settings { txns: Some(txns), ..self }
    }

    /// For this long, whatever has committed by then.
    #[must_use]
    pub fn with_duration(self, duration: Duration) -> Settings {
        Settings { duration: Some(duration), txns: None, ..self }
    }

    /// With random pauses up to this long before operations and commits.
    #[must_use]
    pub fn with_think(self, think: Duration) -> Settings {
        Settings { think: Some(think), ..self }
    }

    /// With another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Settings {
        Settings { seed, ..self }
    }

    /// With these levels to satisfy, instead of what the database claims.
    #[must_use]
    pub fn with_levels(self, levels: impl IntoIterator<Item = Level>) -> Settings {
        Settings { ask: Ask::levels(levels), ..self }
    }

    /// With a look at the growing history now and then, to stop at the first violation.
    #[must_use]
    pub fn with_stop_on_violation(self, stop_on_violation: bool) -> Settings {
        Settings { stop_on_violation, ..self }
    }

    /// With a check against what the database's own log says, or without.
    #[must_use]
    pub fn with_whitebox(self, whitebox: bool) -> Settings {
        Settings { whitebox, ..self }
    }

    /// With a look at every snapshot by a second transaction, or without.
    #[must_use]
    pub fn with_shadow(self, shadow: bool) -> Settings {
        Settings { shadow, ..self }
    }

    /// With trouble for the server, or for the network between clients and nodes.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Settings {
        Settings { faults: Some(faults), ..self }
    }

    /// With another patience for the smallest part that shows what was found.
    #[must_use]
    pub fn with_shrinking(self, shrink: Shrinking) -> Settings {
        Settings { shrink, ..self }
    }

    /// With a run directory of this path, which is made, or is empty.
    #[must_use]
    pub fn with_out(self, out: impl Into<PathBuf>) -> Settings {
        Settings { out: Some(out.into()), ..self }
    }

    /// As one of several hosts.
    #[must_use]
    pub fn with_host(self, host: Host) -> Settings {
        Settings { host: Some(host), ..self }
    }

    /// Whether no asked level is decided where ranges are read: results of ranges say something about rows
    /// that they did not return, which only prefix consistency and stronger levels are decided by.
    pub fn leaves_ranges_open(&self, claim: &Claim) -> bool {
        let asked = match &self.ask {
            Ask::Claim => &claim.levels,
            Ask::Levels { named, .. } => named,
        };
        let is_decided = |level: &Level| level.implies(Level::Prefix);
        self.workload.kind == Kind::Predicate
            && !self.whitebox
            && !asked.is_empty()
            && !asked.iter().all(is_decided)
    }

    /// The application whose rows are kept in SQL tables of their own, if one is.
    pub(super) fn tables(&self) -> Option<Schema> {
        Schema::of(&self.workload).filter(|_| self.sql_tables)
    }

    /// The keys that exist and remain unused.
    pub(super) fn unused_keys(&self) -> Range<u64> {
        let extra = self.host.map_or(0, Host::extra_keys);
        let first = u64::from(self.workload.standing_keys() + extra);
        first..first + u64::from(self.unused_keys)
    }

    /// What the clients ask for, on all hosts.
    pub fn planner(&self) -> Result<Planner, WorkloadError> {
        let sessions = self.sessions.saturating_mul(self.host.map_or(1, Host::of));
        let planner = Planner::new(&self.workload, sessions, self.seed)?;
        let first_absent = self.unused_keys().end;
        Ok(planner.with_attempts(self.max_retries + 1).with_absent_keys_from(first_absent))
    }
}
