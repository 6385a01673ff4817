//! A run does not read its own history.

use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::sandbox::Sandbox;

/// Notes which files of a directory are opened.
struct Opened(OwnedFd);

impl Opened {
    fn of(directory: &Path) -> Opened {
        let notes = inotify::init(CreateFlags::NONBLOCK).unwrap();
        let wanted = WatchFlags::CLOSE_NOWRITE | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&notes, directory, wanted).unwrap();
        Opened(notes)
    }

    /// The files that were opened and closed since the last call, each with whether it was opened to be written.
    fn files(&self) -> Vec<(String, bool)> {
        let mut buffer = [MaybeUninit::uninit(); 1 << 14];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut files = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    files.push((name, event.events().contains(ReadFlags::CLOSE_WRITE)));
                }
                Err(error) => {
                    assert_eq!(error, Errno::WOULDBLOCK);
                    return files;
                }
            }
        }
    }
}

#[test]
fn a_run_checks_what_it_recorded_without_reading_its_history() {
    let sandbox = Sandbox::new();
    for (directory, flags) in [
        ("sqlite", &["--txns", "400"][..]),
        ("wrong", &["--db", "sim:rc?anomaly=thin-air-read", "--txns", "2000"]),
        ("rows", &["--workload", "predicate", "--txns", "300", "--whitebox", "--db", "sim:ser"]),
    ] {
        std::fs::create_dir(sandbox.path(directory)).unwrap();
        let opened = Opened::of(&sandbox.path(directory));
        let run = [&["run", "--seed", "7", "--out", directory], flags].concat();
        let output = sandbox.run(&run);
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        let files = opened.files();
        let is_history = |(name, _): &&(String, bool)| name == "history.iso";
        let histories: Vec<_> = files.iter().filter(is_history).collect();
        // The recorder has it open for as long as clients run.
        assert_eq!(histories, [&("history.iso".to_owned(), true)], "{directory}: {files:?}");
        // A reader shows.
        sandbox.run(&["check", "--level", "rc", directory]);
        assert!(opened.files().contains(&("history.iso".to_owned(), false)), "{directory}");
    }
}
