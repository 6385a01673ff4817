//! A driver program: started, asked by one session or by many, and ended.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::wire;
use crate::error::DbError;
use crate::locked::locked;

pub(super) struct Process {
    child: Child,
    input: Mutex<ChildStdin>,
    routes: Arc<Mutex<Routes>>,
    /// The last line it wrote to standard error, and who listens there until the end.
    complaint: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
}

/// Who waits for answers.
#[derive(Default)]
struct Routes {
    sessions: BTreeMap<u64, Sender<String>>,
    /// Whether answers say whose they are; otherwise, there is one session.
    shared: bool,
    /// The number of the next session.
    next: u64,
    /// Whether no more answers will come.
    over: bool,
}

/// No answer is longer than this: a list of a million elements.
const LONGEST_LINE: u64 = 16 << 20;

/// How long the last words of a driver may take that has ended.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Process {
    /// Starts a command. It gets a process group of its own: Ctrl-C is for us to hear, and whatever
    /// it starts can be ended with it.
    pub(super) fn start(command: &str) -> Result<Arc<Process>, DbError> {
        let failed = |error| DbError::fatal(format!("cannot start `{command}`: {error}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(DbError::fatal(format!("`{command}` has no standard streams")));
        };
        let routes = Arc::new(Mutex::new(Routes::default()));
        let (to_sessions, at_end) = (Arc::clone(&routes), Arc::clone(&routes));
        each_line(
            output,
            move |line| locked(&to_sessions).pass_on(line),
            move || {
                locked(&at_end).close();
            },
        );
        let complaint = Arc::new(Mutex::new(String::new()));
        let last = Arc::clone(&complaint);
        let listener = each_line(errors, move |line| *locked(&last) = line, || {});
        Ok(Arc::new(Process { child, input: Mutex::new(input), routes, complaint, listener }))
    }

    /// Lets many sessions ask, each by a number: requests and answers carry it from now on.
    pub(super) fn share(&self) {
        locked(&self.routes).shared = true;
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        locked(&self.routes).over
    }

    fn send(&self, request: &Value) -> std::io::Result<()> {
        let mut input = locked(&self.input);
        writeln!(input, "{request}").and_then(|()| input.flush())
    }

    /// Its last words come by another way than its answers, and may be a moment later.
    fn ended(&self) -> DbError {
        let deadline = Instant::now() + LAST_WORDS;
        while !self.listener.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let why = locked(&self.complaint).clone();
        let words = if why.is_empty() { String::new() } else { format!(": {why}") };
        DbError::retryable(format!("the driver process has ended{words}")).disconnected()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed: that is not a failure.
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Routes {
    fn pass_on(&mut self, line: String) {
        let session = if self.shared { wire::session_of(&line) } else { Some(0) };
        match session {
            // Who has gone wants no answer any more.
            Some(session) => {
                let _ = self.sessions.get(&session).map(|waiting| waiting.send(line));
            }
            // Nobody knows whose it is. Whoever waits is told what came instead of an answer.
            None => {
                let _ = self.sessions.values().try_for_each(|waiting| waiting.send(line.clone()));
            }
        }
    }

    fn close(&mut self) {
        self.over = true;
        self.sessions.clear();
    }
}

/// The requests and answers of one session.
pub(super) struct Line {
    process: Arc<Process>,
    /// Its number, and whether requests carry it.
    session: u64,
    shared: bool,
    answers: Receiver<String>,
}

impl Line {
    /// To a process that is nobody else's; or to one that is shared, another session.
    pub(super) fn to(process: &Arc<Process>) -> Line {
        let (sender, answers) = channel();
        let mut routes = locked(&process.routes);
        let session = routes.next;
        routes.next += 1;
        // Who waits for a process that has ended hears so at once.
        if !routes.over {
            routes.sessions.insert(session, sender);
        }
        let shared = routes.shared;
        drop(routes);
        Line { process: Arc::clone(process), session, shared, answers }
    }

    /// Sends a request and waits for its answer. A driver that ends or does not answer is lost; the
    /// caller knows what that means for the transaction.
    pub(super) fn ask(&mut self, request: Value, patience: Duration) -> Result<Value, DbError> {
        if self.process.send(&self.addressed(request)).is_err() {
            return Err(self.process.ended());
        }
        match self.answers.recv_timeout(patience) {
            Ok(line) if self.shared => wire::read_shared(&line),
            Ok(line) => wire::read(&line),
            Err(RecvTimeoutError::Disconnected) => Err(self.process.ended()),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs_f64();
                let message = format!("the driver has not answered for {seconds:.1} s");
                Err(DbError::retryable(message).disconnected())
            }
        }
    }

    fn addressed(&self, mut request: Value) -> Value {
        if self.shared {
            request["session"] = json!(self.session);
        }
        request
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        locked(&self.process.routes).sessions.remove(&self.session);
        if self.shared {
            // A driver that has ended needs no farewell.
            let _ = self.process.send(&self.addressed(json!({ "do": "disconnect" })));
        }
    }
}

/// Reads lines on a thread of its own, until there are no more.
fn each_line(
    stream: impl Read + Send + 'static,
    mut take: impl FnMut(String) + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while let Ok(1..) = reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
            take(line.trim_end().to_owned());
            line.clear();
        }
        end();
    })
}
