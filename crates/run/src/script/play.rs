//! Plays a script: one step at a time, and whoever has to wait is left waiting.
//!
//! Which steps wait is the database's business, so a script does not know. A step that was sent is
//! *settled* when its answer is there, or when it is known to wait for another session: by the
//! server's own view of its locks, or, where there is none, because it has been silent for long. The
//! next step is sent when all are settled. It is the first of the script whose session does not
//! wait; so the steps of a session that waits are put off, and come before later ones when it is
//! free again. For the same answers of the database, the order of events is the same.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use isolario_workload::Kind;

use super::worker::{Line, Order, Reply, Report, Start, Worker};
use super::{Script, ScriptAction, ScriptFamily};
use isolario_db::{Database, Layout, LockView, SqlDatabase, prepare};
use isolario_db::{DbError, ErrorClass};

/// How many keys there is room for. Every play takes new ones.
const KEYS: u32 = 10_000;

/// The first look at a step that does not answer at once, and the longest pause between two looks.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How long a step is silent that waits, where nobody can be asked; and where the view of locks
/// does not know better: some waits are not for locks.
const SILENT: Duration = Duration::from_millis(200);
const SILENT_IN_SPITE_OF_VIEW: Duration = Duration::from_secs(3);

/// How long two sessions that both wait are given to fail by deadlock, before others go on: that
/// decides who is the victim before anything changes.
const DEADLOCK: Duration = Duration::from_millis(100);

/// How long to wait for an answer when nobody can do anything else. Connections have time-outs of
/// their own.
const AT_MOST: Duration = Duration::from_secs(300);

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepResult {
    /// When it was sent, since the play began; nothing if it never was, because its transaction had
    /// failed before.
    pub sent: Option<Duration>,
    /// When the answer came.
    pub answered: Option<Duration>,
    /// Whether it had to wait for another session.
    pub waited: bool,
    /// The answer.
    pub result: Option<Result<Reply, DbError>>,
}

/// What happened, and to which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptEvent {
    /// It was sent.
    Sent(usize),
    /// It was found to wait.
    Waits(usize),
    /// It was answered.
    Answered(usize),
}

/// How a script went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptRun {
    /// What came of each step of the script.
    pub turns: Vec<StepResult>,
    /// All that happened, in order.
    pub events: Vec<ScriptEvent>,
}

impl ScriptRun {
    /// Whether every step came out as the script has it.
    pub fn went_as_written(&self, script: &Script) -> bool {
        self.surprises(script).next().is_none()
    }

    /// The steps that came out otherwise, by their positions.
    pub fn surprises<'a>(&'a self, script: &'a Script) -> impl Iterator<Item = usize> + 'a {
        let steps = script.steps.iter().zip(&self.turns).enumerate();
        steps.filter_map(|(at, (step, turn))| match &turn.result {
            Some(result) if step.expected.is_satisfied_by(turn.waited, result) => None,
            _ => Some(at),
        })
    }

    /// The first error that the script does not ask for.
    pub fn refusal(&self, script: &Script) -> Option<&DbError> {
        let steps = script.steps.iter().zip(&self.turns);
        steps
            .filter(|(step, _)| step.expected.fails.is_none())
            .find_map(|(_, turn)| turn.result.as_ref().and_then(|result| result.as_ref().err()))
    }

    /// Whether somebody had to wait.
    pub fn waited(&self) -> bool {
        self.turns.iter().any(|turn| turn.waited)
    }
}

/// A session of a script on a node: whether its connection takes SQL, the session, the node.
type Seat = (bool, usize, usize);

/// A database that scripts are played on. Connections stay open from one play to the next.
pub struct ScriptRunner<'d> {
    nodes: &'d [Box<dyn Database>],
    views: Vec<Option<Box<dyn LockView>>>,
    workers: BTreeMap<Seat, Worker>,
    next_key: u64,
    /// Whether the table of registers is as registers need it.
    has_registers: bool,
    sender: Sender<Report>,
    reports: Receiver<Report>,
}

impl<'d> ScriptRunner<'d> {
    /// Makes room for scripts, on all nodes: empty tables of our own.
    pub fn new(nodes: &'d [Box<dyn Database>]) -> Result<ScriptRunner<'d>, DbError> {
        make_room(nodes)?;
        let views = nodes
            .iter()
            .map(|node| node.sql().map_or(Ok(None), SqlDatabase::lock_view))
            .collect::<Result<_, _>>()?;
        let (sender, reports) = mpsc::channel();
        let (workers, has_registers) = (BTreeMap::new(), true);
        Ok(ScriptRunner { nodes, views, workers, next_key: 0, has_registers, sender, reports })
    }

    /// The layout that scripts need, with room for the mark of the run.
    pub fn room() -> Layout {
        Layout::new(Kind::General, KEYS + 1)
    }

    /// Plays a script. What the database refuses is part of the play; an error is what no isolation
    /// level explains, such as a statement that it does not understand.
    pub fn play(&mut self, script: &Script) -> Result<ScriptRun, DbError> {
        let keys = script.keys.len() as u64;
        if self.next_key + keys > u64::from(KEYS) {
            return Err(DbError::fatal(format!("scripts have used up all {KEYS} keys")));
        }
        match script.family {
            ScriptFamily::Sql => self.clear_table()?,
            _ if !self.has_registers => {
                // Connections may have prepared statements for the tables that are to go.
                self.workers.clear();
                make_room(self.nodes)?;
                self.has_registers = true;
            }
            _ => {}
        }
        let play = Performance::new(self, script).run();
        self.next_key += keys;
        if play.is_err() {
            // Nobody knows what their connections are doing.
            self.workers.clear();
            while self.reports.try_recv().is_ok() {}
        }
        play
    }

    /// Statements in SQL find our table of registers empty, without the rows that registers may
    /// need.
    fn clear_table(&mut self) -> Result<(), DbError> {
        self.has_registers = false;
        let node = self.nodes.first().ok_or_else(|| DbError::fatal("there is no database"))?;
        node.sql()?.connect_sql()?.statement("DELETE FROM isolario_register", true).map(|_| ())
    }

    fn worker(&mut self, seat: Seat) -> Result<&Worker, DbError> {
        if !self.workers.contains_key(&seat) {
            let (is_sql, _, node) = seat;
            let line = Line::open(self.nodes[node].as_ref(), is_sql)?;
            self.workers.insert(seat, Worker::start(line, self.sender.clone())?);
        }
        Ok(&self.workers[&seat])
    }
}

fn make_room(nodes: &[Box<dyn Database>]) -> Result<(), DbError> {
    prepare(nodes, &ScriptRunner::room()).map_err(|(_, error)| error)
}

/// A play under way.
struct Performance<'s, 'd> {
    stage: &'s mut ScriptRunner<'d>,
    script: &'s Script,
    begun: Instant,
    play: ScriptRun,
    /// Which steps were sent, or will never be.
    is_over: Vec<bool>,
    /// The steps that were answered since all were settled.
    answered: Vec<usize>,
    sessions: Vec<Session>,
}

#[derive(Clone, Default)]
struct Session {
    /// The step that is not answered.
    busy: Option<usize>,
    /// Whether its transaction has failed, and the rest of it is left out.
    has_failed: bool,
    /// The node that its transaction runs on.
    node: usize,
}

impl<'s, 'd> Performance<'s, 'd> {
    fn new(stage: &'s mut ScriptRunner<'d>, script: &'s Script) -> Performance<'s, 'd> {
        let steps = script.steps.len();
        Performance {
            stage,
            script,
            begun: Instant::now(),
            play: ScriptRun { turns: vec![StepResult::default(); steps], events: Vec::new() },
            is_over: vec![false; steps],
            answered: Vec::new(),
            sessions: vec![Session::default(); script.sessions.len()],
        }
    }

    fn run(mut self) -> Result<ScriptRun, DbError> {
        // Connections first: they are not part of the play.
        for step in &self.script.steps {
            if let ScriptAction::Begin { node, .. } = step.action {
                self.seat_at(step.session, node)?;
            }
        }
        self.begun = Instant::now();
        loop {
            match self.next() {
                Some(step) => {
                    let group = self.group(step);
                    self.send(&group)?;
                    self.settle(&group)?;
                }
                None if self.is_anybody_busy() => {
                    if !self.hear(AT_MOST)? {
                        return Err(DbError::fatal(
                            "the script is stuck: no session has answered, and none can continue",
                        ));
                    }
                    self.settle(&[])?;
                }
                None => return Ok(self.play),
            }
        }
    }

    fn is_anybody_busy(&self) -> bool {
        self.sessions.iter().any(|session| session.busy.is_some())
    }

    /// The first step whose session is free. `finally` comes after everybody else.
    fn next(&self) -> Option<usize> {
        (0..self.is_over.len()).find(|step| {
            let session = self.script.steps[*step].session;
            let is_last = self.script.sessions[session] == "finally";
            !self.is_over[*step]
                && self.sessions[session].busy.is_none()
                && !(is_last && self.is_anybody_busy())
        })
    }

    /// Where a session sits on a node; nodes are counted round.
    fn seat_at(&mut self, session: usize, node: usize) -> Result<Seat, DbError> {
        let seat =
            (self.script.family == ScriptFamily::Sql, session, node % self.stage.nodes.len());
        self.stage.worker(seat)?;
        Ok(seat)
    }

    /// A step, and those that go together with it, unless their sessions wait.
    fn group(&self, first: usize) -> Vec<usize> {
        let steps = self.script.steps.iter().enumerate().skip(first + 1);
        let along = steps.take_while(|(_, step)| step.together).map(|(step, _)| step);
        let free = along.filter(|step| {
            !self.is_over[*step] && self.sessions[self.script.steps[*step].session].busy.is_none()
        });
        std::iter::once(first).chain(free).collect()
    }

    /// Sends steps at the same time. Those whose transaction has failed are left out.
    fn send(&mut self, steps: &[usize]) -> Result<(), DbError> {
        let mut orders = Vec::new();
        for number in steps {
            let step = &self.script.steps[*number];
            self.is_over[*number] = true;
            let session = &mut self.sessions[step.session];
            if let ScriptAction::Begin { node, .. } = step.action {
                (session.node, session.has_failed) = (node, false);
            }
            if !session.has_failed {
                session.busy = Some(*number);
                let node = session.node;
                orders.push((*number, self.seat_at(step.session, node)?));
            }
        }
        let start = Start::of(orders.len());
        for (number, seat) in orders {
            let order = self.order(&self.script.steps[number].action);
            self.play.turns[number].sent = Some(self.begun.elapsed());
            self.play.events.push(ScriptEvent::Sent(number));
            self.stage.worker(seat)?.send(number, order, start.clone())?;
        }
        Ok(())
    }

    fn order(&self, action: &ScriptAction) -> Order {
        let key = |key: &usize| self.stage.next_key + *key as u64;
        match action {
            ScriptAction::Begin { writes, .. } => Order::Begin { writes: *writes },
            ScriptAction::Commit => Order::Commit,
            ScriptAction::Rollback => Order::Rollback,
            ScriptAction::Read(register) => Order::Read(key(register)),
            ScriptAction::Write(register, value) => Order::Write(key(register), *value),
            ScriptAction::Delete(register) => Order::Delete(key(register)),
            ScriptAction::ReadList(list) => Order::ReadList(key(list)),
            ScriptAction::Append(list, element) => Order::Append(key(list), *element),
            ScriptAction::Sql(sql) => Order::Sql(sql.clone()),
        }
    }

    /// Waits for an answer; tells whether one came.
    fn hear(&mut self, at_most: Duration) -> Result<bool, DbError> {
        let report = match self.stage.reports.recv_timeout(at_most) {
            Ok(report) => report,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(DbError::fatal("the threads of all sessions have ended"));
            }
        };
        let step = &self.script.steps[report.step];
        let session = &mut self.sessions[step.session];
        session.busy = None;
        if let Err(error) = &report.result {
            session.has_failed = !step.action.is_end();
            if error.disconnected {
                let node = session.node;
                let seat = self.seat_at(step.session, node)?;
                self.stage.workers.remove(&seat);
            }
            // Whoever is refused for the sake of isolation may try again.
            let is_refusal = error.class == ErrorClass::Retryable && !error.disconnected;
            if !is_refusal && step.expected.fails.is_none() {
                let line = step.line;
                let message = format!("line {line} of {}: {}", self.script.name, error.message);
                let mut error = error.clone();
                error.message = message;
                return Err(error);
            }
        }
        let turn = &mut self.play.turns[report.step];
        turn.answered = Some(report.at.saturating_duration_since(self.begun));
        turn.result = Some(report.result);
        self.answered.push(report.step);
        Ok(true)
    }

    /// Returns when every step that was sent is answered, or is known to wait. The new ones were sent
    /// just now.
    fn settle(&mut self, new: &[usize]) -> Result<(), DbError> {
        let mut since = Instant::now();
        let mut pause = FIRST_LOOK;
        // How often in a row each session was seen to wait.
        let mut seen = vec![0u32; self.sessions.len()];
        let mut is_patient = false;
        while self.is_anybody_busy() {
            if self.hear(pause)? {
                // Somebody else may be free now.
                (since, pause) = (Instant::now(), FIRST_LOOK);
                seen.fill(0);
                continue;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            let busy: Vec<usize> =
                (0..seen.len()).filter(|at| self.sessions[*at].busy.is_some()).collect();
            for session in &busy {
                let waits = self.is_waiting(*session, since.elapsed())?;
                seen[*session] = if waits { seen[*session] + 1 } else { 0 };
            }
            // Once may be a moment that passes by itself.
            if !busy.iter().all(|session| seen[*session] >= 2) {
                continue;
            }
            let is_news = new.iter().any(|step| self.play.turns[*step].result.is_none());
            if is_news && busy.len() > 1 && !is_patient {
                (pause, is_patient) = (DEADLOCK, true);
                continue;
            }
            break;
        }
        self.note(new);
        Ok(())
    }

    /// Notes what happened until all were settled. Which of several answers came first is a matter of
    /// chance, and says nothing: those to the new steps go first, then which of these wait, then what
    /// that meant for the others.
    fn note(&mut self, new: &[usize]) {
        let mut answered = std::mem::take(&mut self.answered);
        answered.sort_unstable();
        let (first, last): (Vec<usize>, Vec<usize>) =
            answered.into_iter().partition(|step| new.contains(step));
        self.play.events.extend(first.into_iter().map(ScriptEvent::Answered));
        for session in &self.sessions {
            let Some(step) = session.busy else { continue };
            if !std::mem::replace(&mut self.play.turns[step].waited, true) {
                self.play.events.push(ScriptEvent::Waits(step));
            }
        }
        self.play.events.extend(last.into_iter().map(ScriptEvent::Answered));
    }

    fn is_waiting(&mut self, session: usize, silent: Duration) -> Result<bool, DbError> {
        let node = self.sessions[session].node;
        let seat = self.seat_at(session, node)?;
        let id = self.stage.worker(seat)?.id;
        match (&mut self.stage.views[seat.2], id) {
            (Some(view), Some(id)) => Ok(view.is_waiting(id)? || silent > SILENT_IN_SPITE_OF_VIEW),
            _ => Ok(silent > SILENT),
        }
    }
}
