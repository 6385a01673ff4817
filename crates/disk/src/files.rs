//! The files of a directory. All that is done to them is done to the directory below, and what they held before is
//! remembered until it is synced.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileHandle, FileType, INodeNo, OpenFlags, Request};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;

use crate::unsynced::Unsynced;

/// The files below a directory.
#[derive(Debug)]
pub(crate) struct Files {
    device: u64,
    /// By number. The kernel calls the first directory by another one.
    known: Mutex<BTreeMap<u64, Inode>>,
    open: Mutex<Open>,
    unsynced: Arc<Mutex<Unsynced>>,
}

/// A file or directory that the kernel knows of.
#[derive(Debug)]
struct Inode {
    /// Stands for the file, and cannot be read or written.
    file: Arc<File>,
    /// How often the kernel was told of it.
    lookups: u64,
}

/// What is open, by handle.
#[derive(Debug, Default)]
struct Open {
    files: BTreeMap<u64, Arc<OpenFile>>,
    directories: BTreeMap<u64, Arc<Vec<Name>>>,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// Whether every write is synced.
    is_synced: bool,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) inode: INodeNo,
    pub(crate) kind: FileType,
    pub(crate) name: OsString,
}

/// What is to be different about a file.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<SystemTime>,
    pub(crate) modified: Option<SystemTime>,
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Opens what stands for a directory.
pub(crate) fn directory(path: &Path) -> io::Result<File> {
    standing_for(path, OFlags::DIRECTORY)
}

fn standing_for(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::PATH | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// The path of what a file stands for, whatever it is called by now and whatever covers it.
pub(crate) fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl Files {
    pub(crate) fn below(root: Arc<File>, unsynced: Arc<Mutex<Unsynced>>) -> io::Result<Files> {
        let device = root.metadata()?.dev();
        let root = (INodeNo::ROOT.0, Inode { file: root, lookups: 1 });
        let known = Mutex::new(BTreeMap::from([root]));
        Ok(Files { device, known, open: Mutex::default(), unsynced })
    }

    pub(crate) fn inode(&self, inode: INodeNo) -> io::Result<Arc<File>> {
        let known = locked(&self.known);
        let found = known.get(&inode.0).map(|inode| Arc::clone(&inode.file));
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The path of an entry of a directory.
    pub(crate) fn path(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        Ok(path_of(&*self.inode(parent)?).join(name))
    }

    /// Tells the kernel of an entry.
    pub(crate) fn tell(&self, path: &Path) -> io::Result<FileAttr> {
        let file = standing_for(path, OFlags::empty())?;
        let metadata = file.metadata()?;
        if metadata.dev() != self.device {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let mut known = locked(&self.known);
        let inode = known.entry(metadata.ino());
        inode.or_insert_with(|| Inode { file: Arc::new(file), lookups: 0 }).lookups += 1;
        Ok(attributes(INodeNo(metadata.ino()), &metadata))
    }

    /// What was made belongs to whoever asked for it.
    fn give(&self, path: &Path, request: &Request) -> io::Result<FileAttr> {
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(path, Some(request.uid()), Some(request.gid()))?;
        }
        self.tell(path)
    }

    /// Adds an entry to a directory, for whoever asked for it.
    pub(crate) fn add(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        make: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<FileAttr> {
        let path = self.path(parent, name)?;
        make(&path)?;
        self.give(&path, request)
    }

    /// Opens a file so that what it holds can be remembered before it is written.
    pub(crate) fn open_file(&self, inode: INodeNo, flags: OpenFlags) -> io::Result<FileHandle> {
        let path = path_of(&*self.inode(inode)?);
        let both = OpenOptions::new().read(true).write(true).open(&path);
        let file = both.or_else(|_| File::open(&path))?;
        Ok(self.keep_open(file, flags.0))
    }

    fn keep_open(&self, file: File, flags: i32) -> FileHandle {
        let flags = OFlags::from_bits_retain(flags as u32);
        let is_synced = flags.intersects(OFlags::DSYNC | OFlags::SYNC);
        let mut open = locked(&self.open);
        let handle = open.number();
        open.files.insert(handle, Arc::new(OpenFile { file, is_synced }));
        FileHandle(handle)
    }

    pub(crate) fn opened(&self, handle: FileHandle) -> io::Result<Arc<OpenFile>> {
        let open = locked(&self.open);
        open.files.get(&handle.0).cloned().ok_or_else(|| Errno::BADF.into())
    }

    pub(crate) fn write_at(
        &self,
        inode: INodeNo,
        handle: FileHandle,
        at: u64,
        data: &[u8],
    ) -> io::Result<()> {
        let open = self.opened(handle)?;
        let mut unsynced = locked(&self.unsynced);
        unsynced.before_write(inode.0, &open.file, at, at + data.len() as u64)?;
        open.file.write_all_at(data, at)?;
        if open.is_synced {
            unsynced.forget(inode.0);
        }
        Ok(())
    }

    fn resize(&self, inode: INodeNo, file: &File, to: u64) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(path_of(file))?;
        locked(&self.unsynced).before_resize(inode.0, &file, to)?;
        file.set_len(to)
    }

    pub(crate) fn change(&self, inode: INodeNo, change: &Change) -> io::Result<FileAttr> {
        let file = self.inode(inode)?;
        let path = path_of(&file);
        if let Some(mode) = change.mode {
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        if change.uid.is_some() || change.gid.is_some() {
            std::os::unix::fs::chown(&path, change.uid, change.gid)?;
        }
        if let Some(size) = change.size {
            self.resize(inode, &file, size)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let mut times = FileTimes::new();
            times = change.accessed.map_or(times, |time| times.set_accessed(time));
            times = change.modified.map_or(times, |time| times.set_modified(time));
            File::open(&path)?.set_times(times)?;
        }
        Ok(attributes(inode, &file.metadata()?))
    }

    pub(crate) fn list(&self, inode: INodeNo) -> io::Result<FileHandle> {
        let path = path_of(&*self.inode(inode)?);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            names.push(Name {
                inode: INodeNo(metadata.ino()),
                kind: kind(&metadata),
                name: entry.file_name(),
            });
        }
        let mut open = locked(&self.open);
        let handle = open.number();
        open.directories.insert(handle, Arc::new(names));
        Ok(FileHandle(handle))
    }

    /// Makes a file and opens it.
    pub(crate) fn make(
        &self,
        path: &Path,
        mode: u32,
        flags: i32,
        of: &Request,
    ) -> io::Result<(FileAttr, FileHandle)> {
        let only_new = flags as u32 & OFlags::EXCL.bits() != 0;
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode).create(true).create_new(only_new);
        let file = options.open(path)?;
        Ok((self.give(path, of)?, self.keep_open(file, flags)))
    }

    pub(crate) fn remove(&self, parent: INodeNo, name: &OsStr) -> io::Result<()> {
        let path = self.path(parent, name)?;
        let metadata = std::fs::symlink_metadata(&path)?;
        std::fs::remove_file(&path)?;
        if metadata.nlink() == 1 {
            locked(&self.unsynced).forget(metadata.ino());
        }
        Ok(())
    }

    /// Gives a file another name.
    pub(crate) fn link_to(&self, inode: INodeNo, path: &Path) -> io::Result<()> {
        let from = path_of(&*self.inode(inode)?);
        Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// The kernel forgets so many times that it was told of a file.
    pub(crate) fn forget(&self, inode: INodeNo, times: u64) {
        let mut known = locked(&self.known);
        if let Some(found) = known.get_mut(&inode.0) {
            found.lookups = found.lookups.saturating_sub(times);
            if found.lookups == 0 {
                known.remove(&inode.0);
            }
        }
    }

    /// A file has been synced.
    pub(crate) fn sync(&self, inode: INodeNo) {
        locked(&self.unsynced).forget(inode.0);
    }

    /// The entries of a directory that is open.
    pub(crate) fn listed(&self, handle: FileHandle) -> io::Result<Arc<Vec<Name>>> {
        let open = locked(&self.open);
        open.directories.get(&handle.0).cloned().ok_or_else(|| Errno::BADF.into())
    }

    /// A file or directory is not open any more.
    pub(crate) fn close(&self, handle: FileHandle) {
        let mut open = locked(&self.open);
        open.files.remove(&handle.0);
        open.directories.remove(&handle.0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the kernel wants to know of a file.
pub(crate) fn attributes(inode: INodeNo, metadata: &Metadata) -> FileAttr {
    FileAttr {
        ino: inode,
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: metadata.accessed().unwrap_or(UNIX_EPOCH),
        mtime: metadata.modified().unwrap_or(UNIX_EPOCH),
        ctime: UNIX_EPOCH + Duration::from_secs(metadata.ctime().max(0) as u64),
        crtime: UNIX_EPOCH,
        kind: kind(metadata),
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: metadata.nlink() as u32,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: metadata.rdev() as u32,
        blksize: metadata.blksize() as u32,
        flags: 0,
    }
}

fn kind(metadata: &Metadata) -> FileType {
    FileType::from_std(metadata.file_type()).unwrap_or(FileType::RegularFile)
}
