//! A thread for transactions that cannot leave it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::LocalStore;
use super::session::{Answer, Call, Calls, Open};
use crate::error::DbError;

pub(super) struct Worker {
    /// Nothing once the worker is told to end.
    calls: Option<Sender<Call>>,
    answers: Receiver<Answer>,
    /// Nothing once it was given up: it may never come back.
    thread: Option<JoinHandle<()>>,
    patience: Duration,
}

impl Worker {
    pub(super) fn start<S: LocalStore>(
        store: Arc<S>,
        patience: Duration,
    ) -> Result<Worker, DbError> {
        let (calls, asked) = channel();
        let (answer, answers) = channel();
        let thread = Builder::new()
            .name("isolario-store".to_owned())
            .spawn(move || serve(store.as_ref(), &asked, &answer))
            .map_err(|error| DbError::fatal(format!("cannot start a thread: {error}")))?;
        Ok(Worker { calls: Some(calls), answers, thread: Some(thread), patience })
    }
}

fn serve<S: LocalStore>(store: &S, calls: &Receiver<Call>, answers: &Sender<Answer>) {
    let mut open = Open::default();
    for call in calls {
        let answer = open.perform(call, |access| store.begin(access));
        if answers.send(answer).is_err() {
            return;
        }
    }
}

impl Calls for Worker {
    fn call(&mut self, call: Call) -> Answer {
        let is_commit = matches!(call, Call::Commit);
        let sent = self.calls.as_ref().is_some_and(|calls| calls.send(call).is_ok());
        if !sent {
            return Err(DbError::retryable("the thread of the session has ended").disconnected());
        }
        match self.answers.recv_timeout(self.patience) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                (self.calls, self.thread) = (None, None);
                let message = format!("no answer after {:?}", self.patience);
                // What has not been asked to commit never will be: its thread drops it.
                Err(match is_commit {
                    true => DbError::unknown(message),
                    false => DbError::retryable(message).disconnected(),
                }
                .with_code("timeout"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(DbError::unknown("the thread of the session has ended"))
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.calls = None;
        // The transaction that is open goes before the store does.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
