//! A sign of life for work that takes longer than a moment.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use isolario::check::{self, Options, Watcher};

/// Shorter work needs no sign.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the sign changes.
const TICK: Duration = Duration::from_millis(100);

/// Shows a message and the time on standard error while it lives, from the first second on.
/// Nothing shows where that is no terminal.
pub(crate) struct Progress {
    message: Message,
    /// Closing this channel ends the display.
    done: Option<Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

/// What is shown, and may change.
#[derive(Clone)]
struct Message(Arc<Mutex<String>>);

impl Message {
    fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Progress {
    /// A check, which says how far it has come where that takes long.
    pub(crate) fn of_check(options: &mut Options) -> Progress {
        let progress = Progress::start("checking".to_owned());
        let message = progress.message.clone();
        options.watcher = Watcher::new(move |at| message.set(line(at)));
        progress
    }

    pub(crate) fn start(message: String) -> Progress {
        let message = Message(Arc::new(Mutex::new(message)));
        let shown = message.clone();
        let (done, ended) = channel::<()>();
        let watch = move || {
            // A time-out means that the work goes on; a closed channel, that it is over.
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = ProgressBar::new_spinner().with_message(shown.text());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                    bar.set_style(style);
                }
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    bar.set_message(shown.text());
                    bar.tick();
                }
                bar.finish_and_clear();
            }
        };
        // Where no thread can be had, there is no display, and the work goes on.
        let watcher = std::thread::Builder::new().spawn(watch).ok();
        Progress { message, done: Some(done), watcher }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done = None;
        if let Some(watcher) = self.watcher.take() {
            // The line must be cleared before anything else is printed.
            let _ = watcher.join();
        }
    }
}

/// How far a check has come, in words.
fn line(at: &check::Progress) -> String {
    let (level, phase) = (at.level, at.phase.name());
    let mut line = format!("checking {level}: {phase}, {} of {} pairs", at.decided, at.pairs);
    if at.conflicts > 0 {
        line += &format!(", {} conflicts", at.conflicts);
    }
    line
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn short_work_does_not_wait_for_its_sign() {
        let begun = Instant::now();
        drop(Progress::start("reading".to_owned()));
        assert!(begun.elapsed() < PATIENCE);
    }
}
