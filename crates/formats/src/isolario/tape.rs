//! A file to which records are appended, one after the other, by storing them into room: space that
//! is ours on the disk, mapped into memory.
//!
//! To append a record to a file by a system call takes the processor longer than to put the record
//! together. A store into a mapped file takes next to nothing, and what was stored outlives the
//! process as surely as what was written: both are pages of the system, and not of the process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::{MmapMut, MmapOptions};

/// Appends records to a file. Each is there, in one piece, when [`append`](Tape::append) returns: a
/// process that dies loses at most the record it was appending.
///
/// After an error nothing can be appended any more. So whatever is in the file has, at all times,
/// everything that came before it.
#[derive(Debug)]
pub(super) struct Tape {
    file: File,
    /// Where the next record goes.
    end: u64,
    means: Means,
    /// Why nothing can be appended any more.
    failed: Option<(io::ErrorKind, String)>,
}

/// How records get into the file.
#[derive(Debug)]
enum Means {
    /// They are stored into room that begins at a place.
    Room(u64, Room),
    /// They are written. A write that fails may leave a part of a record, which readers know by its
    /// checksum.
    Writes,
}

/// How much room to make at a time: a second's worth of records or so.
const STEP: u64 = 64 * PAGES;

impl Tape {
    /// Creates the file, or empties it, and writes how it begins.
    pub(super) fn create(path: &Path, header: &[u8]) -> io::Result<Tape> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all(header)?;
        let means = match room(&file, 0, PAGES) {
            Ok(room) => Means::Room(0, room),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Means::Writes,
            Err(error) => return Err(error),
        };
        Ok(Tape { file, end: header.len() as u64, means, failed: None })
    }

    /// Appends a record, the first byte of which is not zero.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if let Some((kind, message)) = &self.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        let done = self.put(record);
        match &done {
            Ok(()) => self.end += record.len() as u64,
            Err(error) => self.failed = Some((error.kind(), error.to_string())),
        }
        done
    }

    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        let Means::Room(from, ready) = &mut self.means else {
            return self.file.write_all(record);
        };
        if ready.put((self.end - *from) as usize, record) {
            return Ok(());
        }
        *from = self.end / PAGES * PAGES;
        let least = self.end + record.len() as u64 - *from;
        *ready = room(&self.file, *from, least.next_multiple_of(PAGES))?;
        match ready.put((self.end - *from) as usize, record) {
            true => Ok(()),
            false => Err(io::Error::other("no room for a record")),
        }
    }
}

/// Room from a place on: as much as usual, or as much as the disk still has, but not less than
/// `least`.
fn room(file: &File, from: u64, least: u64) -> io::Result<Room> {
    let mut len = STEP.max(least);
    loop {
        match Room::new(file, from, len) {
            Err(error) if len > least && error.kind() != io::ErrorKind::Unsupported => {
                len = (len / 2).next_multiple_of(PAGES).max(least);
            }
            done => return done,
        }
    }
}

/// A part of a file that can be stored into.
#[derive(Debug)]
struct Room {
    map: MmapMut,
}

/// Where room may begin, and how it is counted: whole pages of every system there is.
const PAGES: u64 = 1 << 16;

impl Room {
    /// Makes room for `len` bytes from a place on; both are whole [`PAGES`]. The bytes are zeros, as
    /// far as the file did not have them.
    ///
    /// The space is taken on the disk first: a store for which there is no space would end the
    /// process, where a full disk is to be an error. Where a file system cannot promise the space,
    /// the error is [`io::ErrorKind::Unsupported`].
    #[expect(unsafe_code, reason = "mapping a file has no safe interface")]
    fn new(file: &File, from: u64, len: u64) -> io::Result<Room> {
        allocate(file, from, len)?;
        let size = usize::try_from(len).map_err(io::Error::other)?;
        // SAFETY: this memory is only stored to, through `put`, and never read, so no assumption
        // about its content can be broken by whoever else has the file open. A reader in this
        // process has a map of its own and its own argument (see `Source`). Whoever cuts the file
        // short while it is recorded ends this process, as with every mapped file; nobody here does.
        let map = unsafe { MmapOptions::new().offset(from).len(size).map_mut(file)? };
        Ok(Room { map })
    }

    /// Stores a record: a reader sees all of it or nothing. Returns whether there was room.
    ///
    /// The first byte of a record is its kind, which is never zero, and zero is what was there. It
    /// is stored when all others are. If the process dies before, or if somebody reads the file
    /// now, the record is not there. That is safe: until this returns, its session sends nothing
    /// of what the record announces, so that nobody can have seen any of it; and of what the
    /// session did before, the file has the announcement, which stands for an unknown outcome.
    #[expect(unsafe_code, reason = "an atomic byte within a map has no safe interface")]
    fn put(&mut self, at: usize, record: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::tests::temp_file;
    use super::*;

    /// A tape on a file system that promises no space.
    fn plain(path: &Path) -> Tape {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
        Tape { file, end: 0, means: Means::Writes, failed: None }
    }

    #[test]
    fn stored_or_written_the_bytes_are_the_same() {
        let (stored, written) = (temp_file(), temp_file());
        let mut tapes = [Tape::create(stored.path(), b"head").unwrap(), plain(written.path())];
        tapes[1].append(b"head").unwrap();
        // Up to the end of the room and beyond it, and one that does not fit into the usual room.
        let long = vec![7; STEP as usize / 3];
        let longest = vec![8; 2 * STEP as usize + 1];
        for record in [&b"a"[..], &long, &long, &long, b"bc", &longest, &long, b"d"] {
            tapes.iter_mut().for_each(|tape| tape.append(record).unwrap());
        }
        let end = tapes[1].end as usize;
        let [stored, written] =
            [stored.path(), written.path()].map(|path| std::fs::read(path).unwrap());
        assert_eq!(written.len(), end);
        assert!(stored[..end] == written[..]);
        assert!(stored[end..].iter().all(|byte| *byte == 0), "room");
    }

    #[test]
    fn after_an_error_nothing_is_appended_any_more() {
        let mut tape = plain(Path::new("/dev/full"));
        for record in ["a", "b"] {
            let error = tape.append(record.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(tape.end, 0);
    }
}
