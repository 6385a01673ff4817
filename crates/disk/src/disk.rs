//! A directory with power that can fail.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, SessionACL, spawn_mount};
use rustix::mount::UnmountFlags;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::files::{Files, directory};
use crate::unsynced::Unsynced;

/// How long somebody who has just ended may still use files.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A directory that forgets what was not synced when its power fails. When the value is dropped, the directory is
/// an ordinary one again, and has all that was written.
#[derive(Debug)]
pub struct Disk {
    place: PathBuf,
    /// The directory itself, below the file system that covers it.
    root: Arc<File>,
    unsynced: Arc<Mutex<Unsynced>>,
    session: Option<BackgroundSession>,
}

impl Disk {
    /// Gets between an existing directory and its users. What is in it counts as synced. Needs `/dev/fuse`,
    /// and to be root or to have `fusermount3`.
    pub fn over(place: &Path) -> io::Result<Disk> {
        allow_many_files();
        let place = place.canonicalize()?;
        let root = Arc::new(directory(&place)?);
        let mut disk = Disk { place, root, unsynced: Arc::default(), session: None };
        disk.mount()?;
        Ok(disk)
    }

    /// All that was written until now counts as synced.
    pub fn sync(&self) {
        self.unsynced().forget_all();
    }

    /// The power fails, and comes back: files have what they had when they were last synced. Nobody may
    /// use any of them any more; who has just ended is waited for.
    pub fn fail(&mut self) -> io::Result<()> {
        self.unmount()?;
        self.unsynced().restore()?;
        self.mount()
    }

    fn mount(&mut self) -> io::Result<()> {
        let files = Files::below(Arc::clone(&self.root), Arc::clone(&self.unsynced))?;
        let mut config = Config::default();
        let name = MountOption::FSName("isolario-disk".to_owned());
        config.mount_options = vec![name, MountOption::DefaultPermissions];
        // Who starts a server as root often gives it another account.
        if rustix::process::geteuid().is_root() {
            config.acl = SessionACL::All;
        }
        self.session = Some(spawn_mount(files, &self.place, &config)?);
        Ok(())
    }

    fn unmount(&mut self) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        // Who is not root may not do this; then it is left to whoever may, when the session is dropped.
        _ = rustix::mount::unmount(&self.place, UnmountFlags::DETACH);
        let BackgroundSession { guard, .. } = session;
        let deadline = Instant::now() + PATIENCE;
        while !guard.is_finished() {
            if Instant::now() > deadline {
                let place = self.place.display();
                return Err(io::Error::other(format!("files in {place} are still in use")));
            }
            sleep(POLL);
        }
        guard.join().unwrap_or_else(|_| Err(io::Error::other("the file system has panicked")))
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever has not ended by now keeps a file system that nobody else sees.
        _ = self.unmount();
    }
}

/// There is a descriptor for every file that somebody knows of.
fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With a limit that stays low, a small database still works.
    _ = setrlimit(Resource::Nofile, limit);
}
