//! Runs a workload against databases, and records what the clients saw.

mod attempt;
mod control;
mod events;
mod histogram;
mod lockstep;
mod meeting;
mod meter;
mod pace;
mod rows;
mod session;
mod think;

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolario_formats::{LiveRecorder, ParsedHistory};
use isolario_model::{
    AbortReason, Counts, Latency, Meta, RunEvent, RunSecond, SinkError, StopCause, StopReason,
};
use isolario_workload::{Generator, KeyNames, PlannedOp};

pub use attempt::key_name;
pub use control::Control;
use events::Events;
use isolario_db::Database;
use isolario_db::{DbError, StateReport};
use lockstep::Lockstep;
use meeting::{Gathering, Meetings};
use meter::{Chronicle, LastError, Meter};
use pace::{Pace, Tickets};
pub use rows::record as record_table_op;
use session::Session;

/// What to run.
#[derive(Clone, Copy)]
pub struct RunPlan<'p> {
    /// The nodes; sessions go round them.
    pub databases: &'p [Box<dyn Database>],
    /// What the clients ask for.
    pub generator: &'p (dyn Generator + Sync),
    /// How many sessions.
    pub sessions: u32,
    /// How many transactions are to commit; without a number, any.
    pub txns: Option<u64>,
    /// How long to run; without a time, until there are enough transactions.
    pub duration: Option<Duration>,
    /// The most transactions to begin per second.
    pub rate: Option<u64>,
    /// The longest pause before an operation or a commit; each has a random length up to it.
    pub think: Duration,
    /// Whether all sessions wait for each other within some transactions, so that these overlap however
    /// busy the machine is.
    pub gathers: bool,
    /// How often to try a transaction again that the database refused.
    pub max_retries: u32,
    /// How long nothing may commit before the run is given up.
    pub patience: Duration,
    /// Where to record; nowhere, in a run that only measures.
    pub history: Option<&'p Path>,
    /// Maximum number of bytes of records to keep in memory as well. The outcome then has the history, and the file
    /// need not be read.
    pub memory: usize,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is nothing to run, or nothing to run it on.
    #[error("{0}: at least one is required")]
    Nothing(&'static str),
    /// A session could not connect.
    #[error("{error}")]
    Connect {
        /// The node, by its position in the plan.
        node: usize,
        /// Why not.
        error: DbError,
    },
    /// The file of the history could not be made.
    #[error("{0}")]
    Recording(#[from] SinkError),
}

/// How a run stands.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RunProgress {
    /// Since when it runs.
    pub elapsed: Duration,
    /// What was done, in all.
    pub counts: Counts,
    /// Transactions that committed per second, lately.
    pub throughput: f64,
}

/// What a run came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkloadOutcome {
    /// How it ended.
    pub stopped: StopReason,
    /// What ended it, where it was not the plan.
    pub cause: Option<StopCause>,
    /// What was done.
    pub counts: Counts,
    /// Why transactions did not commit, most frequent first.
    pub abort_reasons: Vec<AbortReason>,
    /// How long those took that committed.
    pub latency: Latency,
    /// What happened second by second.
    pub seconds: Vec<RunSecond>,
    /// What befell it besides its transactions.
    pub events: Vec<RunEvent>,
    /// How long it ran.
    pub elapsed: Duration,
    /// When the clock of the history began.
    pub epoch: Instant,
    /// The nodes, by their position in the plan, that could not be reached when the run ended, each
    /// with what the last attempt to connect came to.
    pub gone: Vec<(usize, String)>,
    /// What the database told about itself, where it was asked: of each session in turn.
    pub sightings: Vec<StateReport>,
    /// The recorded history, as a reader of the file finds it; `None` if it took more memory than allowed.
    pub history: Option<ParsedHistory>,
}

/// What the sessions of a run share.
struct Shared<'r> {
    plan: &'r RunPlan<'r>,
    control: &'r Control,
    recorder: Option<&'r LiveRecorder>,
    meter: Meter,
    events: Events,
    tickets: Tickets,
    pace: Pace,
    meetings: Meetings,
    gathering: Option<Gathering>,
    lockstep: Option<Lockstep>,
    /// What keys are called, if not by their numbers.
    names: Option<KeyNames>,
    /// How many positions the longest session came to.
    positions: AtomicU64,
    epoch: Instant,
    nodes: Vec<Node>,
    sightings: Mutex<Vec<StateReport>>,
}

/// What is known of a node besides itself.
#[derive(Default)]
struct Node {
    /// How many sessions ended with a connection to it.
    reached: AtomicU32,
    /// What the last attempt to connect came to, if it failed.
    refusal: Mutex<Option<String>>,
}

impl Node {
    fn refused(&self, refusal: Option<String>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }

    /// What is in the way, if no session could reach it at the end.
    fn gone(&self) -> Option<String> {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        refusal.filter(|_| self.reached.load(Ordering::Relaxed) == 0)
    }
}

impl Shared<'_> {
    fn node_number(&self, session: u32) -> usize {
        session as usize % self.plan.databases.len()
    }

    fn sighted(&self, mut sightings: Vec<StateReport>) {
        let mut all = self.sightings.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut sightings);
    }

    fn node(&self, session: u32) -> &dyn Database {
        self.plan.databases[self.node_number(session)].as_ref()
    }
}

/// How often the run looks after itself.
const TICK: Duration = Duration::from_millis(100);

/// Runs sessions until they are done, or until the run is stopped. The databases are
/// [prepared](isolario_db::prepare).
///
/// Each session is a thread with a connection. Before a transaction is sent, its writes are in the
/// history's file; before the next one begins, so is all that it saw. `watch` hears ten times a
/// second how the run stands.
///
/// Clients ask for what the generator says: a workload of [`isolario_workload`], or one of your own.
///
/// ```
/// use std::time::Duration;
///
/// use isolario_db::{DbUrl, Layout, Settings, open};
/// use isolario_run::driver::{Control, RunPlan, run};
/// use isolario_workload::{Generator, Kind, AttemptedTxn, PlannedOp};
///
/// /// Every session increments the same counter, with values that tell who did.
/// struct Counter;
///
/// impl Generator for Counter {
///     fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
///         let AttemptedTxn { session, position, attempt } = place;
///         let value = 1 + i64::from(session) + 10 * (i64::from(attempt) + 10 * position as i64);
///         plan.extend([PlannedOp::Read { key: 0 }, PlannedOp::Write { key: 0, value }]);
///     }
/// }
///
/// # let dir = std::env::temp_dir().join(format!("isolario-counter-{}.iso", std::process::id()));
/// let settings = Settings { sessions: 4, ..Settings::default() };
/// let databases = [open(&DbUrl::parse("sim:serializable")?, &settings)?];
/// databases[0].prepare(&Layout::new(Kind::Mini, 1))?;
/// let plan = RunPlan {
///     databases: &databases,
///     generator: &Counter,
///     sessions: 4,
///     txns: Some(100),
///     duration: None,
///     rate: None,
///     think: Duration::ZERO,
///     gathers: false,
///     max_retries: 5,
///     patience: Duration::from_secs(10),
///     history: Some(&dir),
///     memory: 1 << 20,
/// };
/// let outcome = run(&plan, &Control::new(), &mut |_| {})?;
/// assert_eq!(outcome.counts.committed, 100);
/// assert!(outcome.history.is_some_and(|parsed| parsed.history.txn_count() >= 100));
/// # std::fs::remove_file(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(
    plan: &RunPlan<'_>,
    control: &Control,
    watch: &mut dyn FnMut(&RunProgress),
) -> Result<WorkloadOutcome, RunError> {
    run_then(plan, control, watch, None)
}

/// What comes after all sessions.
#[derive(Clone, Copy)]
pub struct LastSession<'l> {
    /// Is called when the sessions are done.
    pub before: &'l dyn Fn(),
    /// The transactions of one more session, given how many positions the longest session came to. Each is
    /// tried until it commits, or until the patience of the plan is over.
    pub txns: &'l dyn Fn(u64) -> Vec<Vec<PlannedOp>>,
}

/// As [`run`], and then some more, unless the run was interrupted. It is recorded, and not counted.
pub fn run_then(
    plan: &RunPlan<'_>,
    control: &Control,
    watch: &mut dyn FnMut(&RunProgress),
    last: Option<LastSession<'_>>,
) -> Result<WorkloadOutcome, RunError> {
    if plan.databases.is_empty() {
        return Err(RunError::Nothing("databases"));
    }
    if plan.sessions == 0 {
        return Err(RunError::Nothing("sessions"));
    }
    let recorder = match plan.history {
        Some(path) => Some(LiveRecorder::create(path, &Meta::default())?.keeping(plan.memory)),
        None => None,
    };
    let epoch = Instant::now();
    let shared = Shared {
        plan,
        control,
        recorder: recorder.as_ref(),
        meter: Meter::new(),
        events: Events::new(epoch),
        tickets: Tickets::new(plan.txns),
        pace: Pace::new(plan.rate),
        meetings: Meetings::new(plan.sessions, |session| plan.generator.rendezvous(session)),
        gathering: plan.gathers.then(|| Gathering::new(plan.sessions)),
        lockstep: (plan.generator.max_lead())
            .map(|max_lead| Lockstep::new(plan.sessions, max_lead)),
        names: recorder.as_ref().and_then(|_| plan.generator.key_names()),
        positions: AtomicU64::new(0),
        epoch,
        nodes: plan.databases.iter().map(|_| Node::default()).collect(),
        sightings: Mutex::default(),
    };
    let mut outcome = conduct(&shared, watch)?;
    if let Some(LastSession { before, txns }) = last.filter(|_| outcome.stopped == StopReason::Done)
    {
        before();
        let txns = txns(shared.positions.load(Ordering::Relaxed));
        let is_complete = Session::new(&shared, plan.sessions).drive_last(&txns);
        if !is_complete && outcome.stopped == StopReason::Done {
            outcome.stopped = StopReason::Database;
            outcome.cause = Some(stalled(&shared));
        }
    }
    match recorder.map(LiveRecorder::finish) {
        Some(Ok(history)) => outcome.history = history,
        // What was recorded stays as it is, and can be read.
        Some(Err(error)) if outcome.stopped == StopReason::Done => {
            outcome.stopped = StopReason::Recording;
            outcome.cause = Some(not_recorded(&error));
        }
        _ => {}
    }
    Ok(outcome)
}

/// Starts the sessions together, and watches over them until the last one has ended.
fn conduct(
    shared: &Shared<'_>,
    watch: &mut dyn FnMut(&RunProgress),
) -> Result<WorkloadOutcome, RunError> {
    let sessions: Vec<_> =
        (0..shared.plan.sessions).map(|number| Session::new(shared, number)).collect();
    let count = sessions.len();
    let gate = Barrier::new(count + 1);
    let (connected, arrivals) = channel();
    let (alive, ends) = channel::<()>();
    std::thread::scope(|scope| {
        for (number, mut session) in (0..).zip(sessions) {
            let (gate, connected, alive) = (&gate, connected.clone(), alive.clone());
            scope.spawn(move || {
                let arrived = session
                    .connect_first()
                    .map_err(|error| RunError::Connect { node: shared.node_number(number), error });
                let here = arrived.is_ok();
                // The other end lives until all have arrived.
                let _ = connected.send(arrived);
                gate.wait();
                if here {
                    session.drive();
                }
                drop(alive);
            });
        }
        drop((connected, alive));
        let all_here: Result<(), RunError> = arrivals.iter().take(count).collect();
        // Whoever was told to stop while it waited for a server has not failed.
        let is_stopped = shared.control.is_stopped();
        if all_here.is_err() {
            shared.control.stop(StopReason::Database, None);
        }
        gate.wait();
        match all_here {
            Err(error) if !is_stopped => Err(error),
            _ => Ok(attend(shared, &ends, watch)),
        }
    })
}

/// Watches over the sessions: counts seconds, and stops them when time is up.
fn attend(
    shared: &Shared<'_>,
    ends: &Receiver<()>,
    watch: &mut dyn FnMut(&RunProgress),
) -> WorkloadOutcome {
    let begun = Instant::now();
    let mut chronicle = Chronicle::new();
    let mut last_commit = (0, begun);
    let deadline = shared.plan.duration.map(|duration| begun + duration);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let ended = ends.recv_timeout(left.map_or(TICK, |left| left.min(TICK)));
        let elapsed = begun.elapsed();
        if ended == Err(RecvTimeoutError::Disconnected) {
            chronicle.close(&shared.meter);
            if shared.meter.counts().committed == last_commit.0 {
                shared.events.without_commit(last_commit.1, None);
            }
            return outcome(shared, chronicle, elapsed);
        }
        if left == Some(Duration::ZERO) {
            shared.control.stop(StopReason::Done, None);
            // The sessions are on their way out; no need to hurry any more.
            std::thread::sleep(Duration::from_millis(1));
        }
        while elapsed.as_secs() > chronicle.seconds.len() as u64 {
            chronicle.close(&shared.meter);
        }
        let counts = shared.meter.counts();
        if counts.committed > last_commit.0 {
            let now = Instant::now();
            shared.events.without_commit(last_commit.1, Some(now));
            last_commit = (counts.committed, now);
        } else if last_commit.1.elapsed() > shared.plan.patience {
            shared.control.stop(StopReason::Database, Some(stalled(shared)));
        }
        let throughput = chronicle.throughput(&counts, elapsed);
        watch(&RunProgress { elapsed, counts, throughput });
    }
}

fn stalled(shared: &Shared<'_>) -> StopCause {
    let stalled_ms = Some(shared.plan.patience.as_secs_f64() * 1e3);
    match shared.meter.last_error() {
        Some(LastError { node, error }) => StopCause { stalled_ms, ..failed(node, &error) },
        None => StopCause { stalled_ms, ..StopCause::default() },
    }
}

/// That a node failed.
fn failed(node: usize, error: &DbError) -> StopCause {
    let (code, message) = (error.code.clone(), Some(error.message.clone()));
    StopCause { node: Some(node), code, message, ..StopCause::default() }
}

/// That the history could not be written.
fn not_recorded(error: &SinkError) -> StopCause {
    StopCause { message: Some(error.to_string()), ..StopCause::default() }
}

fn gone(shared: &Shared<'_>) -> Vec<(usize, String)> {
    let nodes = shared.nodes.iter().enumerate();
    nodes.filter_map(|(number, node)| Some((number, node.gone()?))).collect()
}

fn outcome(shared: &Shared<'_>, chronicle: Chronicle, elapsed: Duration) -> WorkloadOutcome {
    let (stopped, cause) = shared.control.why();
    WorkloadOutcome {
        stopped,
        cause,
        counts: shared.meter.counts(),
        abort_reasons: shared.meter.abort_reasons(),
        latency: chronicle.latency(),
        seconds: chronicle.seconds,
        events: shared.events.take(),
        elapsed,
        epoch: shared.epoch,
        gone: gone(shared),
        sightings: std::mem::take(
            &mut shared.sightings.lock().unwrap_or_else(PoisonError::into_inner),
        ),
        history: None,
    }
}

#[cfg(test)]
mod tests;
