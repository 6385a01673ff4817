//! Driving the workload, with an eye on the history where it is to stop at a violation.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isolario::check::Options;
use isolario::db::{self, Control, Database, DbUrl, Plan, RunError};
use isolario::formats;
use isolario::model::StopReason;

use super::examine::{Ask, examine};
use super::settings::Run;
use super::target::failed;
use super::watch::Watch;
use crate::exit::{Outcome, judge};
use crate::failure::Failure;

/// The shortest time between two looks at the growing history.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// A look costs the clients processors: so many times as long as it took, it waits for the next.
const REST: u32 = 3;
/// Nothing has to commit for this long before a run is given up; several statements may time out.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENT_STATEMENTS: u32 = 4;

pub(super) struct Course<'r> {
    pub(super) run: &'r Run,
    pub(super) seed: u64,
    pub(super) nodes: &'r [Box<dyn Database>],
    pub(super) history: &'r Path,
    pub(super) ask: &'r Ask,
    pub(super) options: &'r Options,
    pub(super) quiet: bool,
}

impl Course<'_> {
    pub(super) fn drive(&self, control: &Control) -> Result<db::Outcome, Failure> {
        let run = self.run;
        let planner = run.planner(self.seed)?;
        let plan = Plan {
            databases: self.nodes,
            generator: &planner,
            sessions: run.sessions,
            txns: run.txns,
            duration: run.duration,
            rate: run.drive.rate,
            max_retries: run.drive.max_retries,
            patience: PATIENCE.max(run.drive.statement_timeout * PATIENT_STATEMENTS),
            history: Some(self.history),
        };
        let over = AtomicBool::new(false);
        let watch = Watch::start(run, self.quiet);
        let outcome = std::thread::scope(|scope| {
            if run.drive.stop_on_violation {
                scope.spawn(|| self.look_out(control, &over));
            }
            let outcome = db::run(&plan, control, &mut |progress| watch.show(progress));
            over.store(true, Ordering::Relaxed);
            outcome
        });
        drop(watch);
        outcome.map_err(|error| self.failure(&error))
    }

    /// Checks what is recorded so far, now and then. Transactions that are not over count as of
    /// unknown outcome, so what is found stays true whatever comes.
    fn look_out(&self, control: &Control, over: &AtomicBool) {
        let mut next = Instant::now() + BETWEEN_LOOKS;
        while !over.load(Ordering::Relaxed) && !control.is_stopped() {
            std::thread::sleep(Duration::from_millis(20));
            if Instant::now() < next {
                continue;
            }
            let begun = Instant::now();
            if self.is_violated() {
                control.stop(StopReason::Violation, None);
            }
            next = Instant::now() + BETWEEN_LOOKS.max(begun.elapsed() * REST);
        }
    }

    /// A file that cannot be read now may be in the middle of being packed; the check at the end
    /// has the last word.
    fn is_violated(&self) -> bool {
        formats::read(self.history).is_ok_and(|loaded| {
            let examined = examine(&loaded.history, self.ask, self.options);
            judge(&examined.request, &examined.results) == Outcome::Violated
        })
    }

    fn failure(&self, error: &RunError) -> Failure {
        match error {
            RunError::Recording(error) => {
                Failure::new(format!("{}: {error}", self.history.display()))
            }
            RunError::Connect(error) => {
                // The error names its node; whose it is otherwise makes no difference.
                let node = |url: &&DbUrl| error.message.contains(&url.to_string());
                let urls = &self.run.urls;
                failed(urls.iter().find(node).unwrap_or(&urls[0]), error)
            }
            other => Failure::new(other.to_string()),
        }
    }
}
