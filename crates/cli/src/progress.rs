//! A sign of life for work that takes longer than a moment.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter work needs no sign.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows a message and the time on standard error while it lives, from the first second on.
/// Nothing shows where that is no terminal.
pub(crate) struct Progress {
    /// Closing this channel ends the display.
    done: Option<Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(message: String) -> Progress {
        let (done, ended) = channel::<()>();
        let watch = move || {
            // A time-out means that the work goes on; a closed channel, that it is over.
            if ended.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let bar = ProgressBar::new_spinner().with_message(message);
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                    bar.set_style(style);
                }
                bar.enable_steady_tick(Duration::from_millis(100));
                let _ = ended.recv();
                bar.finish_and_clear();
            }
        };
        // Where no thread can be had, there is no display, and the work goes on.
        let watcher = std::thread::Builder::new().spawn(watch).ok();
        Progress { done: Some(done), watcher }
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
