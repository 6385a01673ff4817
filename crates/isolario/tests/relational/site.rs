//! Servers and runs.

use isolario::db::DbUrl;
use isolario::run::Handle;
use isolario::run::relational::{Outcome, Settings, run};
use isolario_servers::{Durability, Kind, Servers};

/// Starts a server in which nothing is going to crash.
pub fn start(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"))
}

/// Settings for a database at a level.
pub fn settings(url: &str, isolation: &str, txns: u64, seed: u64) -> Settings {
    let mut settings = Settings::new(vec![DbUrl::parse(url).unwrap()]);
    settings.isolation = Some(isolation.to_owned());
    settings.txns = Some(txns);
    settings.seed = seed;
    settings.simplify = None;
    settings
}

/// A run in a directory that goes away with it.
pub fn go(mut settings: Settings) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    settings.out = Some(dir.path().join("run"));
    let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
    assert!(outcome.unwritten.is_empty(), "{:?}", outcome.unwritten);
    outcome
}
