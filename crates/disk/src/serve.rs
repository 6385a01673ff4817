//! What the kernel asks of a file system, and how it is answered. What is not here, Linux does without: files cannot
//! be allocated in advance, and have no extended attributes.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{CWD, Dev, FileType, Mode, mknodat, renameat_with, statvfs};

use crate::files::{Change, Files, attributes, path_of};

/// How long the kernel may take for granted what it was told. All changes come from there.
const VALID: Duration = Duration::from_secs(1);

fn entry(reply: ReplyEntry, found: io::Result<FileAttr>) {
    match found {
        Ok(attributes) => reply.entry(&VALID, &attributes, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

fn attr(reply: ReplyAttr, found: io::Result<FileAttr>) {
    match found {
        Ok(attributes) => reply.attr(&VALID, &attributes),
        Err(error) => reply.error(error.into()),
    }
}

fn opened(reply: ReplyOpen, handle: io::Result<FileHandle>) {
    match handle {
        Ok(handle) => reply.opened(handle, FopenFlags::empty()),
        Err(error) => reply.error(error.into()),
    }
}

fn done(reply: ReplyEmpty, result: io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

fn time(wanted: Option<TimeOrNow>) -> Option<SystemTime> {
    wanted.map(|time| match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    })
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.path(parent, name).and_then(|path| self.tell(&path)));
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        Files::forget(self, inode, times);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let file = self.inode(inode);
        attr(reply, file.and_then(|file| Ok(attributes(inode, &file.metadata()?))));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (accessed, modified) = (time(accessed), time(modified));
        attr(reply, self.change(inode, &Change { mode, uid, gid, size, accessed, modified }));
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        let file = self.inode(inode);
        let target = file.and_then(|file| Ok(rustix::fs::readlinkat(&*file, "", Vec::new())?));
        match target {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode & !umask));
        let make = |path: &Path| Ok(mknodat(CWD, path, kind, mode, Dev::from(device))?);
        entry(reply, self.add(request, parent, name, make));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| std::fs::DirBuilder::new().mode(mode & !umask).create(path);
        entry(reply, self.add(request, parent, name, make));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.path(parent, name).and_then(std::fs::remove_dir));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| std::os::unix::fs::symlink(target, path);
        entry(reply, self.add(request, parent, name, make));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let renamed = self.path(parent, name).and_then(|from| {
            Ok(renameat_with(CWD, from, CWD, self.path(new_parent, new_name)?, flags)?)
        });
        done(reply, renamed);
    }

    fn link(
        &self,
        _: &Request,
        inode: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let linked = self.path(new_parent, new_name).and_then(|path| {
            self.link_to(inode, &path)?;
            self.tell(&path)
        });
        entry(reply, linked);
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.open_file(inode, flags));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        at: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut data = vec![0; size as usize];
        match self.opened(handle).and_then(|open| read_up_to(&open.file, &mut data, at)) {
            Ok(length) => reply.data(&data[..length]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        at: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_at(inode, handle, at, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close(handle);
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(inode);
        reply.ok();
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.list(inode));
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.listed(handle) {
            Ok(names) => names,
            Err(error) => return reply.error(error.into()),
        };
        for (next, name) in (1..).zip(names.iter()).skip(from as usize) {
            if reply.add(name.inode, next, name.kind, &name.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.close(handle);
        reply.ok();
    }

    /// Names are kept in any case.
    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Request, inode: INodeNo, reply: ReplyStatfs) {
        let space = self.inode(inode).and_then(|file| Ok(statvfs(path_of(&file))?));
        match space {
            Ok(is) => reply.statfs(
                is.f_blocks,
                is.f_bfree,
                is.f_bavail,
                is.f_files,
                is.f_ffree,
                is.f_bsize as u32,
                is.f_namemax as u32,
                is.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let path = self.path(parent, name);
        match path.and_then(|path| self.make(&path, mode & !umask, flags, request)) {
            Ok((attributes, handle)) => {
                reply.created(&VALID, &attributes, Generation(0), handle, FopenFlags::empty());
            }
            Err(error) => reply.error(error.into()),
        }
    }
}

/// Reads until there is no more room or no more data.
fn read_up_to(file: &std::fs::File, data: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < data.len() {
        match file.read_at(&mut data[length..], at + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
