//! A driver program: started, asked, and ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::wire;
use crate::error::DbError;

pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// The last line it wrote to standard error, and who listens there until the end.
    complaint: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
}

/// No answer is longer than this: a list of a million elements.
const LONGEST_LINE: u64 = 16 << 20;

/// How long the last words of a driver may take that has ended.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Process {
    /// Starts a command. It gets a process group of its own: Ctrl-C is for us to hear, and whatever
    /// it starts can be ended with it.
    pub(super) fn start(command: &str) -> Result<Process, DbError> {
        let failed = |error| DbError::fatal(format!("cannot start `{command}`: {error}"));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(DbError::fatal(format!("`{command}` has no standard streams")));
        };
        let (sender, answers) = channel();
        each_line(output, move |line| sender.send(line).is_ok());
        let complaint = Arc::new(Mutex::new(String::new()));
        let last = Arc::clone(&complaint);
        let listener = each_line(errors, move |line| {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = line;
            true
        });
        Ok(Process { child, input, answers, complaint, listener })
    }

    /// Sends a request and waits for its answer. A driver that ends or does not answer is lost; the
    /// caller knows what that means for the transaction.
    pub(super) fn ask(&mut self, request: &Value, patience: Duration) -> Result<Value, DbError> {
        let sent = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        if sent.is_err() {
            return Err(self.ended());
        }
        match self.answers.recv_timeout(patience) {
            Ok(line) => wire::read(&line),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs_f64();
                let message = format!("the driver has not answered for {seconds:.1} s");
                Err(DbError::retryable(message).disconnected())
            }
        }
    }

    /// Its last words come by another way than its answers, and may be a moment later.
    fn ended(&self) -> DbError {
        let deadline = Instant::now() + LAST_WORDS;
        while !self.listener.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let why = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let words = if why.is_empty() { String::new() } else { format!(": {why}") };
        DbError::retryable(format!("the driver has ended{words}")).disconnected()
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

/// Reads lines on a thread of its own, until there are no more or nobody wants them.
fn each_line(
    stream: impl Read + Send + 'static,
    mut take: impl FnMut(String) -> bool + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            match reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
                Ok(1..) if take(line.trim_end().to_owned()) => {}
                _ => return,
            }
        }
    })
}
