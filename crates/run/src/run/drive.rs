//! Driving the workload, with an eye on the history where it is to stop at a violation.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolario_check::{CheckOptions, Follower};

use isolario_formats as formats;
use isolario_model::{Level, StopReason};
use isolario_workload::Generator;

use super::error::RunError;
use super::examine::{Judgement, examine};
use super::faults::last_reads;
use super::host::Comparison;
use super::resources::bytes_for_records;
use super::settings::{Ask, Settings};
use super::target::RunTarget;
use crate::driver::{self, Control, LastSession, RunPlan, RunProgress, WorkloadOutcome};
use isolario_follow::{self as follow, FollowError, Following, Input, Step};

/// The shortest time between two looks at the growing history.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// A look costs the clients processors: so many times as long as it took, it waits for the next.
const REST: u32 = 3;
/// Nothing has to commit for this long before a run is given up; several statements may time out.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENT_STATEMENTS: u32 = 4;

/// How long to wait for more of a recording that is followed.
const BETWEEN_STEPS: Duration = Duration::from_millis(100);
/// So many transactions of it are looked at, at a time.
const AT_A_TIME: usize = 1 << 15;
/// The format of recordings.
const RECORDED: &str = "isolario";

/// What a look at the recording came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Violation,
}

/// The workload, on its way to a file.
pub(super) struct Course<'r> {
    pub(super) settings: &'r Settings,
    pub(super) target: &'r RunTarget,
    pub(super) generator: &'r (dyn Generator + Sync),
    pub(super) history: &'r Path,
    pub(super) options: &'r CheckOptions,
    /// The clocks, where they are to be compared while it runs.
    pub(super) comparison: Option<Mutex<Comparison>>,
}

impl Course<'_> {
    pub(super) fn drive(
        &self,
        control: &Control,
        watch: &mut dyn FnMut(&RunProgress),
    ) -> Result<WorkloadOutcome, RunError> {
        let settings = self.settings;
        let plan = RunPlan {
            databases: &self.target.nodes,
            generator: self.generator,
            sessions: settings.sessions,
            txns: settings.txns,
            duration: settings.duration,
            rate: settings.rate,
            think: settings.think.unwrap_or_default(),
            gathers: settings.gathers,
            max_retries: settings.max_retries,
            patience: PATIENCE.max(settings.statement_timeout * PATIENT_STATEMENTS),
            history: Some(self.history),
            memory: if settings.host.is_some() { 0 } else { bytes_for_records() },
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
            let reads = |positions| {
                let unused = settings.unused_keys();
                last_reads(&settings.workload, self.generator, unused, positions)
            };
            let nodes = self.target.nodes.as_slice();
            let before = || trouble.iter().for_each(|trouble| trouble.last(control, nodes));
            let last = trouble.map(|_| LastSession { before: &before, txns: &reads });
            if let Some(trouble) = trouble {
                scope.spawn(move || trouble.go_on(control, nodes));
            }
            let outcome = driver::run_then(&plan, control, watch, last);
            trouble.iter().for_each(|trouble| trouble.leave_alone());
            over.store(true, Ordering::Relaxed);
            outcome
        });
        outcome.map_err(|error| self.failure(error))
    }

    /// Looks at what is recorded while it is: what is new of it, where the levels can be followed; else
    /// all of it, now and then.
    fn look_out(&self, control: &Control, over: &AtomicBool) {
        let is_over = || over.load(Ordering::Relaxed) || control.is_stopped();
        let found = match self.follow(is_over) {
            Ok(Some(found)) => found,
            // The check at the end has the last word; until then, each look begins anew.
            _ => self.check_now_and_then(is_over),
        };
        if found == Found::Violation {
            control.stop(StopReason::Violation, None);
        }
    }

    /// Follows the recording; nothing if that does not tell.
    fn follow(&self, is_over: impl Fn() -> bool) -> Result<Option<Found>, FollowError> {
        let (Some(levels), Some(format)) = (self.levels_to_follow(), formats::find(RECORDED))
        else {
            return Ok(None);
        };
        let input = Input::new(self.history, format);
        let settings = follow::Settings::default().with_at_a_time(AT_A_TIME);
        let new = |level: &Level| Following::new(input, *level, self.options, settings);
        let mut followed: Vec<Following<'_>> = Vec::new();
        while !is_over() {
            std::thread::sleep(BETWEEN_STEPS);
            if followed.is_empty() {
                match levels.iter().map(new).collect::<Result<Vec<_>, _>>() {
                    Ok(all) => followed = all,
                    // The recorder has not begun.
                    Err(FollowError::Read(_)) => continue,
                    Err(error) => return Err(error),
                }
            }
            for following in &mut followed {
                if let Step::Decided(decided) = following.step()? {
                    let is_violated = decided.result.verdict.is_violated();
                    return Ok(is_violated.then_some(Found::Violation));
                }
            }
        }
        Ok(Some(Found::Nothing))
    }

    /// The levels that were asked for, or that the database claims, if all of them can be followed.
    fn levels_to_follow(&self) -> Option<&[Level]> {
        let levels = match &self.settings.ask {
            Ask::Levels { levels, .. } => levels,
            Ask::Claim => &self.target.claim.levels,
        };
        let can_be_followed = |level: &Level| Follower::levels().contains(level);
        (!levels.is_empty() && levels.iter().all(can_be_followed)).then_some(levels)
    }

    /// Checks what is recorded so far, now and then. Transactions that are not over count as of
    /// unknown outcome, so what is found stays true whatever comes.
    fn check_now_and_then(&self, is_over: impl Fn() -> bool) -> Found {
        let mut next = Instant::now() + BETWEEN_LOOKS;
        while !is_over() {
            std::thread::sleep(Duration::from_millis(20));
            if Instant::now() < next {
                continue;
            }
            let begun = Instant::now();
            if self.is_violated() {
                return Found::Violation;
            }
            next = Instant::now() + BETWEEN_LOOKS.max(begun.elapsed() * REST);
        }
        Found::Nothing
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

    fn failure(&self, error: driver::RunError) -> RunError {
        match error {
            driver::RunError::Nothing(what) => RunError::Nothing(what),
            driver::RunError::Recording(error) => {
                RunError::Recording { path: self.history.to_owned(), error }
            }
            driver::RunError::Connect { node, error } => {
                RunError::Database { url: self.settings.urls.get(node).cloned(), error }
            } // The enum may grow in its own crate alone.
        }
    }
}
