//! Ctrl-C: once to end what is going on and report what came of it, twice to leave.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isolario::check::StopFlag;
use isolario::run::{Handle, Stage};

use crate::exit::leave;
use crate::failure::Failure;
use crate::outfile::abandon_drafts;

/// Listens for Ctrl-C, and for the request to terminate.
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    happened: AtomicBool,
    going_on: Mutex<GoingOn>,
}

/// What Ctrl-C ends.
#[derive(Default)]
enum GoingOn {
    /// Nothing of which anything would come.
    #[default]
    Nothing,
    /// A run against a database.
    Run(Handle),
    /// A check.
    Check(StopFlag),
}

/// A process has one handler of signals, and so one state.
static LISTENING: OnceLock<Arc<Shared>> = OnceLock::new();

impl Interrupt {
    /// Begins to listen, if nobody does yet.
    pub(crate) fn listen(quiet: bool) -> Result<Interrupt, Failure> {
        if let Some(shared) = LISTENING.get() {
            return Ok(Interrupt { shared: Arc::clone(shared) });
        }
        let shared = Arc::clone(LISTENING.get_or_init(Arc::default));
        let heard = Arc::clone(&shared);
        let listening = ctrlc::set_handler(move || heard.end(quiet));
        listening.map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Interrupt { shared })
    }

    /// Whether it happened.
    pub(crate) fn happened(&self) -> bool {
        self.shared.happened.load(Ordering::Relaxed)
    }

    /// A run that Ctrl-C ends.
    pub(crate) fn run(&self, handle: &Handle) {
        *self.shared.going_on() = GoingOn::Run(handle.clone());
    }

    /// A check that Ctrl-C ends.
    pub(crate) fn stop(&self) -> StopFlag {
        let stop = StopFlag::default();
        *self.shared.going_on() = GoingOn::Check(stop.clone());
        stop
    }
}

impl Shared {
    fn going_on(&self) -> MutexGuard<'_, GoingOn> {
        self.going_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is going on, or everything: where nothing is, or where that takes too long for
    /// whoever waits.
    fn end(&self, quiet: bool) {
        let again = self.happened.swap(true, Ordering::Relaxed);
        let what_follows = match &*self.going_on() {
            _ if again => abandon(),
            GoingOn::Nothing => abandon(),
            GoingOn::Run(handle) => match handle.interrupt() {
                Stage::Driving => "checking what was recorded",
                Stage::Checking => "reporting what is decided so far",
                Stage::Opening => "stopping as soon as the database has answered",
                _ => "writing the results",
            },
            GoingOn::Check(stop) => {
                stop.ask();
                "reporting what is decided so far"
            }
        };
        if !quiet {
            // Where the error stream fails, there is nobody left to tell.
            let _ = writeln!(
                io::stderr(),
                "note: interrupted: {what_follows}; press Ctrl-C again to stop now"
            );
        }
    }
}

/// Leaves at once, and nothing half-written behind.
fn abandon() -> ! {
    let (drafts, _held) = abandon_drafts();
    isolario::db::abandon_temporary_files();
    let files = match drafts {
        0 => "",
        1 => ": the file that was being written was discarded",
        _ => ": the files that were being written were discarded",
    };
    let _ = writeln!(io::stderr(), "error: interrupted{files}");
    leave()
}
