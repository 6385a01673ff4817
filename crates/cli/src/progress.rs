//! A sign of life for work that takes longer than a moment.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use isolario::check::{self, CheckOptions, Watcher};
use isolario::formats::Meter;
use isolario::report::printable;

/// Shorter work needs no sign.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the sign changes.
const TICK: Duration = Duration::from_millis(100);

/// Shows a message and the time on standard error while it lives, from the first second on.
/// Nothing is shown where that is not a terminal.
pub(crate) struct Progress {
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
    pub(crate) fn of_check(options: &mut CheckOptions) -> Progress {
        let message = Message(Arc::new(Mutex::new("checking".to_owned())));
        let shown = message.clone();
        options.watcher = Watcher::new(move |at| message.set(line(at)));
        Progress::show(move || shown.text())
    }

    /// A history that is read, with how much of it is, how fast, and how long the rest will take.
    pub(crate) fn of_reading(name: &str, meter: Meter) -> Progress {
        let name = printable(name).into_owned();
        let begun = Instant::now();
        Progress::show(move || {
            format!("reading {name}{}", share(meter.read(), meter.total(), begun.elapsed()))
        })
    }

    pub(crate) fn start(message: String) -> Progress {
        Progress::show(move || message.clone())
    }

    fn show(text: impl Fn() -> String + Send + 'static) -> Progress {
        let (done, ended) = channel::<()>();
        let watch = move || {
            // A time-out means that the work goes on; a closed channel, that it is over.
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = ProgressBar::new_spinner().with_message(text());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                    bar.set_style(style);
                }
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    bar.set_message(text());
                    bar.tick();
                }
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

/// How far a check has come, in words.
fn line(at: &check::LevelProgress) -> String {
    let (level, phase) = (at.level, at.phase.name());
    let mut line = format!("checking {level}: {phase}, {} of {} pairs", at.decided, at.pairs);
    if at.conflicts > 0 {
        line += &format!(", {} conflicts", at.conflicts);
    }
    line
}

/// How much of a whole was read in a time, and what follows for the rest.
fn share(read: u64, total: u64, elapsed: Duration) -> String {
    let (done, all) = (HumanBytes(read), HumanBytes(total));
    match read {
        _ if total == 0 => String::new(),
        0 => format!(", {all}"),
        // What frames the parts of a file is nobody's part.
        read if read >= total - total / 1000 => format!(", {all} read, putting it together"),
        read => {
            let speed = read as f64 / elapsed.as_secs_f64().max(0.001);
            let left = (total - read) as f64 / speed;
            let speed = HumanBytes(speed as u64);
            format!(", {done} of {all}, {speed}/s, {left:.0} s left")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_tells_when_the_rest_will_be() {
        let half = share(2 << 20, 8 << 20, Duration::from_secs(2));
        assert_eq!(half, ", 2.00 MiB of 8.00 MiB, 1.00 MiB/s, 6 s left");
        assert_eq!(share(0, 8 << 20, Duration::from_secs(2)), ", 8.00 MiB");
        let all = share(8 << 20, 8 << 20, Duration::from_secs(2));
        assert_eq!(all, ", 8.00 MiB read, putting it together");
        assert_eq!(share(0, 0, Duration::from_secs(2)), "");
    }

    #[test]
    fn short_work_does_not_wait_for_its_sign() {
        let begun = Instant::now();
        drop(Progress::start("reading".to_owned()));
        assert!(begun.elapsed() < PATIENCE);
    }
}
