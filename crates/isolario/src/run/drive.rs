//! Driving the workload, with an eye on the history where it is to stop at a violation.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolario_check::Options;
use isolario_db::{self as db, Control, Last, Plan, Progress};
use isolario_formats as formats;
use isolario_model::StopReason;
use isolario_workload::Generator;

use super::error::RunError;
use super::examine::{Judgement, examine};
use super::faults::last_reads;
use super::host::Comparison;
use super::settings::Settings;
use super::target::Target;

/// The shortest time between two looks at the growing history.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// A look costs the clients processors: so many times as long as it took, it waits for the next.
const REST: u32 = 3;
/// Nothing has to commit for this long before a run is given up; several statements may time out.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENT_STATEMENTS: u32 = 4;

/// The workload, on its way to a file.
pub(super) struct Course<'r> {
    pub(super) settings: &'r Settings,
    pub(super) target: &'r Target,
    pub(super) generator: &'r (dyn Generator + Sync),
    pub(super) history: &'r Path,
    pub(super) options: &'r Options,
    /// The clocks, where they are to be compared while it runs.
    pub(super) comparison: Option<Mutex<Comparison>>,
}

impl Course<'_> {
    pub(super) fn drive(
        &self,
        control: &Control,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<db::Outcome, RunError> {
        let settings = self.settings;
        let plan = Plan {
            databases: &self.target.nodes,
            generator: self.generator,
            sessions: settings.sessions,
            txns: settings.txns,
            duration: settings.duration,
            rate: settings.rate,
            think: settings.think,
            max_retries: settings.max_retries,
            patience: PATIENCE.max(settings.statement_timeout * PATIENT_STATEMENTS),
            history: Some(self.history),
        };
        let over = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            if settings.stop_on_violation {
                scope.spawn(|| self.look_out(control, &over));
            }
            if let Some(comparison) = &self.comparison {
                scope.spawn(|| {
                    let mut comparison = comparison.lock().unwrap_or_else(PoisonError::into_inner);
                    comparison.go_on(|| over.load(Ordering::Relaxed));
                });
            }
            let trouble = self.target.trouble.as_ref();
            let reads = |positions| last_reads(&settings.workload, self.generator, positions);
            let before = || trouble.iter().for_each(|trouble| trouble.last(control));
            let last = trouble.map(|_| Last { before: &before, txns: &reads });
            if let Some(trouble) = trouble {
                let is_up = || self.target.nodes.iter().all(|node| node.version().is_ok());
                scope.spawn(move || trouble.go_on(control, is_up));
            }
            let outcome = db::run_then(&plan, control, watch, last);
            trouble.iter().for_each(|trouble| trouble.leave_alone());
            over.store(true, Ordering::Relaxed);
            outcome
        });
        outcome.map_err(|error| self.failure(error))
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
            let (ask, claim) = (&self.settings.ask, &self.target.claim);
            let examination = examine(&loaded.history, ask, claim, self.options);
            examination.judgement() == Judgement::Violated
        })
    }

    fn failure(&self, error: db::RunError) -> RunError {
        match error {
            db::RunError::Nothing(what) => RunError::Nothing(what),
            db::RunError::Recording(error) => {
                RunError::Recording { path: self.history.to_owned(), error }
            }
            db::RunError::Connect { node, error } => {
                RunError::Database { url: self.settings.urls.get(node).cloned(), error }
            }
            // The enum may grow in its own crate alone.
            other => RunError::Open(db::DbError::fatal(other.to_string())),
        }
    }
}
