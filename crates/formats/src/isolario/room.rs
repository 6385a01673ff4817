//! Room in a file: space that is ours on the disk, mapped into memory, and written by storing.
//!
//! To append a record to a file by a system call takes the processor longer than to put the record
//! together. A store into a mapped file takes next to nothing, and what was stored outlives the
//! process as surely as what was written: both are pages of the system, and not of the process.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::{MmapMut, MmapOptions};

/// A part of a file that can be stored into.
#[derive(Debug)]
pub(super) struct Room {
    map: MmapMut,
}

/// Where room may begin, and how it is counted: whole pages of every system there is.
pub(super) const PAGES: u64 = 1 << 16;

impl Room {
    /// Makes room for `len` bytes from a place on; both are whole [`PAGES`]. The bytes are zeros, as
    /// far as the file did not have them.
    ///
    /// The space is taken on the disk first: a store for which there is no space would end the
    /// process, where a full disk is to be an error. Where a file system cannot promise the space,
    /// the error is [`io::ErrorKind::Unsupported`].
    #[expect(unsafe_code, reason = "mapping a file has no safe interface")]
    pub(super) fn new(file: &File, from: u64, len: u64) -> io::Result<Room> {
        allocate(file, from, len)?;
        let size = usize::try_from(len).map_err(io::Error::other)?;
        // SAFETY: this memory is only stored to, through `put`, and never read, so no assumption
        // about its content can be broken by whoever else has the file open. A reader in this
        // process has a map of its own and its own argument (see `Source`). Whoever cuts the file
        // short while it is recorded ends this process, as with every mapped file; nobody here does.
        let map = unsafe { MmapOptions::new().offset(from).len(size).map_mut(file)? };
        Ok(Room { map })
    }

    /// Stores a record: all of it or, for whoever looks, nothing. Tells whether there was room.
    ///
    /// The first byte of a record is its kind, which is never zero, and zero is what was there. It
    /// is stored when all others are. If the process dies before, or if somebody reads the file
    /// now, the record is not there. That is safe: until this returns, its session sends nothing
    /// of what the record announces, so that nobody can have seen any of it; and of what the
    /// session did before, the file has the announcement, which stands for an unknown outcome.
    #[expect(unsafe_code, reason = "an atomic byte within a map has no safe interface")]
    pub(super) fn put(&mut self, at: usize, record: &[u8]) -> bool {
        let place = at.checked_add(record.len()).and_then(|end| self.map.get_mut(at..end));
        let (Some(place), Some((kind, rest))) = (place, record.split_first()) else { return false };
        let Some((first, others)) = place.split_first_mut() else { return false };
        others.copy_from_slice(rest);
        // SAFETY: the reference to the byte is exclusive and lives on; bytes need no alignment.
        let first = unsafe { AtomicU8::from_ptr(first) };
        first.store(*kind, Ordering::Release);
        true
    }
}

/// File systems on which space that was taken stays ours: ext2 to ext4, XFS, memory, and layers over
/// these. Others may know the call and promise nothing, such as those that copy on write.
#[cfg(target_os = "linux")]
const KEEP_THEIR_PROMISE: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];

#[cfg(target_os = "linux")]
fn allocate(file: &File, from: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate, fstatfs};
    use rustix::io::{Errno, retry_on_intr};

    if !KEEP_THEIR_PROMISE.contains(&(fstatfs(file)?.f_type as u64)) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), from, len)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        done => Ok(done?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
