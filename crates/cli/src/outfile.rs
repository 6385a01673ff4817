//! Files that a command writes, opened so that nothing is destroyed.
//!
//! A regular file is written beside its place and renamed at the end: whoever looks finds the old
//! content or the new one, never a part. Links are followed, so that they stay links. Whatever is
//! not a regular file (a pipe, a device, a descriptor of this process) is written through: a rename
//! would put a file in its place. A file that can be written but not replaced (in a directory that
//! is read-only, or mounted by itself, as containers do) gets the new content once it is complete.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::console::PipeTolerant;
use crate::failure::Failure;

/// A chain of links that is longer leads in a cycle.
const MOST_LINKS: usize = 40;

/// What a path leads to, with every link followed.
#[derive(Debug)]
pub(crate) enum Place {
    /// A regular file, or nothing yet. It has the permissions of the file that is there.
    File { target: PathBuf, there: Option<Permissions> },
    /// Something else that bytes can be written to.
    Stream(PathBuf),
    /// The standard output of this process, by a path such as `/dev/stdout`.
    Stdout,
    /// The standard error of this process.
    Stderr,
    /// A directory.
    Directory,
}

impl Place {
    pub(crate) fn of(path: &Path) -> io::Result<Place> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            if let Some(descriptor) = own_descriptor(&path) {
                return Ok(match descriptor.to_str() {
                    Some("1") => Place::Stdout,
                    Some("2") => Place::Stderr,
                    _ => Place::Stream(path),
                });
            }
            match fs::read_link(&path) {
                // Relative to where the link is; an absolute one replaces that.
                Ok(leads_to) => path = path.parent().unwrap_or(Path::new("")).join(leads_to),
                Err(_) => return Place::of_no_link(path),
            }
        }
        Err(io::Error::other("too many symbolic links"))
    }

    fn of_no_link(path: PathBuf) -> io::Result<Place> {
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Place::Directory),
            Ok(found) if found.is_file() => {
                Ok(Place::File { target: path.canonicalize()?, there: Some(found.permissions()) })
            }
            // Whoever names a disk does not mean that a report should begin it.
            Ok(found) if is_disk(&found) => Err(io::Error::other("it is a block device")),
            Ok(_) => Ok(Place::Stream(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = path.file_name().ok_or(error)?;
                let target = directory_of(&path).canonicalize()?.join(name);
                Ok(Place::File { target, there: None })
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(unix)]
fn is_disk(found: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type())
}

#[cfg(not(unix))]
fn is_disk(_: &Metadata) -> bool {
    false
}

/// The directory that a path lies in.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The number of the descriptor, where a path names one of this process: `/proc/self/fd/1`.
fn own_descriptor(path: &Path) -> Option<&OsStr> {
    let directory = directory_of(path).canonicalize().ok()?;
    let own = Path::new("/proc").join(std::process::id().to_string()).join("fd");
    if directory == own { path.file_name() } else { None }
}

/// Refuses a place where no file can be, before any work is done for it.
pub(crate) fn refuse_impossible(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    match Place::of(path) {
        Ok(Place::Directory) => {
            Err(Failure::new(format!("cannot write {name}: it is a directory"))
                .with_hint("name a file in it"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = directory_of(path).display();
            Err(Failure::new(format!("cannot write {name}: there is no directory {parent}"))
                .with_hint("create it first, or choose another directory"))
        }
        Err(error) => Err(Failure::new(format!("cannot write {name}: {error}"))),
        Ok(_) => Ok(()),
    }
}

/// Refuses to replace a file unless that is wanted. What is written through replaces nothing.
pub(crate) fn refuse_replacing(path: &Path, force: bool) -> Result<(), Failure> {
    refuse_impossible(path)?;
    match Place::of(path) {
        Ok(Place::File { there: Some(_), .. }) if !force => {
            Err(Failure::new(format!("{} already exists", path.display()))
                .with_hint("replace it with --force, or choose another name"))
        }
        _ => Ok(()),
    }
}

/// A file in the making. Unless it is finished, nothing has changed.
pub(crate) struct OutFile {
    out: BufWriter<PipeTolerant<File>>,
    /// Where it is written meanwhile; none where it is written through.
    draft: Option<Draft>,
}

impl OutFile {
    pub(crate) fn create(path: &Path) -> io::Result<OutFile> {
        let (file, draft) = match Place::of(path)? {
            Place::File { target, there } => {
                let draft = Draft::begin(target, there)?;
                (File::create_new(draft.path())?, Some(draft))
            }
            place => (open_stream(&place)?, None),
        };
        Ok(OutFile { out: BufWriter::new(PipeTolerant::new(file)), draft })
    }

    /// Writes out what is held back, and puts the file in its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        match self.draft {
            Some(draft) => draft.keep(),
            None => Ok(()),
        }
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a file that is there as a whole or not at all, unless it is written through.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let whole = || -> io::Result<()> {
        let mut out = OutFile::create(path)?;
        write(&mut out)?;
        out.finish()
    };
    whole().map_err(|error| cannot_write(path, &error))
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// Opens what is written through.
pub(crate) fn open_stream(place: &Place) -> io::Result<File> {
    match place {
        // The descriptor itself, not its file once more: both must go on where the other stopped.
        Place::Stdout => descriptor(&io::stdout()),
        Place::Stderr => descriptor(&io::stderr()),
        // What is already behind a descriptor stays there.
        Place::Stream(path) => OpenOptions::new().append(true).open(path),
        Place::File { target, .. } => OpenOptions::new().append(true).open(target),
        Place::Directory => Err(io::ErrorKind::IsADirectory.into()),
    }
}

#[cfg(unix)]
fn descriptor(stream: &impl std::os::fd::AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
fn descriptor<S>(_: &S) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A directory of our own beside a target, in which the target is made: nobody else's file has that
/// name, and the rename at the end does not cross file systems.
pub(crate) struct Draft {
    directory: PathBuf,
    target: PathBuf,
    /// Those of the file that is replaced.
    permissions: Option<Permissions>,
}

/// The drafts there are, for whoever ends the process.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Draft {
    /// Begins to make a file; one that is there already has permissions.
    pub(crate) fn begin(target: PathBuf, permissions: Option<Permissions>) -> io::Result<Draft> {
        if permissions.is_some() {
            // The rename would not ask whether this file may be written.
            OpenOptions::new().write(true).open(&target)?;
        }
        let mut drafts = lock_drafts();
        let directory = match make_directory(directory_of(&target)) {
            Err(error) if permissions.is_some() && forbids_renaming(&error) => {
                make_directory(&std::env::temp_dir())?
            }
            made => made?,
        };
        drafts.push(directory.clone());
        Ok(Draft { directory, target, permissions })
    }

    /// Where to write: a file or a directory, not there yet.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("draft")
    }

    /// Puts it in the place of the target.
    pub(crate) fn keep(self) -> io::Result<()> {
        if let Some(permissions) = &self.permissions {
            fs::set_permissions(self.path(), permissions.clone())?;
        }
        // Whoever interrupts finds it here or there.
        let drafts = lock_drafts();
        let kept = match fs::rename(self.path(), &self.target) {
            Err(error) if self.permissions.is_some() && forbids_renaming(&error) => {
                self.write_through()
            }
            renamed => renamed,
        };
        drop(drafts);
        kept
    }

    /// Puts the new content into the file that is there.
    fn write_through(&self) -> io::Result<()> {
        let mut draft = File::open(self.path())?;
        let mut target = OpenOptions::new().write(true).truncate(true).open(&self.target)?;
        io::copy(&mut draft, &mut target).map(|_| ())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let mut drafts = lock_drafts();
        // What cannot be removed does no harm, and there is nothing better to do about it.
        let _ = fs::remove_dir_all(&self.directory);
        drafts.retain(|directory| *directory != self.directory);
    }
}

/// Removes all drafts, for whoever is about to end the process: no others can be made, and none can
/// be kept, as long as the answer lives. It tells how many there were.
pub(crate) fn abandon_drafts() -> (usize, MutexGuard<'static, Vec<PathBuf>>) {
    let drafts = lock_drafts();
    for directory in drafts.iter() {
        // A format of several files may be making the next one.
        let _ = (0..3).find(|_| fs::remove_dir_all(directory).is_ok());
    }
    (drafts.len(), drafts)
}

/// Makes a directory of our own in another one. Nobody else looks in: a draft has the permissions
/// of its target only at the end.
fn make_directory(parent: &Path) -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!(".isolario-{}-{number}.tmp", std::process::id()));
        match builder.create(&directory) {
            // Left behind by a process that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
}

/// Whether a file cannot be replaced by another one, although it may well be written: its directory
/// is read-only, or it is a mount point, or the draft had to be made elsewhere.
fn forbids_renaming(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), CrossesDevices | PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

fn lock_drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}
