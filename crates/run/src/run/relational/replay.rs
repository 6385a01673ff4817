//! A script, replayed: statements are sent in its order, each when the one before was answered or is
//! blocked.
//!
//! Whether a statement is blocked, the database tells where it can. Elsewhere the clock does: the
//! statement has not been answered for a while. If it was only slow, the next one is sent a little
//! early, and the order of the two is that of the database, as in any run; nothing wrong is concluded
//! from it.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use isolario_db::{DbError, LockView};
use isolario_sql::{Action, Aux, Instrument, RecordedTxn, Round, Schema, Script, Step};

use super::client::{Aftermath, Client, Shared, first_state};
use super::round::{full_read, mark_final};
use super::site::{Site, Stage};

/// How long a statement may take before the database is asked whether it is blocked, and how long between
/// two questions.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(5);
/// How long a statement may take before it is taken for blocked, where the database does not tell.
const PATIENCE: Duration = Duration::from_millis(60);

/// Replays a script on a fresh schema, which stays until the next one takes its place, or the stage is dropped.
pub(super) fn replay(
    site: &Site<'_>,
    stage: &Stage<'_>,
    script: &Script,
) -> Result<Round, DbError> {
    let (product, schema) = (&site.product, &script.schema);
    let aux = Aux::avoiding(schema).with_room_for(script.steps.len());
    let used = site.is_instrumented().then_some(&aux);
    stage.make(schema, used)?;
    let instrument = used.map(|aux| Instrument { product, schema, aux });
    let shared = Shared::new(product, instrument).with_companion(stage.companion());
    let sessions = script.steps.iter().map(|step| step.session + 1).max().unwrap_or(0);
    let mut clients = Vec::new();
    for session in 0..sessions {
        clients.push(Client { shared: &shared, session, connection: stage.connect(session)? });
    }
    let mut views = stage.lock_views()?;
    let first = first_state(&mut clients)?;
    let mut round = Round { first, is_in_turn: true, ..Round::default() };
    std::thread::scope(|scope| {
        let (answered, answers) = channel();
        let mut lines = Vec::new();
        let mut threads = Vec::new();
        for (session, client) in clients.into_iter().enumerate() {
            let (line, orders) = channel();
            let answered = answered.clone();
            let id = client.connection.id();
            lines.push(Line { orders: line, waiting: VecDeque::new(), is_busy: false, id });
            let schema = &script.schema;
            threads.push(scope.spawn(move || {
                let reporter = Reporter { answered, session };
                let (current, done) = (None, Vec::new());
                let actor = Actor { client, orders, current, done, is_lost: false };
                actor.play(schema, &|| reporter.report())
            }));
        }
        Conductor { lines, answers, views: &mut views }.conduct(&script.steps);
        for thread in threads {
            let done = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            round.transactions.extend(done);
        }
    });
    number_last_looks(&mut round);
    Ok(round)
}

/// The last looks were taken one after the other, but have no numbers yet.
fn number_last_looks(round: &mut Round) {
    round.transactions.sort_by_key(|txn| (txn.is_final, txn.id, txn.session));
    let mut last = 0;
    for txn in &mut round.transactions {
        if txn.is_final {
            txn.id = last + 1;
        }
        last = txn.id;
    }
}

/// What a session is told to do.
enum Order {
    Step(Step),
    LastLook,
}

/// A session, as the conductor knows it.
struct Line {
    orders: Sender<Order>,
    waiting: VecDeque<Order>,
    is_busy: bool,
    /// The database's own number of its connection.
    id: Option<u64>,
}

/// Tells the conductor that a session is free. Dropped, it does so once more: by then, the session takes no further
/// orders, even if it ended in a panic.
struct Reporter {
    answered: Sender<usize>,
    session: usize,
}

impl Reporter {
    /// Whether the conductor is still there.
    fn report(&self) -> bool {
        self.answered.send(self.session).is_ok()
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.report();
    }
}

/// Sends the steps of a script, in turn.
struct Conductor<'v> {
    lines: Vec<Line>,
    answers: Receiver<usize>,
    /// Per node, who waits there.
    views: &'v mut [Option<Box<dyn LockView>>],
}

impl Conductor<'_> {
    /// When it returns, nobody gets anything to do any more.
    fn conduct(mut self, steps: &[Step]) {
        for step in steps {
            let session = step.session as usize;
            let frees = matches!(step.action, Action::Commit | Action::Rollback);
            self.lines[session].waiting.push_back(Order::Step(step.clone()));
            self.advance(session);
            // What this step has freed goes on before the next one does.
            if frees {
                (0..self.lines.len()).for_each(|session| self.settle(session));
            }
        }
        while self.lines.iter().any(|line| line.is_busy || !line.waiting.is_empty()) {
            // A statement that stays blocked ends with an error of the database.
            if !self.answer(Duration::from_secs(60)) {
                return;
            }
        }
        for session in 0..self.lines.len() {
            self.lines[session].waiting.push_back(Order::LastLook);
            self.advance(session);
            while self.lines[session].is_busy && self.answer(Duration::from_secs(60)) {}
        }
    }

    /// Sends what a session has to do next, if it is free, and waits until that is done or blocked.
    fn advance(&mut self, session: usize) {
        while !self.lines[session].is_busy {
            let Some(order) = self.lines[session].waiting.pop_front() else { return };
            self.lines[session].is_busy = self.lines[session].orders.send(order).is_ok();
            self.settle(session);
        }
    }

    /// Waits until a session is free or blocked.
    fn settle(&mut self, session: usize) {
        let patience = match self.view_of(session) {
            Some(_) => BETWEEN_QUESTIONS,
            None => PATIENCE,
        };
        while self.lines[session].is_busy && (self.answer(patience) || !self.is_blocked(session)) {}
    }

    /// Who can tell whether a session waits, and its number there.
    fn view_of(&mut self, session: usize) -> Option<(&mut dyn LockView, u64)> {
        let node = session % self.views.len().max(1);
        let view = self.views.get_mut(node)?.as_deref_mut()?;
        Some((view, self.lines[session].id?))
    }

    /// Whether a session waits for another one, as far as the database tells. Silence is taken for
    /// waiting where it does not.
    fn is_blocked(&mut self, session: usize) -> bool {
        self.view_of(session).is_none_or(|(view, id)| view.is_waiting(id).unwrap_or(true))
    }

    /// Waits for any answer; false if none comes in time.
    fn answer(&mut self, patience: Duration) -> bool {
        match self.answers.recv_timeout(patience) {
            Ok(session) => {
                let line = &mut self.lines[session];
                line.is_busy = false;
                while !line.is_busy
                    && let Some(order) = line.waiting.pop_front()
                {
                    line.is_busy = line.orders.send(order).is_ok();
                }
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }
}

/// A session that plays its part.
struct Actor<'r> {
    client: Client<'r>,
    orders: Receiver<Order>,
    current: Option<RecordedTxn>,
    done: Vec<RecordedTxn>,
    is_lost: bool,
}

impl Actor<'_> {
    /// Does what it is told, and says so after each step, until nobody tells it anything any more.
    fn play(mut self, schema: &Schema, answer: &dyn Fn() -> bool) -> Vec<RecordedTxn> {
        while let Ok(order) = self.orders.recv() {
            match order {
                _ if self.is_lost => {}
                Order::Step(step) => self.step(step),
                Order::LastLook => {
                    self.end(false);
                    let mut ran = self.client.transaction(&full_read(schema), &|| false);
                    mark_final(&mut ran.txn, schema);
                    self.done.push(ran.txn);
                }
            }
            if !answer() {
                break;
            }
        }
        self.done.extend(self.current.take());
        self.done
    }

    fn step(&mut self, Step { session, txn, action }: Step) {
        match action {
            Action::Begin => {
                self.end(false);
                let mut begun = RecordedTxn::new(txn, session);
                self.is_lost = self.client.begin(&mut begun);
                self.current = Some(begun);
            }
            Action::Statement(sql) => match self.current.take() {
                Some(current) => self.statement(&sql, current),
                // Its transaction is over already, or it stands by itself.
                None if self.done.last().is_some_and(|last| last.id == txn) => {}
                None => {
                    let mut alone = RecordedTxn::new(txn, session);
                    let sent = self.client.shared.prepared(&sql, txn, 1);
                    self.is_lost = self.client.alone(&sql, &sent, &mut alone);
                    self.done.push(alone);
                }
            },
            Action::Commit => self.end(true),
            Action::Rollback => self.end(false),
        }
    }

    fn statement(&mut self, sql: &str, mut current: RecordedTxn) {
        let number = current.statements.len() as u32 + 1;
        let sent = self.client.shared.prepared(sql, current.id, number);
        match self.client.statement(sql, &sent, number, &mut current) {
            None | Some(Aftermath::GoesOn) => self.current = Some(current),
            Some(Aftermath::Lost) => {
                self.is_lost = true;
                self.done.push(current);
            }
            Some(Aftermath::Over) => {
                self.is_lost = self.client.roll_back();
                self.done.push(current);
            }
        }
    }

    /// Ends the transaction, if one is open.
    fn end(&mut self, commits: bool) {
        let Some(mut current) = self.current.take() else { return };
        self.is_lost = self.client.end(&mut current, commits);
        self.done.push(current);
    }
}
