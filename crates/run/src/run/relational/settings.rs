//! What a relational run is to do.

use std::path::PathBuf;
use std::time::Duration;

use isolario_db::DbUrl;
use isolario_sql::{Bounds, Style};

use crate::run::{Ask, Shrinking};

/// What a relational run is to do. Fields are set directly.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The database, by its nodes.
    pub urls: Vec<DbUrl>,
    /// The isolation level, by the database's own name; without one, each round takes any.
    pub isolation: Option<String>,
    /// What each round must satisfy.
    pub ask: Ask,
    /// How many sessions; without a number, each round takes 2 to 5.
    pub sessions: Option<u32>,
    /// How many transactions are sent in a round, over all sessions.
    pub round: u32,
    /// How many transactions are to commit, in all.
    pub txns: Option<u64>,
    /// How long to go on.
    pub duration: Option<Duration>,
    /// How large schemas are.
    pub bounds: Bounds,
    /// What transactions look like.
    pub style: Style,
    /// Whether sessions read all tables beside each statement, where that tells which versions the
    /// statement meets, so that dependencies by predicate are known.
    pub predicates: bool,
    /// A directory with scripts that rounds begin with.
    pub templates: Option<PathBuf>,
    /// An anomaly, or a probe, whose shape most transactions have.
    pub aim: Option<String>,
    /// The seed, which determines schemas and transactions.
    pub seed: u64,
    /// The run directory.
    pub out: Option<PathBuf>,
    /// How long the database may take to answer a statement.
    pub statement_timeout: Duration,
    /// How long each level may take to decide.
    pub check_timeout: Duration,
    /// Whether statements are instrumented; without it nothing is seen, and nothing found.
    pub instrumented: bool,
    /// Whether to end with the first round that breaks what it must satisfy.
    pub stop_on_violation: bool,
    /// How long to look for the smallest script that shows a finding, for the first of each kind; not at
    /// all without.
    pub simplify: Option<Duration>,
    /// Time after the [duration](Settings::duration) of the run in which smallest scripts may still be tried; without
    /// it, or without a duration, only `simplify` limits the search.
    pub grace: Option<Duration>,
    /// Whether the last schema stays.
    pub keep: bool,
}

impl Settings {
    /// The usual settings for a database.
    pub fn new(urls: Vec<DbUrl>) -> Settings {
        Settings {
            urls,
            isolation: None,
            ask: Ask::Claim,
            sessions: None,
            round: 60,
            txns: None,
            duration: None,
            bounds: Bounds::default(),
            style: Style::default(),
            predicates: false,
            templates: None,
            aim: None,
            seed: 1,
            out: None,
            statement_timeout: Duration::from_secs(5),
            check_timeout: Duration::from_secs(60),
            instrumented: true,
            stop_on_violation: false,
            simplify: Some(Duration::from_secs(20)),
            grace: Some(Shrinking::BRIEFLY),
            keep: false,
        }
    }
}
