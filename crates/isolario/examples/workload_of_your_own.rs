//! A workload of your own: what the clients ask for, as a function of who asks and how often.
//!
//! Here every client moves money between two accounts: it reads both and writes both. The database
//! is the SQLite that is compiled in; any other URL does as well.
//!
//! `cargo run --example workload_of_your_own --features sqlite`

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::path::Path;

use isolario::run::{Handle, RunOutcome, Settings, run_with};
use isolario::workload::{AttemptedTxn, Generator, Kind, PlannedOp, Rng, Workload};

const ACCOUNTS: u64 = 10;
const SESSIONS: u32 = 4;
const RETRIES: u32 = 5;

struct Transfers {
    seed: u64,
}

impl Generator for Transfers {
    /// The same place always gets the same plan, so that a run can be repeated.
    fn plan(&self, place: AttemptedTxn, ops: &mut Vec<PlannedOp>) {
        let AttemptedTxn { session, position, attempt, .. } = place;
        let mut rng = Rng::derive(self.seed, &[session.into(), position, attempt.into()]);
        let from = rng.below(ACCOUNTS);
        let to = (from + 1 + rng.below(ACCOUNTS - 1)) % ACCOUNTS;
        // No value is ever written twice: not by another client, nor by another attempt.
        let attempts = u64::from(RETRIES) + 1;
        let number = (position * u64::from(SESSIONS) + u64::from(session)) * attempts;
        let value = 2 * (number + u64::from(attempt)) as i64 + 1;
        ops.extend([
            PlannedOp::Read { key: from },
            PlannedOp::Read { key: to },
            PlannedOp::Write { key: from, value },
            PlannedOp::Write { key: to, value: value + 1 },
        ]);
    }
}

/// Runs the workload; the run's files go into a directory.
pub fn transfer(url: &str, out: &Path) -> Result<RunOutcome, Box<dyn Error>> {
    let mut settings = Settings::new(Kind::General)
        .with_url(url)?
        .with_sessions(SESSIONS)
        .with_txns(1000)
        .with_out(out);
    settings.workload = Workload { keys: ACCOUNTS as u32, ..settings.workload };
    settings.max_retries = RETRIES;
    Ok(run_with(&settings, &Transfers { seed: settings.seed }, &Handle::new(), &mut ())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).ok_or("usage: workload_of_your_own DIRECTORY")?;
    println!("{}.", transfer("sqlite:", Path::new(&out))?.promise());
    Ok(())
}
